"""Reading what the scheduler keeps: promises, their revisions, the calendar, states, how long runs took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, and_, case, select

from jobman.control.store.reader import Reader, batched, of_job, ordered, select_from
from jobman.control.store.records import CalendarRecord, PromiseRecord, RevisionRecord, StateRecord
from jobman.control.store.schema import (
    allocations,
    attempts,
    calendar,
    documents,
    jobs,
    node_states,
    promises,
    queue_states,
    revisions,
)
from jobman.control.store.views import PastRun
from jobman.spec.shapes import Alternatives

_PAGE = 500
_LARGEST_PLAN = 1 << 20
"""Bytes of a plan that is still looked into for limits: history must not hold up a start."""


class OutlookReads(Reader):
    """What can be asked about the future, and about the past as far as it tells the future."""

    def promises(self, job: str | None = None) -> list[PromiseRecord]:
        """What the replicas of a job, or of all, were told."""
        query = ordered(promises)
        return self._all(PromiseRecord, query if job is None else query.where(of_job(promises, job)))

    def revisions(self, job: str, limit: int = 10) -> list[RevisionRecord]:
        """The last revisions of a job's guarantees, in their order."""
        query = select_from(revisions).where(of_job(revisions, job))
        newest = query.order_by(revisions.c.number.desc(), revisions.c.key.desc()).limit(limit)
        return self._all(RevisionRecord, newest)[::-1]

    def calendar(self) -> list[CalendarRecord]:
        """All windows of maintenance and advance reservations, by name."""
        return self._all(CalendarRecord, select(calendar).order_by(calendar.c.name))

    def queue_states(self) -> dict[str, StateRecord]:
        """The states that administrators gave to queues, by name."""
        return {one.name: one for one in self._all(StateRecord, select(queue_states))}

    def node_states(self) -> dict[str, StateRecord]:
        """The states that administrators gave to nodes, by name."""
        return {one.name: one for one in self._all(StateRecord, select(node_states))}

    def past_runs(self, limit: int = 2_000, each: int = 20) -> list[PastRun]:
        """How long replicas held what they were given, those of the newest jobs first.

        Of one job at most `each` of them, so that a large one does not hide all others.
        """
        found: dict[int, list[PastRun]] = {}
        count, below = 0, None
        while count < limit:
            page = self._page_of_runs(below)
            for number, run in page:
                known = found.setdefault(number, [])
                if len(known) < each and run not in known:
                    known.append(run)
            count = sum(map(len, found.values()))
            if len(page) < _PAGE:
                break
            last = page[-1][0]
            # The last job of a page may go on in the next, unless there is enough of it.
            below = last if len(found[last]) >= each or page[0][0] == last else last + 1
        return self._with_limits([run for runs in found.values() for run in runs][:limit])

    def _page_of_runs(self, below: int | None) -> list[tuple[int, PastRun]]:
        query = _past_runs().limit(_PAGE)
        if below is not None:
            query = query.where(allocations.c.job < below)
        with self._database.read() as connection:
            return [(number, PastRun(*values)) for number, *values in connection.execute(query)]

    def _with_limits(self, runs: list[PastRun]) -> list[PastRun]:
        """Runs with what their documents said of them: time limits and shapes."""
        units: dict[tuple[str, str], _KnownUnit] = {}
        for ids in batched(dict.fromkeys(run.job for run in runs)):
            query = (
                select(jobs.c.id, documents.c.plan)
                .join(documents, documents.c.job == jobs.c.number)
                .where(jobs.c.id.in_(ids))
            )
            with self._database.read() as connection:
                for id, plan in connection.execute(query):
                    units |= {(id, unit.id): unit for unit in _units(plan)}
        return [_completed(run, units.get((run.job, run.unit))) for run in runs]


def _past_runs() -> Select[Any]:
    """What was held and given back at the top level of jobs, with how its attempt ended."""
    same = (allocations.c.job, attempts.c.job), (allocations.c.key, attempts.c.key)
    attempt = and_(*(one == other for one, other in same), allocations.c.attempt == attempts.c.attempt)
    return (
        select(
            allocations.c.job,
            jobs.c.id,
            jobs.c.name,
            jobs.c.owner,
            jobs.c.account,
            jobs.c.flavor,
            allocations.c.key,
            _seconds(),
            attempts.c.reason,
            allocations.c.returned_at,
        )
        .join(jobs, jobs.c.number == allocations.c.job)
        .outerjoin(attempts, attempt)
        .where(allocations.c.returned_at.is_not(None), ~allocations.c.key.contains("/"), _seconds() > 0)
        .where(jobs.c.state != "cancelled")
        .order_by(allocations.c.job.desc(), allocations.c.key.desc(), allocations.c.attempt.desc())
    )


def _seconds() -> ColumnElement[float]:
    """A task's attempt knows when it really ended; a group has only what it held."""
    held = allocations.c.returned_at - allocations.c.given_at
    return case((attempts.c.ended_at.is_not(None), attempts.c.ended_at - attempts.c.granted_at), else_=held)


class _KnownPolicies(msgspec.Struct):
    grace: float | None = None


class _KnownUnit(msgspec.Struct):
    """As much of a unit as is of interest here."""

    id: str
    duration: float | None = None
    alternatives: Alternatives = ()
    policies: _KnownPolicies = msgspec.field(default_factory=_KnownPolicies)


class _KnownPlan(msgspec.Struct):
    units: list[_KnownUnit] = []


_plans = msgspec.json.Decoder(_KnownPlan)


def _units(plan: bytes) -> Iterable[_KnownUnit]:
    if len(plan) > _LARGEST_PLAN:
        return []
    try:
        return _plans.decode(plan).units
    except msgspec.MsgspecError:
        return []


def _completed(run: PastRun, unit: _KnownUnit | None) -> PastRun:
    if unit is None:
        return run
    parts = unit.alternatives[0] if unit.alternatives else ()
    return msgspec.structs.replace(run, limit=unit.duration, grace=unit.policies.grace, parts=parts)
