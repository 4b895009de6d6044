"""Hearing: what follows from news of the host, of attempts and of nodes.

A part of the floor beside [asking](asking.py); `Floor` is the whole.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from jobman.control import happenings as h
from jobman.control.accounting.book import Book
from jobman.control.asking import Asking
from jobman.control.batch import Act, Batch
from jobman.control.causes import Failure
from jobman.control.conductor import PREEMPTED, UNHEALTHY
from jobman.control.ground import Ground
from jobman.control.live import LiveJob
from jobman.control.store.records import AllocationRecord, LogRecord
from jobman.engines import base
from jobman.sched.allocation import Allocation

_WHOLE_SECOND = 1.0
_NODE_LOST = "node-lost"
_NEVER_BEGAN = ("launch-failed", "stage-failed")
"""Reasons of attempts whose command never ran."""


class Hearing(Asking):
    """Jobs and the host. The rest of the floor does what is abstract here."""

    ground: Ground
    book: Book
    _heard_of: str
    """The replica whose end is being told: a group around it ended with it, however late that is told."""

    @abstractmethod
    def _allocation_record(
        self, job: LiveJob, key: str, attempt: int, allocation: Allocation
    ) -> AllocationRecord: ...

    # -- attempts ---------------------------------------------------------------------------------

    def hear(self, report: base.Report, batch: Batch) -> None:
        """News from the host."""
        job = self.jobs.get(report.job)
        if isinstance(report, base.Over):
            batch.acts.append(Act("settle", report.address))
        if job is None:
            return
        key, attempt = report.key, report.attempt
        match report:
            case base.Running():
                self._running(job, report, batch)
                self.take(job.id, h.Started(key, attempt), batch)
            case base.Delayed(message=message):
                job.delays[key] = message
                self.event(job, batch, "note", key, attempt, f"does not start yet: {message}")
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
            job.peers[report.key] = self.peer(job, report.key, report.ports)
            self._keep_ports(job, report, batch)

    def peer(self, job: LiveJob, key: str, ports: dict[str, int]) -> base.Peer:
        """A replica with ports, as others find it."""
        replica = job.conductor.replica(key)
        host = self.host.host_of(job.id, key, 0)
        return base.Peer(replica.run.unit.name, replica.index, host, ports)

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
        began_at = None if report.reason in _NEVER_BEGAN else report.started_at
        if began_at is not None:
            self._note_start(job, began_at)
        for name in ("exit_code", "signal", "reason", "message", "cpu_seconds", "max_rss", "result"):
            setattr(record, name, getattr(report, name))
        why = job.conductor.replica(report.key).stopping_for
        if why == UNHEALTHY:
            record.reason, record.message = why, job.complaints.pop(report.key, "")
        elif why == PREEMPTED and report.reason:
            record.reason = why
        batch.changes.attempts[job.id, report.key, report.attempt] = record
        self._keep_outputs(job, report.key, report.attempt, report.outputs, batch, ended=True)
        for note in report.notes:
            self.event(job, batch, "note", report.key, report.attempt, note)
        job.peers.pop(report.key, None)
        job.delays.pop(report.key, None)
        failure = Failure(report.reason, report.exit_code) if report.reason else None
        if began_at is not None:
            self.take(job.id, h.Started(report.key, report.attempt), batch)
        self._heard_of = report.key
        in_time = _was_in_time(job, report)
        self.take(job.id, h.Ended(report.key, report.attempt, failure, in_time), batch)
        self._heard_of = ""
        if report.reason == _NODE_LOST:
            self._leave_lost(job, report.key, batch)

    def _leave_lost(self, job: LiveJob, key: str, batch: Batch) -> None:
        """A group that has lost a node for good goes back to the queue: inside it nothing better is found."""
        group, _, inside = key.partition("/")
        if not inside or group not in job.allocations or job.line is not None:
            return
        nodes = dict.fromkeys(held.node for held in job.allocations[group][1].held)
        lost = [name for name in nodes if self.ground.is_lost(name)]
        if lost:
            self.displace(job, h.Displaced(group, PREEMPTED), f"node {lost[0]} of its group is lost", batch)

    # -- nodes ------------------------------------------------------------------------------------

    def see(self, nodes: Iterable[base.NodeSeen]) -> bool:
        """Learn how nodes are now; whether there are others, or others of them, than before."""
        changed = [self.ground.see(each) for each in nodes]
        if any(changed):
            self.book.resized()
        return any(changed)


def _was_in_time(job: LiveJob, report: base.Over) -> bool:
    """Whether an attempt ended well before its time was over; some engines count whole seconds."""
    duration = job.conductor.replica(report.key).run.unit.duration
    if duration is None or report.started_at is None:
        return False
    return report.at - report.started_at < duration - _WHOLE_SECOND
