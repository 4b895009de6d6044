"""Circles: requests that must run at the same time, and are placed all at once or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from jobman.sched.gangs import Spot
from jobman.sched.lanes import Entry, Lane
from jobman.sched.moments import spaced
from jobman.sched.requests import Request

if TYPE_CHECKING:
    from jobman.sched.schedule import Schedule


class Circle:
    """Requests that name each other, directly or through others."""

    __slots__ = ("_entries", "names")

    def __init__(self, names: Iterable[str], entries: Mapping[str, Entry]) -> None:
        self.names = set(names)
        self._entries = entries
        """All that waits or runs."""

    @property
    def missing(self) -> list[str]:
        """Those who are not there yet."""
        return sorted(name for name in self.names if name not in self._entries)

    def waiting(self) -> list[Entry]:
        """Its members that wait, in order."""
        found = (self._entries.get(name) for name in self.names)
        return sorted(entry for entry in found if entry is not None and not entry.is_running)

    def is_led_by(self, entry: Entry, lanes: Sequence[Lane]) -> bool:
        """Whether it is the turn of all when it is the turn of this one: the last, so that none passes."""
        return entry is max(self.waiting(), key=lambda member: (lanes.index(member.lane), member.key))


class Circles:
    """Who belongs together."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self.known: dict[str, Circle] = {}

    def join(self, request: Request) -> Circle:
        """The circle of a request, into which those it names are drawn."""
        names = {request.id, *request.together}
        for name in list(names):
            known = self.known.get(name)
            if known is not None:
                names |= known.names
        circle = Circle(names, self._entries)
        for name in names:
            self.known[name] = circle
            member = self._entries.get(name)
            if member is not None:
                member.circle = circle
                member.is_plain = False
        return circle

    def leave(self, request_id: str) -> None:
        """Somebody has gone, and is not waited for any more."""
        circle = self.known.pop(request_id, None)
        if circle is not None:
            circle.names.discard(request_id)
            if not any(name in self._entries for name in circle.names):
                for name in circle.names:
                    del self.known[name]


def find_together(
    schedule: Schedule, circle: Circle, after: float, before: float = inf
) -> dict[str, Spot] | None:
    """Spots for all who wait, at one moment: the first at which that can be."""
    members = [entry for entry in circle.waiting() if entry.spot is None]
    if circle.missing or not members:
        return None
    at = _apart(schedule, members, after)
    if at >= before:
        return None
    rows = {number for entry in members for piece in entry.gang.pieces for number in piece.ground.rows}
    for moment in spaced([at, *schedule.timeline.changes(rows, at)]):
        if moment >= before:
            return None
        spots = place_at(schedule, members, moment)
        if spots is not None:
            return spots
    return None


def _apart(schedule: Schedule, members: Iterable[Entry], after: float) -> float:
    """The first moment from which each could start at some time, if the others are not looked at."""
    at = after
    for entry in members:
        spot = schedule.find(entry, at)
        if spot is None:
            return inf
        at = spot.start
    return at


def place_at(schedule: Schedule, members: Iterable[Entry], at: float) -> dict[str, Spot] | None:
    """Spots for all at one moment; what is tried is taken back."""
    found: dict[str, Spot] = {}
    held: list[Entry] = []
    try:
        for entry in members:
            spot = schedule.timeline.exactly(entry.gang, entry.limit, at)
            if spot is None or not schedule.admits(entry, spot, at, at + entry.limit):
                return None
            if not entry.request.earliest <= at <= entry.request.latest:
                return None
            schedule.hold(entry, spot)
            held.append(entry)
            found[entry.request.id] = spot
        return found
    finally:
        for entry in held:
            schedule.unhold(entry)
            entry.spot = None
