"""The least that a shape holds, whatever nodes it gets: nodes that are taken as a whole are not all equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf

from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import FORGIVEN, mismatch, piece_of
from jobman.sched.bounds import NODE
from jobman.sched.capacity import Units, sum_units, to_amount, to_units
from jobman.sched.wishes import NO_WISHES, Wishes
from jobman.spec.shapes import Alternative, Amount, Part

_MANY = 1024
"""More slots than so many are not put together exactly: the least may be a little less then."""


def least_amounts(
    parts: Alternative,
    nodes: Sequence[ClusterNode],
    wishes: Wishes = NO_WISHES,
    overhead: Mapping[str, int] | None = None,
) -> dict[str, Amount] | None:
    """What an alternative holds at least of each kind, on nodes with nothing else on them.

    Each kind is looked at by itself, so that no placement holds less of any. None where no node suits.
    `nodes` are looked at only if some of them are taken as a whole.
    """
    apart: Units = {}
    shared: Units = {}
    for part in parts:
        found = _least(part, nodes, wishes, overhead or {})
        if found is None:
            return None
        for kind, units in found.items():
            if wishes.exclusive and part.nodes is None:
                shared[kind] = max(shared.get(kind, 0), units)
            else:
                apart[kind] = apart.get(kind, 0) + units
    least = {kind: max(apart.get(kind, 0), shared.get(kind, 0)) for kind in apart | shared}
    amounts = {kind: to_amount(kind, units) for kind, units in least.items() if units}
    own = sum(part.nodes or 0 for part in parts)
    return {**amounts, NODE: own} if own else amounts


def _least(
    part: Part, nodes: Sequence[ClusterNode], wishes: Wishes, overhead: Mapping[str, int]
) -> Units | None:
    piece = piece_of(part)
    need = sum_units(part.each, piece.copies, part.beside)
    for kind, units in overhead.items():
        need[kind] = need.get(kind, 0) + units
    if not (part.is_whole or wishes.exclusive):
        return {kind: units * piece.wanted for kind, units in need.items()}
    holdings = [
        {kind: to_units(kind, amount) for kind, amount in node.amounts.items()}
        for node in nodes
        if mismatch(node, part.requires, wishes.labels) is None
    ]
    rooms = [1 if part.nodes is not None else piece.wanted] * len(holdings)
    rooms = [_room(has, need, most) for has, most in zip(holdings, rooms, strict=True)]
    if sum(rooms) < piece.wanted:
        return None
    least: Units = {}
    for kind in dict.fromkeys(kind for has in holdings for kind in has):
        costs = (has.get(kind, 0) for has in holdings)
        least[kind] = _cheapest(Counter(zip(rooms, costs, strict=True)), piece.wanted)
    return least


def _room(has: Units, need: Units, most: int) -> int:
    """How many pieces a node has room for."""
    for kind, units in need.items():
        if units and (kind in has or kind != FORGIVEN):
            most = min(most, has.get(kind, 0) // units)
    return most


def _cheapest(nodes: Mapping[tuple[int, int], int], wanted: int) -> int:
    """The least that nodes cost with room for so many pieces; `nodes` has how many of each room and cost."""
    open_ = {each: count for each, count in nodes.items() if each[0]}
    if wanted > _MANY or all(room == 1 for room, _ in open_):
        return _by_worth(open_, wanted)
    least: list[float] = [0, *[inf] * wanted]
    for (room, cost), count in open_.items():
        for often in _powers(min(count, ceil(wanted / room))):
            for covered in range(wanted, 0, -1):
                with_it = least[max(covered - often * room, 0)] + often * cost
                least[covered] = min(least[covered], with_it)
    return int(least[wanted])


def _by_worth(nodes: Mapping[tuple[int, int], int], wanted: int) -> int:
    """The same where the last node may be taken in part: exact if each has room for one."""
    total = 0.0
    for room, cost in sorted(nodes, key=lambda node: node[1] / node[0]):
        often = min(float(nodes[room, cost]), wanted / room)
        total += often * cost
        wanted -= ceil(often * room)
        if wanted <= 0:
            break
    return ceil(total - 1e-6)


def _powers(count: int) -> Iterable[int]:
    """Numbers of which the sums are all numbers up to a count."""
    step = 1
    while count > 0:
        yield min(step, count)
        count -= step
        step *= 2
