"""The lead of one job: a conductor that is told what a cluster shows, and keeps what it knows. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

import msgspec

from jobman.client.driving.story import MOST_TOLD, told
from jobman.control import happenings as h
from jobman.control.causes import Failure
from jobman.control.conductor import Conductor
from jobman.control.floor import moment_of
from jobman.control.keeping import job_state, replica_record, restore, task_record
from jobman.control.runs import Replica, Scope
from jobman.control.states import State
from jobman.control.store.records import JobRecord, ReplicaRecord, TaskRecord
from jobman.engines.kubernetes.course import Course, Moment, ReplicaStands, TaskAt
from jobman.engines.kubernetes.seen import LOST, Seen
from jobman.plan.model import Plan

Address = tuple[str, int]
"""A replica's key and the number of an attempt."""
GONE = Seen(over=True, reason=LOST, message="its Job is gone, and nobody knows how it ended")
_MOST_WORDS = 300


class Wishes(msgspec.Struct, frozen=True):
    """What people want of a job, as it stands written on its anchor."""

    held: bool | None = None
    """None where nobody has said; then the document decides."""
    cancelled: bool = False
    gates: frozenset[str] = frozenset()


class Lead:
    """Leads one job. Resources are given at once: the cluster finds them, or lets pods wait."""

    def __init__(self, plan: Plan, course: Course, submitted_at: float, now: float) -> None:
        self.plan = plan
        self._course = course
        self._words = {each.key: each.message for each in course.replicas if each.message}
        self._story = list(course.story)
        self._nodes: dict[str, tuple[str, ...]] = {}
        self.made: set[Address] = {(each.key, each.attempt) for each in course.replicas if each.made}
        """Attempts whose Jobs were certainly made."""
        if course.job:
            self._conductor = _restored(plan, course)
        else:
            start = plan.start
            self._conductor = Conductor(
                plan,
                earliest=moment_of(start.earliest, submitted_at) if start else None,
                latest=moment_of(start.latest, submitted_at) if start else None,
            )
        self.tell(h.Tick(), now)
        for replica in list(self._conductor.queued()):
            self.tell(h.Granted(replica.key), now)

    @property
    def outcome(self) -> State | None:
        return self._conductor.outcome

    def due(self) -> float | None:
        """When to be told that time has passed."""
        return self._conductor.due()

    def live(self) -> Iterator[Replica]:
        """Replicas of tasks that are under way."""
        return (replica for replica in self._conductor.live() if replica.run.unit.kind == "task")

    # -- learning --------------------------------------------------------------------------------------------

    def tell(self, happening: h.Happening, now: float) -> None:
        """Let the conductor know, and give it what it asks for. What it wants done, its states say."""
        waiting = deque([happening])
        while waiting:
            for request in self._conductor.take(waiting.popleft(), now):
                if isinstance(request, h.Ask):
                    waiting.append(h.Granted(request.replica))
            self._tell_the_story(now)

    def _tell_the_story(self, now: float) -> None:
        changes, self._conductor.changes = self._conductor.changes, []
        for change in changes:
            key = change.replica
            try:
                replica = self._conductor.replica(key)
            except KeyError:
                replica = None
            self._story += told(change, replica, now, self._nodes.get(key, ()), self._words.get(key, ""))
        del self._story[:-MOST_TOLD]

    def wish(self, wishes: Wishes, now: float) -> None:
        """Bring the job to what people want of it."""
        conductor = self._conductor
        for gate in sorted(wishes.gates - conductor.open_gates):
            self.tell(h.GateOpened(gate), now)
        if wishes.held is True and not conductor.held:
            self.tell(h.Held(), now)
        if wishes.held is False and (conductor.held or not conductor.released):
            self.tell(h.Released(), now)
        if wishes.cancelled and not conductor.cancelled:
            self.tell(h.Cancelled(), now)

    def see(self, shown: Mapping[Address, Seen], now: float) -> None:
        """Take in what the cluster shows of attempts; what is not shown has not changed."""
        self.tell(h.Tick(), now)
        for replica in list(self.live()):
            seen = shown.get((replica.key, replica.attempt))
            if seen is not None:
                self._see(replica, replica.attempt, seen, now)

    def _see(self, replica: Replica, attempt: int, seen: Seen, now: float) -> None:
        key = replica.key
        self._nodes[key] = seen.nodes
        if seen.begun and replica.state is State.STARTING:
            self.tell(h.Started(key, attempt), now)
        if seen.passed_start and not replica.begun and replica.state is State.RUNNING:
            self.tell(h.PassedStart(key, attempt), now)
        if seen.over:
            failure = None
            self._words.pop(key, None)
            if seen.reason == "unhealthy":
                self._story.append(Moment(now, "unhealthy", key, attempt, seen.message))
                self._story.append(Moment(now, "stopping", key, attempt, "its check failed"))
            if seen.reason:
                failure = Failure(seen.reason, seen.exit_code)
                self._words[key] = seen.message[:_MOST_WORDS]
            self.tell(h.Ended(key, attempt, failure), now)
        elif _has_ready_check(replica) and seen.ready is not replica.ready:
            self._story.append(Moment(now, "ready" if seen.ready else "not-ready", key, attempt))
            self.tell(h.BecameReady(key, attempt, seen.ready), now)

    # -- keeping ---------------------------------------------------------------------------------------------

    def course(self, now: float) -> Course:
        """Everything that is known."""
        conductor, before = self._conductor, self._course
        state = conductor.outcome or ("running" if conductor.has_begun else "waiting")
        cause = conductor.failure
        course = Course(
            state=str(state),
            failure=None if cause is None else (cause[0], cause[1].reason, cause[1].exit_code),
            started_at=before.started_at or (now if conductor.has_begun else None),
            ended_at=before.ended_at or (now if conductor.outcome is not None else None),
            job=msgspec.to_builtins(job_state(conductor)),
            tasks=[_task(task_record(run, "")) for scope in _scopes(conductor.root) for run in scope.order],
            replicas=[self._replica(replica_record(each, "")) for each in conductor.root.walk()],
            story=list(self._story),
        )
        known = {each.key for each in course.replicas}
        # Their numbers go on counting, although what is around them starts over.
        course.replicas += [
            ReplicaStands(
                key=key, unit=_unit_of(key), index=_index_of(key), state=self._state_of(key), attempt=attempt
            )
            for key, attempt in sorted(conductor.attempts.items())
            if key not in known
        ]
        self._course = course
        return course

    def _state_of(self, key: str) -> str:
        """Of a replica that is only counted now."""
        try:
            return str(self._conductor.state_of(key))
        except KeyError:
            return "waiting"  # What is around it is not under way.

    def _replica(self, record: ReplicaRecord) -> ReplicaStands:
        return ReplicaStands(
            key=record.key,
            unit=record.unit,
            index=record.index,
            state=str(record.state),
            attempt=record.attempt,
            since=record.since,
            exit_code=record.exit_code,
            reason=record.reason,
            message=self._words.get(record.key, "") if record.reason else "",
            life=record.life,
            made=(record.key, record.attempt) in self.made,
        )


