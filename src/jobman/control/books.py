"""The books of a job: its scopes, replicas and tallies, what changed, and what is to be looked at.

No decisions: the conductor makes them and has them put down here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from itertools import count

import msgspec

from jobman.control.conditions import Edges
from jobman.control.runs import Replica, Run, Scope, units_by_parent
from jobman.control.states import LIVE, OCCUPYING, State
from jobman.plan.model import Plan, Unit

_Entry = tuple[int, int, str, int, Run]


class Change(msgspec.Struct, frozen=True):
    """A replica took a new state."""

    replica: str
    attempt: int
    old: State
    new: State
    reason: str = ""
    exit_code: int | None = None


class Books:
    """Everything that is put down about one job. Replicas in `done` count as succeeded from the beginning."""

    def __init__(self, plan: Plan, done: Collection[str] = ()) -> None:
        self.plan = plan
        self.done = frozenset(done)
        self.edges: Edges = {}
        self._dependents: dict[str, list[str]] = {}
        for edge in plan.edges:
            self.edges.setdefault(edge.unit, []).append((edge.after, edge.when))
            self._dependents.setdefault(edge.after, []).append(edge.unit)
        self._units = units_by_parent(plan)
        self._rank = {unit.id: place for place, unit in enumerate(plan.units)}
        self.attempts: dict[str, int] = {}
        """The last attempt of every replica there ever was: a number is never given twice."""
        self.changes: list[Change] = []
        """What changed since somebody last took it from here; so too `touched` and `cleared`."""
        self.touched: dict[str, Replica] = {}
        self.touched_runs: dict[tuple[str, str], Run] = {}
        self.cleared: dict[str, str] = {}
        """Replicas that are new again because something around them starts over, with their units."""
        self.cleared_runs: dict[tuple[str, str], None] = {}
        self._now = 0.0
        self._forget_everything()
        self.root = self.open(None)

    def _forget_everything(self) -> None:
        self.tasks: dict[State, int] = {}
        """Replicas of tasks by state, over all scopes, services apart."""
        self.frozen = 0
        """Replicas of tasks that stand still."""
        self._replicas: dict[str, Replica] = {}
        self._runs_of: dict[str, dict[int, Run]] = {}
        self._agenda: dict[int, Run] = {}
        self._eager: list[_Entry] = []
        self._is_eager: set[int] = set()
        self._ending: dict[int, Scope] = {}
        self._crowded: list[_Entry] = []
        self._queued: dict[str, Replica] = {}
        self._dues: list[tuple[float, str, int, Replica]] = []
        self._entries = count()
        """Numbers for the entries of heaps, so that equal ones are never compared by what they hold."""

    def replica(self, key: str) -> Replica:
        """A replica by its key, such as `train.0/test.3`; KeyError where it was never more than counted."""
        return self._replicas[key]

    def run_of(self, key: str) -> tuple[Run, int]:
        """The run a replica belongs to, and its number there; KeyError where there is none now."""
        path, _, index = key.rpartition(".")
        around, _, name = path.rpartition("/")
        scope: Scope | None = self.root if not around else self._replicas[around].scope
        for run in scope.order if scope is not None else ():
            if run.unit.name == name:
                return run, int(index)
        raise KeyError(key)

    def state_of(self, key: str) -> State:
        run, index = self.run_of(key)
        return run.state_of(index)

    def live(self) -> Iterator[Replica]:
        """Every replica that is under way, of tasks and of groups."""
        return (replica for replica in self.root.walk() if replica.state in LIVE)

    def queued(self) -> Iterator[Replica]:
        """Every replica that has asked for resources."""
        return (replica for replica in self.root.walk() if replica.state is State.QUEUED)

    # -- putting down -------------------------------------------------------------------------------

    def _change(self, replica: Replica, new: State) -> None:
        old, run = replica.state, replica.run
        run.move(replica, new)
        replica.since = self._now
        self._count(run.unit, old, -1)
        self._count(run.unit, new, 1)
        if new is State.QUEUED:
            self._queued[replica.key] = replica
        elif old is State.QUEUED:
            del self._queued[replica.key]
        said = (replica.reason, replica.exit_code)
        self.changes.append(Change(replica.key, replica.attempt, old, new, *said))
        self._touch(replica)
        self._look_at(run)
        if self._crowded and old in OCCUPYING and new not in OCCUPYING:
            # Its place is not for its own run alone.
            self._look_at(heappop(self._crowded)[-1])

    def _count(self, unit: Unit, state: State, step: int) -> None:
        if unit.kind == "task" and not unit.service:
            self.tasks[state] = self.tasks.get(state, 0) + step

    def _touch(self, replica: Replica) -> None:
        self.touched[replica.key] = replica
        self.cleared.pop(replica.key, None)
        self._touch_run(replica.run)

    def _touch_run(self, run: Run) -> None:
        self.touched_runs[run.scope.prefix, run.unit.id] = run
        self.cleared_runs.pop((run.scope.prefix, run.unit.id), None)

    def _set_due(self, replica: Replica, due: float) -> None:
        replica.due = due
        heappush(self._dues, (due, replica.key, next(self._entries), replica))
        self._touch(replica)

    def _set_frozen(self, replica: Replica, frozen: bool) -> None:
        if replica.frozen is not frozen:
            replica.frozen = frozen
            if replica.run.unit.kind == "task":
                self.frozen += 1 if frozen else -1

    def _give_up(self, run: Run, state: State) -> None:
        """Replicas of a run that never left the line leave it."""
        number = run.give_up_waiting(state)
        if number:
            self._count(run.unit, State.WAITING, -number)
            self._count(run.unit, state, number)
            self._touch_run(run)
            if state is State.SKIPPED:
                which = f"{run.scope.prefix}{run.unit.name}"
                key = f"{which}.0" if run.unit.replicas == 1 else which
                self.changes.append(Change(key, 0, State.WAITING, state))

    # -- replicas and scopes ------------------------------------------------------------------------

    def make(self, run: Run, index: int) -> Replica:
        """A replica that is more than counted from now on; its attempts go on counting."""
        known = run.replicas.get(index)
        if known is None:
            known = run.replica(index)
            known.attempt = self.attempts.get(known.key, 0)
            self._replicas[known.key] = known
        return known

    def open(self, owner: Replica | None) -> Scope:
        """A new scope: the job's, or that of a group's replica."""
        scope = Scope(self._units, owner)
        for run in scope.order:
            self._runs_of.setdefault(run.unit.id, {})[id(run)] = run
            self._count(run.unit, State.WAITING, run.unit.replicas)
        self._look_at(*scope.order[: scope.barrier + 1])
        self._ending[id(scope)] = scope
        for key in self.done:
            if key.startswith(scope.prefix) and "/" not in key[len(scope.prefix) :]:
                self._mark_done(scope, key)
        return scope

    def _mark_done(self, scope: Scope, key: str) -> None:
        name, _, index = key[len(scope.prefix) :].rpartition(".")
        for run in scope.order:
            if run.unit.name == name and not run.unit.cleanup and not run.unit.service:
                replica = self.make(run, int(index))
                replica.begun = True
                run.begun += 1
                run.set(replica, State.SUCCEEDED)
                self._count(run.unit, State.WAITING, -1)
                self._count(run.unit, State.SUCCEEDED, 1)
                self._touch(replica)

    def _clear(self, scope: Scope) -> None:
        """Forget a scope that starts over, with everything inside."""
        for replica in scope.walk():
            self.cleared[replica.key] = replica.run.unit.id
            self._replicas.pop(replica.key, None)
            self.touched.pop(replica.key, None)
        stack = [scope]
        while stack:
            for run in stack.pop().order:
                self._runs_of.get(run.unit.id, {}).pop(id(run), None)
                self._agenda.pop(id(run), None)
                self.cleared_runs[run.scope.prefix, run.unit.id] = None
                self.touched_runs.pop((run.scope.prefix, run.unit.id), None)
                for state, number in run.tally.items():
                    self._count(run.unit, state, -number)
                stack.extend(r.scope for r in run.replicas.values() if r.scope is not None)

    def _is_stale(self, run: Run) -> bool:
        return id(run) not in self._runs_of.get(run.unit.id, ())

    # -- what is to be looked at --------------------------------------------------------------------

    def _look_at(self, *runs: Run) -> None:
        for run in runs:
            self._agenda[id(run)] = run
            if id(run) not in self._is_eager:
                self._is_eager.add(id(run))
                heappush(self._eager, (*self._order(run), next(self._entries), run))

    def _look_everywhere(self) -> None:
        for runs in self._runs_of.values():
            self._look_at(*runs.values())

    def _tell_dependents(self, run: Run) -> None:
        """Those who wait for a run look again: in its scope, and in the scopes inside that."""
        for unit_id in self._dependents.get(run.unit.id, ()):
            self._look_at(*self._runs_of.get(unit_id, {}).values())

    def _order(self, run: Run) -> tuple[int, int, str]:
        """As written; what is inside a group comes before what is outside."""
        return -run.scope.prefix.count("/"), self._rank[run.unit.id], run.scope.prefix

    # -- after a restart ----------------------------------------------------------------------------

    def reinstate(self, replica: Replica, state: State) -> None:
        """Put a replica back as it was before a restart."""
        run = replica.run
        old = replica.state
        run.set(replica, state)
        self._count(run.unit, old, -1)
        self._count(run.unit, state, 1)
        run.begun += replica.begun
        run.ready += replica.ready
        self.frozen += replica.frozen and run.unit.kind == "task"
        if state is State.QUEUED:
            self._queued[replica.key] = replica
        if replica.due is not None:
            heappush(self._dues, (replica.due, replica.key, next(self._entries), replica))

    def settle_in(self) -> None:
        """After everything was put back: count again, and look at everything once."""
        for run in [run for runs in self._runs_of.values() for run in runs.values()]:
            if run.verdict is not None or run.outcome is not None:
                self._give_up(run, State.SKIPPED if run.outcome is State.SKIPPED else State.CANCELLED)
            if run.outcome is State.FAILED and not run.unit.service:
                run.scope.failure = run.scope.failure or run.failure
            run.scope.recount()
            self._ending[id(run.scope)] = run.scope
        self._look_everywhere()
        self.touched, self.touched_runs, self.changes = {}, {}, []
