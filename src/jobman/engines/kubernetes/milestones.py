"""What happened to a job: its milestones, and the events of its objects, in order of time. Pure.

A cluster stamps most things with whole seconds. What happens within one is put into the order in which it can
have happened: a pod that was made earlier comes first, and its start before its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import floor, inf
from typing import Any

import msgspec

from jobman.engines.endings import how_it_ended
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import Attempt, index_of, seconds
from jobman.engines.kubernetes.copies import Copy
from jobman.engines.kubernetes.found import FoundJob, ReplicaAt, replica_key
from jobman.engines.kubernetes.indexes import replica_of
from jobman.engines.kubernetes.objects import Event, Job, Pod
from jobman.engines.kubernetes.pods import MAIN
from jobman.engines.kubernetes.states import FINAL
from jobman.engines.kubernetes.underway import DrivenJob
from jobman.plan.model import PlanError

_RANKS = ("submitted", "released", "gate-opened", "", "started", "ready", "not-ready", "held", "cancelling")
_LAST_RANKS = ("unhealthy", "stopping", "retrying", "failed", "succeeded", "cancelled", "skipped")
_ORDER = {kind: number for number, kind in enumerate((*_RANKS, *_LAST_RANKS))}
_FIRST = ("submitted", "released", "gate-opened")
# What is told of a pod that is gone, and can be told in our own words.
_OF_GONE_PODS = {"Started": "started", "Killing": "stopping"}


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened; `kind` is a word of ours, or the cluster's reason."""

    at: float
    kind: str
    message: str = ""
    replica: str | None = None
    attempt: int | None = None
    of: float | None = None
    """When the pod was made that it is about."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What it is known by when it is seen again."""
        return self.kind, self.message, self.replica, self.attempt, self.at

    @property
    def place(self) -> tuple[float, float, int]:
        """Where it stands among others."""
        made = self.of if self.of is not None else -inf if self.kind in _FIRST else inf
        return floor(self.at), made, _ORDER.get(self.kind, _ORDER[""] if self.of is not None else len(_ORDER))


def happenings(job: FoundJob, events: Iterable[Event]) -> list[Happening]:
    """Everything that is still known, the oldest first."""
    told = list(_told(job, events))
    if isinstance(job, DrivenJob) and job.course.story:
        return _as_driven(job, told)
    stops = {each.replica or "": each.at for each in told if each.kind == "stopping"}
    found = [*_milestones(job, stops), *told]
    return sorted(found, key=lambda each: each.place)


def _as_driven(job: DrivenJob, told: Iterable[Happening]) -> list[Happening]:
    """Whoever drives a job puts down what happens to it, and in which order."""
    story = [
        Happening(at=one.at, kind=one.kind, message=one.message, replica=one.replica, attempt=one.attempt)
        for one in job.course.story
    ]
    acts = [Happening(at=act.at, kind=act.kind, message=act.message) for act in job.acts]
    acts.insert(0, Happening(at=job.submitted_at, kind="submitted", message=f"by {job.owner}"))
    if (asked := job.cancelled_at) is not None:
        acts.append(Happening(at=asked, kind="cancelling"))
    own = [each for each in told if each.kind not in _OF_GONE_PODS.values()]
    if job.ended_at is not None:
        message = "" if job.state == "cancelled" else job.reason
        story.append(Happening(at=job.ended_at, kind=f"job-{job.state}", message=message))
    return sorted([*acts, *own, *story], key=lambda each: each.at)


def _milestones(job: FoundJob, stops: Mapping[str, float]) -> Iterator[Happening]:
    """`stops` is when pods that are gone were asked to end."""
    yield Happening(at=job.submitted_at, kind="submitted", message=f"by {job.owner}")
    for act in job.acts:
        yield Happening(at=act.at, kind=act.kind, message=act.message)
    if (asked := job.cancelled_at) is not None:
        yield Happening(at=asked, kind="cancelling")
    try:
        replicas = list(job.replicas())
    except PlanError:
        replicas = []
    own = [happened for replica in replicas for happened in _of_replica(job, replica, stops)]
    yield from own
    for replica in replicas:
        if not replica.stands.attempts:
            yield from _of_group(replica, [each for each in own if _is_in(each, replica.key)])
    if job.ended_at is not None:
        message = "" if job.state == "cancelled" else job.reason
        yield Happening(at=job.ended_at, kind=f"job-{job.state}", message=message)


def _of_replica(job: FoundJob, replica: ReplicaAt, stops: Mapping[str, float]) -> Iterator[Happening]:
    stands = replica.stands
    for attempt in stands.attempts:
        is_last = attempt is stands.attempts[-1]
        yield from _of_attempt(replica.key, attempt, stands if is_last else None)
    if stands.state == "cancelled":
        ends = [attempt.ended_at for attempt in stands.attempts if attempt.ended_at is not None]
        known = [*ends, stops.get(replica.key, 0.0), job.cancelled_at or 0.0]
        yield Happening(at=max(known) or job.ended_at or 0.0, kind="cancelled", replica=replica.key)
    if stands.state == "skipped":
        yield Happening(at=job.ended_at or 0.0, kind="skipped", replica=replica.key)


