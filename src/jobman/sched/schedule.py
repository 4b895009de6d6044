"""The schedule: who holds what from when to when, and what each was promised.

A reservation that was made stays until its request starts. When something ends early the plan is compressed
in place: each request in turn is put back as early as it fits, which never delays anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf, nextafter

from jobman.sched.circles import Circle, find_together
from jobman.sched.compiler import Compiler, Takes
from jobman.sched.gangs import Choice, Gang, Spot
from jobman.sched.lanes import Entry, Lane
from jobman.sched.moments import spaced
from jobman.sched.releases import Releases
from jobman.sched.requests import Revision
from jobman.sched.rows import CLOSED
from jobman.sched.windows import Windows

_SLACK = 1024
_ONE_BY_ONE = 2
"""With more reservations than so many it is worth asking first whether anything changed for one."""


class Schedule:
    """Reservations of all lanes on one timeline."""

    def __init__(self, compiler: Compiler, windows: Windows, firm: float = inf) -> None:
        self.compiler = compiler
        self.firm = firm
        """A start further ahead than so many seconds is no promise, and nobody but the first holds it."""
        self.timeline = compiler.timeline
        self.windows = windows
        self.lanes: list[Lane] = []
        self.entries: dict[str, Entry] = {}
        """All that waits or runs."""
        self.releases = Releases(self.timeline)
        self.news = 0
        """How often something was freed from outside."""
        self.losses = 0
        """How often somebody lost a reservation."""
        self._event = ("", "")
        """What happened last."""
        self.revisions: list[Revision] = []
        self.dues: list[tuple[float, int, Entry, Spot]] = []
        """When reservations begin; with some that are none any more."""
        self._pushed = 0

    def happened(self, who: str, what: str) -> None:
        """Something was freed, and this is why."""
        self.news += 1
        self._event = (who, what)

    @property
    def cause(self) -> str:
        """What happened last, in words."""
        return " ".join(self._event)

    # -- finding -------------------------------------------------------------------------------------

    def find(self, entry: Entry, after: float, before: float = inf) -> Spot | None:
        """The earliest spot before a moment, within all limits."""
        request = entry.request
        after = max(after, request.earliest)
        if request.latest < before:
            before = nextafter(request.latest, inf)
        if request.reservation:
            return self._find_in_windows(entry, after, before)
        return self.find_for(entry.gang, entry, after, before)

    def find_for(self, gang: Gang, entry: Entry, after: float, before: float = inf) -> Spot | None:
        """The earliest spot of a gang, on behalf of an entry."""
        if not gang.bounds:
            return self.timeline.earliest(gang, entry.limit, after, before)
        best: Spot | None = None
        for choice in gang.choices:
            found = self._find_bounded(gang, choice, entry, after, before)
            if found is not None:
                best, before = found, found.start
        return best

    def _find_bounded(
        self, gang: Gang, choice: Choice, entry: Entry, after: float, before: float
    ) -> Spot | None:
        """Where there is room, limits may say no; where they say yes, there may be no room."""
        while True:
            spot = self.timeline.earliest_as(gang, choice, entry.limit, after, before)
            if spot is None:
                return None
            after = spot.start
            for bound, pairs in self.compiler.takes(gang, spot):
                after = max(after, bound.earliest(entry.job, pairs, entry.limit, after))
            if after == spot.start:
                return spot
            if self.compiler.differing(gang, choice):
                return self._find_frugally(gang, choice, entry, spot.start, before)
            if after >= before:
                return None

    def _find_frugally(
        self, gang: Gang, choice: Choice, entry: Entry, after: float, before: float
    ) -> Spot | None:
        """The same where it depends on the nodes what is taken of a limit."""
        if self.compiler.is_too_large(gang, choice, entry.request):
            return None
        rows = {number for piece in choice.pieces for number in piece.ground.rows}
        moments = {after, *self.timeline.changes(rows, after)}
        moments.update(time for bound in gang.bounds for time in bound.profile.times if time > after)
        for moment in spaced(sorted(moments)):
            if moment >= before:
                return None
            spot = self.frugal(gang, choice, entry, moment, really=False)
            if spot is not None:
                return spot
        return None

    def frugal(self, gang: Gang, choice: Choice, entry: Entry, at: float, *, really: bool) -> Spot | None:
        """A spot at one moment that all limits admit, on nodes that have little of what is limited."""
        admits = self.admits_now if really else self.admits_at
        for kinds in self.compiler.differing(gang, choice):
            spot = self.timeline.frugally(gang, choice, entry.limit, at, kinds, really=really)
            if spot is not None and admits(entry, spot, at):
                return spot
        return None

    def _find_in_windows(self, entry: Entry, after: float, before: float) -> Spot | None:
        """The earliest spot in a window of an advance reservation; the entry is of that window then."""
        best: Spot | None = None
        for window in self.windows.of(entry.request):
            gang = self.compiler.gang_within(entry.request, entry.lane.queue.name, window.name, window.rows)
            with self.windows.opened(window):
                spot = self.find_for(gang, entry, max(after, window.start), before)
            if spot is not None and spot.start + entry.limit <= window.end:
                entry.window, entry.gang = window.name, gang
                best, before = spot, spot.start
        return best

    def has_room(self, entry: Entry, spot: Spot) -> bool:
        """Whether a spot can be had by one who had it before, and was taken out."""
        rows, end = self.timeline.rows, spot.start + entry.limit
        return all(
            rows[number].profile.fits(pairs, spot.start, end) for number, pairs in spot.holds
        ) and self.admits(entry, spot, spot.start, end)

    def admits(self, entry: Entry, spot: Spot, start: float, end: float) -> bool:
        """Whether all limits let it have a spot from one moment to another."""
        takes = self.compiler.takes(entry.gang, spot)
        return all(bound.fits(entry.job, pairs, start, end) for bound, pairs in takes)

    def admits_at(self, entry: Entry, spot: Spot, start: float) -> bool:
        return self.admits(entry, spot, start, start + entry.limit)

    def admits_now(self, entry: Entry, spot: Spot, now: float) -> bool:
        """Whether all limits let it have a spot now, for all of its time."""
        takes = self.compiler.takes(entry.gang, spot)
        return all(
            bound.has_now(entry.job, pairs) and bound.fits(entry.job, pairs, now, now + entry.limit)
            for bound, pairs in takes
        )

    # -- holding -------------------------------------------------------------------------------------

    def hold(self, entry: Entry, spot: Spot) -> None:
        """Reserve a spot."""
        entry.spot = spot
        start = spot.start
        entry.end = end = start + entry.limit
        entry.lane.reserved[entry.request.id] = entry
        self.timeline.plan(spot.holds, start, end)
        if entry.gang.bounds:
            entry.takes = self.compiler.takes(entry.gang, spot)
            for bound, pairs in entry.takes:
                bound.take(entry.job, pairs, start, end)
        self._pushed += 1
        heappush(self.dues, (start, self._pushed, entry, spot))

    def unhold(self, entry: Entry) -> None:
        """Take a reservation out of the plan; the entry still knows its spot."""
        spot = entry.spot
        assert spot is not None
        lane = entry.lane
        lane.reserved.pop(entry.request.id, None)
        if lane.barrier is entry:
            lane.barrier = None
        self.timeline.unplan(spot.holds, spot.start, entry.end)
        for bound, pairs in entry.takes:
            bound.give(entry.job, pairs, spot.start, entry.end)
        entry.takes = ()

    def unreserve(self, entry: Entry, cause: str = "") -> None:
        """Take a reservation back; others may have its room. With a cause it is to be planned anew."""
        self.unhold(entry)
        spot = entry.spot
        assert spot is not None
        self.releases.add(spot.rows, spot.start, entry.end, entry.gang.bounds)
        entry.spot = None
        if cause:
            self.lose(entry, cause)

    def lose(self, entry: Entry, cause: str) -> None:
        """One who holds nothing any more is to be planned anew."""
        entry.spot, entry.cause = None, cause
        entry.lane.lost.append(entry)
        self.losses += 1

    def reserve(self, entry: Entry, now: float, after: float | None = None) -> None:
        """Plan a request as early as it fits."""
        if entry.circle is not None:
            self._reserve_circle(entry, entry.circle, now, now if after is None else after)
            return
        gang = entry.gang
        entry.tested = freed = self.releases.count
        if gang.far_seen == freed and entry.limit >= gang.far and entry.lane.barrier is not None:
            self.told(entry)
            return
        spot = self.find(entry, now if after is None else after)
        if spot is not None and spot.start > now + self.firm:
            gang.far, gang.far_seen = entry.limit, freed
            self._hold_far(entry, spot, now)
        elif spot is not None:
            self.hold(entry, spot)
        self.told(entry)

    def _hold_far(self, entry: Entry, spot: Spot, now: float) -> None:
        """Let the first to whom nothing can be promised stand in the way of those who would never end."""
        lane = entry.lane
        if lane.barrier is None:
            self.hold(entry, Spot(now + self.firm, spot.choice, spot.places, spot.holds))
            lane.barrier = entry

    def lift(self, lane: Lane) -> None:
        """Take the barrier of a lane away, to put it where it belongs now."""
        entry = lane.barrier
        if entry is not None:
            self.unreserve(entry)

    def _reserve_circle(self, entry: Entry, circle: Circle, now: float, after: float) -> None:
        """All of those who must run at the same time, or none."""
        is_led = circle.is_led_by(entry, self.lanes)
        if entry.guaranteed is None and not is_led:
            return  # who was promised something waits for nobody's turn
        for member in circle.waiting():
            if member.lane.barrier is member:
                self.unreserve(member)
        members = [member for member in circle.waiting() if member.spot is None]
        found = find_together(self, circle, after)
        if found and min(spot.start for spot in found.values()) > now + self.firm:
            if is_led:
                self._hold_far(entry, found[entry.request.id], now)
            found = None
        for member in members:
            member.tested = self.releases.count
            if found:
                self.hold(member, found[member.request.id])
            self.told(member)

    def told(self, entry: Entry) -> None:
        """Say what has become of a guarantee."""
        start = None if entry.spot is None or entry.lane.barrier is entry else entry.spot.start
        if start != entry.guaranteed:
            self.revise(entry, start)

    def revise(self, entry: Entry, after: float | None) -> None:
        cause = entry.cause or (self.cause if entry.guaranteed is not None else "planned")
        self.revisions.append(Revision(entry.request.id, entry.guaranteed, after, cause))
        entry.guaranteed = after
        entry.cause, entry.blame = "", cause

    # -- compressing ---------------------------------------------------------------------------------

    def improve(self, entry: Entry, now: float, after: float) -> None:
        """Put a request back into the plan as early as it fits, if anything was freed for it."""
        freed = self.releases.count
        if entry.tested == freed:
            return
        spot = entry.spot
        assert spot is not None
        if spot.start <= now or entry.lane.barrier is entry:
            entry.tested = freed
            return
        if entry.circle is not None:
            self._improve_circle(entry.circle, spot, after)
            return
        found = self._sooner(entry, spot, after)
        entry.tested = freed
        if found is not None:
            self._move(entry, spot, found)

    def _sooner(self, entry: Entry, spot: Spot, after: float) -> Spot | None:
        """An earlier spot, if there is one."""
        gang, releases, timeline = entry.gang, self.releases, self.timeline
        if not entry.is_plain:
            return self._sooner_by_trying(entry, spot, after)
        sole = gang.sole
        if sole is not None:
            if len(entry.lane.reserved) > _ONE_BY_ONE and not releases.helps_sole(entry, spot.start):
                return None
            profile = timeline.rows[sole.ground.rows[0]].profile
            start = profile.earliest(sole.need, entry.limit, after, spot.start)
            return None if start == inf else Spot(start, 0, spot.places, spot.holds)
        rows = releases.rows_for(entry)
        if rows is None:
            return self._sooner_by_trying(entry, spot, after)
        if not rows:
            return None
        if timeline.is_quick(gang):
            return timeline.sooner(gang, spot, entry.limit, after, rows)
        if not timeline.may_help(gang, spot, entry.limit, after, rows):
            return None
        return self._sooner_by_trying(entry, spot, after)

    def _sooner_by_trying(self, entry: Entry, spot: Spot, after: float) -> Spot | None:
        """Take it out, look, and put it back."""
        window, gang = entry.window, entry.gang
        self.unhold(entry)
        found = self.find(entry, after, spot.start)
        moved = (entry.window, entry.gang)
        entry.window, entry.gang = window, gang
        self.hold(entry, spot)
        entry.window, entry.gang = moved if found is not None else (window, gang)
        return found

    def _improve_circle(self, circle: Circle, spot: Spot, after: float) -> None:
        """All of a circle sooner, or none."""
        before = {member: member.spot for member in circle.waiting() if member.spot is not None}
        for member in before:
            self.unhold(member)
            member.spot = None
        found = find_together(self, circle, after, spot.start)
        for member, old in before.items():
            self.hold(member, old if found is None else found[member.request.id])
            if found is not None:
                self.releases.add(old.rows, old.start, old.start + member.limit, member.gang.bounds)
                self.revise(member, found[member.request.id].start)
        for member in before:
            member.tested = self.releases.count

    def _move(self, entry: Entry, spot: Spot, found: Spot) -> None:
        end = entry.end
        self.unhold(entry)
        self.hold(entry, found)
        # Where it stays on the same rows, only the end of its time is freed.
        kept = {number for number, _ in found.holds}
        left = [number for number in spot.rows if number not in kept]
        if left:
            self.releases.add(left, spot.start, end, entry.gang.bounds)
        if len(left) < len(spot.holds):
            again = [number for number in spot.rows if number in kept]
            self.releases.add(again, max(spot.start, entry.end), end, entry.gang.bounds)
        entry.tested = self.releases.count
        self.revise(entry, found.start)

    # -- what cannot be kept -------------------------------------------------------------------------

    def displace(
        self, rows: Iterable[int], start: float, end: float, cause: str, now: float, bounds: Takes = ()
    ) -> None:
        """Take reservations back, the last first, until no more is promised than there is."""
        hit = set(rows)
        met = [
            (lane.barrier is entry, -place, entry)
            for place, lane in enumerate(self.lanes)
            for entry in lane.reserved.values()
            if (spot := entry.spot) and spot.start < end and (entry.end > start or spot.start <= start <= now)
            if bounds or any(number in hit for number, _ in spot.holds)
        ]
        for _, _, entry in sorted(met, reverse=True):
            if entry.spot is not None and (
                self._is_overbooked(entry, hit, start, end) or _is_over_bounds(entry, bounds, start, end)
            ):
                for member in entry.circle.waiting() if entry.circle is not None else (entry,):
                    if member.spot is not None:
                        member.lane.lost_rows |= hit
                        self.unreserve(member, cause)
                        self.news += 1

    def _is_overbooked(self, entry: Entry, hit: Collection[int], start: float, end: float) -> bool:
        """Whether more is taken where a reservation is than there is."""
        spot = entry.spot
        assert spot is not None
        least = -CLOSED if entry.window else 0
        rows = self.timeline.rows
        if entry.end <= start:
            # It is overdue: what it holds is past, and it wants it from now on.
            last = min(end, start + entry.limit)
            return any(n in hit and not rows[n].profile.fits(pairs, start, last) for n, pairs in spot.holds)
        first, last = max(start, spot.start), min(end, entry.end)
        return any(
            number in hit and rows[number].profile.low(pairs, first, last) < least
            for number, pairs in spot.holds
        )

    # -- time ----------------------------------------------------------------------------------------

    def due(self, now: float) -> Iterator[Entry]:
        """Those with a reservation whose time has come; each is named once."""
        dues = self.dues
        while dues and dues[0][0] <= now:
            _, _, entry, spot = heappop(dues)
            if entry.spot is spot and not entry.is_running:
                yield entry
        if len(dues) > _SLACK and len(dues) > 4 * sum(len(lane.reserved) for lane in self.lanes):
            self.dues = [due for due in dues if due[2].spot is due[3] and not due[2].is_running]
            heapify(self.dues)

    def next_due(self, now: float) -> float:
        """When the next reservation begins."""
        dues = self.dues
        while dues and (dues[0][2].spot is not dues[0][3] or dues[0][2].is_running):
            heappop(dues)
        if not dues or dues[0][0] > now:
            return dues[0][0] if dues else inf
        return min((due[0] for due in dues if due[0] > now and due[2].spot is due[3]), default=inf)


def _is_over_bounds(entry: Entry, takes: Takes, start: float, end: float) -> bool:
    """Whether more is taken of a limit that a reservation counts against than there is."""
    spot = entry.spot
    assert spot is not None
    strained = {bound for bound, _ in takes}
    return any(
        bound in strained and bound.is_exceeded(pairs, max(start, spot.start), min(end, entry.end))
        for bound, pairs in entry.takes
    )
