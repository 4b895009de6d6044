"""Copies and replicas: what the pods of a Job, and what it says of its indexes, make of each. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import Attempt, attempts_of, index_of, seconds
from jobman.engines.kubernetes.indexes import Indexes, condition, is_over, ran_too_long, width
from jobman.engines.kubernetes.objects import Condition, Event, Job, Pod

CANCELLED = names.PREFIX + "cancelled"
"""Annotation of a Job that somebody cancelled: it is suspended and will not be taken up again."""
# The first of these that a copy is in tells of the whole replica.
_TOGETHER = ("stopping", "failed", "resting", "starting", "queued", "waiting", "running", "succeeded")
# In these states one is still told of the failure before.
_SUFFERING = ("failed", "resting", "waiting", "queued", "starting")
_TAKEN = ("node-lost", "preempted")
"""Reasons of a pod that the cluster took away, whatever its Job thinks of that."""


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """One index of a Job: its state, and its attempts in order as far as their pods are still there."""

    index: int
    state: str
    attempts: tuple[Attempt, ...] = ()
    reason: str = ""
    """Of its failure, also while it is tried again; one of jobman.spec.failures.REASONS."""
    exit_code: int | None = None
    message: str = ""

    @property
    def retried(self) -> int:
        """Attempts beyond the first."""
        last = self.attempts[-1].number - 1 if self.attempts else 0
        return last + sum(attempt.restarts for attempt in self.attempts)


class Replica(Copy, frozen=True, kw_only=True):
    """A replica of a task; `copies` are those of its command that run side by side, if it is for several."""

    copies: tuple[Copy, ...] = ()


C = TypeVar("C", bound=Copy)


def first_failure(copies: Iterable[C]) -> C | None:
    """The one that failed first, which tells how the whole did."""
    failed = [copy for copy in copies if copy.state == "failed"]
    return min(failed, key=lambda copy: (_ended(copy), copy.index), default=None)


def copies_of(job: Job, pods: Sequence[Pod], events: Sequence[Event]) -> dict[int, Copy]:
    """Every index with a pod, and every one that failed."""
    own: defaultdict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        own[index_of(pod)].append(pod)
    completed, failed = Indexes(job.status.completed_indexes), Indexes(job.status.failed_indexes)
    copies = {}
    for index in sorted({*own, *failed}):
        decided = "succeeded" if index in completed else "failed" if index in failed else ""
        copies[index] = _copy(job, index, attempts_of(own[index], events), decided)
    return _blamed(job, copies)


def _blamed(job: Job, copies: dict[int, Copy]) -> dict[int, Copy]:
    """Pods may be known from a moment before their Job failed: then one that had not ended is to blame."""
    everybody = len({*copies, *Indexes(job.status.completed_indexes)}) >= width(job)
    if not condition(job, "Failed") or not everybody or any(one.state == "failed" for one in copies.values()):
        return copies
    return {
        index: msgspec.structs.replace(copy, state="failed") if copy.state == "cancelled" else copy
        for index, copy in copies.items()
    }


def all_copies(job: Job, copies: Mapping[int, Copy], others: str) -> list[Copy]:
    """Also those of which there is nothing to tell."""
    completed = Indexes(job.status.completed_indexes)
    return [
        copies.get(index) or Copy(index=index, state="succeeded" if index in completed else others)
        for index in range(width(job))
    ]


def state_without_pods(job: Job, failed: bool) -> str:
    """The state of an index that has no pod and of which nothing is said."""
    if failure := condition(job, "Failed", "FailureTarget"):
        # A Job that failed has a replica that did, also when nobody kept its pods.
        return "cancelled" if failed and not ran_too_long(failure) else "failed"
    decided = condition(job, "Complete", "SuccessCriteriaMet") or CANCELLED in job.metadata.annotations
    return "cancelled" if decided else "waiting"


def together(job: Job, index: int, copies: Sequence[Copy]) -> Replica:
    """A replica of copies, which are one program: it runs when all of them do."""
    state = _state_together(job, {copy.state for copy in copies})
    ill = first_failure(copies) or next((copy for copy in copies if copy.reason), None)
    if ill is None or state in ("succeeded", "running"):
        done = 0 if state == "succeeded" else None
        return Replica(
            index=index, state=state, attempts=_longest(copies), exit_code=done, copies=tuple(copies)
        )
    words = ill.message
    if len(copies) > 1:
        words = f"copy {ill.index}: {words or _short(ill)}"
    return Replica(
        index=index,
        state=state,
        attempts=_longest(copies),
        reason=ill.reason,
        exit_code=ill.exit_code,
        message=words,
        copies=tuple(copies),
    )


def joined(parts: Sequence[Replica]) -> Replica:
    """A replica from the Jobs it is made of; copies are numbered through."""
    if len(parts) == 1:
        return parts[0]
    copies = tuple(
        msgspec.structs.replace(copy, index=rank)
        for rank, copy in enumerate(copy for part in parts for copy in part.copies)
    )
    states = {part.state for part in parts}
    told = first_failure(parts) or next((part for part in parts if part.reason), parts[0])
    state = "failed" if "failed" in states else least(states)
    return msgspec.structs.replace(told, state=state, attempts=_longest(parts), copies=copies)


def least(states: set[str]) -> str:
    """The state of several from those they are in."""
    begun = states & {"running", "succeeded"} and states & {"queued", "waiting"}
    if begun and states.isdisjoint(_TOGETHER[:3]):
        return "starting"
    return next((state for state in _TOGETHER if state in states), "cancelled")


def _copy(job: Job, index: int, attempts: tuple[Attempt, ...], decided: str) -> Copy:
    state = decided or _undecided(job, attempts[-1])
    told = attempts[-1:]
    if state in _SUFFERING:
        told = tuple(attempt for attempt in attempts if attempt.reason)[-1:]
    if not told:
        return Copy(index=index, state=state, attempts=attempts)
    last = told[0]
    if state == "succeeded":
        last = msgspec.structs.replace(last, reason="", exit_code=0, message="")
    return Copy(
        index=index,
        state=state,
        attempts=attempts,
        reason=last.reason,
        exit_code=last.exit_code,
        message=last.message,
    )


def _undecided(job: Job, last: Attempt) -> str:
    """The state of an index of which the Job does not say how it ended."""
    if last.state != "failed":
        return last.state if last.state == "succeeded" or not is_over(job) else "cancelled"
    if verdict := condition(job, "Failed", "FailureTarget", "Complete", "SuccessCriteriaMet"):
        return "cancelled" if _is_stopped_by(verdict, last) else "failed"
    if CANCELLED in job.metadata.annotations:
        return "cancelled"
    return "waiting" if job.spec.suspend else "resting"


def _is_stopped_by(verdict: Condition, last: Attempt) -> bool:
    """Whether a pod was asked to end only because its Job had decided how it comes out."""
    decided = seconds(verdict.last_transition_time)
    if decided is None or last.stopping_at is None or last.reason in _TAKEN or ran_too_long(verdict):
        return False
    return last.stopping_at >= decided


def _state_together(job: Job, states: set[str]) -> str:
    if is_over(job):
        return "succeeded" if condition(job, "Complete") else "failed"
    return least(states)


def _longest(copies: Iterable[Copy]) -> tuple[Attempt, ...]:
    """The attempts of the copy that had most."""
    return max((copy.attempts for copy in copies), key=len, default=())


def _short(copy: Copy) -> str:
    return f"ended with exit code {copy.exit_code}" if copy.exit_code is not None else copy.reason


def _ended(copy: Copy) -> float:
    times = [attempt.ended_at for attempt in copy.attempts if attempt.ended_at is not None]
    return times[-1] if times else float("inf")
