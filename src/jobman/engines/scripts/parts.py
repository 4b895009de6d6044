"""Several parts of a shape as one that has room for all of them."""

from __future__ import annotations

from collections.abc import Mapping

from jobman.plan.model import Unit
from jobman.spec.shapes import Alternative, Amount, Part


def merged(parts: Alternative) -> Part:
    """One part that has room for all of them: as many of the largest as it takes."""
    if len(parts) == 1:
        return parts[0]
    if all(part.nodes is None for part in parts):
        each = {name: max(part.each.get(name, 0) for part in parts) for name in _names(parts)}
        return Part(slots=_bins(parts, each), each=each, requires=_requires(parts))
    on_nodes = [part for part in parts if part.nodes is not None]
    rest = [part for part in parts if part.nodes is None]
    held = {name: max(part.per_node.get(name, 0) for part in on_nodes) for name in _names(parts)}
    for part in rest:
        for name, amount in part.per_node.items():
            held[name] = held.get(name, 0) + amount
    return Part(
        nodes=sum(part.nodes or 0 for part in on_nodes),
        each=held,
        exclusive=any(part.is_whole for part in on_nodes),
        requires=_requires(parts),
    )


def _bins(parts: Alternative, each: Mapping[str, Amount]) -> int:
    """First fit, the largest first: so many slots of that size take them all."""
    rooms: list[dict[str, Amount]] = []
    slots = [part.each for part in parts for _ in range(part.slots or 1)]
    for need in sorted(slots, key=lambda one: -one.get("core", 0)):
        fitting = next(
            (room for room in rooms if all(room[name] >= amount for name, amount in need.items())), None
        )
        if fitting is None:
            fitting = dict(each)
            rooms.append(fitting)
        for name, amount in need.items():
            fitting[name] -= amount
        if not need:
            # A slot without a core still is a task of its own.
            fitting.clear()
            fitting.update(dict.fromkeys(each, 0))
    return len(rooms)


def _names(parts: Alternative) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part.per_node))


def _requires(parts: Alternative) -> dict[str, str]:
    return {key: value for part in parts for key, value in part.requires.items()}


def facts_of(unit: Unit, parts: Alternative | None = None) -> dict[str, str]:
    """The facts and labels that the nodes of a unit must have, or those of some of its parts."""
    placement = unit.policies.placement
    if parts is None:
        parts = unit.alternatives[0] if unit.alternatives else ()
    requires = merged(parts).requires if parts else {}
    return {**requires, **(placement.labels if placement is not None else {})}
