"""From a plan to the jobs of a manager: one for each task or group at the top, and what each waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import Literal

import msgspec

from jobman.plan.model import Edge, Plan, Unit

After = Literal["ok", "not-ok", "any", "begun"]
CLOSER = "_services.end"
"""The piece that ends the services when all others are over; no task has such a name."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What is submitted to the manager at once."""

    name: str
    unit: Unit | None = None
    """Without one it ends the services of the job."""
    after: tuple[tuple[After, str], ...] = ()
    ready_for: tuple[str, ...] = ()
    """Pieces that are held until this one is ready: name, all it needs so, gates and whether it is held."""
    needs_ready: tuple[str, ...] = ()
    """Those by which it is held: all must be ready."""
    gates: tuple[str, ...] = ()
    hold: bool = False
    elements: tuple[int, ...] = ()
    """The replicas that it runs, where those are not all."""


Done = Mapping[str, Sequence[int]]
"""Replicas of tasks and groups at the top that need not be run any more, by name."""


def pieces_of(plan: Plan, done: Done | None = None) -> list[Piece]:
    """The pieces in an order in which they can be submitted: each after those it waits for."""
    tops = list(plan.children())
    found = {unit.name: _piece(unit, plan, tops) for unit in tops}
    if done:
        found = dict(_left(found, done))
    if any(unit.service for unit in tops):
        work = [unit.name for unit in tops if not unit.service and unit.name in found]
        found[CLOSER] = Piece(name=CLOSER, after=tuple(("any", name) for name in work))
    order = TopologicalSorter({name: [other for _, other in piece.after] for name, piece in found.items()})
    return [found[name] for name in _stable(order, list(found))]


def _left(pieces: Mapping[str, Piece], done: Done) -> Iterator[tuple[str, Piece]]:
    """What is still to be done, and waits for nothing that is done."""
    replicas = {name: piece.unit.replicas for name, piece in pieces.items() if piece.unit is not None}
    left = {name: sorted(set(range(count)) - set(done.get(name, ()))) for name, count in replicas.items()}
    for name, piece in pieces.items():
        if left[name]:
            after = tuple((when, other) for when, other in piece.after if left[other])
            elements = tuple(left[name]) if len(left[name]) < replicas[name] else ()
            yield name, msgspec.structs.replace(piece, after=after, elements=elements)


def _stable(order: TopologicalSorter[str], written: list[str]) -> Iterator[str]:
    """In the order written as far as dependencies let it."""
    order.prepare()
    places = {name: place for place, name in enumerate(written)}
    ready: list[int] = []
    while order.is_active():
        for name in order.get_ready():
            heappush(ready, places[name])
        first = written[heappop(ready)]
        yield first
        order.done(first)


def _piece(unit: Unit, plan: Plan, tops: Sequence[Unit]) -> Piece:
    edges = [edge for edge in plan.edges if edge.unit == unit.id]
    by_id = {each.id: each for each in tops}
    after = dict.fromkeys(
        [
            *_barriers(unit, tops),
            *_turn_of_cleanup(unit, tops),
            *(_native(edge, edges, by_id[edge.after]) for edge in edges if edge.when != "ready"),
        ]
    )
    waiting = [
        _waits(by_id[edge.unit], plan, by_id)
        for edge in plan.edges
        if edge.after == unit.id and edge.when == "ready" and edge.unit in by_id
    ]
    return Piece(
        name=unit.name,
        unit=unit,
        after=tuple(after),
        ready_for=tuple(dict.fromkeys(waiting)),
        needs_ready=_needs(unit, plan, by_id),
        gates=(*plan.policies.gates, *unit.policies.gates),
        hold=plan.policies.hold or unit.policies.hold,
    )


def _needs(unit: Unit, plan: Plan, by_id: Mapping[str, Unit]) -> tuple[str, ...]:
    edges = [edge for edge in plan.edges if edge.unit == unit.id and edge.when == "ready"]
    return tuple(by_id[edge.after].name for edge in edges)


def _waits(unit: Unit, plan: Plan, by_id: Mapping[str, Unit]) -> str:
    """What a script must know of a piece that waits for it to be ready."""
    gates = " ".join((*plan.policies.gates, *unit.policies.gates))
    hold = "hold" if plan.policies.hold or unit.policies.hold else ""
    return "|".join((unit.name, " ".join(_needs(unit, plan, by_id)), gates, hold))


def _barriers(unit: Unit, tops: Sequence[Unit]) -> Iterator[tuple[After, str]]:
    """What stands below one that blocks waits for its end."""
    for other in tops:
        if other is unit:
            return
        if other.blocks:
            yield "any", other.name


def _turn_of_cleanup(unit: Unit, tops: Sequence[Unit]) -> Iterator[tuple[After, str]]:
    if unit.cleanup:
        yield from (("any", other.name) for other in tops if other.when == "success" and not other.service)


def _native(edge: Edge, edges: Sequence[Edge], other: Unit) -> tuple[After, str]:
    """What the manager can see to by itself; the rest the script looks at when its turn has come."""
    if edge.when == "started":
        return "begun", other.name
    if edge.when == "success" and is_plain(other):
        return "ok", other.name
    if edge.when == "failure" and is_plain(other) and sum(each.when == "failure" for each in edges) == 1:
        return "not-ok", other.name
    return "any", other.name


def is_plain(unit: Unit) -> bool:
    """Whether a unit has come out well exactly if all its replicas have."""
    policies = unit.policies
    return policies.completions is None and policies.success is None and policies.max_failed is None
