"""The nodes of a cluster, as `scontrol` tells of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf

import msgspec

from jobman.engines.scripts.delegate import NodeAt

_FIELD = re.compile(r"(?:^| )([A-Za-z]+)=")
_STATES = {
    "IDLE": "up",
    "MIXED": "up",
    "ALLOCATED": "up",
    "COMPLETING": "up",
    "PLANNED": "up",
    # Before 21.08 these stand in the place of the state, and not behind it.
    "MAINT": "up",
    "RESERVED": "up",
    "DOWN": "down",
    "ERROR": "down",
    "UNKNOWN": "down",
    "FAIL": "down",
    "FUTURE": "down",
}
_MIB = 2**20
_COUNT = re.compile(r"(?:^|:)(\d+)([KMG]?)$")
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def read_nodes(text: str) -> Iterator[NodeAt]:
    """One line for each node."""
    for line in text.splitlines():
        fields = fields_of(line)
        if "NodeName" in fields:
            yield _node(fields)


def fields_of(line: str) -> dict[str, str]:
    """`Key=value` pairs whose values may have blanks."""
    found = list(_FIELD.finditer(line))
    ends = [match.start() for match in found[1:]] + [len(line)]
    return {match[1]: line[match.end() : end].strip() for match, end in zip(found, ends, strict=True)}


def _node(fields: dict[str, str]) -> NodeAt:
    words = re.split(r"[+*~#!%$@^-]+", fields.get("State", "UNKNOWN"))
    state = _STATES.get(words[0], "down")
    flags = set(words[1:])
    if flags & {"DRAIN", "DRAINED", "DRAINING"}:
        state = "draining"
    elif flags & {"NOT_RESPONDING", "POWERED_DOWN", "POWER"} or "*" in fields.get("State", ""):
        state = "down"
    reason = re.sub(r" \[[^\]]*\]$", "", fields.get("Reason", ""))
    features = fields.get("ActiveFeatures", "").replace("(null)", "")
    return NodeAt(
        name=fields["NodeName"],
        state=state,
        reason=reason,
        amounts=_amounts(fields.get("CfgTRES", "")) | _generic(fields.get("Gres", "")),
        used=_amounts(fields.get("AllocTRES", "")) | _generic(fields.get("GresUsed", "")),
        uncounted=_uncounted(fields),
        facts=tuple(feature for feature in features.split(",") if feature),
        partitions=tuple(fields.get("Partitions", "").split(",")) if fields.get("Partitions") else (),
    )


def with_types(node: NodeAt, names: Mapping[str, str]) -> NodeAt:
    """The node with a site's own types; licences belong to no node, so that every node has enough of them."""
    own = {
        kind: inf if name.startswith("license/") else node.amounts.get(name.rpartition("/")[2], 0)
        for kind, name in names.items()
    }
    return msgspec.structs.replace(node, amounts={**node.amounts, **own})


def _amounts(text: str) -> dict[str, float]:
    """Trackable resources: cpu=8,mem=4000M,billing=8,gres/gpu=4."""
    found: dict[str, float] = {}
    for entry in text.split(","):
        name, _, value = entry.partition("=")
        if name == "cpu":
            found["core"] = float(value)
        elif name == "mem":
            found["memory"] = megabytes(value) * _MIB
        elif name == "gres/gpu":
            found["gpu"] = float(value)
    return found


def _uncounted(fields: Mapping[str, str]) -> dict[str, float]:
    found = {"socket": float(fields.get("Sockets", "0")), "storage": float(fields.get("TmpDisk", "0")) * _MIB}
    return {name: amount for name, amount in found.items() if amount}


def _generic(text: str) -> dict[str, float]:
    """Generic resources: gpu:a100:4(S:0-1),fpga,(null)."""
    found: dict[str, float] = {}
    for entry in re.sub(r"\([^)]*\)", "", text).split(","):
        name, _, rest = entry.partition(":")
        count = _COUNT.search(rest)
        amount = float(count[1]) * _FACTORS[count[2]] if count else 1.0
        if name:
            found[name] = found.get(name, 0) + amount
    return {name: amount for name, amount in found.items() if amount}


def megabytes(text: str) -> float:
    """An amount of memory as Slurm writes it."""
    factors = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}
    return float(text[:-1]) * factors[text[-1]] if text[-1:] in factors else float(text or 0)
