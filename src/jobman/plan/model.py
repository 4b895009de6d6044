"""A plan: what an engine compiles. Frozen values with a stable JSON form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice, product
from typing import Literal

import msgspec

from jobman.spec.attributes import Flags
from jobman.spec.model import Start
from jobman.spec.policies import Bonds, Policies
from jobman.spec.shapes import Alternatives, Totals, copies, totals
from jobman.spec.steps import Stage, Write

VERSION = 1
NO_POLICIES = Policies()
NO_BONDS = Bonds()
NO_FLAGS = Flags()

Condition = Literal["success", "failure", "any", "started", "ready"]


class PlanError(ValueError):
    """A text that is not a plan, or not one of this version."""


class Unit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task, or a group as an allocation with its tasks below it.

    `when` says in which case it runs at all. A unit that runs on `failure` or `always` and has no edges
    waits for everything before it in its scope. `matrix` axes are in the order of their names; the last
    one turns fastest.
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
    replicas: int = 1
    matrix: dict[str, tuple[str, ...]] = {}
    alternatives: Alternatives = ()
    duration: float | None = None
    environment: dict[str, str] = {}
    cwd: str | None = None
    watch: bool = False
    stdout: str | None = None
    stderr: str | None = None
    flags: Flags = NO_FLAGS
    policies: Policies = NO_POLICIES
    bonds: Bonds = NO_BONDS

    @property
    def copies(self) -> tuple[int, ...]:
        """Copies of one replica, for each alternative; a local task has one."""
        return tuple(copies(parts) for parts in self.alternatives) or (1,)

    @property
    def totals(self) -> tuple[Totals, ...]:
        """What one replica asks for, for each alternative."""
        return tuple(totals(parts) for parts in self.alternatives)

    def replica_values(self, replica: int) -> dict[str, str]:
        """The matrix values of a replica."""
        if not self.matrix:
            return {}
        combination = next(islice(product(*self.matrix.values()), replica, None))
        return dict(zip(self.matrix, combination, strict=True))


class Edge(msgspec.Struct, frozen=True):
    """`unit` waits for `after`: for its success, failure, end, start or readiness."""

    unit: str
    after: str
    when: Condition = "success"


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
    bonds: Bonds = NO_BONDS
    duration: float | None = None
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
