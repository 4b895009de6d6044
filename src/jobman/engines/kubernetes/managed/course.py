"""The course of an attempt on a cluster: what to do next, from what is there. Pure.

```
 the Job ──▶ gated pods ──▶ all are seen ──▶ the gates are taken off ──▶ they run ──▶ all are over
    └──────────── stopped, refused or too late: the pods are deleted ──────────────────▲
```

Nothing is remembered that the cluster does not show, but what was asked for: whoever takes an attempt up
after a restart goes on where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from jobman.engines.kubernetes import endings
from jobman.engines.kubernetes.endings import Ending
from jobman.engines.kubernetes.objects import Event, Pod

_TERMINATED = 143
_STOPPING = (9, 15)
"""The signals by which a node ends what was deleted."""
_IN_VAIN = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "ImageInspectError",
        "ErrImageNeverPull",
        "InvalidImageName",
        "RegistryUnavailable",
        "CreateContainerConfigError",
        "CreateContainerError",
        "CreatePodSandboxError",
        "RunContainerError",
    )
)
"""What a container waits for that may never come."""


class Step(StrEnum):
    """What to do next for an attempt."""

    MAKE = "make"
    """Create the pods that are missing."""
    RELEASE = "release"
    """Take the gates off."""
    WAIT = "wait"
    STOP = "stop"
    """Delete the pods that are not over."""
    CONCLUDE = "conclude"


class Stop(NamedTuple):
    """Why an attempt is ended by us."""

    reason: str
    """One of jobman.spec.failures.REASONS, or empty where control asked for it and knows why."""
    message: str = ""


class Scene(NamedTuple):
    """An attempt as it stands: what is wanted of it, and what the cluster shows."""

    copies: int
    pods: Mapping[int, Pod]
    stop: Stop | None = None
    released: bool = False
    """Whether gates were taken off once, by us or whoever was here before: no pod is made any more."""
    lost: Mapping[int, str] = {}
    """Copies whose node does not come back as it was, and what has become of it."""

    @property
    def is_complete(self) -> bool:
        return len(self.pods) == self.copies

    def is_done(self, copy: int) -> bool:
        """Whether nothing of a copy will run any more, or nobody will ever hear of it."""
        return copy in self.lost or is_done(self.pods[copy])

    @property
    def unfinished(self) -> list[int]:
        return [copy for copy in self.pods if not self.is_done(copy)]


def next_step(scene: Scene) -> Step:
    """What to do next."""
    if scene.stop is not None:
        return Step.STOP if scene.unfinished else Step.CONCLUDE
    if not scene.is_complete:
        return Step.MAKE
    if any(is_gated(pod) for pod in scene.pods.values()):
        return Step.RELEASE
    return Step.WAIT if scene.unfinished else Step.CONCLUDE


def reason_to_stop(scene: Scene) -> Stop | None:
    """Why the copies that are left must end: they are one program, and one of them is gone."""
    if not scene.is_complete and is_released(scene):
        return Stop("node-lost", "a pod of it is gone, and nobody knows how it ended")
    for copy, pod in scene.pods.items():
        if scene.is_done(copy) and (end := ending_of(scene, copy)).reason:
            return Stop(end.reason, end.message)
        if pod.metadata.deletion_timestamp is not None and not endings.is_over(pod):
            taken = _taken_away(pod)
            return Stop(taken.reason, taken.message)
    return None


def is_released(scene: Scene) -> bool:
    """Whether somebody has begun to let the pods go: what is missing since then is lost."""
    return scene.released or any(not is_gated(pod) for pod in scene.pods.values())


def is_gated(pod: Pod) -> bool:
    return bool(pod.spec.scheduling_gates)


def is_done(pod: Pod) -> bool:
    """Whether nothing of a pod will run any more; one that is being deleted is not bound any more."""
    if endings.is_over(pod):
        return True
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name


def has_started(pod: Pod) -> bool:
    """Whether its command runs, or ran."""
    return endings.started_at(pod) is not None


def ending_of(scene: Scene, copy: int, events: Sequence[Event] = ()) -> Ending:
    """How a copy ended; one that somebody took away did not succeed, whatever its command says."""
    pod = scene.pods[copy]
    if copy in scene.lost and pod.status.phase != "Succeeded":
        return Ending("node-lost", None, None, scene.lost[copy])
    if not endings.is_over(pod):
        # It never had a node: by our will, or by that of somebody else.
        return Ending("signal", _TERMINATED, 15, "") if scene.stop else _taken_away(pod)
    if was_taken_away(pod) and endings.disruption(pod) is None:
        end = endings.ending(pod, events)
        return Ending("preempted", end.exit_code, end.signal, "somebody else deleted its pod")
    return endings.ending(pod, events)


def was_taken_away(pod: Pod) -> bool:
    """Whether its deletion was asked for before it ended: its end is not its own."""
    due = pod.metadata.deletion_timestamp
    if due is None:
        return False
    if pod.status.observed_generation:
        # Who asked for its deletion made a new generation of it: its node knew of that when it ended, or not.
        return pod.status.observed_generation >= pod.metadata.generation
    ended = endings.ended_at(pod)
    grace = pod.metadata.deletion_grace_period_seconds or 0
    if ended is None or (not grace and endings.ending(pod).signal in _STOPPING):
        # Without a grace the time is not when that was asked for, but when its node was done with it.
        return True
    # Times have whole seconds.
    return ended >= due - timedelta(seconds=grace + 1)


def verdict(scene: Scene, events: Sequence[Event] = ()) -> Ending:
    """How an attempt ended: the first copy that failed by itself tells, else why it was stopped."""
    own = [copy for copy in scene.pods if _failed_by_itself(scene, copy, events)]
    if own:
        first = min(own, key=lambda copy: (_when(scene.pods[copy]), copy))
        return _in_words(ending_of(scene, first, events), first, scene)
    if scene.stop is None:
        if scene.is_complete and not scene.unfinished:
            return Ending(exit_code=0)
        return Ending("node-lost", None, None, "its pods are gone, and nobody knows how they ended")
    end = _stopped(scene)
    return end._replace(reason=scene.stop.reason, message=scene.stop.message) if scene.stop.reason else end


def _failed_by_itself(scene: Scene, copy: int, events: Sequence[Event]) -> bool:
    """Whether a copy failed for another reason than that we stopped it."""
    if not scene.is_done(copy) or not ending_of(scene, copy, events).reason:
        return False
    if scene.stop is None or copy in scene.lost:
        return True
    pod = scene.pods[copy]
    return endings.is_over(pod) and not was_taken_away(pod)


def _stopped(scene: Scene) -> Ending:
    """We asked for the end: tell how the copies took it."""
    ends = [endings.ending(pod) for pod in scene.pods.values() if endings.is_over(pod)]
    failed = [end for end in ends if end.exit_code]
    if ends and not failed and len(ends) == scene.copies:
        return Ending(exit_code=0)
    code = max((end.exit_code or 0 for end in failed), default=_TERMINATED)
    number = code - endings.SIGNALLED if code > endings.SIGNALLED else None
    return Ending("exit" if number is None else "signal", code, number)


def stuck(pod: Pod) -> str:
    """Why a pod that has a node cannot start its command, in words; empty where it may only take time."""
    statuses = [*pod.status.init_container_statuses, *pod.status.container_statuses]
    for status in statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason in _IN_VAIN:
            words = endings.launch_words(waiting.message) or waiting.reason
            return f"{status.image or status.name}: {words}" if "mage" in waiting.reason else words
    return ""


def unbound(pod: Pod) -> str:
    """Why a pod has no node yet, in the scheduler's words."""
    for condition in pod.status.conditions:
        is_refused = condition.type == "PodScheduled" and condition.status == "False"
        if is_refused and condition.reason != "SchedulingGated":
            return condition.message or condition.reason
    return ""


def _taken_away(pod: Pod) -> Ending:
    """A pod that ends because somebody else wants it to."""
    if taken := endings.disruption(pod):
        end = endings.ending(pod)
        return end._replace(reason=end.reason or "preempted", message=end.message or taken.message)
    return Ending("preempted", None, None, "somebody else deleted its pod")


def _when(pod: Pod) -> datetime:
    return endings.ended_at(pod) or datetime.max.replace(tzinfo=UTC)


def _in_words(end: Ending, copy: int, scene: Scene) -> Ending:
    if scene.copies == 1:
        return end
    words = end.message or (
        f"ended with exit code {end.exit_code}" if end.exit_code is not None else end.reason
    )
    return end._replace(message=f"copy {copy} on {scene.pods[copy].spec.node_name or 'no node'}: {words}")
