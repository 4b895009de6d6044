"""Turns: who is served in which order, by the policy of each queue."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import inf

from jobman.sched.gangs import Gang
from jobman.sched.lanes import Alike, Entry, Key, Lane
from jobman.sched.schedule import Schedule
from jobman.sched.starts import Starts

_AHEAD = "ahead of it in the queue"
Groups = list[tuple[Key, int, Alike, int]]
"""Groups of requests by the key of whose turn it is in each: a heap."""


class Turns:
    """Serves one lane after the other."""

    def __init__(self, schedule: Schedule, starts: Starts) -> None:
        self._schedule = schedule
        self._starts = starts
        self._releases = schedule.releases
        self._timeline = schedule.timeline

    def serve(self, lane: Lane, now: float) -> None:
        """Let those in a lane start, or have reservations, if anything has happened that matters to them."""
        # What a pass frees by moving reservations is looked at when the next thing ends, not before:
        # otherwise who comes and goes meanwhile would decide about the order.
        is_new = lane.is_stale or lane.seen != self._schedule.news
        if not (is_new or lane.fresh or lane.lost or lane.due):
            return
        if lane.barrier is not None:
            is_new = self._lifts(lane, lane.barrier, is_new=is_new)
        if lane.is_special or lane.lost or lane.due:
            self._serve(lane, now, is_new=is_new)
        elif is_new:
            self._by_priority(lane, now)
        else:
            self._newcomers(lane, now)
        if lane.lost:
            self._serve(lane, now, is_new=False)  # those who were too late for a window
        lane.is_stale = False
        if lane.fresh:
            lane.fresh = {}
        lane.seen = self._schedule.news

    def _serve(self, lane: Lane, now: float, *, is_new: bool) -> None:
        if lane.reservation:
            self._in_windows(lane, now)
            return
        if lane.strict:
            self._in_order(lane, now)
            return
        if lane.lost:
            self._plan_again(lane, now, is_new=is_new)
        if lane.due:
            self._begin_due(lane, now)
        if is_new:
            self._by_priority(lane, now)
        elif lane.fresh:
            self._newcomers(lane, now)

    def _lifts(self, lane: Lane, barrier: Entry, *, is_new: bool) -> bool:
        """Whether everybody is looked at without a barrier: there may be another one who is the first."""
        if (
            is_new
            or lane.strict
            or lane.lost
            or any(entry.key < barrier.key for entry in lane.fresh.values())
        ):
            self._schedule.lift(lane)
            return True
        return False

    def _plan_again(self, lane: Lane, now: float, *, is_new: bool) -> None:
        """Those who lost their reservation come first, in order; who is ahead of them is compressed first."""
        lost, lane.lost = lane.lost, []
        rows, lane.lost_rows = lane.lost_rows, set()
        if is_new:
            for entry in sorted(entry for entry in lane.reserved.values() if entry < min(lost)):
                if entry.spot is not None:
                    self._schedule.improve(entry, now, now)
        heapify(lost)
        while lost:
            entry = heappop(lost)
            if entry.spot is None and not entry.is_running and not self._starts.start_now(entry, now):
                cause = entry.cause
                for other in self._replan(entry, rows, now):
                    other.cause = cause
                    heappush(lost, other)
                self._starts.begin_if_due(entry, now)

    def _replan(self, entry: Entry, rows: set[int], now: float) -> list[Entry]:
        """Plan one who lost its reservation; returns those behind it who had to give way on the same rows."""
        schedule, promised = self._schedule, entry.guaranteed
        if entry.circle is not None or promised is None:
            schedule.reserve(entry, now)
            return []
        best = schedule.find(entry, now)
        behind = [other for other in entry.lane.reserved.values() if _gives_way(other, entry, rows)]
        spots = [(other, spot) for other in sorted(behind) if (spot := other.spot) is not None]
        if spots and (best is None or best.start > promised):
            for other, _ in spots:
                schedule.unhold(other)
            found = schedule.find(entry, max(now, promised), inf if best is None else best.start)
            entry.tested = -1
            if found is not None and found.start > now + schedule.firm:
                found = None
            if found is not None:
                schedule.hold(entry, found)
                schedule.told(entry)
            gone = []
            for other, spot in spots:
                if schedule.has_room(other, spot):
                    schedule.hold(other, spot)
                else:
                    other.spot = None
                    gone.append(other)
            if found is not None:
                return gone
        schedule.reserve(entry, now)
        return []

    def _begin_due(self, lane: Lane, now: float) -> None:
        """Start those whose time has come; who cannot start yet stays due."""
        due, lane.due = sorted(lane.due.values()), {}
        for entry in due:
            if entry.spot is None or entry.is_running or entry.spot.start > now:
                continue
            if not self._starts.begin_if_due(entry, now) and entry.spot is not None:
                lane.due[entry.request.id] = entry

    # -- by priority ---------------------------------------------------------------------------------

    def _newcomers(self, lane: Lane, now: float) -> None:
        """Nothing was freed: only those who came can do anything."""
        fresh = lane.fresh
        if lane.depth == 0 or len(lane.waiting) == len(fresh) or (lane.by_limit and len(fresh) > 1):
            self._by_priority(lane, now)
            return
        for entry in sorted(fresh.values()) if len(fresh) > 1 else fresh.values():
            if entry.spot is None and not self._starts.start_now(entry, now) and lane.is_ahead(entry):
                self._schedule.reserve(entry, now)
                self._starts.begin_if_due(entry, now)

    def _by_priority(self, lane: Lane, now: float) -> None:
        """In order; the first who cannot start get reservations, others may pass and disturb nobody."""
        depth = lane.depth
        if depth == 0:
            self._first_come(lane, now)
            return
        schedule, starts = self._schedule, self._starts
        blocked = place = 0
        for entry in lane.waiting:
            if blocked >= depth:
                break
            place += 1
            if entry.spot is not None:
                if entry.is_running:
                    continue
                schedule.improve(entry, now, now)
                if starts.begin_if_due(entry, now):
                    continue
            elif starts.start_now(entry, now) or not self._is_planned(entry, now):
                continue
            blocked += 1
        if place < len(lane.waiting):
            self._let_pass(self._others(lane, place, now), now)

    def _is_planned(self, entry: Entry, now: float) -> bool:
        """Whether one who cannot start at once has a reservation for later, now that it was looked for."""
        self._schedule.reserve(entry, now)
        return entry.spot is not None and not self._starts.begin_if_due(entry, now)

    def _first_come(self, lane: Lane, now: float) -> None:
        """In order, without a plan; who can never start, or not for reasons of its own, is passed."""
        for entry in lane.waiting:
            if entry.is_running or self._starts.start_now(entry, now):
                continue
            request = entry.request
            is_ready = request.earliest <= now <= request.latest and entry.circle is None
            if is_ready and not entry.gang.is_bound and self._schedule.compiler.could_ever(entry.gang):
                return

    def _others(self, lane: Lane, place: int, now: float) -> Iterable[Entry]:
        """Those who may pass the first, in the order in which they are asked."""
        if lane.by_limit is not None:
            return [item[2] for item in lane.by_limit]
        alike = lane.alike()
        if alike is None:
            return lane.waiting[place:]
        return self._hopeful(lane, alike, lane.waiting[place].key, now)

    def _let_pass(self, others: Iterable[Entry], now: float) -> None:
        """Start those who disturb nobody. Most cannot, so that this answer comes first."""
        rows, releases, starts = self._timeline.rows, self._releases, self._starts
        free = rows[0].free if len(rows) == 1 and rows[0].free else None
        for entry in others:
            if entry.spot is None:
                gang = entry.gang
                if free is not None and free[gang.kind] < gang.least:
                    continue
                if gang.seen == releases.count and entry.limit >= gang.failed:
                    continue
                starts.start_now(entry, now)
            elif not entry.is_running:
                self._schedule.improve(entry, now, now)
                starts.begin_if_due(entry, now)

    def _hopeful(self, lane: Lane, alike: dict[Gang, Alike], first: Key, now: float) -> Iterator[Entry]:
        """In order, but without looking at those of whom the one with the shortest limit finds no room."""
        releases = self._releases
        groups, freed = self._groups(alike, first, now), releases.count
        for promised in sorted(entry for entry in lane.reserved.values() if entry.key >= first):
            yield from _merged(groups, promised.key)
            yield promised
            if releases.count != freed:  # it has moved, and others may have its place
                groups, freed = self._groups(alike, promised.key, now), releases.count
        yield from _merged(groups, (inf, 0))

    def _groups(self, alike: dict[Gang, Alike], first: Key, now: float) -> Groups:
        """Those from one on who ask for the same, if any of them may start."""
        found: Groups = []
        for number, (gang, group) in enumerate(alike.items()):
            if self._could_start(gang, group, now):
                place = bisect_left(group.entries, first, key=_key)
                if place < len(group.entries):
                    found.append((group.entries[place].key, number, group, place))
        heapify(found)
        return found

    def _could_start(self, gang: Gang, group: Alike, now: float) -> bool:
        """Whether the one of a group with the shortest limit finds room."""
        releases, shortest = self._releases, group.shortest_limit()
        if (
            shortest >= gang.failed
            and gang.seen >= 0
            and (gang.seen == releases.count or not releases.revives(gang, now))
        ):
            return False
        if gang.hot is not None:
            releases.warm(gang, now)
        if self._timeline.now(gang, shortest, now) is not None:
            return True
        gang.fail(shortest, releases.count, self._timeline.lack)
        return False

    # -- in order ------------------------------------------------------------------------------------

    def _in_order(self, lane: Lane, now: float) -> None:
        """Strict order: nobody is planned before the one ahead, and nobody passes."""
        lane.lose_nothing()
        after, ahead = now, lane.waiting[0]
        may_start = True
        for entry in lane.waiting:
            if entry.is_running or self._follows_others(entry):
                continue
            if after == inf:
                self._leave_open(entry, ahead)
                continue
            self._follow(entry, now, after, ahead)
            spot = entry.spot
            if spot is None:
                if entry.circle is None and self._schedule.compiler.could_ever(entry.gang):
                    after, ahead = inf, entry
                continue
            if not may_start or not self._starts.begin_if_due(entry, now):
                may_start = False
                after, ahead = max(after, spot.start), entry
                if lane.barrier is entry:
                    after = inf
                if spot.start <= now:
                    lane.due[entry.request.id] = entry

    def _follows_others(self, entry: Entry) -> bool:
        """Whether its turn is that of another with whom it must run at the same time."""
        return entry.circle is not None and not entry.circle.is_led_by(entry, self._schedule.lanes)

    def _take_back(self, entry: Entry, cause: str) -> Sequence[Entry]:
        """Take back a reservation, with those of all who must run at the same time; returns all of these."""
        members = [entry] if entry.circle is None else entry.circle.waiting()
        for member in members:
            if member.spot is not None:
                self._schedule.unreserve(member)
            if member.guaranteed is not None:
                member.cause = cause
        return members

    def _follow(self, entry: Entry, now: float, after: float, ahead: Entry) -> None:
        """Plan one no earlier than the one ahead of it."""
        schedule = self._schedule
        if entry.spot is not None and entry.spot.start < after and after > now:
            self._take_back(entry, f"{ahead.request.id}, {_AHEAD}, starts later: {_root(ahead.blame)}")
        if entry.spot is None:
            schedule.reserve(entry, now, after)
        elif entry.spot.start > after:
            if after < entry.after:
                entry.tested = -1
            schedule.improve(entry, now, after)
        entry.after = after

    def _leave_open(self, entry: Entry, ahead: Entry) -> None:
        """Nobody knows when the one ahead starts, so nobody behind it can be promised anything."""
        who = ahead.request.id
        for member in self._take_back(
            entry, f"nobody knows when {who}, {_AHEAD}, starts: {_root(ahead.blame)}"
        ):
            if member.guaranteed is not None:
                self._schedule.revise(member, None)

    # -- in advance reservations ---------------------------------------------------------------------

    def _in_windows(self, lane: Lane, now: float) -> None:
        """In order, in the windows they asked for; nobody waits for those of other windows."""
        lane.lose_nothing()
        for entry in lane.waiting:
            if entry.is_running:
                continue
            if entry.spot is None:
                self._schedule.reserve(entry, now)
            else:
                self._schedule.improve(entry, now, now)
            if (
                not self._starts.begin_if_due(entry, now)
                and entry.spot is not None
                and entry.spot.start <= now
            ):
                lane.due[entry.request.id] = entry


def _merged(groups: Groups, last: Key) -> Iterator[Entry]:
    """Those of all groups who come before another, in order; who cannot start like one before is left out."""
    while groups and groups[0][0] < last:
        _, number, group, place = heappop(groups)
        entries = group.entries
        entry, gang = entries[place], entries[place].gang
        if entry.spot is None:
            yield entry
        if gang.seen >= 0 and group.shortest_limit() >= gang.failed:
            continue
        place += 1
        while place < len(entries) and gang.seen >= 0 and entries[place].limit >= gang.failed:
            place += 1
        if place < len(entries):
            heappush(groups, (entries[place].key, number, group, place))


def _key(entry: Entry) -> Key:
    return entry.key


def _gives_way(other: Entry, entry: Entry, rows: set[int]) -> bool:
    """Whether one is behind another who lost its reservation, and on the rows where that was."""
    spot = other.spot
    if spot is None or other.circle is not None or other.lane.barrier is other:
        return False
    return entry < other and not rows.isdisjoint(spot.rows)


def _root(blame: str) -> str:
    """A cause without those who only passed it on."""
    return blame.rpartition(": ")[2] if _AHEAD in blame else blame
