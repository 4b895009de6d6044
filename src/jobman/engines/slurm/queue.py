"""What squeue and sacct say, as values."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from math import ceil, inf

import msgspec

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
    rows = (line.split("|", 6) for line in text.splitlines())
    natives = (_native(*fields) for fields in rows if len(fields) == 7)
    return _whole(native for native in natives if native is not None)


def _native(
    id_: str, word: str, starts: str, ends: str, nodes: str, reason: str, comment: str
) -> Native | None:
    del nodes
    ours = whose(comment)
    if ours is None:
        return None
    job, piece = ours
    number, element = _split(id_)
    state: NativeState = _STATES.get(word, "over")
    # One that goes back to the queue is held there already, while its script still ends.
    if reason in HELD and (state == "waiting" or word == "COMPLETING"):
        state = "held"
    return Native(
        id=number,
        piece=piece,
        job=job,
        state=state,
        element=element,
        reason="" if reason == "None" else reason,
        failure=_FAILURES.get(word, ""),
        starts_at=moment(starts),
        ends_at=moment(ends) if state == "over" else None,
    )


def _split(id_: str) -> tuple[str, int | None]:
    """The number of a job and the element of an array: 7, 7_3 and 7_[4-9%2]; 7+1 is a component of 7."""
    number, _, element = id_.partition("_")
    return number.partition("+")[0], int(element) if element.isdecimal() else None


def _whole(natives: Iterable[Native]) -> Iterator[Native]:
    """The components of a heterogeneous job are one; it waits for what any of them waits for."""
    found: dict[tuple[str, int | None], Native] = {}
    for native in natives:
        key = native.id, native.element
        found[key] = _joined(found[key], native) if key in found else native
    yield from found.values()


def _joined(one: Native, other: Native) -> Native:
    """It is over when all of it is, and begins when the last of it can."""
    starts = [native.starts_at for native in (one, other) if native.starts_at is not None]
    ends = [native.ends_at for native in (one, other) if native.ends_at is not None]
    return msgspec.structs.replace(
        other if one.state == "over" else one,
        reason=_telling(one.reason, other.reason),
        failure=one.failure or other.failure,
        starts_at=max(starts, default=None),
        ends_at=max(ends, default=None),
    )


def _telling(one: str, other: str) -> str:
    """Of two reasons the one that says more than that others come first."""
    return other if not one or (one == "Priority" and other) else one


def read_accounts(text: str) -> Iterator[Native]:
    """Jobs of sacct; whose they are it is not asked."""
    return _whole(_accounts(text))


def _accounts(text: str) -> Iterator[Native]:
    for line in text.splitlines():
        id_, word, ends = (*line.split("|"), "", "")[:3]
        number, element = _split(id_)
        state = word.partition(" ")[0]
        if number.isdecimal():
            yield Native(
                id=number,
                piece="",
                job="",
                state="running" if _STATES.get(state) == "running" else "over",
                element=element,
                failure=_FAILURES.get(state, ""),
                ends_at=moment(ends),
            )


def read_rows(text: str, user: str) -> list[QueueRowAt]:
    """How many wait and run in each partition; a heterogeneous job counts where its first component is."""
    found: dict[str, Counter[str]] = {}
    for line in text.splitlines():
        partition, owner, word, id_ = (*line.split("|"), "", "", "")[:4]
        if id_.partition("+")[2].strip("0"):
            continue
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


def minutes(text: str) -> float:
    """A limit of time as Slurm writes it: days-hours:minutes:seconds, as much of it as is needed."""
    days, _, clock = text.rpartition("-")
    if not clock.replace(":", "").isdecimal():
        return inf
    seconds = 0
    for each in clock.split(":"):
        seconds = seconds * 60 + int(each)
    return int(days or 0) * 24 * 60 + ceil(seconds / 60)
