"""Overbooking: whether reservations that only say how many nodes they take can all have them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import mismatch
from jobman.sched.blocks import Block
from jobman.sched.calendar import Reservation, occurrences
from jobman.spec.packing import share


class Shortage(NamedTuple):
    """The first moment at which there are too few nodes, and how many are left for who comes last."""

    at: float
    left: int


def shortage(
    wanted: Reservation,
    others: Iterable[Reservation],
    nodes: Sequence[ClusterNode],
    since: float,
    until: float,
) -> Shortage | None:
    """Where a reservation and those that are there already want more nodes than there are."""
    taken = [block for other in others for block in occurrences(other, since, until)]
    for block in occurrences(wanted, since, until):
        met = [other for other in taken if other.meets(block.start, block.end)]
        for moment in sorted({block.start, *(other.start for other in met if other.start > block.start)}):
            there = [other for other in met if other.holds_at(moment)]
            if there and not _is_enough([*there, block], nodes):
                return Shortage(moment, _left(there, block, nodes))
    return None


def _left(there: Sequence[Block], block: Block, nodes: Sequence[ClusterNode]) -> int:
    """How many nodes of the kind it wants are not reserved."""

    def is_too_many(count: int) -> bool:
        mine = msgspec.structs.replace(block, nodes=(), count=count)
        return not _is_enough([*there, mine], nodes)

    return bisect_left(range(1, len(nodes) + 1), True, key=is_too_many)


def _is_enough(blocks: Sequence[Block], nodes: Sequence[ClusterNode]) -> bool:
    """Whether all that hold nodes at the same moment can have them."""
    named = [block for block in blocks if block.count is None]
    counted = [block for block in blocks if block.count is not None]
    kinds = Counter(
        tuple(mismatch(node, block.requires, {}) is None for block in counted)
        for node in nodes
        if not any(block.covers(node.name) for block in named)
    )
    fitting = [[place for place, kind in enumerate(kinds) if kind[part]] for part in range(len(counted))]
    wanted = [block.count or 0 for block in counted]
    return share(wanted, fitting, list(kinds.values())) is not None
