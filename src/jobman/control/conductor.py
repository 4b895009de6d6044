"""The conductor: what to do next for a job, given what is known and what just happened.

Pure: time is an argument, nothing is read or written. The same happenings in the same order give the same
requests, so a job can be followed again from its record.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobman.control import happenings as h
from jobman.control.conditions import Answer, Edges, may_start
from jobman.control.failures import Decision, Failure, decide, delay, limit_of
from jobman.control.outcomes import outcome_of_scope, verdict_of_job, verdict_of_run
from jobman.control.runs import Replica, Run, Scope, units_by_parent
from jobman.control.states import FINAL, LIVE, OCCUPYING, State
from jobman.plan.model import Plan

TIMEOUT = "timeout"
CANCELLED = "cancelled"
SERVICE_ENDS = "its scope is over"
_LONGEST_REST = 300.0


class Conductor:
    """Leads one job from its plan to its end."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.edges: Edges = {}
        for edge in plan.edges:
            self.edges.setdefault(edge.unit, []).append((edge.after, edge.when))
        self._units = units_by_parent(plan)
        self.root = Scope(self._units, None)
        self.open_gates: set[str] = set()
        self.held = plan.policies.hold
        self.released = False
        self.cancelled = False
        self.outcome: State | None = None
        self.restarts = 0
        self.restart_at: float | None = None
        self._verdict: State | None = None
        self._attempts: dict[str, int] = {}
        """The last attempt of every replica there ever was: a number is never given twice."""
        self._replicas = {replica.key: replica for replica in self.root.walk()}
        self._requests: list[h.Request] = []

    def replica(self, key: str) -> Replica:
        """A replica by its key, such as `train.0/test.3`."""
        return self._replicas[key]

    def due(self) -> float | None:
        """When to be told that time has passed, if nothing else happens before."""
        moments = [replica.due for replica in self.root.walk() if replica.due is not None]
        return min([*moments, *([self.restart_at] if self.restart_at is not None else [])], default=None)

    def take(self, happening: h.Happening, now: float) -> list[h.Request]:
        """Learn what happened; returns what is to be done because of it, in order."""
        self._requests = []
        if self.outcome is None:
            self._learn(happening, now)
            self._keep_time(now)
            while self._pass(self.root, now):
                pass
        return self._requests

    # -- learning ---------------------------------------------------------------------------------

    def _learn(self, happening: h.Happening, now: float) -> None:
        match happening:
            case h.Granted(replica=key):
                self._granted(key, now)
            case h.Started(replica=key, attempt=attempt):
                if replica := self._current(key, attempt):
                    self._started(replica, now)
            case h.BecameReady(replica=key, attempt=attempt):
                if replica := self._current(key, attempt):
                    replica.ready = True
            case h.Ended(replica=key, attempt=attempt, failure=failure):
                if replica := self._current(key, attempt):
                    self._ended(replica, failure, now)
            case h.GateOpened(name=name):
                self.open_gates.add(name)
            case h.Held():
                self.held = True
            case h.Released():
                self.held, self.released = False, True
            case h.Cancelled():
                self.cancelled = True
                self.restart_at = None
                self._end_scope(self.root)

    def _current(self, key: str, attempt: int) -> Replica | None:
        """The replica of a message, unless the message is about an attempt that is history."""
        replica = self._replicas.get(key)
        if replica is None or replica.attempt != attempt or replica.state not in LIVE:
            return None
        return replica if replica.scope is None else None

    def _granted(self, key: str, now: float) -> None:
        replica = self._replicas.get(key)
        if replica is None or replica.state is not State.QUEUED:
            return
        if replica.run.unit.kind == "task":
            self._launch(replica)
            return
        self._begin_attempt(replica)
        replica.scope = Scope(self._units, replica, self._attempts)
        self._replicas.update({inner.key: inner for inner in replica.scope.walk()})
        self._started(replica, now)

    def _begin_attempt(self, replica: Replica) -> None:
        replica.attempt += 1
        self._attempts[replica.key] = replica.attempt
        replica.change(State.STARTING)

    def _launch(self, replica: Replica) -> None:
        self._begin_attempt(replica)
        self._requests.append(h.Launch(replica.key, replica.attempt))

    def _started(self, replica: Replica, now: float) -> None:
        if replica.state is not State.STARTING:
            return
        replica.change(State.RUNNING)
        replica.begun = True
        unit = replica.run.unit
        replica.ready = unit.kind == "task" and not _has_ready_check(replica)
        replica.due = None if unit.duration is None else now + unit.duration

    def _ended(self, replica: Replica, failure: Failure | None, now: float) -> None:
        if not replica.run.unit.local:
            self._requests.append(h.GiveBack(replica.key))
        self._over(replica, failure, now)

    def _over(self, replica: Replica, failure: Failure | None, now: float) -> None:
        """An attempt, or the scope of a group's replica, has come to its end."""
        replica.due = None
        replica.ready = False
        why, replica.stopping_for = replica.stopping_for, None
        if why == TIMEOUT:
            self._failed(replica, Failure(TIMEOUT), now)
        elif why == SERVICE_ENDS:
            replica.change(State.SUCCEEDED)
        elif why is not None:
            replica.change(State.SUCCEEDED if failure is None else State.CANCELLED)
        elif failure is not None:
            self._failed(replica, failure, now)
        elif replica.run.unit.policies.restart == "always":
            self._start_again(replica, now)
        else:
            replica.change(State.SUCCEEDED)

    def _failed(self, replica: Replica, failure: Failure, now: float) -> None:
        decision = decide(replica, failure, self.plan)
        if self.cancelled or replica.run.verdict is not None:
            replica.change(State.FAILED)
        elif decision.action == "retry":
            replica.retries += decision.counts
            self._rest(replica, now + decision.delay)
        elif decision.action == "ignore":
            replica.change(State.SUCCEEDED)
        elif decision.action == "fail" and replica.run.unit.policies.restart in ("on-failure", "always"):
            self._start_again(replica, now)
        else:
            replica.change(State.FAILED)
            self._spread(replica, decision)

    def _start_again(self, replica: Replica, now: float) -> None:
        """In place, at longer and longer intervals for one that keeps ending."""
        pause = min(_LONGEST_REST, 2.0**replica.restarts)
        replica.restarts += 1
        self._rest(replica, now + pause)

    def _rest(self, replica: Replica, until: float) -> None:
        replica.change(State.RESTING)
        replica.due = until

    def _spread(self, replica: Replica, decision: Decision) -> None:
        """A failure that is not the replica's alone."""
        owner = replica.run.scope.owner
        if decision.action == "fail-task":
            self._close(replica.run, State.FAILED)
        elif decision.action == "fail-job":
            self.root.failed = True
            self._end_scope(self.root)
        elif decision.action == "restart-group" and owner is not None:
            owner.restarting = True
            self._end_scope(replica.run.scope, also_cleanup=True)

    # -- stopping ---------------------------------------------------------------------------------

    def _end_scope(self, scope: Scope, *, also_cleanup: bool = False) -> None:
        """Stop what a scope runs and start nothing more in it; what runs always still has its turn."""
        scope.stopping = True
        for run in scope.work:
            if run.unit.when != "always" or also_cleanup:
                self._close(run, State.CANCELLED)

    def _close(self, run: Run, verdict: State) -> None:
        """Decide a run: what waits is cancelled, what lives is stopped."""
        if run.verdict is None:
            run.verdict = verdict
            for replica in run.replicas:
                self._stop(replica, CANCELLED)

    def _stop(self, replica: Replica, why: str) -> None:
        if replica.state in (State.WAITING, State.RESTING):
            replica.due = None
            replica.change(State.CANCELLED)
        elif replica.state is State.QUEUED:
            self._requests.append(h.Withdraw(replica.key))
            replica.change(State.CANCELLED)
        elif replica.state in (State.STARTING, State.RUNNING):
            replica.stopping_for = why
            replica.due = None
            replica.change(State.STOPPING)
            if replica.scope is not None:
                self._end_scope(replica.scope)
            else:
                self._requests.append(h.Stop(replica.key, replica.attempt, why))

    # -- moving on --------------------------------------------------------------------------------

    def _keep_time(self, now: float) -> None:
        if self.restart_at is not None and self.restart_at <= now:
            self._start_over()
        for replica in list(self.root.walk()):
            if replica.due is None or replica.due > now:
                continue
            if replica.state is State.RESTING:
                replica.due = None
                replica.change(State.WAITING)
            else:
                self._stop(replica, TIMEOUT)

    def _start_over(self) -> None:
        """The whole job once more."""
        self.restart_at = None
        self.root = Scope(self._units, None, self._attempts)
        self._replicas = {replica.key: replica for replica in self.root.walk()}

    def _pass(self, scope: Scope, now: float) -> bool:
        """One look at a scope and the scopes inside; whether anything changed."""
        if self.outcome is not None or self.restart_at is not None:
            return False
        changed = False
        for inner in _live_scopes(scope):
            changed = self._pass(inner, now) or changed
            changed = _notice_readiness(inner) or changed
        changed = self._decide(scope) or changed
        changed = self._start(scope) or changed
        return self._finish(scope, now) or changed

    def _decide(self, scope: Scope) -> bool:
        changed = False
        if scope.owner is None and self._verdict is None:
            self._verdict = verdict_of_job(scope, self.plan)
            if self._verdict is not None:
                self._end_scope(scope)
        for run in scope.runs.values():
            if run.outcome is not None:
                continue
            if run.verdict is None and not run.unit.service and (verdict := verdict_of_run(run)) is not None:
                self._close(run, verdict)
                changed = True
            if run.is_over:
                run.outcome = run.verdict or verdict_of_run(run)
                changed = True
        return changed

    def _start(self, scope: Scope) -> bool:
        changed = False
        for run in scope.runs.values():
            if run.outcome is None and run.verdict is None and not self.held:
                changed = self._start_run(run) or changed
            if run.unit.blocks and run.outcome is None:
                break
        return changed

    def _start_run(self, run: Run) -> bool:
        if run.scope.stopping and run.unit.when != "always":
            return False
        if not self.open_gates.issuperset(self.plan.policies.gates):
            return False
        answer = may_start(run, self.edges, self.open_gates, released=self.released)
        waiting = [replica for replica in run.replicas if replica.state is State.WAITING]
        if answer is Answer.NEVER:
            for replica in waiting:
                replica.change(State.SKIPPED)
            return bool(waiting)
        if answer is Answer.LATER:
            return False
        free = self._free_places(run, len(waiting))
        for replica in waiting[:free]:
            replica.change(State.QUEUED)
            if run.unit.local:
                self._launch(replica)
            else:
                self._requests.append(h.Ask(replica.key))
        return bool(waiting[:free])

    def _free_places(self, run: Run, wanted: int) -> int:
        """How many more replicas may be under way, by the run's parallelism and the document's."""
        free = wanted
        if run.unit.policies.parallelism is not None:
            free = min(free, run.unit.policies.parallelism - run.occupied)
        most = self.plan.policies.parallelism
        if most is not None and run.unit.kind == "task" and not run.unit.service:
            free = min(free, self._places_in_job(run, most, free))
        return max(0, free)

    def _places_in_job(self, run: Run, most: int, wanted: int) -> int:
        """Places under the document's limit.

        What is queued outside may wait for the very resources that a group holds, so what runs inside the
        group comes first: those outside step back into the line.
        """
        tasks = [r for r in self.root.walk() if r.run.unit.kind == "task" and not r.run.unit.service]
        free = most - sum(replica.state in OCCUPYING for replica in tasks)
        outside = list(_scopes_around(run.scope))
        for replica in reversed(tasks):
            if free >= wanted:
                break
            if replica.state is State.QUEUED and replica.run.scope in outside:
                self._requests.append(h.Withdraw(replica.key))
                replica.change(State.WAITING)
                free += 1
        return free

    # -- ends -------------------------------------------------------------------------------------

    def _finish(self, scope: Scope, now: float) -> bool:
        """The end of a scope: first its work, then its services, then itself."""
        if any(run.outcome is None for run in scope.work):
            return False
        services = [r for run in scope.runs.values() if run.unit.service for r in run.replicas]
        if any(replica.state not in FINAL for replica in services):
            stoppable = [r for r in services if r.state not in FINAL and r.state is not State.STOPPING]
            for replica in stoppable:
                self._stop(replica, SERVICE_ENDS)
            return bool(stoppable)
        if scope.owner is not None:
            return self._group_over(scope.owner, scope, now)
        self._job_over(scope, now)
        return False

    def _group_over(self, owner: Replica, scope: Scope, now: float) -> bool:
        if owner.state not in LIVE:
            return False
        self._requests.append(h.GiveBack(owner.key))
        outcome = outcome_of_scope(scope)
        policies = owner.run.unit.policies
        if owner.restarting:
            owner.restarting = False
            if owner.retries < limit_of(policies) and owner.stopping_for is None:
                pause = 0.0 if policies.retries is None else delay(policies.retries, owner.retries)
                owner.retries += 1
                owner.due = None
                self._rest(owner, now + pause)
                return True
            outcome = State.FAILED
        if outcome is State.CANCELLED and owner.stopping_for is None:
            owner.due = None
            owner.change(State.CANCELLED)
        else:
            self._over(owner, None if outcome is State.SUCCEEDED else Failure("exit"), now)
        return True

    def _job_over(self, scope: Scope, now: float) -> None:
        outcome = self._verdict or outcome_of_scope(scope)
        if self.cancelled:
            outcome = State.CANCELLED
        retries = self.plan.policies.retries
        if outcome is State.FAILED and retries is not None and self.restarts < retries.limit:
            self.restart_at = now + delay(retries, self.restarts)
            self.restarts += 1
            self._verdict = None
            return
        self.outcome = outcome
        self._requests.append(h.Finish(outcome))


def _has_ready_check(replica: Replica) -> bool:
    checks = replica.run.unit.policies.checks
    return checks is not None and checks.ready is not None


def _notice_readiness(scope: Scope) -> bool:
    """A group is ready when all its tasks with a ready check are; whether that changed."""
    owner = scope.owner
    if owner is None or owner.state is not State.RUNNING:
        return False
    ready = all(replica.ready for replica in scope.walk() if _has_ready_check(replica))
    changed = ready is not owner.ready
    owner.ready = ready
    return changed


def _scopes_around(scope: Scope) -> Iterator[Scope]:
    while scope.owner is not None:
        scope = scope.owner.run.scope
        yield scope


def _live_scopes(scope: Scope) -> Iterator[Scope]:
    for run in scope.runs.values():
        for replica in run.replicas:
            if replica.scope is not None and replica.state in LIVE:
                yield replica.scope
