"""More time for what runs, if no guarantee moves."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nextafter

from jobman.sched.gangs import Spot
from jobman.sched.lanes import Entry
from jobman.sched.requests import Extension
from jobman.sched.schedule import Schedule

Moved = list[tuple[Entry, Spot]]


def extend(schedule: Schedule, entries: Sequence[Entry], seconds: float) -> Extension:
    """Let all of some entries hold what they have for longer, or say how much longer they could."""
    if not all(entry.is_running for entry in entries):
        return Extension(granted=False, largest=0.0)
    limited = [entry for entry in entries if entry.end < inf]
    if seconds <= 0 or _Trial(schedule, limited, seconds).grant():
        return Extension(granted=True, largest=seconds)
    return Extension(granted=False, largest=_largest(schedule, limited, seconds))


def _largest(schedule: Schedule, entries: Sequence[Entry], wanted: float) -> float:
    """The most that could be granted: then somebody begins, or something, that cannot give way."""
    steps = sorted(step for step in {*_obstacles(schedule, entries)} if 0 < step < wanted)
    good, bad = -1, len(steps)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _Trial(schedule, entries, steps[middle]).is_possible():
            good = middle
        else:
            bad = middle
    return steps[good] if good >= 0 else 0.0


def _obstacles(schedule: Schedule, entries: Sequence[Entry]) -> list[float]:
    """After how many more seconds something changes, or somebody begins."""
    rows = schedule.timeline.rows
    moments = {
        theirs.start for lane in schedule.lanes for other in lane.reserved.values() if (theirs := other.spot)
    }
    found: list[float] = []
    for entry in entries:
        assert entry.spot is not None
        mine = {time for number in entry.spot.rows for time in rows[number].profile.times}
        mine |= {time for bound, _ in entry.takes for time in bound.profile.times}
        found.extend(moment - entry.end for moment in mine | moments)
    return found


class _Trial:
    """More time for some entries, tried out: others who are in the way go elsewhere, at the same time."""

    def __init__(self, schedule: Schedule, entries: Sequence[Entry], seconds: float) -> None:
        self._schedule = schedule
        self._wanted = [(entry, entry.end + seconds) for entry in entries]
        self._moved: Moved = []
        self._taken: list[tuple[Entry, float]] = []

    def grant(self) -> bool:
        """Do it, or change nothing."""
        if not self._try():
            self._undo()
            return False
        for entry, later in self._wanted:
            entry.limit += later - entry.end
            entry.end = later
        return True

    def is_possible(self) -> bool:
        """Whether it could be done."""
        found = self._try()
        self._undo()
        return found

    def _try(self) -> bool:
        for entry, later in self._wanted:
            if not self._is_free(entry, later):
                self._clear(entry, later)
                if not self._is_free(entry, later):
                    return False
            self._take(entry, entry.end, later)
            self._taken.append((entry, later))
        return all(self._place(other, theirs) for other, theirs in self._moved)

    def _undo(self) -> None:
        for other, _ in self._moved:
            if other.request.id in other.lane.reserved:
                self._schedule.unhold(other)
        for entry, later in self._taken:
            self._give(entry, entry.end, later)
        for other, theirs in self._moved:
            self._schedule.hold(other, theirs)

    def _is_free(self, entry: Entry, later: float) -> bool:
        """Whether nothing is in the way from its end on."""
        windows = self._schedule.windows
        window = windows.around(entry)
        if window is None:
            return self._fits(entry, later)
        with windows.opened(window):
            return later <= window.end and self._fits(entry, later)

    def _fits(self, entry: Entry, later: float) -> bool:
        rows, spot = self._schedule.timeline.rows, entry.spot
        assert spot is not None
        return all(
            rows[number].profile.fits(pairs, entry.end, later) for number, pairs in spot.holds
        ) and all(bound.fits(entry.job, pairs, entry.end, later) for bound, pairs in entry.takes)

    def _clear(self, entry: Entry, later: float) -> None:
        """Take those out of the plan who are on the same rows too early, or within the same limits."""
        spot = entry.spot
        assert spot is not None
        hit = set(spot.rows)
        bounds = {bound for bound, _ in entry.takes}
        met = []
        for lane in self._schedule.lanes:
            for other in lane.reserved.values():
                theirs = other.spot
                if (
                    theirs is None
                    or lane.barrier is other
                    or theirs.start >= later
                    or other.end <= entry.end
                    or other.circle is not None
                ):
                    continue
                if not hit.isdisjoint(theirs.rows) or any(bound in bounds for bound, _ in other.takes):
                    met.append((other, theirs))
        for other, _ in met:
            self._schedule.unhold(other)
        self._moved.extend(sorted(met, key=lambda item: item[0]))

    def _place(self, other: Entry, theirs: Spot) -> bool:
        """Put one who was taken out elsewhere, at the very same time."""
        known = (other.window, other.gang)
        found = self._schedule.find(other, theirs.start, nextafter(theirs.start, inf))
        if found is None:
            other.window, other.gang = known
            return False
        self._schedule.hold(other, found)
        return True

    def _take(self, entry: Entry, start: float, end: float) -> None:
        assert entry.spot is not None
        self._schedule.timeline.plan(entry.spot.holds, start, end)
        for bound, pairs in entry.takes:
            bound.take(entry.job, pairs, start, end)

    def _give(self, entry: Entry, start: float, end: float) -> None:
        assert entry.spot is not None
        self._schedule.timeline.unplan(entry.spot.holds, start, end)
        for bound, pairs in entry.takes:
            bound.give(entry.job, pairs, start, end)
