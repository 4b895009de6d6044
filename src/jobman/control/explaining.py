"""Explaining a job with all that the planner knows: its place, its promise, what blocks it, what helps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import inf

import msgspec

from jobman.control import answers
from jobman.control.floor import Floor, moment_of
from jobman.control.live import LiveJob
from jobman.control.reasons import explain, held_by_services
from jobman.control.store.records import JobRecord, PromiseRecord
from jobman.control.store.store import Store
from jobman.control.time_limits import FAR, limit_of
from jobman.plan.model import Plan, Unit
from jobman.plan.wording import format_duration
from jobman.sched.planner import Planner
from jobman.sched.requests import Promise, Request
from jobman.sched.suggestions import Suggestion, suggest
from jobman.sched.whys import Kind, Why, unpromised, why

_MOST_REVISIONS = 5
_MOST_LOOKED_AT = 20
_SOONER = 60.0
"""A suggestion that gains less than so many seconds is none."""


class _View(msgspec.Struct):
    """What the planner says of one request."""

    promise: Promise
    why: Why
    factors: list[answers.Factor]
    total: float
    unpromised: str = ""


class Explanation:
    """Collects what there is to say about one job."""

    def __init__(self, floor: Floor, store: Store, job: LiveJob) -> None:
        self._floor = floor
        self._store = store
        self._job = job
        self._now = floor.clock()

    async def give(self) -> answers.Why:
        job = self._job
        planning = self._floor.planning
        asked = {
            key: planning.waiting[request_id]
            for key, request_id in list(job.requests.items())
            if request_id in planning.waiting
        }
        chosen = dict(list(asked.items())[:_MOST_LOOKED_AT])
        views = await planning.ask(lambda planner: self._look(planner, list(chosen.values())))
        by_key = {key: views[request.id] for key, request in chosen.items() if request.id in views}
        found = explain(job, self._floor.line_of, lambda key: self._words(key, by_key), self._now)
        if by_key:
            first, view = min(by_key.items(), key=lambda item: item[1].promise.position)
            found.estimate = self._estimate(first, view)
            found.position, found.queue = view.promise.position, view.promise.queue
            queue = planning.scheduling.queue(view.promise.queue)
            if queue is None or not queue.is_interactive:  # in strict order priorities count for nothing
                found.priority, found.factors = view.total, view.factors
            if not found.suggestion:
                found.suggestion = await self._suggestion(first, asked[first], view.promise)
        found.revisions = await asyncio.to_thread(self._revisions)
        return found

    def _look(self, planner: Planner, requests: Sequence[Request]) -> dict[str, _View]:
        """In the planner's thread."""
        views = {}
        priorities = self._floor.planning.priorities
        for request in requests:
            try:
                promise = planner.promise(request.id)
            except KeyError:
                continue  # it has just asked, or just left
            factors = priorities.factors(request, self._now)
            parts = [
                answers.Factor(name=name, raw=part.raw, weight=part.weight, contribution=part.contribution)
                for name, part in factors.parts.items()
            ]
            reason = ""
            if _near(promise.guaranteed_by, self._now) is None:
                reason = unpromised(planner, request, self._now)
            found = why(planner, request.id, self._now)
            views[request.id] = _View(promise, found, parts, factors.total, reason)
        return views

    def _words(self, key: str, views: dict[str, _View]) -> tuple[Kind, str]:
        view = views.get(key)
        if key in self._job.shy:
            return "resources", "it is placed when the copies before it are"
        if view is None:
            return "resources", "it is about to be planned"
        return view.why.kind, view.why.message + held_by_services(self._job)

    def _estimate(self, key: str, view: _View) -> answers.Estimate:
        """What one who waits is told."""
        record, promise = self._job.promises.get(key), view.promise
        return answers.Estimate(
            job=self._job.id,
            replica=key,
            guaranteed_by=_near(promise.guaranteed_by, self._now),
            unpromised=view.unpromised,
            expected_at=record.expected_at if record is not None else None,
            expected_p90=record.expected_p90 if record is not None else None,
            position=promise.position,
            queue=promise.queue,
        )

    async def _suggestion(self, key: str, request: Request, promise: Promise) -> str:
        """The best of the variants that were tried."""
        unit = self._job.unit_of(key)
        tried = await self._floor.planning.ask(
            lambda planner: _suggestions(self._floor, planner, unit, request, self._now)
        )
        return best_of(tried, promise.guaranteed_by, self._now)

    def _revisions(self) -> list[answers.Revision]:
        return [
            answers.Revision(
                at=each.at, replica=each.key, before=each.before, after=each.after, cause=each.cause
            )
            for each in reversed(self._store.revisions(self._job.id, _MOST_REVISIONS))
        ]


