"""The floor: every job under way, the lines they wait in, and what follows from each thing that happens.

No input or output, no waiting: what is decided goes into a batch, which the director commits and carries out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC
from heapq import heappop, heappush
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from jobman.control import happenings as h
from jobman.control import keeping
from jobman.control.batch import Batch
from jobman.control.conductor import Conductor
from jobman.control.failures import Failure
from jobman.control.line import Ask, Line
from jobman.control.live import LiveJob
from jobman.control.states import State
from jobman.control.store.records import (
    AllocationRecord,
    AttemptRecord,
    EventRecord,
    JobRecord,
    LogRecord,
    ReplicaRecord,
    TaskRecord,
)
from jobman.control.store.views import Numbers, Unfinished
from jobman.control.telling import KINDS, job_reason, words_for
from jobman.engines import base
from jobman.plan.model import Plan, plan_from_json
from jobman.plan.nodes import ClusterNode
from jobman.sched.allocation import Allocation
from jobman.sched.placement import PlacementError, Pool
from jobman.sched.wishes import Wishes
from jobman.spec.quantities import Moment
from jobman.spec.shapes import Alternatives

log = logging.getLogger("jobman.floor")
_NEVER_BEGAN = ("launch-failed", "stage-failed")
"""Reasons of attempts whose command never ran."""


class Floor:
    """All jobs of a service that are not over."""

    def __init__(self, host: base.Host, numbers: Numbers, clock: Callable[[], float]) -> None:
        self.host = host
        self.clock = clock
        self.jobs: dict[str, LiveJob] = {}
        self.nodes = {node.name: node for node in host.nodes()}
        self.line = Line(Pool(self.nodes.values()), strict=True)
        self._dues: list[tuple[float, str]] = []
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
            earliest=_moment(start.earliest, record.submitted_at) if start else None,
            latest=_moment(start.latest, record.submitted_at) if start else None,
            done=done,
        )
        conductor.held = conductor.held or hold
        job = self._add(record, plan, conductor, nodes)
        batch.changes.new_jobs.add(record.id)
        self.event(job, batch, "submitted", message=f"submitted by {record.owner}")
        self.take(record.id, h.Tick(), batch)

    def _add(
        self, record: JobRecord, plan: Plan, conductor: Conductor, nodes: Sequence[ClusterNode]
    ) -> LiveJob:
        job = LiveJob(record, plan, conductor, {node.name: node for node in nodes})
        if record.options.get("virtual"):
            job.line = Line(Pool(nodes), strict=True)
        self.jobs[record.id] = job
        return job

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
            self._do(job, request, batch)
        self._collect(job, batch)
        due = job.conductor.due()
        if due is not None:
            heappush(self._dues, (due, job.id))
        if job.conductor.outcome is not None:
            self.forget(job)

    def _do(self, job: LiveJob, request: h.Request, batch: Batch) -> None:
        match request:
            case h.Ask(replica=key):
                self._asked += 1
                rank = (-self._weight(job, key), job.record.number, self._asked)
                self.line_of(job, key).join(Ask(rank, job.id, key))
            case h.Withdraw(replica=key):
                self.line_of(job, key).leave(job.id, key)
            case h.Launch(replica=key, attempt=attempt):
                self._launch(job, key, attempt, batch)
            case h.Stop(replica=key, attempt=attempt, why=why):
                batch.acts.append(("stop", (job.id, key, attempt), (why,)))
            case h.Freeze(replica=key, attempt=attempt):
                batch.acts.append(("freeze", (job.id, key, attempt), ()))
            case h.Thaw(replica=key, attempt=attempt):
                batch.acts.append(("thaw", (job.id, key, attempt), ()))
            case h.Prolong(replica=key, attempt=attempt, seconds=seconds):
                batch.acts.append(("prolong", (job.id, key, attempt), (seconds,)))
            case h.GiveBack(replica=key):
                self._give_back(job, key, batch)
            case h.Finish(outcome=outcome):
                self._finish(job, outcome, batch)

    def _weight(self, job: LiveJob, key: str) -> int:
        del key
        return job.record.priority

    def _launch(self, job: LiveJob, key: str, attempt: int, batch: Batch) -> None:
        nodes: tuple[str, ...] = ()
        if key in job.allocations:
            nodes = tuple(dict.fromkeys(held.node for held in job.allocations[key][1].held))
        record = AttemptRecord(job=job.id, key=key, attempt=attempt, granted_at=self.clock(), nodes=nodes)
        job.attempts[key] = record
        job.retried += attempt > 1
        batch.changes.attempts[job.id, key, attempt] = record
        batch.launches.append(job.order(key, self._peers(job)))

    def _peers(self, job: LiveJob) -> tuple[base.Peer, ...]:
        """What runs in a job and in those it is connected with."""
        peers = list(job.peers.values())
        for name in job.connected():
            for other in self.jobs.values():
                if other is not job and name in (other.id, other.record.name):
                    peers += other.peers.values()
        return tuple(peers)

    def _give_back(self, job: LiveJob, key: str, batch: Batch) -> None:
        known = job.allocations.pop(key, None)
        job.lines.pop(key, None)
        if known is None:
            return
        attempt, allocation = known
        self.line_of(job, key).give_back(allocation)
        record = self._allocation_record(job, key, attempt, allocation)
        record.returned_at = self.clock()
        batch.changes.allocations[job.id, key, attempt] = record

    def _finish(self, job: LiveJob, outcome: str, batch: Batch) -> None:
        record = job.record
        record.state = outcome
        record.ended_at = self.clock()
        record.reason = job_reason(job)
        failure = job.conductor.failure
        record.exit_code = 0 if outcome == "succeeded" else None
        if outcome == "failed":
            record.exit_code = (failure[1].exit_code if failure is not None else None) or 1
        self.event(job, batch, f"job-{outcome}", message=record.reason)
        batch.finished.append(job.id)

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
                self.event(job, batch, "unhealthy", key, attempt, message)
                self.take(job.id, h.BecameUnhealthy(key, attempt), batch)
            case base.Over():
                self._over(job, report, batch)

    def _running(self, job: LiveJob, report: base.Running, batch: Batch) -> None:
        record = job.attempts.get(report.key)
        if record is None or record.attempt != report.attempt:
            return
        record.started_at = record.started_at or report.at
        batch.changes.attempts[job.id, report.key, report.attempt] = record
        self._keep_outputs(job, report.key, report.attempt, report.outputs, batch, ended=False)
        if report.ports:
            unit = job.unit_of(report.key)
            index = int(report.key.rpartition(".")[2])
            job.peers[report.key] = base.Peer(unit.name, index, "localhost", report.ports)

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
                ended=ended,
            )

    def _over(self, job: LiveJob, report: base.Over, batch: Batch) -> None:
        record = job.attempts.get(report.key)
        if record is None or record.attempt != report.attempt or record.ended_at is not None:
            return
        record.ended_at = report.at
        record.started_at = record.started_at or report.started_at
        for name in ("exit_code", "signal", "reason", "message", "cpu_seconds", "max_rss", "result"):
            setattr(record, name, getattr(report, name))
        batch.changes.attempts[job.id, report.key, report.attempt] = record
        self._keep_outputs(job, report.key, report.attempt, report.outputs, batch, ended=True)
        job.peers.pop(report.key, None)
        failure = Failure(report.reason, report.exit_code) if report.reason else None
        if report.reason not in _NEVER_BEGAN:
            self.take(job.id, h.Started(report.key, report.attempt), batch)
        self.take(job.id, h.Ended(report.key, report.attempt, failure), batch)

    # -- lines ------------------------------------------------------------------------------------

    def line_of(self, job: LiveJob, key: str) -> Line:
        """The line a replica waits in: its group's, its job's own, or everybody's."""
        around = key.rpartition("/")[0]
        if around:
            return job.lines[around]
        return self.line if job.line is None else job.line

    def serve_lines(self, batch: Batch) -> None:
        """Give resources until nobody else can be given any."""
        while True:
            granted = self._serve(self.line, batch)
            for job in [job for job in self.jobs.values() if job.line is not None or job.lines]:
                for line in [*([] if job.line is None else [job.line]), *job.lines.values()]:
                    granted = self._serve(line, batch) or granted
            if not granted:
                return

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
        self._hold_for(job, key, attempt, allocation)
        record = self._allocation_record(job, key, attempt, allocation)
        batch.changes.allocations[job.id, key, attempt] = record
        self.take(job.id, h.Granted(key), batch)

    def _hold_for(self, job: LiveJob, key: str, attempt: int, allocation: Allocation) -> None:
        job.allocations[key] = (attempt, allocation)
        if job.unit_of(key).kind == "group":
            job.lines[key] = Line(Pool.within(allocation, job.nodes.values()), strict=False)

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
        self._event_number += 1
        batch.changes.events.append(
            EventRecord(
                number=self._event_number,
                job=job.id,
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
        for key, (_, allocation) in list(job.allocations.items()):
            if "/" not in key:
                self.line_of(job, key).give_back(allocation)
        job.allocations = {}
        if job.line is None:
            for replica in job.conductor.queued():
                self.line.leave(job.id, replica.key)

    # -- time -------------------------------------------------------------------------------------

    def next_due(self) -> float | None:
        """When to look at the time again."""
        return self._dues[0][0] if self._dues else None

    def ring(self, batch: Batch) -> None:
        """Tell every job whose time has come that time has passed."""
        now = self.clock()
        woken = set()
        while self._dues and self._dues[0][0] <= now:
            woken.add(heappop(self._dues)[1])
        for job_id in sorted(woken & self.jobs.keys()):
            self.take(job_id, h.Tick(), batch)

    # -- taking up --------------------------------------------------------------------------------

    def take_up(self, found: Unfinished) -> tuple[list[base.Order], list[base.Address]]:
        """Bring back every job that is not over; returns the attempts to look after, and those to stop."""
        orders: list[base.Order] = []
        stops: list[base.Address] = []
        tasks = _by_job(found.tasks)
        replicas = _by_job(found.replicas)
        attempts = _by_job(found.attempts)
        allocations = _by_job(found.allocations)
        for record in found.jobs:
            kept = _Kept(
                tasks.get(record.id, []),
                replicas.get(record.id, []),
                attempts.get(record.id, []),
                allocations.get(record.id, []),
            )
            try:
                self._bring_back(record, kept, orders, stops)
            except (PlacementError, ValueError, KeyError) as error:
                log.exception("the job %s cannot be taken up: %s", record.id, error)
        return orders, stops

    def _bring_back(
        self, record: JobRecord, kept: _Kept, orders: list[base.Order], stops: list[base.Address]
    ) -> None:
        plan = plan_from_json(record.plan)
        conductor = keeping.restore(plan, record, kept.tasks, kept.replicas)
        virtual = record.options.get("virtual")
        nodes = list(self.host.nodes(virtual)) if virtual else list(self.nodes.values())
        job = self._add(record, plan, conductor, nodes)
        job.retried = record.counts.get("retried", 0)
        for allocation in sorted(kept.allocations, key=lambda each: each.key.count("/")):
            held = msgspec.convert(allocation.allocation, Allocation)
            self._hold_for(job, allocation.key, allocation.attempt, held)
            self.line_of(job, allocation.key).pool.take(held)
        for attempt in kept.attempts:
            job.attempts[attempt.key] = attempt
        for replica in conductor.queued():
            self._do(job, h.Ask(replica.key), Batch())
        for replica in conductor.live():
            if replica.run.unit.kind == "task":
                orders.append(job.order(replica.key, ()))
                if replica.state is State.STOPPING:
                    stops.append((job.id, replica.key, replica.attempt))


class _Kept(NamedTuple):
    """What is kept of one job besides its own record."""

    tasks: list[TaskRecord]
    replicas: list[ReplicaRecord]
    attempts: list[AttemptRecord]
    allocations: list[AllocationRecord]


class _OfJob(Protocol):
    job: str


R = TypeVar("R", bound=_OfJob)


def _by_job(records: Sequence[R]) -> dict[str, list[R]]:
    found: dict[str, list[R]] = {}
    for record in records:
        found.setdefault(record.job, []).append(record)
    return found


def _moment(moment: Moment | None, submitted_at: float) -> float | None:
    if moment is None:
        return None
    if moment.after is not None:
        return submitted_at + moment.after
    return None if moment.at is None else moment.at.replace(tzinfo=moment.at.tzinfo or UTC).timestamp()
