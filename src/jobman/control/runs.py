"""What is known of a job while it runs: scopes, the runs of units in them, and their replicas.

A scope is the job itself or one replica of a group; it holds a run for each unit written in it, and a run
holds the replicas of its unit. Plain data: every decision about it is the conductor's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobman.control.states import FINAL, LEGAL, OCCUPYING, IllegalChange, State
from jobman.plan.model import Plan, Unit

NO_ATTEMPTS: Mapping[str, int] = {}
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
        "index",
        "key",
        "ready",
        "restarting",
        "restarts",
        "retries",
        "run",
        "scope",
        "state",
        "stopping_for",
    )

    def __init__(self, run: Run, index: int, attempts: Mapping[str, int]) -> None:
        self.run = run
        self.index = index
        self.key = f"{run.scope.prefix}{run.unit.name}.{index}"
        self.state = State.WAITING
        # Attempts go on counting when a group starts over, so that no two ever share a number.
        self.attempt = attempts.get(self.key, 0)
        self.retries = 0
        """Tries that count against the limit."""
        self.restarts = 0
        """Times it was started again in place by its restart policy."""
        self.begun = False
        self.ready = False
        self.due: float | None = None
        self.stopping_for: str | None = None
        self.restarting = False
        self.scope: Scope | None = None

    def __repr__(self) -> str:
        return f"<{self.key} {self.state} attempt {self.attempt}>"

    def change(self, new: State) -> None:
        """Take a new state, if the table allows it."""
        if new not in LEGAL[self.state]:
            raise IllegalChange(self.key, self.state, new)
        self.state = new


class Run:
    """A unit in a scope, with all its replicas; `outcome` is set once and for all."""

    __slots__ = ("outcome", "replicas", "scope", "unit", "verdict")

    def __init__(self, unit: Unit, scope: Scope, attempts: Mapping[str, int]) -> None:
        self.unit = unit
        self.scope = scope
        self.replicas = [Replica(self, index, attempts) for index in range(unit.replicas)]
        self.verdict: State | None = None
        """What its outcome will be, although replicas are still being stopped."""
        self.outcome: State | None = None

    def count(self, *states: State) -> int:
        return sum(replica.state in states for replica in self.replicas)

    @property
    def occupied(self) -> int:
        """Replicas that hold resources or have asked for them."""
        return self.count(*OCCUPYING)

    @property
    def is_over(self) -> bool:
        return all(replica.state in FINAL for replica in self.replicas)

    @property
    def has_begun(self) -> bool:
        return all(replica.begun for replica in self.replicas)

    @property
    def is_ready(self) -> bool:
        return all(replica.ready for replica in self.replicas)


class Scope:
    """The job, or one replica of a group while it runs."""

    __slots__ = ("failed", "owner", "prefix", "runs", "stopping")

    def __init__(
        self, units: UnitsByParent, owner: Replica | None, attempts: Mapping[str, int] = NO_ATTEMPTS
    ) -> None:
        self.owner = owner
        self.prefix: str = "" if owner is None else f"{owner.key}/"
        self.failed = False
        """Whether it has failed whatever its runs say: a rule or a limit said so."""
        self.stopping = False
        """Whether nothing but cleanup may start in it any more."""
        parent = None if owner is None else owner.run.unit.id
        self.runs = {unit.id: Run(unit, self, attempts) for unit in units.get(parent, ())}

    def walk(self) -> Iterator[Replica]:
        """Every replica in it; those of inner scopes follow the group they belong to."""
        for run in self.runs.values():
            for replica in run.replicas:
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
        return [run for run in self.runs.values() if not run.unit.service]
