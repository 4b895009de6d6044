"""Connections between jobs that are not over: who names whom, and who may talk with whom.

A job names others by their ids or names, and finds their addresses. They may talk with each other if both
belong to one owner, or if each names the other: nobody gets into somebody else's job by naming it.
"""

from __future__ import annotations

from jobman.control.live import LiveJob


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

    def partners(self, job: LiveJob) -> list[LiveJob]:
        """The jobs that a job may talk with, and they with it."""
        found = {other.id: other for other in self.named_by(job)}
        for name in (job.id, job.record.name):
            found |= self._naming.get(name, {})
        return [other for other in _others(job, found) if self.is_between(job, other)]

    def is_between(self, job: LiveJob, other: LiveJob) -> bool:
        """Whether two jobs, of which one names the other, may be connected."""
        return job.record.owner == other.record.owner or (_names(job, other) and _names(other, job))


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
