"""What happened to a job: its milestones, and the events of its objects, in order of time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.attempts import Attempt, index_of, seconds
from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.found import FoundJob, replica_key
from jobman.engines.kubernetes.objects import Event, Pod
from jobman.plan.model import PlanError


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened; `kind` is a word of ours, or the cluster's reason."""

    at: float
    kind: str
    message: str = ""
    replica: str | None = None
    attempt: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What it is known by when it is seen again."""
        return self.kind, self.message, self.replica, self.attempt, self.at


def happenings(job: FoundJob, events: Iterable[Event]) -> list[Happening]:
    """Everything that is still known, the oldest first."""
    found = [*_milestones(job), *_told(job, events)]
    return sorted(found, key=lambda each: each.at)


def _milestones(job: FoundJob) -> Iterator[Happening]:
    yield Happening(at=job.submitted_at, kind="submitted", message=f"by {job.owner}")
    try:
        replicas = list(job.replicas())
    except PlanError:
        replicas = []
    for replica in replicas:
        for attempt in replica.stands.attempts:
            yield from _of_attempt(replica.key, attempt)
    ended = job.ended_at
    if ended is not None:
        yield Happening(at=ended, kind=job.state, message="" if job.state == "cancelled" else job.reason)
    elif any(CANCELLED in each.metadata.annotations for each in job.jobs):
        yield Happening(at=job.submitted_at, kind="stopping", message="it is being cancelled")


def _of_attempt(replica: str, attempt: Attempt) -> Iterator[Happening]:
    if attempt.started_at is not None:
        where = f"on {attempt.node}" if attempt.node else ""
        yield Happening(
            at=attempt.started_at, kind="started", message=where, replica=replica, attempt=attempt.number
        )
    if attempt.ended_at is not None:
        words = attempt.message or (f"exit code {attempt.exit_code}" if attempt.exit_code else "")
        kind = "failed" if attempt.state == "failed" else "succeeded"
        yield Happening(
            at=attempt.ended_at, kind=kind, message=words, replica=replica, attempt=attempt.number
        )


def _told(job: FoundJob, events: Iterable[Event]) -> Iterator[Happening]:
    pods = {pod.metadata.uid: pod for pod in job.pods}
    others = {each.metadata.uid for each in (job.anchor, *job.jobs)}
    beginnings = tuple(f"{each.metadata.name}-" for each in job.jobs)
    for event in events:
        about = event.involved_object
        at = _moment(event)
        if at is None:
            continue
        pod = pods.get(about.uid)
        # Of a pod that is gone, only its name still says whose it was.
        is_ours = pod is not None or about.uid in others
        if not is_ours and not (about.kind == "Pod" and beginnings and about.name.startswith(beginnings)):
            continue
        yield Happening(
            at=at,
            kind=event.reason,
            message=event.message.strip(),
            replica=_replica(job, pod) if pod is not None else None,
        )


def _replica(job: FoundJob, pod: Pod) -> str:
    labels = pod.metadata.labels
    task = pod.metadata.annotations.get(names.UNIT) or labels.get(names.TASK, "")
    replica = labels.get(names.REPLICA, "")
    return replica_key(job.unit_of(task), int(replica) if replica.isdecimal() else index_of(pod))


def _moment(event: Event) -> float | None:
    moments: tuple[datetime | None, ...] = (
        event.last_timestamp,
        event.event_time,
        event.first_timestamp,
        event.metadata.creation_timestamp,
    )
    return next((seconds(moment) for moment in moments if moment is not None), None)
