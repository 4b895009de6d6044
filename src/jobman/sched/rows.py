"""Rows: the nodes of a timeline, with what each has, what of it is free now, and what will be when."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from jobman.plan.nodes import ClusterNode
from jobman.sched.gangs import Piece
from jobman.sched.profile import Pairs, Profile

ENDLESS = 1 << 57
"""What a node has of something it does not count."""
CLOSED = 1 << 58
"""What is taken of everything while a node is closed: more than any node has."""


class Row:
    """A node over time."""

    __slots__ = ("capacity", "foreign", "free", "is_open", "name", "node", "profile", "whole")

    def __init__(self, node: ClusterNode, capacity: list[int]) -> None:
        self.name = node.name
        self.node = node
        self.capacity = capacity
        self.free = list(capacity)
        self.profile = Profile(capacity)
        self.foreign = [0] * len(capacity)
        """What others use there, of which nothing is known but that; the capacity is without it."""
        self.is_open = True
        """Whether anything may start there now."""
        self.settle()

    def settle(self) -> None:
        """Work out what the whole of it is."""
        self.whole: Pairs = tuple(
            (kind, max(units, 0))
            for kind, units in enumerate(self.capacity)
            if units < ENDLESS and (units + self.foreign[kind] > 0 or self.free[kind] != units)
        )

    def learn(self, units: int) -> None:
        """Count one more kind; where the row is closed there is nothing of that, either."""
        profile = self.profile
        closings = (
            [_closings(free - self.capacity[0]) for free in profile.columns[0]] if self.capacity else []
        )
        column = [units - closed * CLOSED for closed in closings] or [units] * len(profile.times)
        profile.columns.append(column)
        self.capacity.append(units)
        self.free.append(units)
        self.foreign.append(0)
        self.settle()

    @property
    def closing(self) -> Pairs:
        """What is taken to close it."""
        return tuple((kind, CLOSED) for kind in range(len(self.capacity)))

    def is_closed(self, start: float, end: float) -> bool:
        """Whether it is closed at some moment in between."""
        profile = self.profile
        return bool(profile.columns) and profile.low(((0, 0),), start, end) < -(CLOSED >> 1)

    # -- pieces --------------------------------------------------------------------------------------

    def has_now(self, piece: Piece) -> int:
        """How many pieces find room in what is free at this moment."""
        if not self.is_open:
            return 0
        if not piece.whole:
            return _times(self.free, piece.pairs)
        if any(self.free[kind] < units for kind, units in self.whole):
            return 0
        return 1 if piece.single else _times(self.capacity, piece.pairs)

    def room(self, piece: Piece, start: float, end: float, most: int) -> int:
        """How many pieces find room all the time in between."""
        if piece.whole:
            if not self.profile.fits(self.whole, start, end):
                return 0
            return 1 if piece.single else min(most, _times(self.capacity, piece.pairs))
        if piece.single or most == 1:
            return int(self.profile.fits(piece.pairs, start, end))
        return self.profile.room(piece.pairs, start, end, most)

    def earliest(self, piece: Piece, limit: float, after: float, before: float = inf) -> float:
        """The first moment from which a piece finds room for so long; with `before`, as in a profile."""
        return self.profile.earliest(self.whole if piece.whole else piece.pairs, limit, after, before)


def _times(free: Sequence[int], pairs: Pairs) -> int:
    """How often a need goes into what is free."""
    found = ENDLESS
    for kind, least in pairs:
        if least:
            count = free[kind] // least
            if count <= 0:
                return 0
            if count < found:
                found = count
    return found


def _closings(missing: int) -> int:
    """How often a row is closed of which so much is missing."""
    return (CLOSED // 2 - missing) // CLOSED
