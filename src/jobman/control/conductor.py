"""The conductor: what to do next for a job, given what is known and what just happened.

Pure: time is an argument, nothing is read or written. The same happenings in the same order give the same
requests. It looks only at runs that something happened to: they stand on its agenda.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush

from jobman.control import happenings as h
from jobman.control.books import Books
from jobman.control.causes import Cause, Failure
from jobman.control.conditions import Answer, may_start
from jobman.control.failures import Decision, decide, delay, is_meant, limit_of
from jobman.control.outcomes import outcome_of_scope, verdict_of_job, verdict_of_run
from jobman.control.runs import Replica, Run, Scope
from jobman.control.states import LIVE, OCCUPYING, State
from jobman.plan.model import Plan, Unit
from jobman.spec.failures import Retries

TIMEOUT = "timeout"
CANCELLED = "cancelled"
UNHEALTHY = "unhealthy"
SUSPENDED = "suspended"
PREEMPTED = "preempted"
SERVICE_ENDS = "its scope is over"
LATE = "it did not start within its window"
_LONGEST_REST = 300.0
_TO_COME_BACK = (SUSPENDED, PREEMPTED)
"""Why something is stopped that is not at its end: it is started again, and that is not counted."""


class Conductor(Books):
    """Leads one job from its plan to its end.

    `earliest` and `latest` bound its start. Replicas in `done` count as succeeded from the beginning.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        earliest: float | None = None,
        latest: float | None = None,
        done: Collection[str] = (),
    ) -> None:
        super().__init__(plan, done)
        self.earliest = earliest
        self.latest = latest
        self.open_gates: set[str] = set()
        self.held = plan.policies.hold
        self.released = False
        self.cancelled = False
        self.outcome: State | None = None
        self.first_failure: Cause | None = None
        """The first failure for good in this round, whether it was forgiven or not."""
        self.restarts = 0
        self.restart_at: float | None = None
        self.verdict: State | None = None
        self.has_begun = False
        self.asks_ahead = False
        """Whether whoever is asked for resources knows of `earliest`, and can be asked before that."""
        self._requests: list[h.Request] = []

    # -- looking ----------------------------------------------------------------------------------

    def due(self) -> float | None:
        """When to be told that time has passed, if nothing else happens before."""
        if self.outcome is not None:
            return None
        while self._dues and self._dues[0][3].due != self._dues[0][0]:
            heappop(self._dues)
        moments = [self._dues[0][0]] if self._dues else []
        moments += [] if self.restart_at is None else [self.restart_at]
        if not self.has_begun:
            moments += [moment for moment in (self.earliest, self.latest) if moment is not None]
        return min(moments, default=None)

    # -- learning ---------------------------------------------------------------------------------

    def take(self, happening: h.Happening, now: float) -> list[h.Request]:
        """Learn what happened; returns what is to be done because of it, in order."""
        self._requests = []
        if self.outcome is None:
            self._now = now
            self._learn(happening)
            self._keep_time()
            self._settle()
        return self._requests

    def _learn(self, happening: h.Happening) -> None:
        match happening:
            case h.Granted(replica=key):
                self._granted(key)
            case h.GateOpened(name=name):
                self.open_gates.add(name)
                self._look_everywhere()
            case h.Held():
                self.held = True
                self._suspend()
            case h.Released():
                self.held, self.released = False, True
                self._resume()
                self._look_everywhere()
            case h.Cancelled():
                self.cancelled = True
                self.restart_at = None
                self._end_scope(self.root, also_cleanup=not self.attempts)
                self._ending[id(self.root)] = self.root
            case h.Displaced(replica=key, why=why):
                self._displace(self.replica(key), why)
            case h.TurnedAway(replica=key, reason=reason):
                self._turn_away(self.replica(key), reason)
            case h.Extended(seconds=seconds, unit=unit):
                self._extend(seconds, unit)
            case h.Started() | h.PassedStart() | h.BecameReady() | h.BecameUnhealthy() | h.Ended():
                if replica := self._current(happening.replica, happening.attempt):
                    self._learn_of(replica, happening)

    def _learn_of(self, replica: Replica, happening: h.Happening) -> None:
        match happening:
            case h.Started():
                self._started(replica)
            case h.PassedStart():
                self._begun(replica)
            case h.BecameReady(ready=ready):
                if replica.state is State.RUNNING:
                    self._set_ready(replica, ready)
            case h.BecameUnhealthy():
                self._stop(replica, UNHEALTHY)
            case h.Ended(failure=failure, in_time=in_time):
                if not replica.run.unit.local:
                    self._requests.append(h.GiveBack(replica.key))
                if in_time and replica.stopping_for == TIMEOUT:
                    replica.stopping_for = None
                self._over(replica, failure)

    def _current(self, key: str, attempt: int) -> Replica | None:
        """The replica of a message, unless the message is about an attempt that is history."""
        replica = self._replicas.get(key)
        if replica is None or replica.attempt != attempt or replica.state not in LIVE:
            return None
        return replica if replica.run.unit.kind == "task" else None

    def _granted(self, key: str) -> None:
        replica = self._replicas.get(key)
        if replica is None or replica.state is not State.QUEUED:
            return
        if replica.run.unit.kind == "task":
            self._launch(replica)
            return
        self._begin_attempt(replica)
        replica.scope = self.open(replica)
        self._started(replica)

    def _begin_attempt(self, replica: Replica) -> None:
        replica.attempt += 1
        self.attempts[replica.key] = replica.attempt
        replica.run.retried += replica.attempt > 1
        replica.exit_code, replica.reason, replica.extended = None, "", 0.0
        self._change(replica, State.STARTING)

    def _launch(self, replica: Replica) -> None:
        self._begin_attempt(replica)
        self._requests.append(h.Launch(replica.key, replica.attempt))

    def _started(self, replica: Replica) -> None:
        if replica.state is not State.STARTING:
            return
        self._change(replica, State.RUNNING)
        self.has_begun = True
        unit = replica.run.unit
        checks = unit.policies.checks if unit.kind == "task" else None
        if checks is None or checks.started is None:
            self._begun(replica)
        if unit.kind == "group":
            self._notice_readiness(replica)
        else:
            self._set_ready(replica, checks is None or checks.ready is None)
        if unit.duration is not None:
            self._set_due(replica, self._now + unit.duration)

    def _begun(self, replica: Replica) -> None:
        if not replica.begun:
            replica.begun = True
            replica.run.begun += 1
            self._touch(replica)
            self._tell_dependents(replica.run)

    def _set_ready(self, replica: Replica, ready: bool) -> None:
        if replica.ready is not ready:
            replica.ready = ready
            replica.run.ready += 1 if ready else -1
            self._touch(replica)
            self._tell_dependents(replica.run)
            if replica.run.scope.owner is not None:
                self._notice_readiness(replica.run.scope.owner)

    def _notice_readiness(self, owner: Replica) -> None:
        """A group is ready when all its tasks with a ready check are, and the groups in it."""
        if owner.state is State.RUNNING and owner.scope is not None:
            watched = [
                run for run in owner.scope.order if run.unit.kind == "group" or _has_ready_check(run.unit)
            ]
            self._set_ready(owner, all(run.is_ready for run in watched))

    # -- ends of attempts -------------------------------------------------------------------------

    def _over(self, replica: Replica, failure: Failure | None) -> None:
        """An attempt, or the scope of a group's replica, has come to its end."""
        replica.due = replica.left = None
        self._set_frozen(replica, False)
        self._set_ready(replica, False)
        why, replica.stopping_for = replica.stopping_for, None
        if why in (TIMEOUT, UNHEALTHY):
            self._failed(replica, Failure(why, failure.exit_code if failure else None))
        elif why == SERVICE_ENDS:
            self._change(replica, State.SUCCEEDED)
        elif why in _TO_COME_BACK and failure is not None:
            self._rest(replica, self._now)
        elif why is not None:
            self._change(replica, State.SUCCEEDED if failure is None else State.CANCELLED)
        elif failure is not None:
            self._failed(replica, failure)
        elif replica.run.unit.policies.restart == "always":
            self._start_again(replica)
        else:
            replica.exit_code = 0
            self._change(replica, State.SUCCEEDED)

    def _failed(self, replica: Replica, failure: Failure) -> None:
        decision = decide(replica, failure, self.plan)
        replica.exit_code, replica.reason = failure.exit_code, failure.reason
        if self.cancelled or replica.run.verdict is not None:
            self._fail(replica, failure)
        elif decision.action == "retry":
            replica.retries += decision.counts
            self._rest(replica, self._now + decision.delay)
        elif decision.action == "ignore":
            self._change(replica, State.SUCCEEDED)
        elif decision.action == "fail" and replica.run.unit.policies.restart in ("on-failure", "always"):
            self._start_again(replica)
        else:
            self._fail(replica, failure)
            self._spread(replica, decision)

    def _turn_away(self, replica: Replica, reason: str) -> None:
        """To try again would be of no use, whatever its rules say."""
        if replica.state is State.QUEUED:
            self._requests.append(h.Withdraw(replica.key))
            replica.exit_code, replica.reason = None, reason
            self._fail(replica, Failure(reason))

    def _fail(self, replica: Replica, failure: Failure) -> None:
        self._change(replica, State.FAILED)
        cause = _cause_of(replica, failure)
        replica.run.failure = replica.run.failure or cause
        self.first_failure = self.first_failure or cause

    def _start_again(self, replica: Replica) -> None:
        """In place, at longer and longer intervals for one that keeps ending."""
        pause = min(_LONGEST_REST, 2.0**replica.restarts)
        replica.restarts += 1
        self._rest(replica, self._now + pause)

    def _rest(self, replica: Replica, until: float) -> None:
        self._change(replica, State.RESTING)
        self._set_due(replica, until)
        if replica.scope is not None:
            self._clear(replica.scope)
            replica.scope = None

    def _spread(self, replica: Replica, decision: Decision) -> None:
        """A failure that is not the replica's alone."""
        owner = replica.run.scope.owner
        if decision.action == "fail-task":
            self._close(replica.run, State.FAILED)
        elif decision.action == "fail-job":
            self.root.failed = True
            self.root.failure = self.root.failure or replica.run.failure
            self._end_scope(self.root)
        elif decision.action == "restart-group" and owner is not None:
            owner.restarting = _cause_of(replica)[1].reason
            scope = replica.run.scope
            scope.failure = scope.failure or replica.run.failure
            self._end_scope(replica.run.scope, also_cleanup=True)

    # -- stopping ---------------------------------------------------------------------------------

    def _end_scope(self, scope: Scope, *, also_cleanup: bool = False) -> None:
        """Stop what a scope runs and start nothing more in it; what runs always still has its turn."""
        scope.stopping = True
        for run in scope.work:
            if run.unit.when != "always" or also_cleanup:
                self._close(run, State.CANCELLED)
        self._look_at(*scope.order)
        if scope.owner is not None:
            self._touch(scope.owner)

    def _close(self, run: Run, verdict: State) -> None:
        """Decide a run: what waits is cancelled, what lives is stopped."""
        if run.verdict is None:
            run.verdict = verdict
            self._touch_run(run)
            for replica in list(run.replicas.values()):
                self._stop(replica, CANCELLED)
            self._give_up(run, State.CANCELLED)

    def _stop(self, replica: Replica, why: str) -> None:
        if replica.state in (State.WAITING, State.RESTING):
            replica.due = None
            self._change(replica, State.CANCELLED)
        elif replica.state is State.QUEUED:
            self._requests.append(h.Withdraw(replica.key))
            self._change(replica, State.CANCELLED)
        elif replica.state in (State.STARTING, State.RUNNING):
            replica.stopping_for = why
            replica.due = replica.left = None
            self._set_frozen(replica, False)  # Whoever stops it lets it go on first, so that it hears of it.
            self._change(replica, State.STOPPING)
            if replica.scope is not None:
                self._end_scope(replica.scope)
            else:
                self._requests.append(h.Stop(replica.key, replica.attempt, why))
        elif replica.state is State.STOPPING and (
            replica.stopping_for in _TO_COME_BACK or why == SERVICE_ENDS
        ):
            # It was to come back, and now it is not.
            replica.stopping_for = why
            self._touch(replica)

    # -- suspending -------------------------------------------------------------------------------

    def _suspend(self) -> None:
        """What `suspend` says of running work when the job is held; without it, it runs on.

        What waits for resources leaves the line.
        """
        for replica in list(self._queued.values()):
            self._requests.append(h.Withdraw(replica.key))
            self._change(replica, State.WAITING)
        for replica in list(self._outermost()):
            if replica.run.unit.policies.suspend == "freeze":
                self._freeze(replica)
            else:
                self._requeue(replica, SUSPENDED)

    def _displace(self, replica: Replica, why: str) -> None:
        if replica.state in (State.STARTING, State.RUNNING):
            self._requeue(replica, why)

    def _requeue(self, replica: Replica, why: str) -> None:
        """Stop something that is to come back."""
        if replica.run.unit.kind == "group":
            replica.restarting = why
            self._touch(replica)
            self._end_scope(replica.scope or self.root, also_cleanup=True)
        else:
            self._stop(replica, why)

    def _outermost(self) -> Iterator[Replica]:
        """Running replicas that suspending concerns; a group that is requeued goes as a whole."""
        stack = [self.root]
        while stack:
            for run in stack.pop().order:
                for replica in run.replicas.values():
                    way = run.unit.policies.suspend
                    if replica.state not in (State.STARTING, State.RUNNING) or way is None:
                        if replica.scope is not None and replica.state is State.RUNNING:
                            stack.append(replica.scope)
                    elif run.unit.kind == "group" and way == "freeze":
                        stack.extend([replica.scope] if replica.scope is not None else [])
                        yield replica
                    else:
                        yield replica

    def _freeze(self, replica: Replica) -> None:
        if replica.frozen or replica.state is not State.RUNNING:
            return
        self._set_frozen(replica, True)
        if replica.due is not None:
            replica.left, replica.due = replica.due - self._now, None
        self._touch(replica)
        if replica.run.unit.kind == "task":
            self._requests.append(h.Freeze(replica.key, replica.attempt))

    def _resume(self) -> None:
        for replica in list(self.root.walk()):
            if replica.frozen and replica.state is State.RUNNING:
                if replica.left is not None:
                    self._set_due(replica, self._now + replica.left)
                self._thaw(replica)

    def _thaw(self, replica: Replica) -> None:
        replica.left = None
        self._set_frozen(replica, False)
        self._touch(replica)
        if replica.run.unit.kind == "task":
            self._requests.append(h.Thaw(replica.key, replica.attempt))

    def _extend(self, seconds: float, unit: str | None) -> None:
        for replica in list(self.root.walk()):
            wanted = unit is None or replica.run.unit.id == unit or unit.startswith(f"{replica.run.unit.id}/")
            if not wanted or replica.state is not State.RUNNING:
                continue
            if replica.left is not None:
                replica.left += seconds
            elif replica.due is not None:
                self._set_due(replica, replica.due + seconds)
            if replica.run.unit.kind == "task" and replica.run.unit.duration is not None:
                replica.extended += seconds
                self._touch(replica)
                self._requests.append(h.Prolong(replica.key, replica.attempt, replica.extended))

    # -- moving on --------------------------------------------------------------------------------

    def _keep_time(self) -> None:
        now = self._now
        if self.restart_at is not None and self.restart_at <= now:
            self._start_over()
        if not self.has_begun and self.latest is not None and self.latest <= now:
            self.root.failure = self.root.failure or ("", Failure(LATE))
            self.root.failed = True
            self.latest = None
            self._end_scope(self.root, also_cleanup=True)
        if not self.has_begun and self.earliest is not None and self.earliest <= now:
            self.earliest = None
            self._look_everywhere()
        while self._dues and self._dues[0][0] <= now:
            due, _, _, replica = heappop(self._dues)
            if replica.due != due:
                continue
            replica.due = None
            if replica.state is State.RESTING:
                self._change(replica, State.WAITING)
            else:
                self._stop(replica, TIMEOUT)

    def _start_over(self) -> None:
        """The whole job once more."""
        self.restart_at = None
        self.first_failure = None
        self._clear(self.root)
        self._forget_everything()
        self.root = self.open(None)

    def _settle(self) -> None:
        """Look at every run something happened to, until nothing happens any more."""
        while self.outcome is None and self.restart_at is None:
            if self._agenda:
                runs, self._agenda = self._agenda, {}
                for run in sorted(runs.values(), key=self._order):
                    self._decide(run)
                self._judge()
            elif self._ending:
                _, scope = self._ending.popitem()
                self._finish(scope)
            elif self._eager:
                # Only when everything is decided, so that what may start does so in the order written.
                *_, run = heappop(self._eager)
                self._is_eager.discard(id(run))
                self._start(run)
            elif self._crowded and self._free_in_job() > 0:
                self._look_at(heappop(self._crowded)[-1])
            else:
                return

    def _judge(self) -> None:
        if self.verdict is None:
            self.verdict = verdict_of_job(self.tasks, self.plan)
            if self.verdict is not None:
                self._end_scope(self.root)

    def _decide(self, run: Run) -> None:
        if run.outcome is not None or self._is_stale(run):
            return
        if run.verdict is None and not run.unit.service:
            verdict = verdict_of_run(run)
            if verdict is not None:
                self._close(run, verdict)
        if run.is_over:
            run.outcome = run.verdict or verdict_of_run(run)
            self._touch_run(run)
            self._decided(run)

    def _decided(self, run: Run) -> None:
        """A run has its outcome: others may move."""
        scope = run.scope
        if run.outcome is State.FAILED and not run.unit.service:
            scope.failure = scope.failure or run.failure
        self._ending[id(scope)] = scope
        self._tell_dependents(run)
        if not run.unit.service:
            scope.undecided -= 1
            if run.unit.when == "success":
                scope.unsettled -= 1
                if not scope.unsettled:
                    self._look_at(*(other for other in scope.order if other.unit.cleanup))
        if run.unit.blocks:
            self._look_at(*scope.move_barrier())

    def _start(self, run: Run) -> None:
        if run.outcome is not None or run.verdict is not None or not self._may_begin(run):
            return
        answer = may_start(run, self.edges, self.open_gates, released=self.released)
        if answer is Answer.LATER and run.scope.stopping and not run.scope.unsettled:
            answer = Answer.NOW  # Cleanup of what is given up waits neither for a release nor at a gate.
        if answer is Answer.NOW:
            self._start_waiting(run)
        elif answer is Answer.NEVER and run.count(State.WAITING):
            for replica in [r for r in run.replicas.values() if r.state is State.WAITING]:
                self._change(replica, State.SKIPPED)
            self._give_up(run, State.SKIPPED)
            self._look_at(run)

    def _may_begin(self, run: Run) -> bool:
        if self._is_stale(run) or run.place > run.scope.barrier:
            return False
        if run.scope.stopping:
            return run.unit.when == "always"
        if self.held:
            return False
        too_early = self.earliest is not None and not self.has_begun and self._now < self.earliest
        if too_early and (run.unit.local or not self.asks_ahead):
            return False
        return self.open_gates.issuperset(self.plan.policies.gates)

    def _start_waiting(self, run: Run) -> None:
        wanted = run.count(State.WAITING)
        if run.unit.policies.parallelism is not None:
            wanted = min(wanted, run.unit.policies.parallelism - run.occupied)
        for _ in range(wanted):
            if not self._has_place(run):
                heappush(self._crowded, (*self._order(run), next(self._entries), run))
                return
            index = run.next_waiting()
            if index is None:
                return
            replica = self.make(run, index)
            self._change(replica, State.QUEUED)
            if run.unit.local:
                self._launch(replica)
            else:
                self._requests.append(h.Ask(replica.key))

    def _has_place(self, run: Run) -> bool:
        """Whether the document's limit leaves a place.

        What is queued outside may wait for the very resources that a group holds, so what runs inside the
        group comes first: those outside step back into the line.
        """
        if self.plan.policies.parallelism is None or run.unit.kind != "task" or run.unit.service:
            return True
        if self._free_in_job() > 0:
            return True
        around = list(_scopes_around(run.scope))
        for replica in reversed(self._queued.values()) if around else ():
            unit = replica.run.unit
            if unit.kind == "task" and not unit.service and replica.run.scope in around:
                self._requests.append(h.Withdraw(replica.key))
                self._change(replica, State.WAITING)
                return True
        return False

    def _free_in_job(self) -> int:
        most = self.plan.policies.parallelism
        return 1 if most is None else most - sum(self.tasks.get(state, 0) for state in OCCUPYING)

    # -- ends -------------------------------------------------------------------------------------

    def _finish(self, scope: Scope) -> None:
        """The end of a scope: first its work, then its services, then itself."""
        if scope.undecided or (scope.owner is not None and scope.owner.scope is not scope):
            return
        services = [run for run in scope.order if run.unit.service and not run.is_over]
        for run in services:
            for replica in list(run.replicas.values()):
                self._stop(replica, SERVICE_ENDS)
            self._give_up(run, State.CANCELLED)
            self._look_at(run)
        if any(run.outcome is None for run in scope.order):
            return
        if scope.owner is not None:
            self._group_over(scope.owner, scope)
        else:
            self._job_over(scope)

    def _group_over(self, owner: Replica, scope: Scope) -> None:
        if owner.state not in LIVE:
            return
        outcome = outcome_of_scope(scope, self.edges)
        self._requests.append(h.GiveBack(owner.key, self._blame(owner, scope, outcome)))
        policies = owner.run.unit.policies
        restarting, owner.restarting = owner.restarting, None
        if restarting is not None and owner.stopping_for is None:
            counted = restarting not in _TO_COME_BACK
            if not counted or owner.retries < limit_of(policies):
                pause = delay(policies.retries, owner.retries) if counted and policies.retries else 0.0
                owner.retries += counted
                owner.due = owner.left = None
                self._set_frozen(owner, False)
                self._set_ready(owner, False)
                self._rest(owner, self._now + pause)
                return
            outcome = State.FAILED
        if outcome in (State.CANCELLED, State.SKIPPED) and owner.stopping_for is None:
            owner.due = owner.left = None
            self._set_ready(owner, False)
            self._change(owner, outcome)
        else:
            code = None if scope.failure is None else scope.failure[1].exit_code
            self._over(owner, None if outcome is State.SUCCEEDED else Failure("exit", code))

    def _blame(self, owner: Replica, scope: Scope, outcome: State) -> str:
        """How that failed inside a group which ended it; nothing where the group ends for another reason."""
        if owner.stopping_for is None and owner.restarting is not None:
            return owner.restarting
        cause = None
        if owner.stopping_for is None and outcome is State.FAILED:
            cause = scope.failure or next((run.failure for run in scope.order if run.failure), None)
        elif owner.stopping_for == CANCELLED and self.root.failure is not None:
            # What failed in it took the whole job with it, and so the group.
            cause = self.root.failure if self.root.failure[0].startswith(scope.prefix) else None
        return "" if cause is None else cause[1].reason

    @property
    def failure(self) -> Cause | None:
        """Why the job fails, or would: what made it fail, or else the first failure there was."""
        return self.root.failure or self.first_failure

    def _is_tried_again(self, retries: Retries) -> bool:
        if self.restarts >= retries.limit:
            return False
        return is_meant(retries, self.failure[1] if self.failure is not None else Failure("exit"))

    def _job_over(self, scope: Scope) -> None:
        outcome = self.verdict or outcome_of_scope(scope, self.edges)
        if outcome is State.SKIPPED:
            outcome = State.SUCCEEDED  # Nothing was to be done.
        if self.cancelled:
            outcome = State.CANCELLED
        retries = self.plan.policies.retries
        if outcome is State.FAILED and retries is not None and self._is_tried_again(retries):
            self.restart_at = self._now + delay(retries, self.restarts)
            self.restarts += 1
            self.verdict = None
            return
        self.outcome = outcome
        self._requests.append(h.Finish(outcome))


def _cause_of(replica: Replica, failure: Failure | None = None) -> Cause:
    """What a replica failed of: of a group, what failed inside it."""
    inside = replica.scope.failure if replica.scope is not None else None
    return inside or (replica.key, failure or Failure(replica.reason, replica.exit_code))


def _has_ready_check(unit: Unit) -> bool:
    checks = unit.policies.checks
    return unit.kind == "task" and checks is not None and checks.ready is not None


def _scopes_around(scope: Scope) -> Iterator[Scope]:
    while scope.owner is not None:
        scope = scope.owner.run.scope
        yield scope
