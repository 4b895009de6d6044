"""A job that is not over: its conductor, what it holds, and the records of its attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec

from jobman.control.conductor import Conductor
from jobman.control.line import Line
from jobman.control.runs import Replica
from jobman.control.store.records import AttemptRecord, JobRecord, PromiseRecord
from jobman.engines.base import Order, Peer
from jobman.plan.model import Coordinator, Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.plan.replicas import for_replica
from jobman.sched.allocation import Allocation, Slot
from jobman.sched.wishes import Wishes, wishes_for
from jobman.spec.access import Security
from jobman.spec.shapes import Alternatives

HostOf = Callable[[str, str, int], str]
"""The name under which a copy is reached, of a job, a replica and the copy's number."""


class LiveJob:
    """One job under way. `nodes` are those it may use: the host's, or emulated ones of its own."""

    def __init__(
        self, record: JobRecord, plan: Plan, conductor: Conductor, nodes: dict[str, ClusterNode]
    ) -> None:
        self.record = record
        self.plan = plan
        self.conductor = conductor
        self.nodes = nodes
        self.line: Line | None = None
        """Its own line, where it has nodes of its own."""
        self.lines: dict[str, Line] = {}
        """The lines inside its groups, by the key of the group's replica."""
        self.allocations: dict[str, tuple[int, Allocation]] = {}
        """What its replicas hold, by key, with the attempt it was given for."""
        self.untaken: set[str] = set()
        """Of those, what the nodes no longer have: it is held in name only."""
        self.attempts: dict[str, AttemptRecord] = {}
        """The attempts under way, by key."""
        self.requests: dict[str, str] = {}
        """What its replicas have asked the planner for or hold by it: the request of each, by key."""
        self.promises: dict[str, PromiseRecord] = {}
        """What those who wait were told about their start, by key."""
        self.unpromised: dict[str, str] = {}
        """Why those who wait could not be promised one, by key."""
        self.untils: dict[str, float] = {}
        """By when the planner counts on having back what its replicas hold, by key."""
        self.looking: str | None = None
        self.shy: list[str] = []
        """The replica that looks for a place in view of the others, and those who do so after it."""
        self.peers: dict[str, Peer] = {}
        self.delays: dict[str, str] = {}
        """What those who were launched wait for before they run, as far as the host says so."""
        self.complaints: dict[str, str] = {}
        """What the checks of replicas found, until their attempts are over."""
        self.retried = 0
        self.last_end = 0.0
        """When its last attempt ended."""

    @property
    def id(self) -> str:
        return self.record.id

    @cached_property
    def units(self) -> dict[str, Unit]:
        return {unit.id: unit for unit in self.plan.units}

    def unit_of(self, key: str) -> Unit:
        return self.conductor.replica(key).run.unit

    def last_end_in(self, group: str) -> float:
        """When the last attempt inside a group ended."""
        inside = (one for key, one in self.attempts.items() if key.startswith(f"{group}/"))
        return max(one.ended_at or 0.0 for one in inside)

    def wanted(self, key: str) -> tuple[Alternatives, Wishes]:
        """What a replica asks for."""
        unit = self.unit_of(key)
        placement = unit.policies.placement
        return unit.alternatives, wishes_for(placement, unit.id, self._where() if placement else {})

    def _where(self) -> dict[str, list[str]]:
        """The node of each copy that holds resources now, by unit."""
        where: dict[str, list[str]] = {}
        for key, (_, allocation) in self.allocations.items():
            unit = self.unit_of(key)
            where.setdefault(unit.id, []).extend(slot.node for slot in allocation.slots)
        return where

    def order(self, key: str, peers: tuple[Peer, ...], connected: Sequence[str], host_of: HostOf) -> Order:
        """Everything an engine needs to run the current attempt of a task's replica."""
        replica = self.conductor.replica(key)
        allocation = self._allocation(replica)
        around = self._around(key)
        nodes = dict.fromkeys(held.node for held in (around or allocation).held)
        unit = for_replica(replica.run.unit, replica.index)
        return Order(
            job=self.id,
            job_name=self.record.name,
            owner=self.record.owner,
            key=key,
            attempt=replica.attempt,
            index=replica.index,
            unit=self._as_its_owner(unit),
            allocation=allocation,
            nodes=tuple(nodes),
            virtual=self.record.options.get("virtual"),
            cwd=self.record.cwd,
            environment=self.record.environment,
            coordinator=None if (chief := self._coordinator(replica)) is None else host_of(self.id, chief, 0),
            peers=peers,
            no_container=self.record.options.get("no_container", False),
            plan=self.plan,
            connected=tuple(connected),
            extra=replica.extended or 0.0,
            has_begun=key in self.attempts and self.attempts[key].started_at is not None,
        )

    def _as_its_owner(self, unit: Unit) -> Unit:
        """A unit that runs with the account of the job's owner, where that is not the service's own."""
        account = self.record.options.get("account")
        if account is None:
            return unit
        security = msgspec.structs.replace(unit.policies.security or Security(), **account)
        policies = msgspec.structs.replace(unit.policies, security=security)
        return msgspec.structs.replace(unit, policies=policies)

    def _allocation(self, replica: Replica) -> Allocation:
        known = self.allocations.get(replica.key)
        if known is not None:
            return known[1]
        # A local task runs in the driver of its group: on its first node, pinned to nothing.
        around = self._around(replica.key)
        first = around.held[0].node if around is not None and around.held else next(iter(self.nodes), "")
        return Allocation(0, (), (Slot(first),))

    def _around(self, key: str) -> Allocation | None:
        """The allocation of the group a replica runs in."""
        known = self.allocations.get(key.rpartition("/")[0])
        return None if known is None else known[1]

    def _coordinator(self, replica: Replica) -> str | None:
        """The replica that others report to, by the nearest scope around one that names any."""
        scope = replica.run.scope
        while scope.owner is not None:
            if scope.owner.run.unit.coordinator is not None:
                return self._key_within(scope.prefix, scope.owner.run.unit.coordinator)
            scope = scope.owner.run.scope
        found = self.plan.coordinator
        return None if found is None else self._key_within(scope.prefix, found)

    def _key_within(self, prefix: str, coordinator: Coordinator) -> str:
        """The key of a task's replica; of a group's, that of the first task in it."""
        unit = self.units[coordinator.unit]
        key = f"{prefix}{unit.name}.{coordinator.replica}"
        while unit.kind == "group":
            unit = next(child for child in self.plan.units if child.parent == unit.id)
            key = f"{key}/{unit.name}.0"
        return key

    def connected(self) -> Iterator[str]:
        """Names and ids of jobs it wants to reach."""
        for network in (self.plan.network, *(unit.network for unit in self.plan.units)):
            if network is not None:
                yield from network.connect
