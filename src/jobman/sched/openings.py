"""Finding the first node with room without looking at every node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

Column = list[int]
Need = Sequence[tuple[Column, int]]
"""What is asked of a node: at least so much in each of these columns."""


class Openings:
    """Numbers by node, in named columns, each a binary tree in which a parent is the larger of its children.

    A search steps over a whole branch where one column has no node with enough, so the first node with room
    costs time in proportion to the logarithm of the nodes.
    """

    def __init__(self, count: int) -> None:
        self._size = 1 << max(count - 1, 0).bit_length()
        self._columns: dict[Hashable, Column] = {}

    def __contains__(self, name: Hashable) -> bool:
        return name in self._columns

    def __getitem__(self, name: Hashable) -> Column:
        return self._columns[name]

    def add(self, name: Hashable, values: Sequence[int]) -> Column:
        """A column with a number for each node."""
        size = self._size
        column = [0] * size + list(values) + [-1] * (size - len(values))
        for place in range(size - 1, 0, -1):
            column[place] = max(column[2 * place], column[2 * place + 1])
        self._columns[name] = column
        return column

    def put(self, name: Hashable, position: int, value: int) -> None:
        """Change the number of a node; a column that nobody asked for yet is not kept."""
        column = self._columns.get(name)
        if column is None:
            return
        place = position + self._size
        column[place] = value
        while place > 1:
            place >>= 1
            left, right = column[2 * place], column[2 * place + 1]
            larger = left if left > right else right
            if column[place] == larger:
                return
            column[place] = larger

    def fits(self, need: Need, position: int) -> bool:
        place = position + self._size
        return all(column[place] >= least for column, least in need)

    def first(self, need: Need, start: int = 0) -> int | None:
        """The first node, from `start` on, that has enough in every column."""
        size = self._size
        if start >= size:
            return None
        place = start + size
        while place:
            for column, least in need:
                if column[place] < least:
                    break
            else:
                if place >= size:
                    return place - size
                place *= 2
                continue
            while place & 1:
                place >>= 1
            place += place > 0
        return None
