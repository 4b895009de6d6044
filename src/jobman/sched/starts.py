"""Starts: giving a request what it is to have, now, and counting on its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import inf

from jobman.sched.circles import Circle, place_at
from jobman.sched.gangs import Gang, Spot
from jobman.sched.lanes import Entry
from jobman.sched.requests import Start
from jobman.sched.schedule import Schedule

_OVERRUN = 30.0
"""Seconds by which the end of what should be over is put off, again and again."""
_PUNCTUAL = 1.0
"""Who starts less than so many seconds behind its time keeps the time that was planned."""
_HOPELESS = 1 << 40
"""Rows that are missing where no row could help."""


class Starts:
    """What starts, and what is told about it."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._timeline = schedule.timeline
        self._releases = schedule.releases
        self.starts: list[Start] = []
        self.ends: list[tuple[float, str, Entry]] = []
        """When what runs will be over; with some that is over already, or later."""

    # -- now -----------------------------------------------------------------------------------------

    def start_now(self, entry: Entry, now: float) -> bool:
        """Start a request if there is room and nobody who has a reservation is disturbed."""
        gang, limit = entry.gang, entry.limit
        freed = self._releases.count
        if limit >= gang.failed and (gang.seen == freed or self._is_hopeless(gang, now)):
            return False
        if not entry.is_plain:
            request = entry.request
            if not request.earliest <= now <= request.latest or request.reservation:
                return False
            if entry.circle is not None:
                return self._start_circle(entry, entry.circle, now)
        if gang.bounds:
            return self._start_bounded(entry, now)
        if gang.hot is not None:
            self._releases.warm(gang, now)
        spot = self._timeline.now(gang, limit, now)
        if spot is None:
            gang.fail(limit, freed, self._timeline.lack)
            return False
        self._start(entry, spot, now, now + limit, is_planned=False)
        return True

    def _is_hopeless(self, gang: Gang, now: float) -> bool:
        """Whether nothing was freed since a gang failed that could help it."""
        return gang.seen >= 0 and gang.sole is None and not self._releases.revives(gang, now)

    def _start_bounded(self, entry: Entry, now: float) -> bool:
        spot, lack = self._admitted(entry, now)
        if spot is None:
            entry.gang.fail(entry.limit, self._releases.count, lack)
            return False
        self._start(entry, spot, now, now + entry.limit, is_planned=False)
        return True

    def _admitted(self, entry: Entry, now: float) -> tuple[Spot | None, int]:
        """The first alternative with room that all limits admit; or how many rows are missing."""
        schedule, gang = self._schedule, entry.gang
        lack = _HOPELESS
        for choice in gang.choices:
            spot = self._timeline.now_as(gang, choice, entry.limit, now)
            if spot is None:
                lack = min(lack, self._timeline.lack)
                continue
            if not schedule.admits_now(entry, spot, now):
                gang.is_bound = True
                spot = schedule.frugal(gang, choice, entry, now, really=True)
            if spot is not None:
                return spot, 0
            if schedule.compiler.differing(gang, choice):
                lack = 1
        return None, lack

    def _start_circle(self, entry: Entry, circle: Circle, now: float) -> bool:
        """Start all who must run at the same time, if all can."""
        members = circle.waiting()
        if circle.missing or any(member.spot is not None for member in members):
            return False
        if not circle.is_led_by(entry, self._schedule.lanes):
            return False
        spots = place_at(self._schedule, members, now)
        if spots is None or not self._are_free(spots.values()):
            return False
        for member in members:
            self._start(member, spots[member.request.id], now, now + member.limit, is_planned=False)
        return True

    # -- as planned ----------------------------------------------------------------------------------

    def begin_if_due(self, entry: Entry, now: float) -> bool:
        """Start a request whose time has come, if all is really free: as planned, or elsewhere."""
        spot = entry.spot
        if spot is None or spot.start > now or entry.lane.barrier is entry:
            return False
        if entry.circle is not None:
            return self._begin_circle(entry.circle, now)
        if not self._is_free(spot) or not self._admits_now(entry):
            return self._begin_elsewhere(entry, spot, now)
        if now - spot.start < _PUNCTUAL:
            self._start(entry, spot, now, entry.end, is_planned=True)
            return True
        return self._begin_late(entry, spot, now)

    def _is_free(self, spot: Spot) -> bool:
        """Whether a spot is free now."""
        rows = self._timeline.rows
        for number, pairs in spot.holds:
            row = rows[number]
            if not row.is_open:
                return False
            free = row.free
            for kind, units in pairs:
                if free[kind] < units:
                    return False
        return True

    def _admits_now(self, entry: Entry) -> bool:
        """Whether those who should be over have left enough of all limits."""
        return all(bound.has_now(entry.job, pairs) for bound, pairs in entry.takes)

    def _are_free(self, spots: Iterable[Spot]) -> bool:
        """Whether spots are free now, all of them together."""
        taken: list[Spot] = []
        for spot in spots:
            if not self._is_free(spot):
                is_free = False
                break
            self._timeline.hold(spot.holds)
            taken.append(spot)
        else:
            is_free = True
        for spot in taken:
            self._timeline.hold(spot.holds, 1)
        return is_free

    def _begin_circle(self, circle: Circle, now: float) -> bool:
        members = circle.waiting()
        spots = [member.spot for member in members if member.spot is not None]
        if len(spots) < len(members) or not self._are_free(spots):
            return False
        if not all(self._admits_now(member) for member in members):
            return False
        if now - spots[0].start >= _PUNCTUAL:
            return self._begin_circle_late(members, spots, now)
        for member, spot in zip(members, spots, strict=True):
            self._start(member, spot, now, member.end, is_planned=True)
        return True

    def _begin_circle_late(self, members: Sequence[Entry], spots: Sequence[Spot], now: float) -> bool:
        """The same as for one; all of them start, or none."""
        schedule = self._schedule
        planned = [member.end for member in members]
        for member in members:
            schedule.unhold(member)
        found = place_at(schedule, members, now)
        if found is not None and self._are_free(found.values()):
            for member in members:
                self._start(member, found[member.request.id], now, now + member.limit, is_planned=False)
            return True
        late = list(zip(members, spots, planned, strict=True))
        words = (self._closed_by(member, spot, now, now + member.limit) for member, spot, _ in late)
        closed = next(filter(None, words), "")
        for member, spot, end in late:
            if closed:
                schedule.releases.add(spot.rows, spot.start, end, member.gang.bounds)
                schedule.lose(member, f"it was late for {closed}")
            else:
                self._start(member, spot, now, now + member.limit, is_planned=False)
        for member, spot, end in () if closed else late:
            self._displace(member, spot, end, now)
        return not closed

    def _begin_elsewhere(self, entry: Entry, spot: Spot, now: float) -> bool:
        """What it was to have is not free as it should be; perhaps something else is."""
        if entry.gang.sole is not None or entry.window:
            return False
        self._schedule.unhold(entry)
        if self._begin_anywhere(entry, now):
            return True
        self._schedule.hold(entry, spot)
        return False

    def _begin_anywhere(self, entry: Entry, now: float) -> bool:
        """Start one who holds nothing, on whatever rows."""
        gang = entry.gang
        hot, gang.hot = gang.hot, None
        if gang.bounds:
            found, _ = self._admitted(entry, now)
        else:
            found = self._timeline.now(gang, entry.limit, now)
        gang.hot = hot
        if found is None:
            return False
        self._start(entry, found, now, now + entry.limit, is_planned=False)
        return True

    def _begin_late(self, entry: Entry, spot: Spot, now: float) -> bool:
        """Its time is over later than planned: others may be in the way, who give way, or a window."""
        schedule = self._schedule
        planned, end = entry.end, now + entry.limit
        schedule.unhold(entry)
        if not entry.window and self._begin_anywhere(entry, now):
            return True
        closed = self._closed_by(entry, spot, now, end)
        if closed:
            schedule.releases.add(spot.rows, spot.start, planned, entry.gang.bounds)
            schedule.lose(entry, f"it was late for {closed}")
            return False
        self._start(entry, spot, now, end, is_planned=False)
        self._displace(entry, spot, planned, now)
        return True

    def _displace(self, entry: Entry, spot: Spot, planned: float, now: float) -> None:
        """Let those give way who are where one is longer than planned."""
        cause = f"{entry.request.id} ran longer than planned: it started late"
        self._schedule.displace(spot.rows, planned, entry.end, cause, now, entry.takes)

    def _closed_by(self, entry: Entry, spot: Spot, start: float, end: float) -> str:
        """The window that a spot runs into, in words."""
        windows, rows = self._schedule.windows, set(spot.rows)
        own = windows.get(entry.window)
        if own is not None and end > own.end:
            return f"the end of {own.words}"
        met = windows.meeting(rows, start, end, but=entry.window)
        return "" if met is None else met.words

    # -- beginning and end ---------------------------------------------------------------------------

    def _start(self, entry: Entry, spot: Spot, now: float, end: float, *, is_planned: bool) -> None:
        guaranteed = entry.guaranteed
        if guaranteed is not None and now - guaranteed >= _PUNCTUAL:
            entry.cause = entry.cause or f"the queue was looked at late, when {self._schedule.cause}"
            self._schedule.revise(entry, now)
        self.begin(entry, spot, now, end, is_planned=is_planned)
        lane = entry.lane
        if lane.reserved:
            lane.reserved.pop(entry.request.id, None)
        lane.begun.append(entry)
        placed = entry.gang.placed or self._schedule.compiler.placed(entry.gang, spot)
        self.starts.append(Start(entry.request.id, placed, end))

    def begin(self, entry: Entry, spot: Spot, now: float, end: float, *, is_planned: bool = False) -> None:
        """Let an entry hold a spot from now on."""
        entry.spot = spot
        if is_planned:
            self._timeline.hold(spot.holds)
        else:
            self._timeline.begin(spot.holds, now, end)
            if entry.gang.bounds:
                entry.takes = self._schedule.compiler.takes(entry.gang, spot)
                for bound, pairs in entry.takes:
                    bound.take(entry.job, pairs, now, end)
        for bound, pairs in entry.takes:
            bound.start(entry.job, pairs)
        entry.is_running = True
        entry.end = end
        if end < inf:
            heappush(self.ends, (end, entry.request.id, entry))

    def will_end(self, entry: Entry) -> None:
        """Count on the end of what runs."""
        heappush(self.ends, (entry.end, entry.request.id, entry))

    def next_end(self) -> float:
        """When the next of what runs will be over."""
        ends = self.ends
        while ends and (not ends[0][2].is_running or ends[0][2].end != ends[0][0]):
            heappop(ends)
        return ends[0][0] if ends else inf

    def finish(self, entry: Entry, now: float) -> None:
        """What ran gives everything back."""
        spot, end = entry.spot, entry.end
        assert spot is not None
        self._timeline.end(spot.holds, now, end)
        for bound, pairs in entry.takes:
            bound.stop(entry.job, pairs)
            bound.give(entry.job, pairs, now, end)
            bound.forget(now, entry.job)
        entry.is_running, entry.spot = False, None
        sole = entry.gang.sole
        self._releases.add(spot.rows if sole is None else sole.ground.rows, now, end, entry.gang.bounds)

    def put_off(self, now: float) -> None:
        """What should be over by now and is not: count on a little later."""
        while self.ends and self.ends[0][0] < now:
            end, request_id, entry = heappop(self.ends)
            spot = entry.spot
            if spot is None or not entry.is_running or entry.end != end:
                continue
            entry.end = later = now + _OVERRUN
            self._timeline.plan(spot.holds, end, later)
            for bound, pairs in entry.takes:
                bound.take(entry.job, pairs, end, later)
            heappush(self.ends, (later, request_id, entry))
            cause = f"{request_id} ran longer than it may"
            self._schedule.displace(spot.rows, now, later, cause, now, entry.takes)
