"""Asking: what replicas want of the planner, what they are promised, and what it gives them.

The part of the floor between the jobs and [planning](planning.py); `Floor` is the whole.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from heapq import heappush
from math import inf, nextafter

import msgspec

from jobman.control import happenings as h
from jobman.control.batch import Batch
from jobman.control.connections import Connections, over_by
from jobman.control.line import Line
from jobman.control.live import LiveJob
from jobman.control.planning import Outcome, Planning
from jobman.control.states import State
from jobman.control.store.records import JobRecord, PromiseRecord, RevisionRecord
from jobman.control.time_limits import FAR, limit_of
from jobman.engines import base
from jobman.plan.model import Plan, Unit
from jobman.plan.satisfy import piece_of
from jobman.sched.allocation import Allocation
from jobman.sched.forecast import Expectation
from jobman.sched.placement import PlacementError
from jobman.sched.requests import Placed, Request, Revision
from jobman.sched.wishes import wishes_for

log = logging.getLogger("jobman.asking")
_REQUEST = re.compile(r"([0-9a-z]+):[^\s#]+#\d+")
"""A request in the words of the planner; people know the job."""
_PAUSE = 5.0
"""Seconds before somebody is planned again who could not have what was planned."""


class Asking(ABC):
    """Jobs and the planner. The rest of the floor does what is abstract here."""

    planning: Planning
    jobs: dict[str, LiveJob]
    host: base.Host
    connections: Connections
    clock: Callable[[], float]
    _dues: list[tuple[float, str]]
    _asked: int
    _job_number: int
    _event_number: int
    is_over: Callable[[str], bool]
    """Whether a reservation will not come again."""
    keep_chosen: Callable[[Mapping[str, Sequence[str]], Batch], None]
    """Have the nodes of reservations written down that the planner chose."""

    @abstractmethod
    def take(self, job_id: str, happening: h.Happening, batch: Batch) -> None: ...

    @abstractmethod
    def line_of(self, job: LiveJob, key: str) -> Line | None: ...

    @abstractmethod
    def _is_stopped(self, job: LiveJob, batch: Batch) -> bool: ...

    @abstractmethod
    def _grant(
        self, job: LiveJob, key: str, allocation: Allocation, batch: Batch, at: float | None = None
    ) -> None: ...

    @abstractmethod
    def event(
        self,
        job: LiveJob,
        batch: Batch,
        kind: str,
        replica: str | None = None,
        attempt: int | None = None,
        message: str = "",
    ) -> None: ...

    def _weight(self, job: LiveJob, key: str) -> int:
        weights: dict[str, int] = job.record.options.get("weights", {})
        return weights.get(job.unit_of(key).policies.priority or "", job.record.priority)

    def request(self, job: LiveJob, key: str) -> Request:
        """What a replica asks of the planner, each time under a name and a number of its own."""
        self._asked += 1
        alternatives, wishes = job.wanted(key)
        return msgspec.structs.replace(
            self.outline(job.record, job.plan, job.unit_of(key)),
            id=f"{job.id}:{key}#{self._asked}",
            alternatives=alternatives,
            wishes=wishes,
            number=(job.record.number << 32) + self._asked,
            weight=self._weight(job, key),
            together=self._partners(job),
            **self._bounds(job),
        )

    def _partners(self, job: LiveJob) -> tuple[str, ...]:
        """What waits of the jobs that a job is connected with: they begin at the same time.

        Nobody else's job waits for this one unless it is connected with it, too.
        """
        if job.conductor.has_begun:
            return ()
        return tuple(
            request_id
            for other in self.connections.hosts(job)
            if not other.conductor.has_begun
            for request_id in other.requests.values()
            if request_id in self.planning.waiting
        )

    def _bounds(self, job: LiveJob) -> dict[str, float]:
        """Between which moments it may start: as its document says, and while those run that it joins."""
        bounds = _start_window(job)
        if not job.conductor.has_begun:
            end = min(map(over_by, self.connections.hosts(job)), default=inf)
            if end < inf:
                bounds["latest"] = min(bounds.get("latest", inf), nextafter(end, 0.0))
        return bounds

    def look_at_guests(self, host: LiveJob, batch: Batch) -> None:
        """Something has become of a job: those who wait to join it may have more time for that, or less."""
        for guest in self.connections.guests(host):
            asked = {key: self.planning.waiting.get(each) for key, each in guest.requests.items()}
            waiting = {key: request for key, request in asked.items() if request is not None}
            # By when a job is over is asked only where somebody waits for it: it may have many replicas.
            latest = self._bounds(guest).get("latest", inf) if waiting else inf
            for key, request in waiting.items():
                if request.latest == latest:
                    continue
                if host.id not in self.jobs and latest == inf:
                    words = f"job {host.id} was over before it could join it; it goes on without"
                    self.event(guest, batch, "partner-over", key, message=words)
                self._join_anew(guest, key)

    def outline(self, record: JobRecord, plan: Plan, unit: Unit) -> Request:
        """What a replica of a unit would ask for, whoever it is."""
        scheduling = self.planning.scheduling
        return Request(
            id=record.id,
            alternatives=unit.alternatives,
            wishes=wishes_for(unit.policies.placement, unit.id, {}),
            overhead=self._overhead(plan, unit),
            number=(self._job_number + 1) << 32,
            limit=limit_of(unit.duration, unit.policies.grace, scheduling),
            submitted=record.submitted_at,
            job=record.id,
            name=f"{record.name}/{unit.id}",
            flavor=record.flavor or "",
            user=record.owner,
            account=self.planning.accounts.resolve(record.owner, record.account or ""),
            queue=record.queue or scheduling.default_queue,
            weight=record.priority,
            reservation=record.options.get("reservation", ""),
        )

    def _overhead(self, plan: Plan, unit: Unit) -> dict[str, int]:
        """What its copies on one node cost it beyond what they ask for, where there are the most of them."""
        each = self.host.overhead(plan, unit)
        if not each:
            return {}
        most = max((piece_of(part).copies for parts in unit.alternatives for part in parts), default=1)
        return {kind: units * most for kind, units in each.items()}

    def _join(self, job: LiveJob, key: str) -> None:
        """Ask the planner; where copies look at each other's places, one after the other."""
        if _looks_around(job.unit_of(key)):
            if job.looking is not None or job.shy or self._others_come_first(job, key):
                job.shy.append(key)
                return
            job.looking = key
        request = self.request(job, key)
        if request.reservation and self.is_over(request.reservation):
            request = self._after_all(job, key, request)
        job.requests[key] = request.id
        promise = job.promises.get(key)
        if promise is not None and promise.planned:
            placed = msgspec.convert(promise.planned["placed"], Placed)
            self.planning.join_again(request, placed, promise.planned["start"])
        else:
            self.planning.join(request)

    def _after_all(self, job: LiveJob, key: str, request: Request) -> Request:
        """Who asks for a reservation that is over is turned away next; what cleans up runs without it."""
        if job.unit_of(key).when == "always":
            return msgspec.structs.replace(request, reservation="")
        heappush(self._dues, (self.clock(), job.id))
        return request

    def turn_away(self, job: LiveJob, batch: Batch) -> None:
        """Fail what waits for a reservation that is over: it would wait for ever."""
        for key, request_id in list(job.requests.items()):
            request = self.planning.waiting.get(request_id)
            if request is not None and request.reservation and self.is_over(request.reservation):
                words = f"the reservation {request.reservation} was over before it could start"
                self.take(job.id, h.TurnedAway(key, words), batch)

    def booked(self, reservation: str = "") -> list[LiveJob]:
        """The jobs that want to run in a reservation, or in any."""
        wanted = ((job, job.record.options.get("reservation", "")) for job in self.jobs.values())
        return [job for job, name in wanted if name and reservation in ("", name) and job.line is None]

    def look_at_booked(self) -> None:
        """A reservation has ended: those who wait for one are looked at next."""
        for job in self.booked():
            heappush(self._dues, (self.clock(), job.id))

    def _join_anew(self, job: LiveJob, key: str, pause: float = 0.0) -> None:
        """Ask once more, for something else than what is planned; who looks around goes on looking."""
        self.planning.leave(job.requests[key])
        request = self.request(job, key)
        if pause:
            request = msgspec.structs.replace(request, earliest=self.clock() + pause)
        job.requests[key] = request.id
        self.planning.join(request)

    def held_before(self, job: LiveJob, key: str, allocation: Allocation, since: float) -> None:
        """Let the planner know of something that was given before a restart, with the time it has by now."""
        request = self.request(job, key)
        replica = job.conductor.replica(key)
        due = replica.due if replica.left is None else self.clock() + replica.left
        if due is not None:
            unit = job.unit_of(key)
            # The launch took a moment of its own, for which the margin is there: what was planned holds,
            # unless somebody gave more time.
            limit = request.limit + (replica.extended or 0.0)
            if due + (unit.policies.grace or 0.0) > since + limit:
                limit = limit_of(due - since, unit.policies.grace, self.planning.scheduling)
            request = msgspec.structs.replace(request, limit=limit)
        self._until(job, key, since + request.limit)
        job.requests[key] = request.id
        self.planning.take(request, allocation, since)

    def _others_come_first(self, job: LiveJob, key: str) -> bool:
        """Whether somebody else of the job, to whose place this one looks, has not been placed yet."""
        placement = job.unit_of(key).policies.placement
        relations = (placement.near, placement.apart) if placement is not None else ()
        names = {name for relation in relations if relation is not None for name in relation.tasks}
        waiting = (other for other, request in job.requests.items() if request in self.planning.waiting)
        return any(job.unit_of(other).name in names for other in waiting if other != key)

    def _leave(self, job: LiveJob, key: str, batch: Batch) -> None:
        if key in job.shy:
            job.shy.remove(key)
            return
        request_id = job.requests.pop(key, None)
        if request_id is not None:
            self.planning.leave(request_id)
        self._forget_promise(job, key, batch)
        self._next_to_look(job, key)

    def _next_to_look(self, job: LiveJob, key: str) -> None:
        """The next copy that has to see where the others are."""
        if job.looking == key:
            job.looking = None
        if job.looking is None and job.shy:
            shy, job.shy = job.shy, []
            for each in shy:
                self._join(job, each)

    def _place_again(self, job: LiveJob) -> None:
        """A copy is gone: one that waits to see where the others are looks again."""
        key = job.looking
        if key is not None and key in job.requests:
            request = self.planning.waiting.get(job.requests[key])
            if request is not None and request.wishes != job.wanted(key)[1]:
                self._join_anew(job, key)

    def carry(self, outcome: Outcome, batch: Batch) -> None:
        """Do what a pass decided, for those who still want it."""
        if outcome.chosen:
            self.keep_chosen(outcome.chosen, batch)
        for revision in outcome.revisions:
            self._revise(revision, outcome, batch)
        for request_id, why in outcome.unpromised.items():
            job, key = self._asking(request_id)
            if job is not None:
                job.unpromised[key] = why
        for request_id, expected in outcome.expected.items():
            self._expect(request_id, expected, batch)
        for start in outcome.starts:
            job, key = self._asking(start.id)
            if job is None:
                continue  # it has left, and the planner is going to hear of it
            if self._is_stopped(job, batch):
                continue
            at = start.until - self.planning.waiting[start.id].limit  # as the planner counts, to the last bit
            try:
                allocation = self.planning.grant(start)
            except PlacementError:
                log.exception("%s cannot have what was planned for it", start.id)
                self._join_anew(job, key, _PAUSE)
                continue
            self._forget_promise(job, key, batch)
            self._grant(job, key, allocation, batch, at)
            self._until(job, key, start.until)
            self._next_to_look(job, key)

    def _until(self, job: LiveJob, key: str, until: float) -> None:
        """Remember by when the planner counts on what somebody holds."""
        job.untils[key] = until
        heappush(self._dues, (until, job.id))

    def _displace_frozen(self, job: LiveJob, batch: Batch) -> None:
        """What stands still must not keep nodes from those they were promised to."""
        now = self.clock()
        for key, until in list(job.untils.items()):
            if until > now or key not in job.allocations or not self.planning.waiting:
                continue
            replica = job.conductor.replica(key)
            if replica.left is not None or (replica.frozen and replica.due is None):
                job.untils[key] = inf
                why = "its time is up while it stands still, and others wait"
                self.displace(job, h.Displaced(key), why, batch)

    def displace(self, job: LiveJob, happening: h.Displaced, why: str, batch: Batch) -> None:
        """Send something back to the queue, unless it is on its way there already: it is told once."""
        replica = job.conductor.replica(happening.replica)
        if replica.state in (State.STARTING, State.RUNNING) and replica.restarting is None:
            words = f"{why}; it goes back to the queue"
            self.event(job, batch, "displaced", replica.key, replica.attempt, words)
            self.take(job.id, happening, batch)

    def _asking(self, request_id: str) -> tuple[LiveJob | None, str]:
        """The job and the replica behind a request that still waits."""
        job_id, _, rest = request_id.partition(":")
        key = rest.rpartition("#")[0]
        job = self.jobs.get(job_id) if request_id in self.planning.waiting else None
        return job, key

    def _revise(self, revision: Revision, outcome: Outcome, batch: Batch) -> None:
        """Keep what is planned for somebody; a promise that became a little better is not worth a word."""
        job, key = self._asking(revision.id)
        if job is None:
            return
        now = self.clock()
        after = None if revision.after is None or revision.after - now > FAR else revision.after
        record = job.promises.get(key) or PromiseRecord(job=job.id, key=key, given_at=now)
        promise = outcome.promises.get(revision.id)
        record.planned = {}
        if promise is not None and promise.placed is not None and after is not None:
            record.planned = {"start": after, "placed": msgspec.to_builtins(promise.placed)}
            record.position = promise.position
        job.promises[key] = record
        batch.changes.promises[job.id, key] = record
        before = record.guaranteed_by
        if after == before or not _is_worth_telling(before, after, now):
            return
        record.guaranteed_by = after
        cause = _REQUEST.sub(r"job \1", revision.cause)
        job.unpromised.pop(key, None)
        if after is None:
            job.unpromised[key] = cause
        if before is not None:
            self._tell_revision(job, key, before, after, cause, batch)

    def _tell_revision(
        self, job: LiveJob, key: str, before: float, after: float | None, cause: str, batch: Batch
    ) -> None:
        self._event_number += 1
        batch.changes.revisions.append(
            RevisionRecord(
                job=job.id,
                number=self._event_number,
                key=key,
                at=self.clock(),
                before=before,
                after=after,
                cause=cause,
            )
        )
        if after is None or after > before:
            self.event(job, batch, "promise-moved", key, message=_moved(before, after, cause))

    def _expect(self, request_id: str, expected: Expectation | None, batch: Batch) -> None:
        job, key = self._asking(request_id)
        if job is None:
            return
        record = job.promises.get(key)
        if record is None:
            record = job.promises[key] = PromiseRecord(job=job.id, key=key, given_at=self.clock())
        record.expected_at, record.expected_p90 = expected or (None, None)
        record.first_expected_at = record.first_expected_at or record.expected_at
        batch.changes.promises[job.id, key] = record

    def _forget_promise(self, job: LiveJob, key: str, batch: Batch) -> None:
        job.unpromised.pop(key, None)
        if job.promises.pop(key, None) is not None:
            batch.changes.promises[job.id, key] = None

    def _free(self, job: LiveJob, key: str, allocation: Allocation) -> None:
        """Give an allocation back to where it came from."""
        line = self.line_of(job, key)
        is_untaken = key in job.untaken
        job.untaken.discard(key)
        if line is None:
            job.untils.pop(key, None)
            request_id = job.requests.pop(key, None)
            if request_id is not None:
                # How long somebody let it run says nothing of how long it would have run.
                learn = not job.conductor.cancelled
                self.planning.give_back(request_id, None if is_untaken else allocation, learn=learn)
        elif not is_untaken:
            line.give_back(allocation)


def _looks_around(unit: Unit) -> bool:
    """Whether where its copies go depends on where others are."""
    placement = unit.policies.placement
    return placement is not None and bool(placement.near or placement.apart or placement.spread)


def _start_window(job: LiveJob) -> dict[str, float]:
    """Between which moments the first of a job may start; whatever follows may at any time."""
    conductor = job.conductor
    if conductor.has_begun:
        return {}
    bounds = {"earliest": conductor.earliest}
    if sum(unit.replicas for unit in job.plan.askers()) == 1:
        bounds["latest"] = conductor.latest  # of several any may be the first, and the others come later
    return {name: at for name, at in bounds.items() if at is not None}


def _is_worth_telling(before: float | None, after: float | None, now: float) -> bool:
    if before is None or after is None or after > before:
        return True
    return before - after > max(60.0, 0.05 * (before - now))


def _moved(before: float, after: float | None, cause: str) -> str:
    if after is None:
        return f"it cannot be said any more by when it starts: {cause}"
    return f"it starts up to {after - before:.0f} s later than promised: {cause}"
