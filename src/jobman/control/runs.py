"""What is known of a job while it runs: scopes, the runs of units in them, and their replicas.

A scope is the job itself or one replica of a group; it holds a run for each unit written in it, and a run
holds the replicas of its unit. Plain data with tallies, so that no question about a run costs more than its
answer: every decision is the conductor's. Replicas that never left the state `waiting` are only counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from jobman.control.causes import Cause
from jobman.control.states import FINAL, LEGAL, OCCUPYING, IllegalChange, State
from jobman.plan.model import Plan, Unit
from jobman.spec.ranges import Span

UnitsByParent = Mapping[str | None, list[Unit]]


def units_by_parent(plan: Plan) -> UnitsByParent:
    """The units of each group, and those at the top level under None."""
    found: dict[str | None, list[Unit]] = {}
    for unit in plan.units:
        found.setdefault(unit.parent, []).append(unit)
    return found


class Replica:
    """One replica of a unit in one scope. A group's replica has a scope of its own while it runs."""

    __slots__ = (
        "attempt",
        "begun",
        "due",
        "exit_code",
        "extended",
        "frozen",
        "index",
        "key",
        "left",
        "ready",
        "reason",
        "restarting",
        "restarts",
        "retries",
        "run",
        "scope",
        "since",
        "state",
        "stopping_for",
    )

    def __init__(self, run: Run, index: int, attempt: int) -> None:
        self.run = run
        self.index = index
        self.key = f"{run.scope.prefix}{run.unit.name}.{index}"
        self.state = State.WAITING
        self.since = 0.0
        self.attempt = attempt
        self.retries = 0
        """Tries that count against the limit."""
        self.restarts = 0
        """Times it was started again in place by its restart policy."""
        self.begun = False
        self.ready = False
        self.frozen = False
        self.due: float | None = None
        self.left: float | None = None
        """What was left of its time when it was frozen."""
        self.extended = 0.0
        """How much longer than its document says this attempt may run."""
        self.stopping_for: str | None = None
        self.restarting: str | None = None
        """Why its scope is to start over when it is over."""
        self.scope: Scope | None = None
        self.exit_code: int | None = None
        self.reason = ""

    def __repr__(self) -> str:
        return f"<{self.key} {self.state} attempt {self.attempt}>"


class Run:
    """A unit in a scope, with all its replicas; `outcome` is set once and for all."""

    __slots__ = (
        "_again",
        "_fresh",
        "begun",
        "failure",
        "goal",
        "outcome",
        "place",
        "ready",
        "replicas",
        "retried",
        "scope",
        "tally",
        "unit",
        "verdict",
        "wanted",
    )

    def __init__(self, unit: Unit, scope: Scope, place: int) -> None:
        self.unit = unit
        self.scope = scope
        self.place = place
        """Where it stands in the order of its scope."""
        self.replicas: dict[int, Replica] = {}
        self._fresh = 0
        self._again: list[int] = []
        self.tally: dict[State, int] = {State.WAITING: unit.replicas}
        self.begun = 0
        self.ready = 0
        self.retried = 0
        """Attempts of its replicas beyond their first."""
        self.goal = _goal(unit)
        self.wanted: dict[State, int] = {}
        """States of the replicas its goal asks for, waiting ones apart."""
        self.verdict: State | None = None
        """What its outcome will be, although replicas are still being stopped."""
        self.outcome: State | None = None
        self.failure: Cause | None = None
        """Its first failure for good."""

    def __repr__(self) -> str:
        return f"<{self.scope.prefix}{self.unit.name} {self.tally}>"

    def count(self, *states: State) -> int:
        return sum(self.tally.get(state, 0) for state in states)

    @property
    def occupied(self) -> int:
        """Replicas that hold resources or have asked for them."""
        return self.count(*OCCUPYING)

    @property
    def is_over(self) -> bool:
        return self.count(*FINAL) == self.unit.replicas

    @property
    def has_begun(self) -> bool:
        return self.begun == self.unit.replicas

    @property
    def is_ready(self) -> bool:
        return self.ready == self.unit.replicas

    def state_of(self, index: int) -> State:
        """The state of a replica, also of one that is only counted."""
        replica = self.replicas.get(index)
        if replica is not None:
            return replica.state
        if self.verdict is None and self.outcome is None and self.tally.get(State.WAITING):
            return State.WAITING
        return State.SKIPPED if self.outcome is State.SKIPPED else State.CANCELLED

    def replica(self, index: int, attempt: int = 0) -> Replica:
        """A replica by its number, made on first use."""
        if index not in self.replicas:
            self.replicas[index] = Replica(self, index, attempt)
        return self.replicas[index]

    def next_waiting(self) -> int | None:
        """The first replica that waits; it is no longer kept as waiting afterwards."""
        while self._fresh < self.unit.replicas and self._fresh in self.replicas:
            self._fresh += 1
        fresh = self._fresh if self._fresh < self.unit.replicas else None
        while self._again and self.replicas[self._again[0]].state is not State.WAITING:
            heappop(self._again)
        if self._again and (fresh is None or self._again[0] < fresh):
            return heappop(self._again)
        return fresh

    def wait_again(self, index: int) -> None:
        """A replica waits for its turn once more."""
        heappush(self._again, index)

    def move(self, replica: Replica, new: State) -> None:
        """Take a new state, if the table allows it."""
        if new not in LEGAL[replica.state]:
            raise IllegalChange(replica.key, replica.state, new)
        self.set(replica, new)

    def set(self, replica: Replica, new: State) -> None:
        """Take a state and keep the tallies."""
        self._count(replica.state, -1, replica.index)
        self._count(new, 1, replica.index)
        replica.state = new
        if new is State.WAITING:
            self.wait_again(replica.index)

    def give_up_waiting(self, new: State) -> int:
        """Every replica that is only counted takes a final state; returns how many."""
        uncounted = self.unit.replicas - len(self.replicas)
        if uncounted and self._fresh < self.unit.replicas:
            self.tally[State.WAITING] -= uncounted
            self.tally[new] = self.tally.get(new, 0) + uncounted
            self._fresh = self.unit.replicas
            return uncounted
        return 0

    def forget_fresh(self) -> None:
        """Those that are only counted were given up before."""
        self._fresh = self.unit.replicas

    def _count(self, state: State, step: int, index: int) -> None:
        self.tally[state] = self.tally.get(state, 0) + step
        if self.goal is not None and self.goal.wants(index):
            self.wanted[state] = self.wanted.get(state, 0) + step


