"""How much of one node is free from when to when: steps in time, changed in place."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import inf

Pairs = Sequence[tuple[int, int]]
"""What is needed: so much of the kind with this number."""
_FEW = 12
"""So many steps are changed one by one."""


class Profile:
    """What is free of each kind, step by step; a step lasts until the next one, the last for ever.

    More may be taken than there is (a window that somebody runs into), so that what is free may be negative.
    """

    __slots__ = ("columns", "times")

    def __init__(self, amounts: Sequence[int], since: float = -inf) -> None:
        self.times: list[float] = [since]
        self.columns: list[list[int]] = [[amount] for amount in amounts]

    # -- changing ------------------------------------------------------------------------------------

    def take(self, start: float, end: float, pairs: Pairs) -> None:
        self.change(start, end, pairs, -1)

    def give(self, start: float, end: float, pairs: Pairs) -> None:
        self.change(start, end, pairs, 1)

    def change(self, start: float, end: float, pairs: Pairs, sign: int) -> None:
        """Take (-1) or give back (1) from one moment to another; what is past stays past."""
        times, columns = self.times, self.columns
        if end <= start or end <= times[0] or not pairs:
            return
        first = bisect_left(times, start) if start > times[0] else 0
        if first and (first == len(times) or times[first] != start):
            times.insert(first, start)
            for column in columns:
                column.insert(first, column[first - 1])
        last = bisect_left(times, end, first)
        if end != inf and (last == len(times) or times[last] != end):
            times.insert(last, end)
            for column in columns:
                column.insert(last, column[last - 1])
        for kind, amount in pairs:
            column, more = columns[kind], sign * amount
            if last - first < _FEW:
                for place in range(first, last):
                    column[place] += more
            else:
                column[first:last] = [free + more for free in column[first:last]]
        column = columns[0]
        if last < len(times) and column[last] == column[last - 1]:
            self._join(last)
        if first and column[first] == column[first - 1]:
            self._join(first)

    def _join(self, place: int) -> None:
        """Make one of two steps that are equal."""
        for column in self.columns:
            if column[place] != column[place - 1]:
                return
        del self.times[place]
        for column in self.columns:
            del column[place]

    def forget(self, now: float) -> None:
        """Drop the steps that are over."""
        times = self.times
        if len(times) > 1 and times[1] <= now:
            past = bisect_right(times, now) - 1
            del times[:past]
            for column in self.columns:
                del column[:past]
        if times[0] < now:
            times[0] = now

    def grow(self, kinds: int) -> None:
        """Know of more kinds, of which there is nothing."""
        while len(self.columns) < kinds:
            self.columns.append([0] * len(self.times))

    # -- asking --------------------------------------------------------------------------------------

    def earliest(self, pairs: Pairs, duration: float, after: float, before: float = inf) -> float:
        """The first moment from which a need can be met for so long; `inf` for never.

        With `before`, only starts before that moment count, and from then on there is room: for one that has
        a place there already.
        """
        if len(pairs) != 1:
            return self._earliest_of_many(pairs, duration, after, before)
        times = self.times
        steps = len(times)
        place = bisect_right(times, after) - 1
        if place < 0:
            place = 0
        start = after
        kind, least = pairs[0]
        column = self.columns[kind]
        while True:
            while column[place] < least:
                place += 1
                if place == steps:
                    return inf
                start = times[place]
            if start >= before:
                return inf
            end = start + duration
            if end > before:
                end = before
            place += 1
            while place < steps and times[place] < end:
                if column[place] < least:
                    break
                place += 1
            else:
                return start

    def _earliest_of_many(self, pairs: Pairs, duration: float, after: float, before: float) -> float:
        times = self.times
        first = max(bisect_right(times, after) - 1, 0)
        start = after
        end = -inf
        columns = [(self.columns[kind], least) for kind, least in pairs]
        for place in range(first, len(times)):
            if times[place] >= end > -inf:
                return start
            for column, least in columns:
                if column[place] < least:
                    end = -inf
                    break
            else:
                if end == -inf:
                    start = max(times[place], after)
                    if start >= before:
                        return inf
                    end = min(start + duration, before)
        return inf if end == -inf else start

    def fits(self, pairs: Pairs, start: float, end: float) -> bool:
        """Whether a need can be met all the time in between."""
        times = self.times
        first = bisect_right(times, start) - 1
        if first < 0:
            first = 0
        last = bisect_left(times, end, first + 1)
        if last - first == 1:
            for kind, least in pairs:  # noqa: SIM110 (a generator takes twice the time)
                if self.columns[kind][first] < least:
                    return False
            return True
        for kind, least in pairs:  # noqa: SIM110
            if min(self.columns[kind][first:last]) < least:
                return False
        return True

    def room(self, pairs: Pairs, start: float, end: float, most: int) -> int:
        """How often a need can be met all the time in between, up to so many times."""
        first = max(bisect_right(self.times, start) - 1, 0)
        last = bisect_left(self.times, end, first + 1)
        for kind, least in pairs:
            if least:
                room = min(self.columns[kind][first:last]) // least
                if room < most:
                    if room <= 0:
                        return 0
                    most = room
        return most

    def peak(self, start: float, end: float) -> tuple[int, ...]:
        """The most that is free of each kind in between."""
        times = self.times
        first = max(bisect_right(times, start) - 1, 0)
        last = bisect_left(times, end, first + 1)
        return tuple([max(column[first:last]) for column in self.columns])

    def low(self, kinds: Pairs, start: float, end: float) -> int:
        """The least that is free in between of any of the kinds that are named."""
        first = max(bisect_right(self.times, start) - 1, 0)
        last = bisect_left(self.times, end, first + 1)
        return min((min(self.columns[kind][first:last]) for kind, _ in kinds), default=0)

    def next_change(self, after: float) -> float:
        """The next moment at which something changes; `inf` for never."""
        place = bisect_right(self.times, after)
        return self.times[place] if place < len(self.times) else inf

    def ends(self, pairs: Pairs, start: float) -> float:
        """Until when a need can be met from a moment on."""
        times = self.times
        columns = [(self.columns[kind], least) for kind, least in pairs]
        first = max(bisect_right(times, start) - 1, 0)
        for place in range(first, len(times)):
            for column, least in columns:
                if column[place] < least:
                    return max(times[place], start)
        return inf
