"""How a pod ended, in the words every engine uses. Pure."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from jobman.engines.endings import signal_name, size_words
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.objects import Condition, ContainerStatus, Event, Pod, Terminated
from jobman.engines.kubernetes.quantities import parse_quantity

IGNORED, BEFORE = "jobman: ignored exit code ", "jobman: the hook before it ended with "
"""Last words of a container that only we understand; an exit code follows."""
STOPPED = names.PREFIX + "cancelled"
"""Annotation of a pod that was told to end: its time was cut short, so that what it wrote is kept."""
OUT_OF_TIME = names.PREFIX + "out-of-time"
"""Annotation of a pod that was told to end because its time was up: the seconds it was given."""
NOT_STARTED = "jobman: there is no program "
LAUNCH = 128
"""How a container ends whose command cannot be started."""
SIGNALLED = 128
"""Runtimes tell of a signal by adding its number to this, as shells do."""

# Why the cluster took a pod away, and how we say it; other reasons are those of somebody who wants the place.
_DISRUPTIONS = {
    "DeletionByTaintManager": ("node-lost", "its node was lost, or does not take it any more"),
    "DeletionByPodGC": ("node-lost", "its node is gone"),
    "DeletionByDeviceTaintManager": ("node-lost", "a device of its node is lost"),
    "PreemptionByScheduler": ("preempted", "it made room for a job of higher priority"),
    "EvictionByEvictionAPI": ("preempted", "its node is being emptied"),
}
# What is said of a pod as a whole, where that is more than its containers tell.
_POD_REASONS = {
    "DeadlineExceeded": "timeout",
    "NodeLost": "node-lost",
    "NodeShutdown": "node-lost",
    "Shutdown": "node-lost",
    "Terminated": "node-lost",
    "Preempting": "preempted",
    "UnexpectedAdmissionError": "launch-failed",
    "NodeAffinity": "launch-failed",
}
_REFUSED_BY_NODE = "OutOf"
"""Beginning of the reasons of a node that has less than the scheduler believed, such as OutOfcpu."""
_CONTAINER_REASONS = {
    "OOMKilled": "out-of-memory",
    "StartError": "launch-failed",
    "ContainerCannotRun": "launch-failed",
    "CreateContainerError": "launch-failed",
    "CreateContainerConfigError": "launch-failed",
    "RunContainerError": "launch-failed",
    "DeadlineExceeded": "timeout",
    "ContainerStatusUnknown": "node-lost",
    "Unknown": "node-lost",
}
_PROBES = ("Liveness probe", "Startup probe")
_RUNTIME_PARTS = "unable to start container process: "
_NEVER = datetime.max.replace(tzinfo=UTC)


class Ending(NamedTuple):
    """What is said of an attempt that is over; `reason` is empty where it succeeded."""

    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""


def is_over(pod: Pod) -> bool:
    """Whether nothing of it will run any more."""
    return pod.status.phase in ("Succeeded", "Failed")


def disruption(pod: Pod) -> Condition | None:
    """What the cluster itself says when it takes a pod away."""
    found = (one for one in pod.status.conditions if one.type == "DisruptionTarget" and one.status == "True")
    return next(found, None)


def ending(pod: Pod, events: Iterable[Event] = ()) -> Ending:
    """How a pod ended that is over or being taken away; `events` tell of checks that failed."""
    if pod.status.phase == "Succeeded":
        code = _ignored(pod)
        return Ending(exit_code=0) if code is None else Ending("exit", code, _number(code))
    first = _first_failure(pod)
    ended = first[1] if first else None
    code = ended.exit_code if ended else None
    if STOPPED in pod.metadata.annotations and pod.status.reason == "DeadlineExceeded":
        return _as_told(pod, code)
    if taken := disruption(pod):
        reason, words = _DISRUPTIONS.get(taken.reason, ("preempted", taken.message))
        reason = _POD_REASONS.get(pod.status.reason, reason)
        return Ending(reason, code, _number(code), (pod.status.message or words).strip())
    if reason := _said_of_the_pod(pod.status.reason):
        words = too_long(pod.spec.active_deadline_seconds) if reason == "timeout" else pod.status.message
        return Ending(reason, code, _number(code), words.strip())
    if first is None:
        return Ending("launch-failed", None, None, pod.status.message.strip())
    return _of_container(pod, *first, list(events))


def _as_told(pod: Pod, code: int | None) -> Ending:
    """How a pod ended that was told to: well, where it could, unless it had used up its time."""
    limit = pod.metadata.annotations.get(OUT_OF_TIME)
    if limit is not None:
        return Ending("timeout", code, _number(code), too_long(int(limit) if limit.isdecimal() else None))
    return Ending(exit_code=0) if code is None else Ending("signal", code, _number(code))


def _of_container(pod: Pod, status: ContainerStatus, ended: Terminated, events: Sequence[Event]) -> Ending:
    number = _number(ended.exit_code) or ended.signal or None
    reason = _CONTAINER_REASONS.get(ended.reason) or ("signal" if number else "exit")
    message = launch_words(ended.message) if reason == "launch-failed" else ""
    if reason == "out-of-memory":
        message = f"used more than {_memory_words(pod, status.name)} it was given"
    elif reason == "node-lost":
        message = "its node does not know what became of it"
    if ended.message.startswith(BEFORE):
        message = "its hook `before` failed"
    if ended.message.startswith(NOT_STARTED) and ended.exit_code == LAUNCH:
        reason, message = "launch-failed", ended.message.removeprefix("jobman: ").strip()
    if pod.status.reason == "Evicted":
        message = pod.status.message.strip(" .")
    elif reason == "signal" and (failed := failed_check(pod, events)):
        reason, message = "unhealthy", failed
    if reason in ("exit", "signal") and is_step(pod, status.name):
        reason, message = "stage-failed", f"its step {status.name} {ended_words(ended)}"
    elif not message and len(main_names(pod)) > 1:
        message = f"container {status.name} {ended_words(ended)}"
    return Ending(reason, ended.exit_code, number, message)


def ended_words(ended: Terminated) -> str:
    """How a container ended, as the end of a sentence."""
    if ended.reason == "OOMKilled":
        return "used more memory than it was given"
    if number := _number(ended.exit_code):
        return f"was ended by {signal_name(number)}"
    return f"ended with exit code {ended.exit_code}"


def launch_words(message: str) -> str:
    """What a container runtime says when it cannot start something, without the names of its parts."""
    return message.strip().rpartition(_RUNTIME_PARTS)[2].removesuffix(": unknown")


def too_long(seconds: int | None) -> str:
    """That a time limit has passed."""
    return f"ran longer than the {seconds} s it was given" if seconds else "ran longer than it may"


def failed_check(pod: Pod, events: Iterable[Event]) -> str:
    """The check for which a pod was stopped, if events tell of one."""
    for event in events:
        if event.reason == "Unhealthy" and concerns(event, pod) and event.message.startswith(_PROBES):
            return event.message.strip().rstrip(":")
    return ""


def concerns(event: Event, pod: Pod) -> bool:
    """Whether an event is about a pod; one of the same name before it does not count."""
    about = event.involved_object
    if about.uid and pod.metadata.uid:
        return about.uid == pod.metadata.uid
    return about.kind == "Pod" and about.name == pod.metadata.name


def main_names(pod: Pod) -> list[str]:
    return [container.name for container in pod.spec.containers]


def is_step(pod: Pod, name: str) -> bool:
    """Whether a container has to end before the others start."""
    return any(one.name == name and one.restart_policy != "Always" for one in pod.spec.init_containers)


def result(pod: Pod) -> str | None:
    """What the command left in its result file."""
    for status in pod.status.container_statuses:
        ended = status.state.terminated or status.last_state.terminated
        is_ours = ended is not None and ended.message.startswith((IGNORED, BEFORE, NOT_STARTED))
        if ended and ended.message and ended.reason not in _CONTAINER_REASONS and not is_ours:
            return ended.message
    return None


def _ignored(pod: Pod) -> int | None:
    """The exit code that a rule ignored."""
    for _, ended in _ended(pod):
        code = ended.message.strip().removeprefix(IGNORED)
        if ended.message.startswith(IGNORED) and code.isdecimal():
            return int(code)
    return None


def ended_at(pod: Pod) -> datetime | None:
    """When its last container ended."""
    times = [ended.finished_at for _, ended in _ended(pod) if ended.finished_at]
    return max(times, default=None)


def started_at(pod: Pod) -> datetime | None:
    """When the first of its containers started that are not steps."""
    times = []
    for status in pod.status.container_statuses:
        for state in (status.last_state, status.state):
            began = state.running or state.terminated
            # A container that could not be started has the beginning of time here.
            if began and began.started_at and began.started_at.timestamp() > 0:
                times.append(began.started_at)
    return min(times, default=None)


def _memory_words(pod: Pod, container: str) -> str:
    found = (one for one in [*pod.spec.containers, *pod.spec.init_containers] if one.name == container)
    limit = next((one.resources.limits.get("memory") for one in found), None)
    return f"the {size_words(int(parse_quantity(limit)))} of memory" if limit else "the memory"


def _first_failure(pod: Pod) -> tuple[ContainerStatus, Terminated] | None:
    helpers = {one.name for one in pod.spec.init_containers if one.restart_policy == "Always"}
    failed = [
        (status, ended) for status, ended in _ended(pod) if ended.exit_code and status.name not in helpers
    ]
    return min(failed, key=lambda one: one[1].finished_at or _NEVER, default=None)


def _ended(pod: Pod) -> list[tuple[ContainerStatus, Terminated]]:
    statuses = [*pod.status.init_container_statuses, *pod.status.container_statuses]
    return [(status, status.state.terminated) for status in statuses if status.state.terminated]


def _said_of_the_pod(reason: str) -> str:
    return "launch-failed" if reason.startswith(_REFUSED_BY_NODE) else _POD_REASONS.get(reason, "")


def _number(code: int | None) -> int | None:
    return code - SIGNALLED if code is not None and 0 < code - SIGNALLED <= signal.NSIG - 1 else None
