"""The floor: every job under way, the lines they wait in, and what follows from each thing that happens.

No input or output, no waiting: what is decided goes into a batch, which the director commits and carries out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from heapq import heappop, heappush
from math import inf

import msgspec

from jobman.control import happenings as h
from jobman.control import keeping
from jobman.control.accounting.book import EVENT as PERMISSION_LOST
from jobman.control.accounting.book import Book, Grant
from jobman.control.batch import Batch
from jobman.control.causes import Failure
from jobman.control.conductor import UNHEALTHY, Conductor
from jobman.control.line import Ask, Line
from jobman.control.live import LiveJob
from jobman.control.planning import FAR, Outcome, Planning, limit_of
from jobman.control.states import State
from jobman.control.store.records import (
    AllocationRecord,
    AttemptRecord,
    EventRecord,
    JobRecord,
    LogRecord,
    PromiseRecord,
    RevisionRecord,
    TaskRecord,
)
from jobman.control.store.views import Numbers, PastRun
from jobman.control.telling import KINDS, job_reason, words_for
from jobman.engines import base
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.sched.allocation import Allocation
from jobman.sched.forecast import Expectation
from jobman.sched.placement import PlacementError, Pool
from jobman.sched.requests import Placed, Request, Revision
from jobman.sched.scheduling import Scheduling
from jobman.sched.wishes import Wishes, wishes_for
from jobman.settings.accounting import Accounting
from jobman.spec.quantities import Moment
from jobman.spec.shapes import Alternatives

log = logging.getLogger("jobman.floor")
_REQUEST = re.compile(r"([0-9a-z]+):[^\s#]+#\d+")
"""A request in the words of the planner; people know the job."""
_PAUSE = 5.0
"""Seconds before somebody is planned again who could not have what was planned."""
_LATE = 1.0
"""Seconds after its last attempt by which a job has ended for another reason than that."""
_NEVER_BEGAN = ("launch-failed", "stage-failed")
"""Reasons of attempts whose command never ran."""


class Floor:
    """All jobs of a service that are not over."""

    def __init__(
        self,
        host: base.Host,
        numbers: Numbers,
        clock: Callable[[], float],
        scheduling: Scheduling | None = None,
        book: Book | None = None,
        past: Iterable[PastRun] = (),
    ) -> None:
        self.host = host
        self.clock = clock
        self.jobs: dict[str, LiveJob] = {}
        self.nodes = {node.name: node for node in host.nodes()}
        self.planning = Planning(list(self.nodes.values()), scheduling or Scheduling(), past)
        self.book = book or Book(Accounting(), self.planning.accounts)
        self._dues: list[tuple[float, str]] = []
        self._with_lines: dict[str, LiveJob] = {}
        """Jobs that have lines of their own."""
        self._asked = 0
        self._job_number = numbers.job
        self._event_number = numbers.event

    # -- entering ---------------------------------------------------------------------------------

    def enter(
        self,
        record: JobRecord,
        plan: Plan,
        nodes: Sequence[ClusterNode],
        batch: Batch,
        *,
        done: Sequence[str],
        hold: bool,
    ) -> None:
        self._job_number += 1
        record.number = self._job_number
        start = plan.start
        conductor = Conductor(
            plan,
            earliest=moment_of(start.earliest, record.submitted_at) if start else None,
            latest=moment_of(start.latest, record.submitted_at) if start else None,
            done=done,
        )
        conductor.held = conductor.held or hold
        job = self.add(record, plan, conductor, nodes)
        batch.changes.new_jobs.add(record.id)
        self.event(job, batch, "submitted", message=f"submitted by {record.owner}")
        self.take(record.id, h.Tick(), batch)

    def add(
        self, record: JobRecord, plan: Plan, conductor: Conductor, nodes: Sequence[ClusterNode]
    ) -> LiveJob:
        job = LiveJob(record, plan, conductor, {node.name: node for node in nodes})
        if record.options.get("virtual"):
            job.line = Line(Pool(nodes), strict=True)
            self._with_lines[job.id] = job
        self.jobs[record.id] = job
        return job

    def resume(self, broken: Sequence[tuple[JobRecord, str]], batch: Batch) -> None:
        """After a restart: let every job look around, and put down those that cannot go on."""
        for job_id in list(self.jobs):
            self.take(job_id, h.Tick(), batch)
        for record, why in broken:
            record.state, record.reason, record.ended_at = "failed", why, self.clock()
            record.exit_code = 1
            batch.changes.jobs[record.id] = record
            self._note(record.id, batch, "job-failed", message=why)

    # -- what happens -----------------------------------------------------------------------------

    def take(self, job_id: str, happening: h.Happening, batch: Batch) -> None:
        """Let the conductor of a job learn something, and put down what follows."""
        job = self.jobs.get(job_id)
        if job is None:
            return
        self._follow(job, job.conductor.take(happening, self.clock()), batch)

    def _follow(self, job: LiveJob, requests: Sequence[h.Request], batch: Batch) -> None:
        self._tell_changes(job, batch)
        for request in requests:
            self.do(job, request, batch)
        self._collect(job, batch)
        due = job.conductor.due()
        if due is not None:
            heappush(self._dues, (due, job.id))
        if job.conductor.outcome is not None:
            self.forget(job)

    def do(self, job: LiveJob, request: h.Request, batch: Batch) -> None:
        match request:
            case h.Ask(replica=key):
                self._asked += 1
                line = self.line_of(job, key)
                if line is None:
                    self._join(job, key)
                else:
                    rank = (-self._weight(job, key), job.record.number, self._asked)
                    line.join(Ask(rank, job.id, key))
            case h.Withdraw(replica=key):
                line = self.line_of(job, key)
                if line is None:
                    self._leave(job, key, batch)
                else:
                    line.leave(job.id, key)
            case h.Launch(replica=key, attempt=attempt):
                self._launch(job, key, attempt, batch)
            case h.Stop(replica=key, attempt=attempt, why=why):
                batch.acts.append(("stop", (job.id, key, attempt), (why,)))
            case h.Freeze(replica=key, attempt=attempt):
                self.event(job, batch, "frozen", key, attempt, "stands still")
                batch.acts.append(("freeze", (job.id, key, attempt), ()))
            case h.Thaw(replica=key, attempt=attempt):
                self.event(job, batch, "thawed", key, attempt, "goes on")
                batch.acts.append(("thaw", (job.id, key, attempt), ()))
            case h.Prolong(replica=key, attempt=attempt, seconds=seconds):
                batch.acts.append(("prolong", (job.id, key, attempt), (seconds,)))
            case h.GiveBack(replica=key):
                self._give_back(job, key, batch)
            case h.Finish(outcome=outcome):
                self._finish(job, outcome, batch)

    def _weight(self, job: LiveJob, key: str) -> int:
        weights: dict[str, int] = job.record.options.get("weights", {})
        return weights.get(job.unit_of(key).policies.priority or "", job.record.priority)

    def _launch(self, job: LiveJob, key: str, attempt: int, batch: Batch) -> None:
        nodes: tuple[str, ...] = ()
        if key in job.allocations:
            nodes = tuple(dict.fromkeys(held.node for held in job.allocations[key][1].held))
        record = AttemptRecord(job=job.id, key=key, attempt=attempt, granted_at=self.clock(), nodes=nodes)
        job.attempts[key] = record
        job.retried += attempt > 1
        batch.changes.attempts[job.id, key, attempt] = record
        batch.launches.append(job.order(key, self.peers(job)))

    def peers(self, job: LiveJob) -> tuple[base.Peer, ...]:
        """What runs in a job and in those it is connected with."""
        peers = list(job.peers.values())
        for name in job.connected():
            for other in self.jobs.values():
                if other is not job and name in (other.id, other.record.name):
                    peers += other.peers.values()
        return tuple(peers)

    def _give_back(self, job: LiveJob, key: str, batch: Batch) -> None:
        known = job.allocations.pop(key, None)
        if job.lines.pop(key, None) is not None and not job.lines and job.line is None:
            self._with_lines.pop(job.id, None)
        if known is None:
            return
        attempt, allocation = known
        self._free(job, key, allocation)
        self._place_again(job)
        ended = job.attempts.get(key)
        over = ended is not None and ended.attempt == attempt and ended.ended_at is not None
        at = ended.ended_at if ended is not None and over and ended.ended_at is not None else self.clock()
        self.book.returned(job.id, key, attempt, at, ended.reason if over and ended else "", batch.changes)
        record = self._allocation_record(job, key, attempt, allocation)
        record.returned_at = self.clock()
        batch.changes.allocations[job.id, key, attempt] = record

    def _finish(self, job: LiveJob, outcome: str, batch: Batch) -> None:
        record = job.record
        record.state = outcome
        record.ended_at = max(job.last_end, record.started_at or 0.0) or self.clock()
        if self.clock() - record.ended_at > _LATE:
            record.ended_at = self.clock()
        record.reason = job_reason(job)
        failure = job.conductor.failure
        record.exit_code = 0 if outcome == "succeeded" else None
        if outcome == "failed":
            record.exit_code = (failure[1].exit_code if failure is not None else None) or 1
        self.event(job, batch, f"job-{outcome}", message=record.reason)
        self._close_records(job, batch)

    def _close_records(self, job: LiveJob, batch: Batch) -> None:
        """Replicas that were to start over when the job ended are cancelled with it."""
        conductor = job.conductor
        for key, attempt in conductor.attempts.items():
            try:
                conductor.run_of(key)
            except KeyError:
                unit = "/".join(step.rpartition(".")[0] for step in key.split("/"))
                record = keeping.cleared_record(key, unit, attempt, job.id)
                record.state, record.since = State.CANCELLED, self.clock()
                batch.changes.replicas[job.id, key] = record

    def hear(self, report: base.Report, batch: Batch) -> None:
        """News from the host."""
        job = self.jobs.get(report.job)
        if job is None:
            return
        key, attempt = report.key, report.attempt
        match report:
            case base.Running():
                self._running(job, report, batch)
                self.take(job.id, h.Started(key, attempt), batch)
            case base.CheckPassed(kind="started", passed=True):
                self.take(job.id, h.PassedStart(key, attempt), batch)
            case base.CheckPassed(kind="ready", passed=passed):
                self.event(job, batch, "ready" if passed else "not-ready", key, attempt)
                self.take(job.id, h.BecameReady(key, attempt, passed), batch)
            case base.Unhealthy(message=message):
                job.complaints[key] = message
                self.event(job, batch, "unhealthy", key, attempt, message)
                self.take(job.id, h.BecameUnhealthy(key, attempt), batch)
            case base.Over():
                self._over(job, report, batch)

    def _running(self, job: LiveJob, report: base.Running, batch: Batch) -> None:
        record = job.attempts.get(report.key)
        if record is None or record.attempt != report.attempt:
            return
        record.started_at = record.started_at or report.at
        self._note_start(job, report.at)
        batch.changes.attempts[job.id, report.key, report.attempt] = record
        self._keep_outputs(job, report.key, report.attempt, report.outputs, batch, ended=False)
        if report.ports:
            unit = job.unit_of(report.key)
            index = int(report.key.rpartition(".")[2])
            job.peers[report.key] = base.Peer(unit.name, index, "localhost", report.ports)
            self._keep_ports(job, report, batch)

    def _note_start(self, job: LiveJob, at: float) -> None:
        """A job starts with its first attempt, not with the moment one hears of it."""
        if job.record.started_at is None or at < job.record.started_at:
            job.record.started_at = at

    def _keep_ports(self, job: LiveJob, report: base.Running, batch: Batch) -> None:
        """Ports are part of what a replica holds: others must find them also after a restart."""
        known = job.allocations.get(report.key)
        if known is not None:
            record = self._allocation_record(job, report.key, *known)
            record.allocation["ports"] = report.ports
            batch.changes.allocations[job.id, report.key, known[0]] = record

    def _keep_outputs(
        self,
        job: LiveJob,
        key: str,
        attempt: int,
        outputs: Sequence[base.OutputFile],
        batch: Batch,
        *,
        ended: bool,
    ) -> None:
        for output in outputs:
            batch.changes.logs[job.id, key, attempt, output.copy, output.stream] = LogRecord(
                job=job.id,
                key=key,
                attempt=attempt,
                copy=output.copy,
                stream=output.stream,
                path=output.path,
                node=output.node,
                start=output.start,
                size=output.size,
                ended=ended,
            )

    def _over(self, job: LiveJob, report: base.Over, batch: Batch) -> None:
        record = job.attempts.get(report.key)
        if record is None or record.attempt != report.attempt or record.ended_at is not None:
            return
        record.ended_at = job.last_end = report.at
        record.started_at = record.started_at or report.started_at
        if report.started_at is not None and report.reason not in _NEVER_BEGAN:
            self._note_start(job, report.started_at)
        for name in ("exit_code", "signal", "reason", "message", "cpu_seconds", "max_rss", "result"):
            setattr(record, name, getattr(report, name))
        why = job.conductor.replica(report.key).stopping_for
        if why == UNHEALTHY:
            record.reason, record.message = why, job.complaints.pop(report.key, "")
        batch.changes.attempts[job.id, report.key, report.attempt] = record
        self._keep_outputs(job, report.key, report.attempt, report.outputs, batch, ended=True)
        for note in report.notes:
            self.event(job, batch, "note", report.key, report.attempt, note)
        job.peers.pop(report.key, None)
        failure = Failure(report.reason, report.exit_code) if report.reason else None
        if report.reason not in _NEVER_BEGAN:
            self.take(job.id, h.Started(report.key, report.attempt), batch)
        self.take(job.id, h.Ended(report.key, report.attempt, failure), batch)

    # -- planning -----------------------------------------------------------------------------------

    def request(self, job: LiveJob, key: str) -> Request:
        """What a replica asks of the planner."""
        alternatives, wishes = job.wanted(key)
        return msgspec.structs.replace(
            self.outline(job.record, job.unit_of(key)),
            id=f"{job.id}:{key}#{self._asked}",
            alternatives=alternatives,
            wishes=wishes,
            number=(job.record.number << 32) + self._asked,
            weight=self._weight(job, key),
        )

    def outline(self, record: JobRecord, unit: Unit) -> Request:
        """What a replica of a unit would ask for, whoever it is."""
        scheduling = self.planning.scheduling
        return Request(
            id=record.id,
            alternatives=unit.alternatives,
            wishes=wishes_for(unit.policies.placement, unit.id, {}),
            number=(self._job_number + 1) << 32,
            limit=limit_of(unit.duration, unit.policies.grace, scheduling),
            submitted=record.submitted_at,
            job=record.id,
            name=f"{record.name}/{unit.id}",
            flavor=record.flavor or "",
            user=record.owner,
            account=record.account or "",
            queue=record.queue or scheduling.default_queue,
            weight=record.priority,
            reservation=record.options.get("reservation", ""),
        )

    def _join(self, job: LiveJob, key: str, *, anew: bool = False, pause: float = 0.0) -> None:
        """Ask the planner; where copies look at each other's places, one after the other."""
        if _looks_around(job.unit_of(key)):
            if job.looking is not None:
                job.shy.append(key)
                return
            job.looking = key
        request = self.request(job, key)
        if pause:
            request = msgspec.structs.replace(request, earliest=self.clock() + pause)
        job.requests[key] = request.id
        promise = None if anew else job.promises.get(key)
        if promise is not None and promise.planned and promise.guaranteed_by is not None:
            self.planning.join_again(request, msgspec.convert(promise.planned, Placed), promise.guaranteed_by)
        else:
            self.planning.join(request)

    def held_before(self, job: LiveJob, key: str, allocation: Allocation, since: float) -> None:
        """Let the planner know of something that was given before a restart, with the time it has by now."""
        self._asked += 1
        request = self.request(job, key)
        replica = job.conductor.replica(key)
        due = replica.due if replica.left is None else self.clock() + replica.left
        if due is not None:
            unit = job.unit_of(key)
            limit = limit_of(due - since, unit.policies.grace, self.planning.scheduling)
            request = msgspec.structs.replace(request, limit=limit)
        self._until(job, key, since + request.limit)
        job.requests[key] = request.id
        self.planning.take(request, allocation, since)

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
            if job.shy:
                self._join(job, job.shy.pop(0))

    def _place_again(self, job: LiveJob) -> None:
        """A copy is gone: one that waits to see where the others are looks again."""
        key = job.looking
        if key is not None and key in job.requests:
            request = self.planning.waiting.get(job.requests[key])
            if request is not None and request.wishes != job.wanted(key)[1]:
                self.planning.leave(request.id)
                job.looking = None
                self._asked += 1
                self._join(job, key, anew=True)

    def carry(self, outcome: Outcome, batch: Batch) -> None:
        """Do what a pass decided, for those who still want it."""
        for revision in outcome.revisions:
            self._revise(revision, outcome, batch)
        for request_id, expected in outcome.expected.items():
            self._expect(request_id, expected, batch)
        for start in outcome.starts:
            job, key = self._asking(start.id)
            if job is None:
                continue  # it has left, and the planner is going to hear of it
            try:
                allocation = self.planning.grant(start)
            except PlacementError:
                log.exception("%s cannot have what was planned for it", start.id)
                self.planning.leave(start.id)
                job.looking = None if job.looking == key else job.looking
                self._asked += 1
                self._join(job, key, anew=True, pause=_PAUSE)
                continue
            self._forget_promise(job, key, batch)
            self._grant(job, key, allocation, batch)
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
                words = "its time is up while it stands still, and others wait; it goes back to the queue"
                self.event(job, batch, "displaced", key, replica.attempt, words)
                self.take(job.id, h.Displaced(key), batch)

    def _asking(self, request_id: str) -> tuple[LiveJob | None, str]:
        """The job and the replica behind a request that still waits."""
        job_id, _, rest = request_id.partition(":")
        key = rest.rpartition("#")[0]
        job = self.jobs.get(job_id) if request_id in self.planning.waiting else None
        return job, key

    def _revise(self, revision: Revision, outcome: Outcome, batch: Batch) -> None:
        """Keep what somebody is promised; a promise that became a little better is not worth a word."""
        job, key = self._asking(revision.id)
        if job is None:
            return
        now = self.clock()
        after = None if revision.after is None or revision.after - now > FAR else revision.after
        known = job.promises.get(key)
        before = known.guaranteed_by if known is not None else None
        if after == before or not _is_worth_telling(before, after, now):
            return
        promise = outcome.promises.get(revision.id)
        record = known or PromiseRecord(job=job.id, key=key, given_at=now)
        record.guaranteed_by = after
        record.position = promise.position if promise is not None else 0
        record.planned = msgspec.to_builtins(promise.placed) if promise and promise.placed else {}
        job.promises[key] = record
        batch.changes.promises[job.id, key] = record
        cause = _REQUEST.sub(r"job \1", revision.cause)
        if before is not None:
            self._event_number += 1
            batch.changes.revisions.append(
                RevisionRecord(
                    job=job.id,
                    number=self._event_number,
                    key=key,
                    at=now,
                    before=before,
                    after=after,
                    cause=cause,
                )
            )
            if after is None or after > before:
                self.event(job, batch, "promise-moved", key, message=_moved(before, after, cause))

    def _expect(self, request_id: str, expected: Expectation, batch: Batch) -> None:
        job, key = self._asking(request_id)
        if job is None:
            return
        record = job.promises.get(key)
        if record is None:
            record = job.promises[key] = PromiseRecord(job=job.id, key=key, given_at=self.clock())
        record.expected_at, record.expected_p90 = expected
        record.first_expected_at = record.first_expected_at or expected.p50
        batch.changes.promises[job.id, key] = record

    def _forget_promise(self, job: LiveJob, key: str, batch: Batch) -> None:
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
                self.planning.give_back(request_id, None if is_untaken else allocation)
        elif not is_untaken:
            line.give_back(allocation)

    # -- lines ------------------------------------------------------------------------------------

    def line_of(self, job: LiveJob, key: str) -> Line | None:
        """The line a replica waits in: its group's or its job's own; None where it is planned."""
        around = key.rpartition("/")[0]
        return job.lines[around] if around else job.line

    def serve_lines(self, batch: Batch) -> None:
        """Give what groups and jobs with their own nodes have, until nobody else can be given any."""
        granted = True
        while granted:
            granted = False
            for job in list(self._with_lines.values()):
                for line in [*([] if job.line is None else [job.line]), *job.lines.values()]:
                    granted = self._serve(line, batch) or granted

    def _serve(self, line: Line, batch: Batch) -> bool:
        granted = False
        for ask, allocation in line.serve(self._wanted):
            self._grant(self.jobs[ask.job], ask.key, allocation, batch)
            granted = True
        return granted

    def _wanted(self, ask: Ask) -> tuple[Alternatives, Wishes]:
        return self.jobs[ask.job].wanted(ask.key)

    def _grant(self, job: LiveJob, key: str, allocation: Allocation, batch: Batch) -> None:
        attempt = job.conductor.replica(key).attempt + 1
        self.hold_for(job, key, attempt, allocation)
        record = self._allocation_record(job, key, attempt, allocation)
        batch.changes.allocations[job.id, key, attempt] = record
        if job.line is None:
            self.book.given(self.grant(job, key, attempt, allocation, record.given_at))
        self.take(job.id, h.Granted(key), batch)

    def grant(self, job: LiveJob, key: str, attempt: int, allocation: Allocation, at: float) -> Grant:
        """What a replica was given, as it is charged."""
        queue = job.record.queue or self.planning.scheduling.default_queue
        unit = job.unit_of(key)
        return Grant(job.record, job.plan, unit, key, attempt, allocation, job.nodes, at, queue)

    def hold_for(self, job: LiveJob, key: str, attempt: int, allocation: Allocation) -> None:
        job.allocations[key] = (attempt, allocation)
        if job.unit_of(key).kind == "group":
            job.lines[key] = Line(Pool.within(allocation, job.nodes.values()), strict=False)
            self._with_lines[job.id] = job

    def _allocation_record(
        self, job: LiveJob, key: str, attempt: int, allocation: Allocation
    ) -> AllocationRecord:
        return AllocationRecord(
            job=job.id,
            key=key,
            attempt=attempt,
            given_at=self.clock(),
            allocation=msgspec.to_builtins(allocation),
        )

    # -- records ----------------------------------------------------------------------------------

    def _tell_changes(self, job: LiveJob, batch: Batch) -> None:
        conductor = job.conductor
        for change in conductor.changes:
            kind = KINDS.get(change.new)
            if kind is None or (change.new is State.CANCELLED and change.old is State.WAITING):
                continue
            replica = conductor.touched.get(change.replica)
            message = words_for(change, replica, job)
            self.event(job, batch, kind, change.replica, change.attempt or None, message)
        conductor.changes = []

    def _collect(self, job: LiveJob, batch: Batch) -> None:
        """Put down everything that changed in a job."""
        conductor, changes, record = job.conductor, batch.changes, job.record
        for replica in conductor.touched.values():
            changes.replicas[job.id, replica.key] = keeping.replica_record(replica, job.id)
        for key, unit in conductor.cleared.items():
            attempt = conductor.attempts.get(key, 0)
            changes.replicas[job.id, key] = keeping.cleared_record(key, unit, attempt, job.id)
        for run in conductor.touched_runs.values():
            task = keeping.task_record(run, job.id)
            changes.tasks[job.id, task.scope, task.unit] = task
        for prefix, unit in conductor.cleared_runs:
            scope = prefix.rstrip("/")
            changes.tasks[job.id, scope, unit] = TaskRecord(job=job.id, scope=scope, unit=unit)
        conductor.touched, conductor.touched_runs = {}, {}
        conductor.cleared, conductor.cleared_runs = {}, {}
        record.held = conductor.held
        if conductor.has_begun and record.started_at is None:
            record.started_at = self.clock()
        if conductor.has_begun and record.state == "waiting":
            record.state = "running"
        record.counts = {str(state): count for state, count in conductor.tasks.items() if count}
        if job.retried:
            record.counts["retried"] = job.retried
        if conductor.frozen:
            record.counts["frozen"] = conductor.frozen
        record.conductor = keeping.job_state(conductor)
        changes.jobs[job.id] = record

    def event(
        self,
        job: LiveJob,
        batch: Batch,
        kind: str,
        replica: str | None = None,
        attempt: int | None = None,
        message: str = "",
    ) -> None:
        self._note(job.id, batch, kind, replica, attempt, message)

    def _note(
        self,
        job_id: str,
        batch: Batch,
        kind: str,
        replica: str | None = None,
        attempt: int | None = None,
        message: str = "",
    ) -> None:
        self._event_number += 1
        batch.changes.events.append(
            EventRecord(
                number=self._event_number,
                job=job_id,
                at=self.clock(),
                kind=kind,
                replica=replica,
                attempt=attempt,
                message=message,
            )
        )

    def forget(self, job: LiveJob) -> None:
        """A job is over, or never was: it leaves every line and holds nothing."""
        self.jobs.pop(job.id, None)
        self._with_lines.pop(job.id, None)
        self.book.forget(job.id)
        job.shy = []
        for key, (_, allocation) in list(job.allocations.items()):
            if "/" not in key:
                self._free(job, key, allocation)
        job.allocations = {}
        for request_id in job.requests.values():
            self.planning.leave(request_id)
        job.requests = {}

    # -- time -------------------------------------------------------------------------------------

    def next_due(self) -> float | None:
        """When to look at the time again."""
        dues = [self.book.next_due(self.clock()), self._dues[0][0] if self._dues else None]
        return min((due for due in dues if due is not None), default=None)

    def stop_losers(self, lost: Mapping[str, str], batch: Batch) -> None:
        """End jobs that may not run on, in peace."""
        for job_id, why in lost.items():
            job = self.jobs.get(job_id)
            if job is not None:
                self.event(job, batch, PERMISSION_LOST, message=why)
                self.take(job_id, h.Cancelled(), batch)

    def ring(self, batch: Batch) -> None:
        """Tell every job whose time has come that time has passed, and charge what is held."""
        now = self.clock()
        self.stop_losers(self.book.ring(now, batch.changes), batch)
        woken = set()
        while self._dues and self._dues[0][0] <= now:
            woken.add(heappop(self._dues)[1])
        for job_id in sorted(woken & self.jobs.keys()):
            job = self.jobs[job_id]
            self.take(job_id, h.Tick(), batch)
            if job.conductor.frozen:
                self._displace_frozen(job, batch)


def _looks_around(unit: Unit) -> bool:
    """Whether where its copies go depends on where others are."""
    placement = unit.policies.placement
    return placement is not None and bool(placement.near or placement.apart or placement.spread)


def _is_worth_telling(before: float | None, after: float | None, now: float) -> bool:
    if before is None or after is None or after > before:
        return True
    return before - after > max(60.0, 0.05 * (before - now))


def _moved(before: float, after: float | None, cause: str) -> str:
    if after is None:
        return f"it cannot be said any more by when it starts: {cause}"
    return f"it starts up to {after - before:.0f} s later than promised: {cause}"


def moment_of(moment: Moment | None, submitted_at: float) -> float | None:
    """When a moment of a document is, which may be counted from the submission."""
    if moment is None:
        return None
    if moment.after is not None:
        return submitted_at + moment.after
    return None if moment.at is None else moment.at.replace(tzinfo=moment.at.tzinfo or UTC).timestamp()
