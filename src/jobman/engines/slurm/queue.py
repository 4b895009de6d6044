"""What squeue and sacct say, as values."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from jobman.engines.scripts.delegate import QueueRowAt
from jobman.engines.scripts.found import Native, NativeState
from jobman.engines.slurm.compile import COMMENT

FORMAT = "%i|%T|%S|%e|%N|%r|%k"
"""Of squeue: none of these has a bar in it but perhaps the last, which the document may add to."""
_STATES: dict[str, NativeState] = {
    "PENDING": "waiting",
    "CONFIGURING": "waiting",
    "REQUEUED": "waiting",
    "REQUEUE_HOLD": "held",
    "REQUEUE_FED": "waiting",
    "SPECIAL_EXIT": "held",
    "RESV_DEL_HOLD": "held",
    "RUNNING": "running",
    "COMPLETING": "running",
    "SIGNALING": "running",
    "STAGE_OUT": "running",
    "RESIZING": "running",
    "STOPPED": "frozen",
    "SUSPENDED": "frozen",
}
_FAILURES = {
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "NODE_FAIL": "node-lost",
    "BOOT_FAIL": "node-lost",
    "PREEMPTED": "preempted",
    "OUT_OF_MEMORY": "out-of-memory",
    "FAILED": "exit",
}
HELD = ("JobHeldUser", "JobHeldAdmin", "job requeued in held state", "launch failed requeued held")
_NEVER = ("DependencyNeverSatisfied",)


def read_queue(text: str) -> Iterator[Native]:
    """The jobs of squeue that are ours."""
    for line in text.splitlines():
        fields = line.split("|", 6)
        if len(fields) == 7 and (found := _native(*fields)) is not None:
            yield found


def _native(
    id_: str, word: str, starts: str, ends: str, nodes: str, reason: str, comment: str
) -> Native | None:
    del nodes
    ours = whose(comment)
    if ours is None:
        return None
    job, piece = ours
    number, _, element = id_.partition("_")
    state: NativeState = _STATES.get(word, "over")
    if reason in HELD and state == "waiting":
        state = "held"
    return Native(
        id=number,
        piece=piece,
        job=job,
        state=state,
        element=int(element) if element.isdecimal() else None,
        reason="" if reason == "None" else reason,
        failure=_FAILURES.get(word, ""),
        starts_at=moment(starts),
        ends_at=moment(ends) if state == "over" else None,
    )


def read_accounts(text: str) -> Iterator[Native]:
    """Jobs of sacct; whose they are it is not asked."""
    for line in text.splitlines():
        id_, word, ends = (*line.split("|"), "", "")[:3]
        number, _, element = id_.partition("_")
        state = word.partition(" ")[0]
        if number.isdecimal():
            yield Native(
                id=number,
                piece="",
                job="",
                state="running" if _STATES.get(state) == "running" else "over",
                element=int(element) if element.isdecimal() else None,
                failure=_FAILURES.get(state, ""),
                ends_at=moment(ends),
            )


def read_rows(text: str, user: str) -> list[QueueRowAt]:
    """How many wait and run in each partition."""
    found: dict[str, Counter[str]] = {}
    for line in text.splitlines():
        partition, owner, word = (*line.split("|"), "", "")[:3]
        counts = found.setdefault(partition, Counter())
        state = "running" if _STATES.get(word) in ("running", "frozen") else "waiting"
        counts[state] += 1
        counts[f"yours_{state}"] += owner == user
    return [QueueRowAt(name=name, **counts) for name, counts in sorted(found.items())]


def whose(comment: str) -> tuple[str, str] | None:
    """The job and the piece that a comment names."""
    mark, _, rest = comment.partition(":")
    job, _, piece = rest.partition(";")[0].partition(":")
    return (job, piece) if mark == COMMENT and job and piece else None


def moment(text: str) -> float | None:
    """A time as Slurm writes it, in the zone of this machine."""
    try:
        return time.mktime(datetime.fromisoformat(text).timetuple())
    except ValueError:
        return None