def _of_group(replica: ReplicaAt, inside: Sequence[Happening]) -> Iterator[Happening]:
    """A group starts with the first of what is in it, and is over with the last."""
    starts = [each for each in inside if each.kind == "started"]
    if not starts:
        return
    first, last = min(starts, key=_by_place), max(inside, key=_by_place)
    # A group around another one begins before it, and ends after it.
    apart = 0.5 / (1 + replica.key.count("/"))
    yield Happening(at=first.at, kind="started", replica=replica.key, of=(first.of or 0.0) - apart)
    if replica.stands.state in FINAL:
        state = replica.stands.state
        yield Happening(at=last.at, kind=state, replica=replica.key, of=(last.of or 0.0) + apart)


def _is_in(happened: Happening, group: str) -> bool:
    return (happened.replica or "").startswith(f"{group}/")


def _by_place(happened: Happening) -> tuple[float, float, int]:
    return happened.place


def _of_attempt(replica: str, attempt: Attempt, last: Copy | None) -> Iterator[Happening]:
    """`last` is how the replica stands, for the last of its attempts."""

    def happened(at: float, kind: str, message: str = "") -> Happening:
        made = attempt.created_at
        return Happening(
            at=at, kind=kind, message=message, replica=replica, attempt=attempt.number, of=made or 0.0
        )

    if attempt.started_at is not None:
        yield happened(attempt.started_at, "started", f"on {attempt.node}" if attempt.node else "")
    if attempt.ready_at is not None:
        yield happened(attempt.ready_at, "ready" if attempt.ready else "not-ready")
    if attempt.stopping_at is not None:
        yield happened(attempt.stopping_at, "stopping")
    if attempt.ended_at is None:
        return
    words = how_it_ended(attempt.reason, attempt.exit_code, attempt.signal, attempt.message)
    if attempt.reason == "unhealthy":
        yield happened(attempt.ended_at, "unhealthy", attempt.message)
        yield happened(attempt.ended_at, "stopping", "its check failed")
    if attempt.state != "failed":
        yield happened(attempt.ended_at, "succeeded", f"{words}; a rule ignores it" if attempt.reason else "")
    elif last is None or last.state in ("resting", "waiting"):
        yield happened(attempt.ended_at, "retrying", f"{words}; it is tried again")
    elif last.state != "cancelled":
        yield happened(attempt.ended_at, "failed", words)


def _told(job: FoundJob, events: Iterable[Event]) -> Iterator[Happening]:
    pods = {pod.metadata.uid: pod for pod in job.pods}
    others = {each.metadata.uid for each in (job.anchor, *job.jobs)}
    jobs = {each.metadata.name: each for each in job.jobs}
    for event in events:
        about = event.involved_object
        at = _moment(event)
        if at is None:
            continue
        pod = pods.get(about.uid)
        words = event.message.strip()
        if pod is not None:
            made = seconds(pod.metadata.creation_timestamp) or 0.0
            replica = _replica(job, pod)
            yield Happening(at=at, kind=event.reason, message=words, replica=replica, of=made)
        elif about.uid in others:
            yield Happening(at=at, kind=event.reason, message=words)
        elif about.kind == "Pod" and (gone := _gone(job, jobs, about.name)):
            kind = _OF_GONE_PODS.get(event.reason, "") if about.field_path.endswith(f"{{{MAIN}}}") else ""
            is_held = kind == "stopping" and _was_held(job, at)
            words = "the job is held" if is_held else words
            is_answer = kind == "stopping" and floor(at) == floor(job.cancelled_at or 0.0)
            of = None if is_answer else at
            yield Happening(at=at, kind=kind or event.reason, message=words, replica=gone, of=of)
            if is_held:
                yield Happening(at=at, kind="retrying", message="it starts over", replica=gone, of=at)


def _was_held(job: FoundJob, at: float) -> bool:
    """Whether a job was held at a moment."""
    acts = [act.kind for act in job.acts if act.kind in ("held", "released") and floor(act.at) <= at]
    return acts[-1:] == ["held"] and (job.cancelled_at or inf) > at


def _gone(job: FoundJob, jobs: Mapping[str, Job], name: str) -> str | None:
    """The replica that a pod was of which is gone: only its name still says so."""
    base, index = [*name.rsplit("-", 2), "", ""][:2]
    each = jobs.get(base)
    if each is None or not index.isdecimal():
        return None
    if key := each.metadata.annotations.get(names.KEY):
        return key
    own = replica_of(each)
    return replica_key(job.unit_of(_task(each)), int(index) if own is None else own)


def _task(each: Job | Pod) -> str:
    return each.metadata.annotations.get(names.UNIT) or each.metadata.labels.get(names.TASK, "")


def _replica(job: FoundJob, pod: Pod) -> str:
    if key := pod.metadata.annotations.get(names.KEY):
        return key
    replica = pod.metadata.labels.get(names.REPLICA, "")
    return replica_key(job.unit_of(_task(pod)), int(replica) if replica.isdecimal() else index_of(pod))


def _moment(event: Event) -> float | None:
    moments: tuple[datetime | None, ...] = (
        event.last_timestamp,
        event.event_time,
        event.first_timestamp,
        event.metadata.creation_timestamp,
    )
    return next((seconds(moment) for moment in moments if moment is not None), None)