class Goal:
    """Which replicas must succeed, and how many of them."""

    __slots__ = ("needed", "size", "spans")

    def __init__(self, spans: tuple[Span, ...], size: int, needed: int) -> None:
        self.spans = spans
        self.size = size
        self.needed = needed

    def wants(self, index: int) -> bool:
        return not self.spans or any(low <= index <= high for low, high in self.spans)


def _goal(unit: Unit) -> Goal | None:
    """The goal of a unit, where a policy sets one."""
    success = unit.policies.success
    if success is not None:
        size = unit.replicas
        if success.replicas:
            size = len({i for low, high in success.replicas for i in range(low, min(high, size - 1) + 1)})
        return Goal(success.replicas, size, size if success.count is None else success.count)
    completions = unit.policies.completions
    return None if completions is None else Goal((), unit.replicas, completions)


class Scope:
    """The job, or one replica of a group while it runs."""

    __slots__ = (
        "barrier",
        "failed",
        "failure",
        "order",
        "owner",
        "prefix",
        "runs",
        "stopping",
        "undecided",
        "unsettled",
    )

    def __init__(self, units: UnitsByParent, owner: Replica | None) -> None:
        self.owner = owner
        self.prefix: str = "" if owner is None else f"{owner.key}/"
        self.failed = False
        """Whether it has failed whatever its runs say: a rule or a limit said so."""
        self.failure: Cause | None = None
        """What made it fail: the first failure of the first run in it that failed."""
        self.stopping = False
        """Whether nothing but cleanup may start in it any more."""
        parent = None if owner is None else owner.run.unit.id
        self.order = [Run(unit, self, place) for place, unit in enumerate(units.get(parent, ()))]
        self.runs = {run.unit.id: run for run in self.order}
        self.undecided = 0
        """Runs without an outcome, services apart."""
        self.unsettled = 0
        """Of those, the ones a cleanup waits for."""
        self.barrier = 0
        """The first run that blocks those below it and has no outcome; they may not start."""
        self.recount()

    def recount(self) -> None:
        """Bring the counters up to what the runs say."""
        open_work = [run for run in self.work if run.outcome is None]
        self.undecided = len(open_work)
        self.unsettled = sum(run.unit.when == "success" for run in open_work)
        self.barrier = 0
        self.move_barrier()

    def move_barrier(self) -> list[Run]:
        """Find the barrier again; returns the runs that may start since it moved."""
        before = self.barrier
        while self.barrier < len(self.order) and not self._blocks(self.barrier):
            self.barrier += 1
        return self.order[before : self.barrier + 1]

    def _blocks(self, place: int) -> bool:
        run = self.order[place]
        return run.unit.blocks and run.outcome is None

    def walk(self) -> Iterator[Replica]:
        """Every replica that was ever more than counted; inner ones follow the group they belong to."""
        for run in self.order:
            for index in sorted(run.replicas):
                replica = run.replicas[index]
                yield replica
                if replica.scope is not None:
                    yield from replica.scope.walk()

    def find(self, unit_id: str) -> Run | None:
        """The run of a unit seen from here: in this scope, or further out."""
        scope: Scope | None = self
        while scope is not None:
            if unit_id in scope.runs:
                return scope.runs[unit_id]
            scope = scope.owner.run.scope if scope.owner is not None else None
        return None

    @property
    def work(self) -> list[Run]:
        """Its runs but for the services."""
        return [run for run in self.order if not run.unit.service]
