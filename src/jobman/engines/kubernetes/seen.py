"""What a cluster shows of one attempt of a driven job: is it under way, ready, over, and how. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import index_of
from jobman.engines.kubernetes.copies import CANCELLED, joined
from jobman.engines.kubernetes.endings import SIGNALLED, ending, started_at
from jobman.engines.kubernetes.endings import is_over as has_ended
from jobman.engines.kubernetes.indexes import condition, is_decided, is_over, pods_of, width
from jobman.engines.kubernetes.objects import Event, Job, Pod
from jobman.engines.kubernetes.states import standing

_EXIT_CODE = re.compile(r"failed with exit code (\d+)")
LOST = "node-lost"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Where an attempt stands; `reason` is empty where it succeeded, or is not over."""

    begun: bool = False
    """Whether every copy has been started."""
    passed_start: bool = False
    ready: bool = False
    failing: bool = False
    """Whether a part has failed, so that the others have nothing to wait for."""
    halted: bool = False
    """Whether whatever of it is not over was told to stop, by us or by the cluster."""
    over: bool = False
    reason: str = ""
    """One of jobman.spec.failures.REASONS."""
    exit_code: int | None = None
    message: str = ""
    nodes: tuple[str, ...] = ()


def seen(jobs: Sequence[Job], pods: Iterable[Pod], events: Iterable[Event] = ()) -> Seen:
    """Where an attempt stands that is these Jobs."""
    own = {job.metadata.name: pods_of(job, pods) for job in jobs}
    over = all(is_at_rest(job, own[job.metadata.name]) for job in jobs)
    failed = [job for job in jobs if condition(job, "Failed", "FailureTarget")]
    nodes = tuple(dict.fromkeys(pod.spec.node_name for each in own.values() for pod in each))
    if over and all(condition(job, "Complete") for job in jobs):
        return Seen(begun=True, passed_start=True, over=True, exit_code=0, nodes=nodes)
    found = Seen(
        begun=all(_each(job, own[job.metadata.name], _has_begun) for job in jobs),
        passed_start=all(_each(job, own[job.metadata.name], _has_passed_start) for job in jobs),
        ready=all(_each(job, own[job.metadata.name], _is_ready) for job in jobs),
        failing=bool(failed),
        halted=all(is_decided(job) or CANCELLED in job.metadata.annotations for job in jobs),
        over=over,
        nodes=nodes,
    )
    return _with_failure(found, jobs, failed, own, list(events)) if over else found


def is_at_rest(job: Job, pods: Iterable[Pod]) -> bool:
    """Whether nothing of a Job runs, and nothing will.

    One that was stopped is at rest when the cluster says that it is suspended, and its pods have ended.
    """
    if is_over(job):
        return True
    if CANCELLED not in job.metadata.annotations or not job.spec.suspend or not condition(job, "Suspended"):
        return False
    busy = job.status.active or job.status.terminating
    return not busy and all(map(has_ended, pods))


def _with_failure(
    found: Seen, jobs: Sequence[Job], failed: list[Job], own: dict[str, list[Pod]], events: list[Event]
) -> Seen:
    if all(CANCELLED in job.metadata.annotations for job in jobs):
        return _as_stopped(found, [pod for pods in own.values() for pod in pods])
    stands = [standing(job, own[job.metadata.name], events) for job in jobs]
    replica = joined([one for each in stands for one in each.replicas.values()])
    reason, code, message = replica.reason, replica.exit_code, replica.message
    if not reason and failed:
        # Nobody kept the pod; the Job has written down which of its rules was meant.
        reason, code, message = _as_the_job_says(failed[0])
    return msgspec.structs.replace(found, reason=reason or "signal", exit_code=code or None, message=message)


def _as_stopped(found: Seen, pods: Sequence[Pod]) -> Seen:
    """What was told to stop may have ended well; of pods that went with it nobody knows."""
    ends = [ending(pod) for pod in pods]
    bad = next((end for end in ends if end.reason), None)
    if bad is None:
        return msgspec.structs.replace(found, reason="" if ends else "signal", exit_code=0 if ends else None)
    return msgspec.structs.replace(found, reason=bad.reason, exit_code=bad.exit_code, message=bad.message)


def _as_the_job_says(job: Job) -> tuple[str, int | None, str]:
    failure = condition(job, "Failed", "FailureTarget")
    if failure is None or failure.reason != "PodFailurePolicy":
        return LOST, None, "its pod is gone, and nobody knows how it ended"
    if match := _EXIT_CODE.search(failure.message):
        code = int(match[1])
        return "signal" if code > SIGNALLED else "exit", code, ""
    return LOST, None, "the cluster took its pod away"


def _each(job: Job, pods: Sequence[Pod], test: Callable[[Pod], bool]) -> bool:
    return len({index_of(pod) for pod in pods if test(pod)}) >= width(job)


def _has_begun(pod: Pod) -> bool:
    return started_at(pod) is not None


def _has_passed_start(pod: Pod) -> bool:
    if pod.status.phase == "Succeeded":
        return True
    return any(status.started for status in pod.status.container_statuses)


def _is_ready(pod: Pod) -> bool:
    is_said = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return is_said and pod.metadata.deletion_timestamp is None


def attempt_of(job: Job) -> tuple[str, int] | None:
    """Which replica a Job is an attempt of, and which attempt; None for one that is not ours."""
    key, number = job.metadata.annotations.get(names.KEY), job.metadata.labels.get(names.ATTEMPT, "")
    return (key, int(number)) if key and number.isdecimal() else None