def _restored(plan: Plan, course: Course) -> Conductor:
    job = JobRecord(
        id="", number=0, name="", owner="", submitted_at=0.0, state=course.state, conductor=course.job
    )
    tasks = [
        TaskRecord(
            job="",
            scope=each.scope,
            unit=each.unit,
            verdict=each.verdict,
            outcome=each.outcome,
            counts=each.counts,
        )
        for each in course.tasks
    ]
    replicas = [
        ReplicaRecord(
            job="",
            key=each.key,
            unit=each.unit,
            index=each.index,
            state=each.state,
            attempt=each.attempt,
            since=each.since,
            exit_code=each.exit_code,
            reason=each.reason,
            life=each.life,
        )
        for each in course.replicas
    ]
    return restore(plan, job, tasks, replicas)


def _task(record: TaskRecord) -> TaskAt:
    return TaskAt(
        scope=record.scope,
        unit=record.unit,
        verdict=None if record.verdict is None else str(record.verdict),
        outcome=None if record.outcome is None else str(record.outcome),
        counts=record.counts,
    )


def _scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for run in scope.order:
        for replica in run.replicas.values():
            if replica.scope is not None:
                yield from _scopes(replica.scope)


def _has_ready_check(replica: Replica) -> bool:
    checks = replica.run.unit.policies.checks
    return replica.state is State.RUNNING and checks is not None and checks.ready is not None


def _unit_of(key: str) -> str:
    return "/".join(part.rpartition(".")[0] for part in key.split("/"))


def _index_of(key: str) -> int:
    return int(key.rpartition(".")[2])
