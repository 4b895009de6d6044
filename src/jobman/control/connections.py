"""Connections between jobs that are not over: who names whom, and who may talk with whom.

A job names others by their ids or names, and finds their addresses. They may talk with each other if both
belong to one owner, or if each names the other: nobody gets into somebody else's job by naming it.
"""

from __future__ import annotations

from math import inf

from jobman.control.live import LiveJob
from jobman.control.states import State


class Connections:
    """Of all jobs, found by name; most jobs name nobody."""

    def __init__(self) -> None:
        self._called: dict[str, dict[str, LiveJob]] = {}
        """The jobs of an id or a name."""
        self._naming: dict[str, dict[str, LiveJob]] = {}
        """The jobs that name an id or a name."""

    def add(self, job: LiveJob) -> None:
        for name in (job.id, job.record.name):
            self._called.setdefault(name, {})[job.id] = job
        for name in job.connected():
            self._naming.setdefault(name, {})[job.id] = job

    def remove(self, job: LiveJob) -> None:
        """Forget a job; one that is not known is none."""
        for name in (job.id, job.record.name):
            _drop(self._called, name, job)
        for name in job.connected():
            _drop(self._naming, name, job)

    def named_by(self, job: LiveJob) -> list[LiveJob]:
        """The jobs that a job wants to reach."""
        found = {other.id: other for name in job.connected() for other in self._called.get(name, {}).values()}
        return _others(job, found)

    def hosts(self, job: LiveJob) -> list[LiveJob]:
        """The jobs that a job wants to reach, and may."""
        return [other for other in self.named_by(job) if self.is_between(job, other)]

    def guests(self, job: LiveJob) -> list[LiveJob]:
        """The jobs that want to reach a job, and may."""
        found: dict[str, LiveJob] = {}
        for name in (job.id, job.record.name):
            found |= self._naming.get(name, {})
        return [other for other in _others(job, found) if self.is_between(job, other)] if found else []

    def partners(self, job: LiveJob) -> list[LiveJob]:
        """The jobs that a job may talk with, and they with it."""
        found = {other.id: other for other in (*self.hosts(job), *self.guests(job))}
        return _others(job, found)

    def is_between(self, job: LiveJob, other: LiveJob) -> bool:
        """Whether two jobs, of which one names the other, may be connected."""
        return job.record.owner == other.record.owner or (_names(job, other) and _names(other, job))


def over_by(job: LiveJob) -> float:
    """By when a job is over; nobody knows while something of it is still to start, or has no limit."""
    tasks = job.conductor.tasks
    if any(tasks.get(state) for state in (State.WAITING, State.QUEUED, State.STARTING, State.RESTING)):
        return inf
    running = [replica for replica in job.conductor.live() if replica.run.unit.kind == "task"]
    dues = [
        replica.since if replica.state is State.STOPPING else replica.due
        for replica in running
        if not replica.run.unit.service
    ]
    known = [due for due in dues if due is not None]
    return max(known) if known and len(known) == len(dues) else inf


def _names(job: LiveJob, other: LiveJob) -> bool:
    return any(name in (other.id, other.record.name) for name in job.connected())


def _others(job: LiveJob, found: dict[str, LiveJob]) -> list[LiveJob]:
    """In the order of submission."""
    return sorted(
        (other for other in found.values() if other is not job), key=lambda each: each.record.number
    )


def _drop(table: dict[str, dict[str, LiveJob]], name: str, job: LiveJob) -> None:
    jobs = table.get(name)
    if jobs is not None and jobs.pop(job.id, None) is not None and not jobs:
        del table[name]
