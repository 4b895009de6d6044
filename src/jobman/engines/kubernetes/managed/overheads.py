"""What a copy costs its node beside what it asks for: a pod, and what its runtime does. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from jobman.engines.kubernetes.managed.nodes import KINDS
from jobman.engines.kubernetes.quantities import parse_quantity
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import COPY
from jobman.plan.satisfy import piece_of
from jobman.spec.shapes import Part

RuntimeClasses = Mapping[str, Mapping[str, str | int | float]]
"""From the name of a runtime class to the fixed overhead of its pods, as the cluster writes it."""
_PER_CORE = 1000


def overhead(classes: RuntimeClasses, plan: Plan, unit: Unit) -> dict[str, int]:
    """What each copy of a unit costs beside what it asks for, in the units of the planner.

    Cores are counted in thousandths, everything else in ones and bytes. A slot of a group costs as much as
    the copies of its tasks can that find room in it.
    """
    if unit.kind == "task":
        return _of_a_copy(classes, unit)
    slots = max((piece_of(part).copies for parts in unit.alternatives for part in parts), default=1)
    found: dict[str, int] = {}
    for task in _tasks(plan, unit):
        for kind, amount in _of_a_copy(classes, task).items():
            found[kind] = found.get(kind, 0) + amount * ceil(_most_on_a_node(unit, task) / slots)
    if COPY in found:
        found[COPY] = min(found[COPY], _most_at_once(unit))
    return found


def _most_at_once(group: Unit) -> int:
    """How many copies run in a slot of a group at one time: one on each core, and one that asks for none.

    Of a node that it has to itself nobody else wants any.
    """
    parts = [part for parts in group.alternatives for part in parts]
    return 1 + max((ceil(part.each.get("core", 0) + part.beside.get("core", 0)) for part in parts), default=0)


def _of_a_copy(classes: RuntimeClasses, unit: Unit) -> dict[str, int]:
    runtime = unit.policies.runtime
    fixed = classes.get(runtime.class_, {}) if runtime is not None and runtime.class_ else {}
    found = {COPY: 1}
    for name, quantity in fixed.items():
        kind = KINDS.get(name, name)
        amount = parse_quantity(quantity)
        found[kind] = ceil(amount * _PER_CORE if kind == "core" else amount)
    return {kind: amount for kind, amount in found.items() if amount}


def _tasks(plan: Plan, group: Unit) -> Iterator[Unit]:
    for child in plan.children(group.id):
        if child.kind == "task":
            yield child
        else:
            yield from _tasks(plan, child)


def _most_on_a_node(group: Unit, task: Unit) -> int:
    """How many copies of a task a node of its group can hold at once: as its shape allows, all at most."""
    if task.local or not task.alternatives:
        return 1
    total = task.replicas * max(task.copies)
    rooms = [
        _fitting(inner, outer)
        for outers in group.alternatives
        for outer in outers
        for inners in task.alternatives
        for inner in inners
    ]
    return min(total, max(rooms, default=total))


def _fitting(inner: Part, outer: Part) -> int:
    """How often a part's piece finds room in another's, in copies."""
    piece = piece_of(inner)
    room = piece_of(outer).need
    times = [int(room[kind] // amount) for kind, amount in piece.need.items() if amount and kind in room]
    return max(1, min(times, default=1)) * piece.copies
