"""Why a plan is as it is: effective values with where each came from. Plain data for people and programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from jobman.plan.features import FEATURES, Feature
from jobman.plan.model import Plan, Unit
from jobman.plan.wording import describe_alternatives
from jobman.spec.contexts import Origin, Traced
from jobman.spec.model import Task
from jobman.spec.policies import OWN
from jobman.spec.resolve import Job
from jobman.spec.resolve import Unit as Resolved
from jobman.spec.shapes import Amount, Totals, totals


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """One effective value: what it is, which level it came from, and the line it stands in."""

    key: str
    value: Any
    level: str
    name: str = ""
    line: int = 0


class Explained(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A unit with its effective values."""

    id: str
    kind: str
    name: str
    parent: str | None = None
    line: int
    command: tuple[str, ...] = ()
    when: str = "success"
    replicas: int = 1
    copies: tuple[int, ...]
    totals: tuple[Totals, ...] = ()
    waits_for: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()


class Footprint(msgspec.Struct, frozen=True):
    """How much of a cluster is used."""

    nodes: int
    amounts: dict[str, Amount]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A whole job, explained."""

    name: str | None
    digest: str
    at_once: Footprint
    """What the job would use if everything at the top level ran at the same time, in the preferred shapes."""
    values: tuple[Value, ...]
    """Policies of the job as a whole."""
    units: tuple[Explained, ...]
    features: tuple[Feature, ...]


def explain(job: Job, plan: Plan) -> Explanation:
    """Explain a job and its plan."""
    waits: dict[str, list[str]] = {}
    for edge in plan.edges:
        waits.setdefault(edge.unit, []).append(
            edge.after if edge.when == "success" else f"{edge.after} ({edge.when})"
        )
    units = tuple(
        _explained(resolved, unit, tuple(waits.get(unit.id, ())))
        for resolved, unit in zip(job.root.walk(), plan.units, strict=True)
    )
    return Explanation(
        name=plan.name,
        digest=plan.digest,
        at_once=_at_once(plan),
        values=tuple(_own_values(job.root)),
        units=units,
        features=tuple(FEATURES[name] for name in plan.features),
    )


def _explained(resolved: Resolved, unit: Unit, waits_for: tuple[str, ...]) -> Explained:
    return Explained(
        id=unit.id,
        kind=_kind(unit),
        name=unit.name,
        parent=unit.parent,
        line=unit.line,
        command=unit.command,
        when=unit.when,
        replicas=unit.replicas,
        copies=unit.copies,
        totals=unit.totals,
        waits_for=waits_for,
        values=tuple(_values(resolved)),
    )


def _kind(unit: Unit) -> str:
    if unit.kind == "group":
        return "group"
    return "local task" if unit.local else "service" if unit.service else "task"


def _values(resolved: Resolved) -> Iterator[Value]:
    context = resolved.context
    if resolved.shape_origin is not None:
        yield _shape(resolved, resolved.shape_origin)
    if context.image is not None and isinstance(resolved.written, Task) and not resolved.written.local:
        yield _value("image", context.image, "image")
    for key, traced in context.attributes.items():
        yield _value(key, traced, "attributes", key)
    for name, traced in context.environment.items():
        yield _value(f"environment.{name}", traced, "attributes", "environment", name)
    for fact, traced, path in _requires(resolved):
        yield _value(f"requires.{fact}", traced, *path)
    for key, traced in context.inherited.items():
        yield _value(key, traced, key)
    yield from _own_values(resolved)


def _own_values(resolved: Resolved) -> Iterator[Value]:
    for key in (*OWN, "coordinator", "network"):
        if key in resolved.given:
            yield _value(key, Traced(resolved.given[key], resolved.origin), key)


def _requires(resolved: Resolved) -> Iterator[tuple[str, Traced, tuple[str, ...]]]:
    """The facts in force: those of the context, and those the shape brings along, each with its path."""
    context = resolved.context.requires
    shape = {
        fact: value
        for parts in resolved.alternatives
        for part in parts
        for fact, value in part.requires.items()
    }
    for fact, value in shape.items():
        known = context.get(fact)
        if known is not None and known.value == value:
            yield fact, known, ("requires",)
        elif resolved.shape_origin is not None:
            yield fact, Traced(value, resolved.shape_origin), _shape_path(resolved.shape_origin, "requires")


def _shape_path(origin: Origin, *inner: str) -> tuple[str, ...]:
    """Where a shape stands below its origin: under its name in the document, or right there."""
    return ("resources", origin.name, *inner) if origin.level == "document" else ("resources", *inner)


def _shape(resolved: Resolved, origin: Origin) -> Value:
    named = getattr(resolved.written.resources, "text", None)
    shown = named or describe_alternatives(resolved.alternatives)
    return Value("resources", shown, origin.level, origin.name, origin.line(*_shape_path(origin)))


def _value(key: str, traced: Traced, *path: str) -> Value:
    origin = traced.origin
    return Value(key, traced.value, origin.level, origin.name, origin.line(*path))


def _at_once(plan: Plan) -> Footprint:
    """Replicas count as often as `parallelism` lets them."""
    nodes = 0
    amounts: dict[str, Amount] = {}
    for unit in plan.children():
        limits = (unit.policies.parallelism, plan.policies.parallelism)
        times = min(unit.replicas, *(limit or unit.replicas for limit in limits))
        one = totals(unit.alternatives[0]) if unit.alternatives else None
        if one is not None:
            nodes += one.nodes * times
            for name, amount in one.amounts.items():
                amounts[name] = amounts.get(name, 0) + amount * times
    return Footprint(nodes, amounts)