def best_of(tried: Sequence[Suggestion], otherwise: float | None, now: float) -> str:
    """The variant that starts first, in words, if that is worth anything."""
    best = min(tried, key=lambda each: each.start, default=None)
    if best is None or best.start - now > FAR:
        return ""
    if otherwise is not None and otherwise - best.start < _SOONER:
        return ""
    when = "at once" if best.start <= now else f"in {format_duration(best.start - now)}"
    return f"{best.words} it would start {when}"


def estimate_of(floor: Floor, job_id: str) -> answers.Estimate | None:
    """When a job that was just submitted starts, if that is known already."""
    job = floor.jobs.get(job_id)
    if job is None or job.allocations or job.record.state != "waiting":
        return answers.Estimate(job=job_id, starts_now=True)
    key = next(iter((*job.promises, *job.unpromised)), None)
    if key is None:
        return None
    record = job.promises.get(key) or PromiseRecord(job=job_id, key=key, given_at=floor.clock())
    return answers.Estimate(
        job=job_id,
        replica=key,
        guaranteed_by=record.guaranteed_by,
        unpromised=job.unpromised.get(key, "") if record.guaranteed_by is None else "",
        expected_at=record.expected_at,
        expected_p90=record.expected_p90,
        position=floor.planning.positions.get(job.requests.get(record.key, ""), record.position),
        queue=job.record.queue or floor.planning.scheduling.default_queue,
    )


async def try_out(floor: Floor, record: JobRecord, plan: Plan) -> answers.Estimate:
    """When the first replica of a job would start, and what would make that sooner; changes nothing."""
    now = floor.clock()
    unit = next(plan.askers(), None)
    if unit is None:
        return answers.Estimate(job=record.id, starts_now=True)
    request = floor.outline(record, plan, unit)
    closed = _closed(plan, unit)
    if closed:
        return answers.Estimate(job=record.id, replica=f"{unit.id}.0", queue=request.queue, unpromised=closed)
    if plan.start is not None and (earliest := moment_of(plan.start.earliest, now)) is not None:
        request = msgspec.structs.replace(request, earliest=earliest)

    def ask(planner: Planner) -> tuple[Promise, list[Suggestion], str]:
        promise = planner.try_out(request, now)
        is_now = promise.guaranteed_by is not None and promise.guaranteed_by <= now
        tried = [] if is_now else _suggestions(floor, planner, unit, request, now)
        is_known = _near(promise.guaranteed_by, now) is not None
        return promise, tried, "" if is_known else unpromised(planner, request, now)

    promise, tried, reason = await floor.planning.ask(ask)
    by = _near(promise.guaranteed_by, now)
    expected = await floor.planning.expect(request, by, now)
    return answers.Estimate(
        job=record.id,
        replica=f"{unit.id}.0",
        starts_now=by is not None and by <= now,
        guaranteed_by=by,
        unpromised=reason,
        expected_at=expected.p50 if expected is not None else None,
        expected_p90=expected.p90 if expected is not None else None,
        position=promise.position,
        queue=promise.queue,
        suggestion=best_of(tried, by, now),
    )


def _suggestions(
    floor: Floor, planner: Planner, unit: Unit, request: Request, now: float
) -> list[Suggestion]:
    """Variants in the terms of the document: its time limits have neither grace nor margin in them."""
    scheduling = floor.planning.scheduling
    duration = unit.duration if unit.duration is not None else scheduling.default_duration
    duration = None if duration == inf else duration
    beside = limit_of(0.0, unit.policies.grace, scheduling)
    return suggest(planner, request, now, duration=duration, beside=beside)


def _closed(plan: Plan, unit: Unit) -> str:
    """What somebody has to do before a job may start at all."""
    gates = [*plan.policies.gates, *unit.policies.gates]
    if gates:
        return f"its gate {gates[0]} is closed"
    return "it is held" if plan.policies.hold or unit.policies.hold else ""


def _near(moment: float | None, now: float) -> float | None:
    """A start that can be promised: nothing without a limit is in the way."""
    return moment if moment is not None and moment - now < FAR else None
