"""Columns of boxes and lanes: in the order with the fewest crossings, at heights for straight arrows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise

from jobman.plan.drawing.model import STACK

BETWEEN = 16.0
"""Between two boxes of a column."""
_GAP, _STEEP, _WIDEST = 48.0, 0.12, 110.0
_SWEEPS = 6


class Item:
    """What takes room in a column: a box, a grid of boxes, or a lane.

    `before` and `behind` are the items it is connected to, and by how much the ends of the arrow differ
    from the middles.
    """

    def __init__(self, width: float, height: float, *, is_lane: bool = False) -> None:
        self.width = width
        self.height = height
        self.is_lane = is_lane
        self.y = 0.0
        self.before: list[tuple[Item, float]] = []
        self.behind: list[tuple[Item, float]] = []

    @property
    def weight(self) -> float:
        return 3.0 if self.is_lane else 1.0


class Column:
    """Items from top to bottom."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.left = 0.0
        self.right = 0.0

    def stack(self) -> None:
        """One below the other, around the middle line."""
        heights = [item.height for item in self.items]
        top = -(sum(heights) + sum(_room(a, b) for a, b in pairwise(self.items))) / 2
        for item, above in zip(self.items, [None, *self.items], strict=False):
            top += _room(above, item) if above else 0
            item.y = top + item.height / 2
            top += item.height

    @property
    def gap(self) -> float:
        """Room for the curves behind the column, wider where they are steep."""
        rises = (abs(other.y + shift - item.y) for item in self.items for other, shift in item.behind)
        return _GAP + min(_WIDEST, _STEEP * max(rises, default=0.0))


def order(columns: Sequence[Column]) -> None:
    """Swap items of a column where fewer arrows cross for it; the written order wins a tie."""
    for column in columns:
        column.stack()
    best = [list(column.items) for column in columns]
    fewest = _crossings(columns)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        for column in columns if sweep % 2 == 0 else reversed(columns):
            column.items.sort(key=_pulled_before if sweep % 2 == 0 else _pulled_behind)
            column.stack()
        crossings = _crossings(columns)
        if crossings < fewest:
            fewest, best = crossings, [list(column.items) for column in columns]
    for column, items in zip(columns, best, strict=True):
        column.items = items
        column.stack()


def settle(columns: Sequence[Column]) -> None:
    """Straighten the arrows as far as the order allows."""
    for pull in [_pulled_before, _pulled_behind] * (_SWEEPS // 2) + [_pulled]:
        for column in columns if pull is not _pulled_behind else reversed(columns):
            _spread(column.items, pull)
    _centre(columns)


def _centre(columns: Sequence[Column]) -> None:
    """Columns that nothing pulls stand in the middle of the others."""
    free = [column for column in columns if not any(i.before or i.behind for i in column.items)]
    ys = [item.y for column in columns if column not in free for item in column.items]
    middle = (min(ys) + max(ys)) / 2 if ys else 0.0
    for column in free:
        column.stack()
        for item in column.items:
            item.y += middle


def _room(one: Item, other: Item) -> float:
    return BETWEEN + (0 if one.is_lane or other.is_lane else STACK)


def _mean(item: Item, others: Sequence[tuple[Item, float]]) -> float:
    return sum(other.y + shift for other, shift in others) / len(others) if others else item.y


def _pulled_before(item: Item) -> float:
    return _mean(item, item.before)


def _pulled_behind(item: Item) -> float:
    return _mean(item, item.behind)


def _pulled(item: Item) -> float:
    return _mean(item, item.before + item.behind)


def _spread(items: Sequence[Item], pull: Callable[[Item], float]) -> None:
    """Move items towards where they are pulled without changing their order (isotonic regression)."""
    offsets = list(accumulate((_distance(a, b) for a, b in pairwise(items)), initial=0.0))
    blocks: list[tuple[float, float, int]] = []
    for item, offset in zip(items, offsets, strict=False):
        weight = item.weight if item.before or item.behind else 0.01
        total, count = weight * (pull(item) - offset), 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / weight:
            above = blocks.pop()
            total, weight, count = total + above[0], weight + above[1], count + above[2]
        blocks.append((total, weight, count))
    means = chain.from_iterable([total / weight] * count for total, weight, count in blocks)
    for item, offset, mean in zip(items, offsets, means, strict=False):
        item.y = mean + offset


def _distance(one: Item, other: Item) -> float:
    return one.height / 2 + _room(one, other) + other.height / 2


def _crossings(columns: Sequence[Column]) -> int:
    return sum(_inversions(column) for column in columns)


def _inversions(column: Column) -> int:
    """How many pairs of connections to the column before cross."""
    ends = [y for item in column.items for y in sorted(other.y + shift for other, shift in item.before)]
    places = {y: place for place, y in enumerate(sorted(set(ends)), 1)}
    counts = [0] * (len(places) + 1)
    crossings = 0
    for seen, y in enumerate(ends):
        place = places[y]
        crossings += seen
        while place:
            crossings -= counts[place]
            place -= place & -place
        place = places[y]
        while place < len(counts):
            counts[place] += 1
            place += place & -place
    return crossings
