"""The floor: every job under way, the lines they wait in, and what follows from each thing that happens.

No input or output, no waiting: what is decided goes into a batch, which the director commits and carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from heapq import heappop, heappush

import msgspec

from jobman.control import happenings as h
from jobman.control import keeping
from jobman.control.accounting.book import EVENT as PERMISSION_LOST
from jobman.control.accounting.book import Book, Grant
from jobman.control.batch import Act, Batch
from jobman.control.conductor import Conductor
from jobman.control.connections import Connections
from jobman.control.ground import Ground, stand_in
from jobman.control.hearing import Hearing
from jobman.control.line import Ask, Line
from jobman.control.live import LiveJob
from jobman.control.planning import Planning
from jobman.control.states import State
from jobman.control.store.records import (
    AllocationRecord,
    AttemptRecord,
    EventRecord,
    JobRecord,
    TaskRecord,
)
from jobman.control.store.views import Numbers, PastRun
from jobman.control.telling import KINDS, job_reason, words_for
from jobman.engines import base
from jobman.plan.model import Plan
from jobman.plan.nodes import ClusterNode
from jobman.sched.allocation import Allocation
from jobman.sched.placement import Pool
from jobman.sched.scheduling import Scheduling
from jobman.sched.wishes import Wishes
from jobman.settings.accounting import Accounting
from jobman.spec.quantities import Moment
from jobman.spec.shapes import Alternatives

_LATE = 1.0
"""Seconds after its last attempt by which a job has ended for another reason than that."""


class Floor(Hearing):
    """All jobs of a service that are not over."""

    def __init__(
        self,
        host: base.Host,
        numbers: Numbers,
        clock: Callable[[], float],
        scheduling: Scheduling | None = None,
        book: Book | None = None,
        past: Callable[[], Iterable[PastRun]] = tuple,
    ) -> None:
        self.host = host
        self.clock = clock
        self.jobs: dict[str, LiveJob] = {}
        self.connections = Connections()
        nodes = list(host.nodes())
        accounts = None if book is None else book.accounts
        self.planning = Planning(nodes, scheduling or Scheduling(), past, accounts)
        self.ground = Ground(nodes, self.planning)
        self.nodes = self.ground.nodes
        self.book = book or Book(Accounting(), self.planning.accounts)
        self._dues: list[tuple[float, str]] = []
        self._with_lines: dict[str, LiveJob] = {}
        """Jobs that have lines of their own."""
        self._heard_of = ""
        self._asked = 0
        self._job_number = numbers.job
        self._event_number = numbers.event
        self.is_over = lambda _reservation: False
        self.keep_chosen = lambda _chosen, _batch: None

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
        if not record.options.get("virtual"):
            record.queue = record.queue or self.planning.scheduling.default_queue
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
        partners = self.connections.partners(job)
        self._tell_partners((job, *partners) if partners else (), batch)
        self.take(record.id, h.Tick(), batch)

    def add(
        self, record: JobRecord, plan: Plan, conductor: Conductor, nodes: Sequence[ClusterNode]
    ) -> LiveJob:
        virtual = record.options.get("virtual")
        known = {node.name: node for node in nodes} if virtual else self.nodes
        job = LiveJob(record, plan, conductor, known)
        if virtual:
            job.line = Line(Pool(nodes), strict=True)
            self._with_lines[job.id] = job
        conductor.asks_ahead = job.line is None
        self.jobs[record.id] = job
        self.connections.add(job)
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
            batch.acts.append(Act("finish", record.id))

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
        self.look_at_guests(job, batch)

    def do(self, job: LiveJob, request: h.Request, batch: Batch) -> None:
        match request:
            case h.Ask(replica=key):
                line = self.line_of(job, key)
                if line is None:
                    self._join(job, key)
                else:
                    self._asked += 1
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
                batch.acts.append(Act("stop", (job.id, key, attempt), (why,)))
            case h.Freeze(replica=key, attempt=attempt):
                self.event(job, batch, "frozen", key, attempt, "stands still")
                batch.acts.append(Act("freeze", (job.id, key, attempt)))
            case h.Thaw(replica=key, attempt=attempt):
                self.event(job, batch, "thawed", key, attempt, "goes on")
                batch.acts.append(Act("thaw", (job.id, key, attempt)))
            case h.Prolong(replica=key, attempt=attempt, seconds=seconds):
                batch.acts.append(Act("prolong", (job.id, key, attempt), (seconds,)))
            case h.GiveBack(replica=key, reason=reason):
                self._give_back(job, key, reason, batch)
            case h.Finish(outcome=outcome):
                self._finish(job, outcome, batch)

    def _launch(self, job: LiveJob, key: str, attempt: int, batch: Batch) -> None:
        nodes: tuple[str, ...] = ()
        if key in job.allocations:
            nodes = tuple(dict.fromkeys(held.node for held in job.allocations[key][1].held))
        record = AttemptRecord(job=job.id, key=key, attempt=attempt, granted_at=self.clock(), nodes=nodes)
        job.attempts[key] = record
        job.retried += attempt > 1
        batch.changes.attempts[job.id, key, attempt] = record
        batch.launches.append(self.order(job, key))

    def order(self, job: LiveJob, key: str) -> base.Order:
        """Everything the host needs to run the current attempt of a task's replica."""
        partners = [partner.id for partner in self.connections.partners(job)]
        return job.order(key, self.peers(job), partners, self.host.host_of)

    def peers(self, job: LiveJob) -> tuple[base.Peer, ...]:
        """What runs in a job and in those it is connected with."""
        return tuple(peer for each in (job, *self.connections.named_by(job)) for peer in each.peers.values())

    def _give_back(self, job: LiveJob, key: str, reason: str, batch: Batch) -> None:
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
        now = self.clock()
        at = ended.ended_at if ended is not None and over and ended.ended_at is not None else now
        if self._heard_of.startswith(f"{key}/"):
            at = job.last_end_in(key)
        before = len(batch.changes.slices)
        reason = ended.reason if over and ended else reason
        self.book.returned(job.id, key, attempt, at, reason, batch.changes)
        self.planning.charged(batch.changes.slices[before:])
        record = self._allocation_record(job, key, attempt, allocation)
        record.returned_at = now
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
        partners = self.connections.partners(job)
        self.connections.remove(job)
        self._tell_partners(partners, batch)
        batch.acts.append(Act("finish", job.id))

    def _tell_partners(self, jobs: Iterable[LiveJob], batch: Batch) -> None:
        """Tell the host with whom jobs may talk from now on, where that has changed."""
        for job in jobs:
            partners = tuple(partner.id for partner in self.connections.partners(job))
            batch.acts.append(Act("connect", job.id, (partners,)))

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

    def _grant(
        self, job: LiveJob, key: str, allocation: Allocation, batch: Batch, at: float | None = None
    ) -> None:
        attempt = job.conductor.replica(key).attempt + 1
        self.hold_for(job, key, attempt, allocation)
        given_at = self.clock() if at is None else at
        if job.line is None:
            self.book.given(self.grant(job, key, attempt, allocation, given_at))
        record = self._allocation_record(job, key, attempt, allocation)
        record.given_at = given_at
        batch.changes.allocations[job.id, key, attempt] = record
        self.take(job.id, h.Granted(key), batch)

    def grant(self, job: LiveJob, key: str, attempt: int, allocation: Allocation, at: float) -> Grant:
        """What a replica was given, as it is charged."""
        queue = job.record.queue or self.planning.scheduling.default_queue
        unit = job.unit_of(key)
        return Grant(job.record, job.plan, unit, key, attempt, allocation, job.nodes, at, queue)

    def hold_for(self, job: LiveJob, key: str, attempt: int, allocation: Allocation) -> None:
        job.allocations[key] = (attempt, allocation)
        if job.unit_of(key).kind == "group":
            gone = [held for held in allocation.held if held.node not in job.nodes]
            nodes = [*job.nodes.values(), *(stand_in(held.node, held.amounts) for held in gone)]
            job.lines[key] = Line(Pool.within(allocation, nodes), strict=False)
            self._with_lines[job.id] = job

    def _allocation_record(
        self, job: LiveJob, key: str, attempt: int, allocation: Allocation
    ) -> AllocationRecord:
        record = AllocationRecord(
            job=job.id,
            key=key,
            attempt=attempt,
            given_at=self.clock(),
            allocation=msgspec.to_builtins(allocation),
        )
        price = self.book.price((job.id, key, attempt))
        if price is not None:
            record.allocation["price"] = price
        return record

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
        self.connections.remove(job)
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
            if job is not None and not job.conductor.cancelled:
                self.event(job, batch, PERMISSION_LOST, message=why)
                self.take(job_id, h.Cancelled(), batch)

    def _is_stopped(self, job: LiveJob, batch: Batch) -> bool:
        """End a job that lost, while it waited, what it needs to run; what cleans up after it still runs."""
        why = None if job.conductor.cancelled else self.book.why_not(job.record)
        if why is not None:
            self.stop_losers({job.id: why}, batch)
        return why is not None

    def ring(self, batch: Batch) -> None:
        """Tell every job whose time has come that time has passed, and charge what is held."""
        now = self.clock()
        before = len(batch.changes.slices)
        lost = self.book.ring(now, batch.changes)
        self.planning.charged(batch.changes.slices[before:])
        self.stop_losers(lost, batch)
        woken = set()
        while self._dues and self._dues[0][0] <= now:
            woken.add(heappop(self._dues)[1])
        for job_id in sorted(woken & self.jobs.keys()):
            job = self.jobs[job_id]
            self.take(job_id, h.Tick(), batch)
            if job.conductor.frozen:
                self._displace_frozen(job, batch)
            if job.record.options.get("reservation"):
                self.turn_away(job, batch)


def moment_of(moment: Moment | None, submitted_at: float) -> float | None:
    """When a moment of a document is, which may be counted from the submission."""
    if moment is None:
        return None
    if moment.after is not None:
        return submitted_at + moment.after
    return None if moment.at is None else moment.at.replace(tzinfo=moment.at.tzinfo or UTC).timestamp()
