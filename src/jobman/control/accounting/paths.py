"""Paths: which of those a job was submitted with its owner may not read any more.

Looks at files, and so may wait for a disk that does not answer: never to be called in the event loop.
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from jobman.control.store.records import JobRecord
from jobman.engines.base import Account
from jobman.plan.model import Plan

log = logging.getLogger("jobman.paths")
_AT_ONCE = 200
_PATIENCE = 20.0

# As the owner itself sees it: lists of access, network disks and all. A folder is read by entering it.
_LOOK = 'for p do if [ -d "$p" ]; then [ -x "$p" ]; else [ -r "$p" ]; fi || printf "%s\\0" "$p"; done'


class Inspection(NamedTuple):
    """A job whose paths are to be looked at, as somebody; None for the service's own account."""

    job: str
    account: Account | None
    paths: tuple[str, ...]


def inspection_of(record: JobRecord, plan: Plan) -> Inspection:
    """What of a job is to be looked at: the folder it was submitted in, and what it has of the host."""
    known = record.options.get("account")
    account = None if known is None else msgspec.convert(known, Account)
    return Inspection(record.id, account, tuple(dict.fromkeys(_paths(record, plan))))


def _paths(record: JobRecord, plan: Plan) -> Iterator[str]:
    if record.cwd:
        yield record.cwd
    if any(feature.startswith("volumes") for feature in plan.features):
        for unit in plan.units:
            yield from (
                volume.path for volume in unit.policies.volumes if volume.kind == "host" and volume.path
            )


def unreadable(inspections: Iterable[Inspection]) -> dict[str, list[str]]:
    """The paths that are there and that their owner may not read, by job. Equal ones are looked at once."""
    wanted = list(inspections)
    lost: dict[Account | None, set[str]] = {}
    for account in {each.account for each in wanted}:
        paths = {path for each in wanted if each.account == account for path in each.paths}
        lost[account] = set(_lost(sorted(paths), account))
    found = {each.job: [path for path in each.paths if path in lost[each.account]] for each in wanted}
    return {job: paths for job, paths in found.items() if paths}


def _lost(paths: Sequence[str], account: Account | None) -> Iterator[str]:
    if account is None or account.uid == os.geteuid():
        yield from filter(_is_lost, paths)
        return
    there = [path for path in paths if os.path.exists(path)]  # noqa: PTH110 - a path that cannot be is not there
    for start in range(0, len(there), _AT_ONCE):
        yield from _lost_to(there[start : start + _AT_ONCE], account)


def _is_lost(path: str) -> bool:
    """Whether a path is closed to this process. One that is gone is not: nobody took it away."""
    try:
        mode = os.X_OK if os.path.isdir(path) else os.R_OK  # noqa: PTH112
        os.stat(path)  # noqa: PTH116
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return not os.access(path, mode)


def _lost_to(paths: Sequence[str], account: Account) -> list[str]:
    """Those that somebody else may not read; none where that cannot be found out."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", _LOOK, "sh", *paths],
            user=account.uid,
            group=account.gid,
            extra_groups=account.groups,
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        log.warning("cannot look at paths as uid %d: %s", account.uid, error)
        return []
    names = done.stdout.split(b"\0")[:-1]
    return [path for path in map(os.fsdecode, names) if os.path.exists(path)]  # noqa: PTH110
