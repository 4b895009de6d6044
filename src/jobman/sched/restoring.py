"""Restoring: a place that was promised before a restart, in the terms of the nodes there are now."""

from __future__ import annotations

from jobman.sched.gangs import Spot
from jobman.sched.lanes import Entry
from jobman.sched.requests import Placed
from jobman.sched.schedule import Schedule
from jobman.sched.windows import Window


def kept(schedule: Schedule, entry: Entry, placed: Placed, start: float) -> Spot | None:
    """The spot that was promised, if it can still be had; otherwise the entry may know why not."""
    gone = [name for places in placed.places for name in places if name not in schedule.timeline.numbers]
    if gone:
        entry.cause = f"node {gone[0]} is gone"
    if entry.circle is not None:
        return None
    if not entry.request.reservation:
        return _fitting(schedule, entry, placed, start)
    for window in schedule.windows.of(entry.request):
        spot = _within(schedule, entry, window, placed, start)
        if spot is not None:
            return spot
    return None


def _within(schedule: Schedule, entry: Entry, window: Window, placed: Placed, start: float) -> Spot | None:
    known = entry.gang
    entry.gang = schedule.compiler.gang_within(entry.request, entry.lane.queue.name, window.name, window.rows)
    if window.start <= start and start + entry.limit <= window.end:
        with schedule.windows.opened(window):
            spot = _fitting(schedule, entry, placed, start)
        if spot is not None:
            entry.window = window.name
            return spot
    entry.gang = known
    return None


def _fitting(schedule: Schedule, entry: Entry, placed: Placed, start: float) -> Spot | None:
    spot = schedule.compiler.spot_of(entry.gang, placed, start)
    if spot is None or not _is_whole(entry, spot):
        return None
    end, rows = start + entry.limit, schedule.timeline.rows
    is_free = all(rows[number].profile.fits(pairs, start, end) for number, pairs in spot.holds)
    return spot if is_free and schedule.admits(entry, spot, start, end) else None


def _is_whole(entry: Entry, spot: Spot) -> bool:
    """Whether no piece is missing, and each is where it may be."""
    pieces = entry.gang.choices[spot.choice].pieces
    return all(
        sum(places.values()) == piece.wanted and piece.ground.members.issuperset(places)
        for piece, places in zip(pieces, spot.places, strict=True)
    )
