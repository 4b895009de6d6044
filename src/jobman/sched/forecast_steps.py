"""What is free from when on: a step function that things are taken out of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from math import ceil, inf


class Steps:
    """Times in order, and what is free from each on; the last holds for ever."""

    __slots__ = ("_ahead", "levels", "marks", "times")

    def __init__(
        self, marks: int, now: float, free: int, ends: Iterable[float], needs: Iterable[int]
    ) -> None:
        """`ends` in order: when something comes back; `needs`: what comes back."""
        self.marks = marks
        self.times = [now, *ends]
        self.levels = list(accumulate(needs, initial=free))
        self._ahead = inf
        """When the first of what is set aside begins; until then there is never less than at first."""

    def fits(self, need: int, end: float) -> bool:
        """Whether there is room until the end, for what there is room for at first."""
        if end <= self._ahead:
            return True
        times, levels, marks = self.times, self.levels, self.marks
        for place in range(bisect_left(times, self._ahead), len(times)):
            if times[place] >= end:
                return True
            if (levels[place] - need) & marks != marks:
                return False
        return True

    def reserve(self, need: int, seconds: float) -> None:
        """Sets aside what is needed, at the first moment from which there is room."""
        begins = self.earliest(need, seconds)
        self.set_aside(begins, begins + seconds, need)

    def set_aside(self, start: float, end: float, need: int) -> None:
        """Takes out something that does not begin at first."""
        self._ahead = min(self._ahead, start)
        self.take(start, end, need)

    def earliest(self, need: int, seconds: float, after: float = -inf) -> float:
        """The first moment from which there is room for so long; infinity where there is none."""
        times, levels, marks = self.times, self.levels, self.marks
        begins: float | None = None
        for place, time in enumerate(times):
            if begins is not None and time >= begins + seconds:
                return begins
            if (levels[place] - need) & marks != marks:
                begins = None
            elif begins is None:
                ends = times[place + 1] if place + 1 < len(times) else inf
                begins = max(time, after) if ends > after else None
        return inf if begins is None else begins

    def take(self, start: float, end: float, need: int) -> None:
        """Takes this much out of a span of time."""
        first = self._cut(start)
        last = self._cut(end, first)
        self.levels[first:last] = [level - need for level in self.levels[first:last]]

    def _cut(self, time: float, low: int = 0) -> int:
        """The place of the step that begins at this time; there is one afterwards."""
        times = self.times
        place = bisect_left(times, time, low)
        if place == len(times) or times[place] != time:
            if time == inf:
                return place
            times.insert(place, time)
            self.levels.insert(place, self.levels[place - 1])
        return place

    def forget(self, now: float) -> None:
        """Drops what is over."""
        gone = bisect_left(self.times, now) - 1
        if gone > 0:
            del self.times[:gone]
            del self.levels[:gone]


class Bounds:
    """When what is held must have come back, in order: what comes back at the same time is one.

    With a `grid` in seconds times are rounded up to it, so that there are few of them however much is held.
    """

    __slots__ = ("_grid", "needs", "times")

    def __init__(self, held: Iterable[tuple[float, int]], grid: float = 0.0) -> None:
        self._grid = grid
        sums: dict[float, int] = {}
        for time, need in held:
            if need:
                time = self._rounded(time)
                sums[time] = sums.get(time, 0) + need
        self.times = sorted(sums)
        self.needs = [sums[time] for time in self.times]

    def add(self, time: float, need: int) -> None:
        """Something more is held."""
        if not need:
            return
        time = self._rounded(time)
        place = bisect_left(self.times, time)
        if place < len(self.times) and self.times[place] == time:
            self.needs[place] += need
        else:
            self.times.insert(place, time)
            self.needs.insert(place, need)

    def remove(self, time: float, need: int) -> None:
        """Something came back, at its time or before."""
        if not need:
            return
        place = bisect_left(self.times, self._rounded(time))
        self.needs[place] -= need
        if not self.needs[place]:
            del self.times[place]
            del self.needs[place]

    def _rounded(self, time: float) -> float:
        return ceil(time / self._grid) * self._grid if self._grid and time < inf else time
