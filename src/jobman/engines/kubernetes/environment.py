"""The variables of a copy: what its document gives it, and what it is told of its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.failures import limit_of
from jobman.engines.kubernetes.piece import Piece, host_name
from jobman.engines.kubernetes.resources import cores, per_copy
from jobman.engines.kubernetes.shell import verbatim
from jobman.engines.kubernetes.volumes import SCRATCH, secret_folder
from jobman.plan.model import Unit

_INDEX = "JOBMAN_INDEX"
_FAILURES = "JOBMAN_FAILURES"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Entry = dict[str, Any]


def shouted(name: str) -> str:
    """A name as part of a variable's."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def environment(piece: Piece) -> list[Entry]:
    """All variables that have a value before the command starts; the later win."""
    found: dict[str, Entry] = {}
    for entry in _entries(piece):
        found.pop(entry["name"], None)
        found[entry["name"]] = entry
    return list(found.values())


def environment_from(piece: Piece) -> list[Entry]:
    """Variables from elsewhere, in the order written."""
    found = []
    for origin in piece.unit.policies.env_from:
        if origin.secret is not None:
            entry: Entry = {"secretRef": {"name": origin.secret}}
        elif origin.config is not None:
            entry = {"configMapRef": {"name": origin.config}}
        else:
            entry = {"configMapRef": {"name": piece.variable_files[origin.file or ""]}}
        found.append({"prefix": origin.prefix, **entry} if origin.prefix else entry)
    return found


def calculated(piece: Piece) -> dict[str, str]:
    """Variables that are sums, which only a shell can make."""
    found = {}
    slice_ = piece.slice
    if piece.replica is not None and slice_.count > 1:
        if slice_.first_rank:
            found["JOBMAN_RANK"] = f"{slice_.first_rank} + {_INDEX}"
        if slice_.first_node and not slice_.is_together:
            found["JOBMAN_NODE_RANK"] = f"{slice_.first_node} + {_INDEX}"
    if _counts_attempts(piece):
        found["JOBMAN_ATTEMPT"] = f"1 + {_FAILURES}"
    return found


def variables_in(text: str) -> dict[str, str] | None:
    """The `NAME=value` lines of a file; None where it has others."""
    found = {}
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.removesuffix("\r").partition("=")
        if not equals or not _VARIABLE.fullmatch(name):
            return None
        found[name] = value
    return found


def _entries(piece: Piece) -> Iterator[Entry]:
    yield from (_plain(name, verbatim(value)) for name, value in piece.unit.environment.items())
    yield from _secrets(piece.unit)
    for name, number in piece.ports.items():
        if not name.isdigit():
            yield _plain(f"PORT_{shouted(name)}", number)
    yield from (_plain(name, value) for name, value in piece.peers.items())
    yield from _place(piece)


def _secrets(unit: Unit) -> Iterator[Entry]:
    for secret in unit.policies.secrets:
        if secret.variable is not None:
            reference = {"name": secret.name, "key": secret.key}
            yield {"name": secret.variable, "valueFrom": {"secretKeyRef": reference}}
        if secret.variable is None and secret.path is None:
            yield _plain(f"JOBMAN_SECRET_{shouted(secret.name)}", secret_folder(secret))


def _place(piece: Piece) -> Iterator[Entry]:
    """What section 8 of the language promises; other variables may refer to those before them."""
    unit, sums = piece.unit, calculated(piece)
    yield _plain("JOBMAN_JOB_ID", piece.target.job_id)
    own = piece.name if piece.attempt is None else piece.subdomain or piece.name
    yield _plain("JOBMAN_JOB_NAME", verbatim(piece.plan.name or piece.target.name or own))
    yield _plain("JOBMAN_TASK", verbatim(unit.name))
    if piece.replica is None:
        yield _from_annotation("JOBMAN_REPLICA", names.INDEX)
    else:
        yield _plain("JOBMAN_REPLICA", piece.replica)
    yield _plain("JOBMAN_REPLICAS", unit.replicas)
    if "JOBMAN_ATTEMPT" in sums:
        yield _from_annotation(_FAILURES, names.FAILURES)
    else:
        yield _plain("JOBMAN_ATTEMPT", piece.attempt or 1)
    yield from _rank(piece, sums)
    yield _plain("JOBMAN_SIZE", piece.size)
    yield from _hardware(piece)
    yield _plain("JOBMAN_SCRATCH", SCRATCH)


def _rank(piece: Piece, sums: Mapping[str, str]) -> Iterator[Entry]:
    slice_ = piece.slice
    if piece.replica is None:
        yield _plain("JOBMAN_RANK", 0)
        yield _plain("JOBMAN_NODE_RANK", 0)
        yield _plain("JOBMAN_NNODES", 1)
        yield _plain("JOBMAN_NODELIST", host_name(piece.name, "$(JOBMAN_REPLICA)", piece.subdomain))
        return
    if sums.keys() & {"JOBMAN_RANK", "JOBMAN_NODE_RANK"}:
        yield _from_annotation(_INDEX, names.INDEX)
    if "JOBMAN_RANK" not in sums:
        yield _numbered("JOBMAN_RANK", slice_.first_rank, slice_.count)
    if "JOBMAN_NODE_RANK" not in sums:
        nodes = 1 if slice_.is_together else slice_.count
        yield _numbered("JOBMAN_NODE_RANK", slice_.first_node, nodes)
    yield _plain("JOBMAN_NNODES", len(piece.hosts))
    yield _plain("JOBMAN_NODELIST", ",".join(piece.hosts))


def _numbered(name: str, first: int, count: int) -> Entry:
    return _plain(name, first) if count == 1 else _from_annotation(name, names.INDEX)


def _hardware(piece: Piece) -> Iterator[Entry]:
    part = piece.slice.part
    count = piece.cores or cores(part)
    if count is None:
        # Without a limit this is what the node has.
        field = {"resource": "limits.cpu", "divisor": "1"}
        yield {"name": "JOBMAN_CORES", "valueFrom": {"resourceFieldRef": field}}
    else:
        yield _plain("JOBMAN_CORES", count)
    gpus = int(per_copy(part).get("gpu", 0))
    yield _plain("JOBMAN_GPUS", gpus)
    if gpus:
        # A container sees only the devices it was given, numbered from 0.
        yield _plain("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus))))


def _counts_attempts(piece: Piece) -> bool:
    if piece.attempt is not None or piece.unit.policies.restart == "on-failure":
        return False
    return limit_of(piece.plan, piece.unit) > 0


def _plain(name: str, value: object) -> Entry:
    return {"name": name, "value": str(value)}


def _from_annotation(name: str, annotation: str) -> Entry:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}}
