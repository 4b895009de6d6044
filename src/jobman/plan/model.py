"""A plan: what an engine compiles. Frozen values with a stable JSON form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal

import msgspec

from jobman.spec.attributes import Flags
from jobman.spec.model import Start
from jobman.spec.networks import Network
from jobman.spec.policies import Policies
from jobman.spec.shapes import Alternatives, Totals, copies, totals
from jobman.spec.steps import Stage, Write

VERSION = 1
NO_POLICIES = Policies()
NO_FLAGS = Flags()

EdgeCondition = Literal["success", "failure", "any", "started", "ready"]


class PlanError(ValueError):
    """A text that is not a plan, or not one of this version."""


class Coordinator(msgspec.Struct, frozen=True, omit_defaults=True):
    """The copy others report to: a task, and which of its replicas."""

    unit: str
    replica: int = 0


class Unit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task, or a group as an allocation with its tasks below it.

    Units of a scope start in the order of the plan, as their edges allow. Two things besides edges hold
    a unit back: what stands below a unit that `blocks` waits for its end, and a `cleanup` unit waits for
    the end of everything in its scope that runs `when` all is well, services apart. `when` says in which
    case it runs at all.
    """

    id: str
    kind: Literal["task", "group"] = "task"
    name: str
    parent: str | None = None
    line: int = 0
    command: tuple[str, ...] = ()
    steps: tuple[Stage | Write, ...] = ()
    image: str | None = None
    local: bool = False
    service: bool = False
    when: Literal["success", "failure", "always"] = "success"
    blocks: bool = False
    cleanup: bool = False
    replicas: int = 1
    matrix: dict[str, tuple[str, ...]] = {}
    """Axes in the order of their names; the last one turns fastest."""
    alternatives: Alternatives = ()
    duration: float | None = None
    environment: dict[str, str] = {}
    cwd: str | None = None
    watch: bool = False
    stdout: str | None = None
    stderr: str | None = None
    flags: Flags = NO_FLAGS
    policies: Policies = NO_POLICIES
    """Tasks that a placement names are unit ids here."""
    coordinator: Coordinator | None = None
    network: Network | None = None

    @property
    def copies(self) -> tuple[int, ...]:
        """Copies of one replica, for each alternative; a local task has one, a group none of its own."""
        if self.kind == "group":
            return ()
        return tuple(copies(parts) for parts in self.alternatives) or (1,)

    @property
    def totals(self) -> tuple[Totals, ...]:
        """What one replica asks for, for each alternative."""
        return tuple(totals(parts) for parts in self.alternatives)


class Edge(msgspec.Struct, frozen=True):
    """`unit` waits for `after`: for its success, failure, end, start or readiness.

    All edges of a unit must be satisfied, but of those for a failure one: the unit waits for the end of all
    it names so, and runs if at least one of them failed.
    """

    unit: str
    after: str
    when: EdgeCondition = "success"


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A resolved job. Units stand in the order written, each group before its tasks."""

    version: int
    name: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    managed_by: str | None = None
    owner: str | None = None
    queue: str | None = None
    account: str | None = None
    start: Start | None = None
    policies: Policies = NO_POLICIES
    coordinator: Coordinator | None = None
    network: Network | None = None
    units: tuple[Unit, ...]
    edges: tuple[Edge, ...] = ()
    features: tuple[str, ...] = ()
    digest: str = ""

    def unit(self, unit_id: str) -> Unit:
        """The unit of an id."""
        for unit in self.units:
            if unit.id == unit_id:
                return unit
        raise KeyError(unit_id)

    def children(self, parent: str | None = None) -> Iterator[Unit]:
        """The units of a group, or those at the top level."""
        return (unit for unit in self.units if unit.parent == parent)

    def askers(self) -> Iterator[Unit]:
        """The units that ask a cluster for resources; those inside a group have them of it."""
        return (unit for unit in self.units if unit.parent is None and unit.alternatives)

    def to_json(self) -> bytes:
        """The stable JSON form."""
        return _ENCODER.encode(self)


_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest(plan: Plan) -> str:
    """A digest of the meaning: source lines and what is derived do not count."""
    meaning = msgspec.structs.replace(
        plan,
        units=tuple(msgspec.structs.replace(unit, line=0) for unit in plan.units),
        features=(),
        digest="",
    )
    return "sha256:" + hashlib.sha256(_ENCODER.encode(meaning)).hexdigest()


def plan_from_json(text: bytes | str) -> Plan:
    """Read a plan back; refuses other versions and plans that were changed by hand."""
    try:
        version = msgspec.json.decode(text, type=_Versioned).version
        if version != VERSION:
            raise PlanError(f"this is a plan of version {version}; version {VERSION} is understood")
        plan = msgspec.json.decode(text, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"this is not a plan: {error}") from error
    if plan.digest != digest(plan):
        raise PlanError("the digest does not belong to this plan: it was changed after it was made")
    return plan


class _Versioned(msgspec.Struct):
    version: int
