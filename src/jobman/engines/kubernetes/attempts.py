"""Attempts: what one pod tells of the copy of a command that it is, and in which state it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from jobman.engines.kubernetes import endings, names
from jobman.engines.kubernetes.endings import Ending
from jobman.engines.kubernetes.objects import Event, Pod

_FAILURES = (names.FAILURES, "batch.kubernetes.io/job-index-ignored-failure-count")
_EARLIEST = datetime.min.replace(tzinfo=UTC)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One pod, which is one attempt of a copy."""

    pod: str
    number: int
    state: str
    node: str = ""
    reason: str = ""
    """One of jobman.spec.failures.REASONS; empty while it goes well."""
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    result: str | None = None
    restarts: int = 0
    """How often its containers were started again in place."""
    earlier: Ending | None = None
    """How it ended before it was last started again."""
    ready: bool = False
    """Whether its ready check, if it has one, succeeds."""
    ready_at: float | None = None
    """When that was so for the first time, or has ceased to be."""
    stopping_at: float | None = None
    """When somebody asked it to end."""
    created_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None


def attempts_of(pods: Sequence[Pod], events: Sequence[Event] = ()) -> tuple[Attempt, ...]:
    """The attempts of one copy from its pods, oldest first; pods that were deleted leave gaps at most."""
    found: list[Attempt] = []
    for pod in sorted(pods, key=by_age):
        number = max(found[-1].number + 1 if found else 1, _failures(pod) + 1, _written(pod))
        found.append(_attempt(pod, number, events))
    return tuple(found)


def by_age(pod: Pod) -> tuple[datetime, str]:
    """In which order pods came."""
    return pod.metadata.creation_timestamp or _EARLIEST, pod.metadata.name


def index_of(pod: Pod) -> int:
    """Which index of its Job a pod is for; 0 for one of a Job without indexes."""
    written = pod.metadata.labels.get(names.INDEX) or pod.metadata.annotations.get(names.INDEX, "")
    return int(written) if written.isdecimal() else 0


def pod_state(pod: Pod) -> str:
    """The state of the attempt that a pod is."""
    phase = pod.status.phase
    if phase in ("Succeeded", "Failed"):
        return phase.lower()
    if pod.metadata.deletion_timestamp is not None:
        return "stopping"
    if pod.spec.scheduling_gates:
        return "waiting"
    if not pod.spec.node_name:
        return "queued"
    statuses = pod.status.container_statuses
    # A pod is told to be running for a moment after its last container has ended.
    is_waiting = any(status.state.waiting for status in statuses)
    if phase in ("Running", "Unknown") and (
        not is_waiting or any(status.state.running for status in statuses)
    ):
        return "running"
    return "resting" if any(status.restart_count for status in statuses) else "starting"


def seconds(moment: datetime | None) -> float | None:
    """A moment as everybody else has it: seconds since 1970."""
    return moment.timestamp() if moment is not None else None


def _attempt(pod: Pod, number: int, events: Sequence[Event]) -> Attempt:
    state = pod_state(pod)
    ended = _ending(pod, state, events)
    statuses = pod.status.container_statuses
    return Attempt(
        pod=pod.metadata.name,
        number=number,
        state=state,
        node=pod.spec.node_name,
        reason=ended.reason,
        exit_code=ended.exit_code,
        signal=ended.signal,
        message=ended.message,
        result=endings.result(pod),
        restarts=max((status.restart_count for status in statuses), default=0),
        earlier=endings.ending(_in_place(pod)) if state != "resting" and _has_earlier(pod) else None,
        **_readiness(pod),
        stopping_at=_stopping_at(pod),
        created_at=seconds(pod.metadata.creation_timestamp),
        started_at=seconds(endings.started_at(pod)),
        ended_at=seconds(endings.ended_at(pod)) if endings.is_over(pod) else None,
    )


def _readiness(pod: Pod) -> dict[str, Any]:
    """Whether it is ready, and since when; nothing of a pod without a check, or that is over."""
    ready = next((one for one in pod.status.conditions if one.type == "Ready"), None)
    if ready is None or not any(one.readiness_probe for one in pod.spec.containers):
        return {}
    is_ready = ready.status == "True"
    began, since = endings.started_at(pod), ready.last_transition_time
    if endings.is_over(pod) or began is None or (not is_ready and (since is None or since <= began)):
        return {}
    return {"ready": is_ready, "ready_at": seconds(since)}


def _stopping_at(pod: Pod) -> float | None:
    """A pod that is deleted says when it will be gone at the latest."""
    due = seconds(pod.metadata.deletion_timestamp)
    return None if due is None else due - (pod.metadata.deletion_grace_period_seconds or 0)


def _ending(pod: Pod, state: str, events: Sequence[Event]) -> Ending:
    if endings.is_over(pod) or (state == "stopping" and endings.disruption(pod)):
        return endings.ending(pod, events)
    return endings.ending(_before(pod), events) if state == "resting" else Ending()


def _has_earlier(pod: Pod) -> bool:
    return any(status.last_state.terminated for status in pod.status.container_statuses)


def _in_place(pod: Pod) -> Pod:
    """A pod as it was before its containers were last started again."""
    replace = msgspec.structs.replace
    statuses = [replace(status, state=status.last_state) for status in pod.status.container_statuses]
    return replace(pod, status=replace(pod.status, phase="Failed", container_statuses=statuses))


def _before(pod: Pod) -> Pod:
    """A pod whose containers are about to be started again, as it was when they ended."""
    replace = msgspec.structs.replace
    statuses = [
        replace(status, state=status.state if status.state.terminated else status.last_state)
        for status in pod.status.container_statuses
    ]
    return replace(pod, status=replace(pod.status, container_statuses=statuses))


def _written(pod: Pod) -> int:
    """Which attempt a pod is where somebody drives the job."""
    number = pod.metadata.labels.get(names.ATTEMPT, "")
    return int(number) if number.isdecimal() else 0


def _failures(pod: Pod) -> int:
    """How often its index failed before, by the Job's own count; known only of some Jobs."""
    counts = [pod.metadata.annotations.get(name, "") for name in _FAILURES]
    return sum(int(count) for count in counts if count.isdecimal())
