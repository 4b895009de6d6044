"""The planner: who starts now, and when everybody else will.

```
 submit, ended, node lost, window ──▶ planner ──plan(now)──▶ starts, revisions of guarantees
                                        │
            lanes: who waits, in order  │  timeline: what is free when
```

A reservation that was made stays until its request starts; when something ends early the plan is compressed in
place: each request in turn is taken out and put back as early as it fits, which never delays anybody. All that is
freed goes into a log, and a request is tried again only if something was freed that could help it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import inf

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import mismatch, piece_of
from jobman.sched.blocks import Block
from jobman.sched.capacity import sum_units, to_units
from jobman.sched.gangs import Choice, Gang, Piece, Spot
from jobman.sched.lanes import Alike, Entry, Key, Lane
from jobman.sched.profile import Pairs, Profile
from jobman.sched.queues import EVERYTHING, Queue, QueueState
from jobman.sched.requests import Extension, Placed, Promise, Request, Revision, Start
from jobman.sched.timeline import FEW, Timeline
from jobman.spec.shapes import Alternative, Part

_OVERRUN = 30.0
"""Seconds by which the end of what should be over is put off, again and again."""
_MOST_LOGGED = 4096
_LOOKED_AT = 32
"""Of more rows than so many it is taken for granted that something has become possible."""
_SUSPECT = 300.0
"""Seconds for which a suspect node is not counted on."""
UNAVAILABLE = ("down", "draining", "suspect")

Priority = Callable[[Request, float], float]
BoundsOf = Callable[[Request], Iterable[tuple[Hashable, dict[str, float]]]]


class Pass(msgspec.Struct):
    """What one pass decided."""

    starts: list[Start]
    revisions: list[Revision]


class Planner:
    """All queues on all nodes. No clock and no chance: the same calls give the same decisions."""

    def __init__(
        self,
        nodes: Sequence[ClusterNode],
        queues: Sequence[Queue] = (EVERYTHING,),
        *,
        priority: Priority | None = None,
        bounds: BoundsOf | None = None,
    ) -> None:
        kinds = dict.fromkeys(kind for node in nodes for kind in node.amounts)
        self.timeline = Timeline(nodes, list(kinds))
        self.lanes = [Lane(queue) for queue in sorted(queues, key=lambda queue: -queue.factor)]
        self._by_name = {lane.queue.name: lane for lane in self.lanes}
        self._default = self._by_name.get(EVERYTHING.name, self.lanes[-1])
        self._priority = priority
        self._bounds_of = bounds
        self._bounds: dict[Hashable, tuple[list[str], Profile]] = {}
        self._grounds = self._share_out(queues)
        self._gangs: dict[tuple[bytes, str, str], Gang] = {}
        self._same: dict[tuple[object, ...], tuple[Gang, Request]] = {}
        self._entries: dict[str, Entry] = {}
        self._log: list[tuple[Timeline, Sequence[int], float, Sequence[int]]] = []
        """What was freed: on which rows, from when on, and the most that was free there of each kind."""
        self._base = 0
        self._news = 0
        """How often something was freed from outside."""
        self._ends: list[tuple[float, str]] = []
        self._away: dict[str, tuple[str, float, float]] = {}
        """Nodes that cannot be used: their state, from when and until when."""
        self._blocks: dict[str, tuple[Block, tuple[int, ...]]] = {}
        self._annexes: dict[str, Timeline] = {}
        self._cause: tuple[str, str] = ("", "")
        self._starts: list[Start] = []
        self._started: list[Entry] = []
        self._revisions: list[Revision] = []
        self._dues: list[float] = []

    def _share_out(self, queues: Sequence[Queue]) -> dict[str, tuple[int, ...]]:
        """The rows of each queue: its own, or those that no queue names."""
        numbers = self.timeline.numbers
        named = {name for queue in queues for name in queue.nodes}
        rest = tuple(number for name, number in numbers.items() if name not in named)
        return {
            queue.name: tuple(numbers[name] for name in queue.nodes if name in numbers)
            if queue.nodes
            else rest
            for queue in queues
        }

    # -- what happens --------------------------------------------------------------------------------

    def submit(self, request: Request, now: float) -> None:
        """Let a request wait; the next pass decides about it."""
        entry = self._entry(request, now)
        self._entries[request.id] = entry
        entry.lane.join(entry)

    def withdraw(self, request_id: str, now: float) -> None:
        """Somebody who waits wants nothing any more."""
        entry = self._entries.pop(request_id)
        entry.lane.leave(entry)
        if entry.spot is not None:
            self._news += 1
            self._cause = (request_id, "left the queue")
            self._unreserve(entry)

    def ended(self, request_id: str, now: float) -> None:
        """What ran gives everything back."""
        entry = self._entries.pop(request_id)
        spot, end, timeline = entry.spot, entry.end, entry.timeline
        assert spot is not None
        timeline.hold(spot.holds, 1)
        if end > now:
            timeline.unplan(spot.holds, now, end)
            for profile, pairs in entry.bounds:
                profile.give(now, end, pairs)
        self._freed(timeline, [number for number, _ in spot.holds], now, end)
        self._news += 1
        self._cause = (request_id, "ended")

    def restore(self, request: Request, placed: Placed, start: float, now: float) -> None:
        """Something that runs already, as it was before a restart."""
        entry = self._entry(request, now)
        spot = self._spot_of(entry, placed, start)
        entry.spot = spot
        self._entries[request.id] = entry
        self._begin(entry, spot, start, max(start + entry.limit, now), is_planned=False)

    def keep(self, request: Request, placed: Placed, guaranteed_by: float, now: float) -> None:
        """Something that waits with a guarantee, as it was before a restart."""
        self.submit(request, now)
        entry = self._entries[request.id]
        spot = self._spot_of(entry, placed, guaranteed_by)
        entry.guaranteed = guaranteed_by
        if all(
            entry.timeline.rows[number].profile.fits(pairs, spot.start, spot.start + entry.limit)
            for number, pairs in spot.holds
        ):
            self._hold_for(entry, spot)

    # -- deciding ------------------------------------------------------------------------------------

    def plan(self, now: float) -> Pass:
        """One pass: start what can start, plan what is to be planned."""
        self.timeline.forget(now)
        for _, profile in self._bounds.values():
            profile.forget(now)
        if self._ends and self._ends[0][0] < now:
            self._put_off(now)
        if self._dues and self._dues[0] <= now:
            self._pass_dues(now)
        for lane in self.lanes:
            if lane.waiting and lane.queue.state is not QueueState.CLOSED:
                self._serve(lane, now)
        if len(self._log) > _MOST_LOGGED:
            self._forget_log()
        done = Pass(self._starts, self._revisions)
        self._starts, self._revisions = [], []
        return done

    def _serve(self, lane: Lane, now: float) -> None:
        # What a pass frees by moving reservations is looked at when the next thing ends, not before: otherwise
        # who comes and goes meanwhile would decide about the order.
        if lane.is_stale or self._news != lane.seen:
            (self._in_order if lane.strict else self._by_priority)(lane, now)
        elif lane.fresh:
            (self._in_order if lane.strict else self._newcomers)(lane, now)
        else:
            return
        lane.is_stale = False
        lane.fresh = []
        lane.seen = self._news
        if self._started:
            lane.started(self._started)
            self._started = []

    def _newcomers(self, lane: Lane, now: float) -> None:
        """Nothing was freed: only those who came can do anything."""
        depth = lane.depth
        if depth == 0 or len(lane.waiting) == len(lane.fresh):
            self._by_priority(lane, now)
            return
        if depth != inf and any(entry.spot is None for entry in lane.waiting[: int(depth)]):
            self._by_priority(lane, now)
            return
        for entry in sorted(lane.fresh) if len(lane.fresh) > 1 else lane.fresh:
            if not self._start_now(entry, now) and lane.is_ahead(entry):
                self._reserve(entry, now)
                if entry.request.reservation:
                    self._begin_if_due(entry, now)

    def _by_priority(self, lane: Lane, now: float) -> None:
        """In order; the first who cannot start get a reservation, others may pass where they disturb nobody."""
        depth = lane.depth
        blocked = place = 0
        for entry in lane.waiting:
            if blocked >= depth and depth:
                break
            place += 1
            if entry.spot is not None:
                self._improve(entry, now, now)
                if self._begin_if_due(entry, now):
                    continue
            elif self._start_now(entry, now):
                continue
            elif depth:
                self._reserve(entry, now)
                if entry.request.reservation and self._begin_if_due(entry, now):
                    continue
            blocked += 1
            if not depth:
                return
        if place < len(lane.waiting):
            self._let_pass(self._others(lane, place, now), now)

    def _others(self, lane: Lane, place: int, now: float) -> Iterable[Entry]:
        """Those who may pass the first, in the order in which they are asked."""
        if lane.by_limit is not None:
            return [item[2] for item in lane.by_limit]
        alike = lane.alike()
        if alike is None:
            return lane.waiting[place:]
        return self._hopeful(lane, alike, lane.waiting[place].key, now)

    def _hopeful(self, lane: Lane, alike: dict[Gang, Alike], first: Key, now: float) -> Iterator[Entry]:
        """In order, but without looking at those of whom the one with the shortest limit finds no room."""
        yield from sorted(entry for entry in lane.reserved.values() if entry.key >= first)
        heap: list[tuple[Key, int, Alike, int]] = []
        for number, (gang, group) in enumerate(alike.items()):
            if group.entries and self._could_start(gang, group, now):
                heap.append((group.entries[0].key, number, group, 0))
        heapify(heap)
        while heap:
            key, number, group, place = heappop(heap)
            entries = group.entries
            entry = entries[place]
            if entry.spot is None and key >= first:
                yield entry
            shortest = entry.gang.failed
            place += 1
            while place < len(entries) and entries[place].limit >= shortest:
                place += 1
            if place < len(entries):
                heappush(heap, (entries[place].key, number, group, place))

    def _could_start(self, gang: Gang, group: Alike, now: float) -> bool:
        shortest = group.shortest_limit()
        entry = group.entries[0]
        if shortest >= gang.failed and not self._revived(entry, gang):
            return False
        if entry.timeline.now(gang, shortest, now) is not None:
            return True
        gang.failed, gang.seen = min(gang.failed, shortest), self._base + len(self._log)
        return False

    def _let_pass(self, others: Iterable[Entry], now: float) -> None:
        """Start those who disturb nobody. Most cannot, so that this answer comes first."""
        rows = self.timeline.rows
        free = rows[0].free if len(rows) == 1 else None
        for entry in others:
            gang = entry.gang
            if entry.spot is None:
                if free is not None and free[gang.kind] < gang.least:
                    continue
                if entry.limit >= gang.failed and gang.seen == self._base + len(self._log):
                    continue
                if not self._start_now(entry, now) and entry.guaranteed is not None:
                    self._reserve(entry, now)
            elif not entry.is_running:
                self._improve(entry, now, now)
                self._begin_if_due(entry, now)

    def _in_order(self, lane: Lane, now: float) -> None:
        """Strict order: nobody is planned before the one ahead, and nobody passes."""
        after = now
        may_start = True
        for entry in lane.waiting:
            if entry.spot is None:
                self._reserve(entry, now, after)
            elif entry.spot.start > after:
                self._improve(entry, now, after)
            spot = entry.spot
            if spot is None:
                if self._could_ever(entry):
                    return  # nobody knows when it starts, so nobody behind it can be promised anything
                continue
            if not may_start or not self._begin_if_due(entry, now):
                may_start = False
                after = max(after, spot.start)

    def _could_ever(self, entry: Entry) -> bool:
        return any(all(piece.rows for piece in choice.pieces) for choice in entry.gang.choices)

    # -- one request ---------------------------------------------------------------------------------

    def _start_now(self, entry: Entry, now: float) -> bool:
        gang = entry.gang
        freed = self._base + len(self._log)
        if entry.limit >= gang.failed and (gang.seen == freed or not self._revived(entry, gang)):
            return False
        request = entry.request
        if request.earliest > now or request.reservation:
            return False
        spot = entry.timeline.now(gang, entry.limit, now)
        if spot is None:
            gang.failed = entry.limit if entry.limit < gang.failed else gang.failed
            gang.seen = freed
            return False
        for profile, pairs in entry.bounds:
            if not profile.fits(pairs, now, now + entry.limit):
                return False
        entry.spot = spot
        return self._start(entry, spot, now, is_planned=False)

    def _revived(self, entry: Entry, gang: Gang) -> bool:
        """Whether something was freed, since it failed, where a piece of it finds room now."""
        since = gang.seen - self._base
        gang.seen = self._base + len(self._log)
        if since < 0:
            gang.failed = inf
            return True
        log = self._log
        sole = gang.sole
        if sole is not None:
            free = entry.timeline.rows[sole.rows[0]].free
            for kind, least in sole.need:
                if free[kind] < least:
                    return False
            gang.failed = inf
            return True
        timeline = entry.timeline
        pieces = gang.useful()
        for where, numbers, _, _ in log[since:]:
            if where is timeline and (
                len(numbers) > _LOOKED_AT
                or any(_helps(piece, timeline, number) for piece in pieces for number in numbers)
            ):
                gang.failed = inf
                return True
        return False

    def _reserve(self, entry: Entry, now: float, after: float | None = None) -> None:
        """Plan a request as early as it fits."""
        spot = self._find(entry, max(now if after is None else after, entry.request.earliest))
        entry.tested = self._base + len(self._log)
        before = entry.guaranteed
        if spot is None:
            if before is not None:
                self._revise(entry, None)
            return
        self._hold_for(entry, spot)
        if before is None or spot.start != before:
            self._revise(entry, spot.start)

    def _hold_for(self, entry: Entry, spot: Spot) -> None:
        entry.spot = spot
        entry.lane.reserved[entry.request.id] = entry
        entry.end = end = spot.start + entry.limit
        entry.timeline.plan(spot.holds, spot.start, end)
        for profile, pairs in entry.bounds:
            profile.take(spot.start, end, pairs)

    def _unhold(self, entry: Entry) -> None:
        spot = entry.spot
        assert spot is not None
        entry.lane.reserved.pop(entry.request.id, None)
        entry.timeline.unplan(spot.holds, spot.start, entry.end)
        for profile, pairs in entry.bounds:
            profile.give(spot.start, entry.end, pairs)

    def _unreserve(self, entry: Entry) -> None:
        """Take a reservation back; others may have its room."""
        self._unhold(entry)
        spot = entry.spot
        assert spot is not None
        self._freed(entry.timeline, [number for number, _ in spot.holds], spot.start, entry.end)
        entry.spot = None

    def _find(self, entry: Entry, after: float) -> Spot | None:
        """The earliest spot, within all limits."""
        if entry.request.reservation:
            return self._find_in_annexes(entry, after)
        return self._find_in(entry, entry.timeline, entry.gang, after)

    def _find_in(self, entry: Entry, timeline: Timeline, gang: Gang, after: float) -> Spot | None:
        while True:
            spot = timeline.earliest(gang, entry.limit, after)
            if spot is None or not entry.bounds:
                return spot
            start = spot.start
            for profile, pairs in entry.bounds:
                start = max(start, profile.earliest(pairs, entry.limit, start))
            if start == spot.start:
                return spot
            if start == inf:
                return None
            after = start

    def _find_in_annexes(self, entry: Entry, after: float) -> Spot | None:
        """The first window of an advance reservation with room."""
        for name, block in self._windows(entry.request.reservation):
            timeline = self._annexes[name]
            gang = self._gang(entry.request, entry.lane, timeline, name)
            spot = self._find_in(entry, timeline, gang, max(after, block.start))
            if spot is not None:
                entry.timeline, entry.gang = timeline, gang
                return spot
        return None

    def _windows(self, reservation: str) -> list[tuple[str, Block]]:
        found = [
            (name, block)
            for name, (block, _) in self._blocks.items()
            if name in self._annexes and name.partition("/")[0] == reservation
        ]
        return sorted(found, key=lambda item: (item[1].start, item[0]))

    def _improve(self, entry: Entry, now: float, after: float) -> None:
        """Take a request out of the plan and put it back as early as it fits, if anything was freed for it."""
        freed = self._base + len(self._log)
        if entry.tested == freed:
            return
        helps = self._freed_before(entry)
        entry.tested = freed
        spot = entry.spot
        assert spot is not None
        if not helps or spot.start <= now:
            return
        sole = entry.gang.sole
        if sole is not None and not entry.bounds:
            profile = entry.timeline.rows[sole.rows[0]].profile
            if (
                profile.earliest(sole.need, entry.limit, max(after, entry.request.earliest), spot.start)
                == inf
            ):
                return
        end = entry.end
        self._unhold(entry)
        found = self._find(entry, max(after, entry.request.earliest))
        if found is None or found.start >= spot.start:
            self._hold_for(entry, spot)
            return
        self._hold_for(entry, found)
        self._freed(entry.timeline, [number for number, _ in spot.holds], spot.start, end)
        entry.tested = self._base + len(self._log)
        self._revise(entry, found.start)

    def _freed(self, timeline: Timeline, numbers: Sequence[int], start: float, end: float) -> None:
        peak: Sequence[int] = ()
        if end > start and numbers:
            peak = timeline.rows[numbers[0]].profile.peak(start, end)
            for number in numbers[1:]:
                peak = list(map(max, peak, timeline.rows[number].profile.peak(start, end)))
        self._log.append((timeline, numbers, start, peak))

    def _freed_before(self, entry: Entry) -> bool:
        """Whether something that it could use was freed before its start, since it was last tried."""
        since = entry.tested - self._base
        spot = entry.spot
        assert spot is not None
        start = spot.start
        timeline, gang = entry.timeline, entry.gang
        log = self._log
        if since < 0 or entry.bounds:
            return True
        if gang.sole is not None:
            kind, least = gang.kind, gang.least
            for place in range(since, len(log)):
                _, _, begin, peak = log[place]
                if begin < start and peak and peak[kind] >= least:
                    return True
            return False
        pieces = gang.useful()
        for where, numbers, begin, peak in log[since:]:
            if where is timeline and begin < start and peak:
                for piece in pieces:
                    if all(peak[kind] >= least for kind, least in piece.pairs) and any(
                        self._has_window(piece, timeline, number, entry.limit, begin, start)
                        for number in numbers[:_LOOKED_AT]
                    ):
                        return True
                if len(numbers) > _LOOKED_AT:
                    return True
        return False

    def _has_window(
        self, piece: Piece, timeline: Timeline, number: int, limit: float, begin: float, before: float
    ) -> bool:
        """Whether a piece finds room on a row earlier than before."""
        if number not in piece.grounds:
            return False
        row = timeline.rows[number]
        need = row.whole if piece.whole else piece.pairs
        return row.profile.earliest(need, limit, begin, before) < before

    # -- starting ------------------------------------------------------------------------------------

    def _begin_if_due(self, entry: Entry, now: float) -> bool:
        """Start a request whose time has come, if all is really free: as planned, or elsewhere."""
        spot = entry.spot
        if spot is None or spot.start > now:
            return False
        rows = entry.timeline.rows
        for number, pairs in spot.holds:
            row = rows[number]
            free = row.free
            if not row.is_open or any(free[kind] < units for kind, units in pairs):
                return self._begin_elsewhere(entry, now)
        is_planned = spot.start == now
        if not is_planned:
            self._unhold(entry)
        return self._start(entry, spot, now, is_planned=is_planned)

    def _begin_elsewhere(self, entry: Entry, now: float) -> bool:
        """What it was to have is not free as it should be; perhaps something else is."""
        if entry.gang.sole is not None:
            return False
        spot = entry.spot
        assert spot is not None
        self._unhold(entry)
        found = entry.timeline.now(entry.gang, entry.limit, now)
        if found is None:
            self._hold_for(entry, spot)
            return False
        entry.spot = found
        return self._start(entry, found, now, is_planned=False)

    def _start(self, entry: Entry, spot: Spot, now: float, *, is_planned: bool) -> bool:
        self._begin(entry, spot, now, now + entry.limit, is_planned=is_planned)
        if is_planned:
            entry.lane.reserved.pop(entry.request.id, None)
        self._started.append(entry)
        self._starts.append(Start(entry.request.id, self._placed(entry, spot), entry.end))
        return True

    def _begin(self, entry: Entry, spot: Spot, now: float, end: float, *, is_planned: bool) -> None:
        timeline = entry.timeline
        if not is_planned:
            timeline.plan(spot.holds, now, end)
            for profile, pairs in entry.bounds:
                profile.take(now, end, pairs)
        timeline.hold(spot.holds)
        entry.is_running = True
        entry.end = end
        if end < inf:
            heappush(self._ends, (end, entry.request.id))

    def _revise(self, entry: Entry, after: float | None) -> None:
        who, what = self._cause
        cause = entry.cause or (f"{who} {what}" if entry.guaranteed is not None else "planned")
        self._revisions.append(Revision(entry.request.id, entry.guaranteed, after, cause))
        entry.guaranteed = after
        entry.cause = ""

    def _put_off(self, now: float) -> None:
        """What should be over by now and is not: count on a little later."""
        while self._ends and self._ends[0][0] < now:
            end, request_id = heappop(self._ends)
            entry = self._entries.get(request_id)
            if entry is None or not entry.is_running or entry.end != end or entry.spot is None:
                continue
            later = now + _OVERRUN
            self._displace(
                entry.timeline, dict(entry.spot.holds), now, later, f"{request_id} ran longer than it may"
            )
            entry.timeline.plan(entry.spot.holds, end, later)
            for profile, pairs in entry.bounds:
                profile.take(end, later, pairs)
            entry.end = later
            heappush(self._ends, (later, request_id))

    def _displace(
        self, timeline: Timeline, rows: Iterable[int], start: float, end: float, cause: str
    ) -> None:
        """Take reservations back that cannot be kept: they are planned anew, in their order."""
        hit = set(rows)
        for lane in self.lanes:
            for entry in lane.waiting:
                spot = entry.spot
                if (
                    spot is not None
                    and entry.timeline is timeline
                    and spot.start < end
                    and entry.end > start
                    and any(number in hit for number, _ in spot.holds)
                ):
                    self._unreserve(entry)
                    entry.cause = cause
                    lane.is_stale = True

    # -- nodes and windows ---------------------------------------------------------------------------

    def set_node(self, name: str, state: str, now: float, cause: str = "") -> None:
        """A node is up, draining, down or suspect; what ran on one that is lost has to be ended apart."""
        number = self.timeline.numbers[name]
        row = self.timeline.rows[number]
        known = self._away.pop(name, None)
        if known is not None:
            self.timeline.unplan([(number, row.whole)], known[1], known[2])
            self._freed(self.timeline, [number], now, inf)
            self._news += 1
            self._cause = (f"node {name}", "came back")
        self.timeline.opened(number, is_open=state not in UNAVAILABLE)
        if state in UNAVAILABLE:
            until = now + _SUSPECT if state == "suspect" else inf
            self._displace(self.timeline, [number], now, until, cause or f"node {name} is {state}")
            self.timeline.plan([(number, row.whole)], now, until)
            self._away[name] = (state, now, until)

    def block(self, block: Block, now: float) -> tuple[str, ...]:
        """Keep nodes free for a window; returns their names, which are chosen where only a count is given."""
        names = block.nodes or self._best_for(block)
        numbers = tuple(self.timeline.numbers[name] for name in names if name in self.timeline.numbers)
        word = "maintenance" if block.kind == "maintenance" else "the reservation"
        self._displace(self.timeline, numbers, block.start, block.end, f"{word} {block.name}")
        rows = self.timeline.rows
        self.timeline.plan([(number, rows[number].whole) for number in numbers], block.start, block.end)
        self._blocks[block.name] = (block, numbers)
        if block.kind == "reservation":
            self._annexes[block.name] = Timeline.annex(self.timeline, numbers, block.start, block.end)
            self._make_stale()
        heappush(self._dues, block.start)
        if block.end < inf:
            heappush(self._dues, block.end)
        return names

    def _best_for(self, block: Block) -> tuple[str, ...]:
        """Nodes on which nothing is planned in a window, then those where the least is lost."""
        fitting = [row for row in self.timeline.rows if mismatch(row.node, block.requires, {}) is None]
        order = sorted(fitting, key=lambda row: not row.profile.fits(row.whole, block.start, block.end))
        return tuple(row.name for row in order[: block.count or 0])

    def unblock(self, name: str, now: float) -> None:
        """A window is over, or is not wanted any more."""
        block, numbers = self._blocks.pop(name)
        self._cause = (f"{block.kind} {name}", "was removed")
        annex = self._annexes.pop(name, None)
        if annex is not None:
            for lane in self.lanes:
                for entry in lane.waiting:
                    if entry.timeline is annex and entry.spot is not None:
                        self._unreserve(entry)
                        entry.cause = f"the reservation {name} is gone"
        rows = self.timeline.rows
        self.timeline.unplan([(number, rows[number].whole) for number in numbers], block.start, block.end)
        self._news += 1
        self._freed(self.timeline, numbers, max(now, block.start), block.end)

    def _pass_dues(self, now: float) -> None:
        """A window begins or ends: what was not possible may be now."""
        while self._dues and self._dues[0] <= now:
            heappop(self._dues)
        for _, numbers in self._blocks.values():
            self._freed(self.timeline, numbers, now, inf)
        self._make_stale()

    def set_queue(self, name: str, state: QueueState) -> None:
        lane = self._by_name[name]
        lane.queue = msgspec.structs.replace(lane.queue, state=state)
        lane.is_stale = True

    def resort(self, now: float) -> None:
        """Priorities have changed: put everybody where they belong. Guarantees stay as they are."""
        for lane in self.lanes:
            for entry in lane.waiting:
                entry.key = self._key(entry.request, now)
            lane.sort()

    def _make_stale(self) -> None:
        for gang in self._gangs.values():
            gang.failed = inf
        for lane in self.lanes:
            lane.is_stale = True

    def _forget_log(self) -> None:
        """Those who have not looked since then will look at everything."""
        self._base += len(self._log)
        self._log = []

    # -- more time -----------------------------------------------------------------------------------

    def extend(self, request_id: str, seconds: float, now: float) -> Extension:
        """Let something run longer, if no guarantee moves; otherwise say how much longer it could."""
        entry = self._entries[request_id]
        spot, timeline = entry.spot, entry.timeline
        assert spot is not None
        free_until = min(timeline.rows[number].profile.ends(pairs, entry.end) for number, pairs in spot.holds)
        for profile, pairs in entry.bounds:
            free_until = min(free_until, profile.ends(pairs, entry.end))
        later = entry.end + seconds
        if later <= free_until or self._make_way(entry, later, now):
            if later <= free_until:
                self._prolong(entry, later)
            return Extension(granted=True, largest=seconds)
        return Extension(granted=False, largest=max(0.0, free_until - entry.end))

    def _prolong(self, entry: Entry, later: float) -> None:
        assert entry.spot is not None
        entry.timeline.plan(entry.spot.holds, entry.end, later)
        for profile, pairs in entry.bounds:
            profile.take(entry.end, later, pairs)
        entry.limit += later - entry.end
        entry.end = later
        heappush(self._ends, (later, entry.request.id))

    def _make_way(self, entry: Entry, later: float, now: float) -> bool:
        """Move reservations that are in the way to other nodes, if they start no later there."""
        spot = entry.spot
        assert spot is not None
        hit = {number for number, _ in spot.holds}
        moved: list[tuple[Entry, Spot]] = []
        for lane in self.lanes:
            for other in lane.waiting:
                theirs = other.spot
                if theirs is None or other.timeline is not entry.timeline:
                    continue
                if theirs.start < later and other.end > entry.end and hit & {row for row, _ in theirs.holds}:
                    moved.append((other, theirs))
        if not moved:
            return False
        for other, _ in moved:
            self._unhold(other)
        old_end = entry.end
        fits = all(
            entry.timeline.rows[number].profile.fits(pairs, old_end, later) for number, pairs in spot.holds
        )
        if fits:
            entry.timeline.plan(spot.holds, old_end, later)
            placed: list[Entry] = []
            for other, theirs in moved:
                found = self._find(other, max(now, other.request.earliest))
                if found is None or found.start > theirs.start:
                    fits = False
                    break
                self._hold_for(other, found)
                placed.append(other)
            if not fits:
                for other in placed:
                    self._unhold(other)
            entry.timeline.unplan(spot.holds, old_end, later)
        if not fits:
            for other, theirs in moved:
                self._hold_for(other, theirs)
            return False
        self._prolong(entry, later)
        return True

    # -- answers -------------------------------------------------------------------------------------

    def promise(self, request_id: str) -> Promise:
        """What is planned for somebody who waits."""
        entry = self._entries[request_id]
        lane = entry.lane
        placed = None if entry.spot is None else self._placed(entry, entry.spot)
        return Promise(entry.guaranteed, lane.place(entry) + 1, placed, lane.queue.name)

    def try_out(self, request: Request, now: float) -> Promise:
        """What a request would be promised if it were submitted now."""
        entry = self._entry(request, now)
        lane = entry.lane
        after = max(now, request.earliest)
        if lane.strict:
            after = max([after, *(other.spot.start for other in lane.waiting if other.spot is not None)])
        spot = self._find(entry, after)
        place = lane.place(entry) + 1
        if spot is None:
            return Promise(None, place, None, lane.queue.name)
        return Promise(spot.start, place, self._placed(entry, spot), lane.queue.name)

    def next_due(self, now: float) -> float | None:
        """When to make a pass although nothing happens."""
        dues = [due for due in self._dues[:1]]
        for lane in self.lanes:
            for entry in lane.waiting:
                if entry.spot is not None and entry.spot.start > now:
                    dues.append(entry.spot.start)
                elif entry.request.earliest > now:
                    dues.append(entry.request.earliest)
        if self._ends:
            dues.append(self._ends[0][0] + 0.001)
        return min((due for due in dues if due > now), default=None)

    # -- compiling -----------------------------------------------------------------------------------

    def _key(self, request: Request, now: float) -> tuple[float, int]:
        weight = request.weight if self._priority is None else self._priority(request, now)
        return (-weight, request.number)

    def _entry(self, request: Request, now: float) -> Entry:
        lane = self._by_name.get(request.queue, self._default)
        gang = self._gang(request, lane, self.timeline, "")
        bounds = self._bounds_for(request, gang) if self._bounds_of is not None else ()
        return Entry(request, lane, gang, self.timeline, bounds, self._key(request, now))

    def _bounds_for(self, request: Request, gang: Gang) -> list[tuple[Profile, Pairs]]:
        assert self._bounds_of is not None
        found = []
        for name, capacity in self._bounds_of(request):
            known = self._bounds.get(name)
            if known is None:
                kinds = list(capacity)
                known = (kinds, Profile([to_units(kind, capacity[kind]) for kind in kinds]))
                self._bounds[name] = known
            kinds, profile = known
            pairs = [(number, gang.amounts.get(kind, 0)) for number, kind in enumerate(kinds)]
            found.append((profile, tuple(pair for pair in pairs if pair[1])))
        return found

    def _gang(self, request: Request, lane: Lane, timeline: Timeline, annex: str) -> Gang:
        """Equal requests share a gang; the very same shape is recognised without looking into it."""
        same = (id(request.alternatives), id(request.wishes), len(request.overhead), lane.queue.name, annex)
        known = self._same.get(same)
        if known is not None:
            return known[0]
        deep = (_frozen(request), lane.queue.name, annex)
        gang = self._gangs.get(deep)
        if gang is None:
            gang = self._gangs[deep] = self._compile(request, lane, timeline)
        if len(self._same) > _MOST_LOGGED:
            self._same.clear()
        self._same[same] = (gang, request)
        return gang

    def _compile(self, request: Request, lane: Lane, timeline: Timeline) -> Gang:
        ground = self._grounds[lane.queue.name]
        borrowed = tuple(
            number
            for name in lane.queue.borrow
            for number in self._grounds.get(name, ())
            if number not in ground
        )
        if timeline is not self.timeline:
            ground, borrowed = tuple(range(len(timeline.rows))), ()
        wishes = request.wishes
        plain = wishes.near is None and wishes.apart is None and wishes.spread is None
        choices = []
        for number, parts in enumerate(request.alternatives):
            pieces = [
                self._piece(part, request, timeline, ground, borrowed, exclusive=wishes.exclusive)
                for part in parts
            ]
            choices.append(Choice(number, pieces, plain=plain))
        return Gang(choices, wishes, self._amounts(request.alternatives[0]))

    def _amounts(self, parts: Alternative) -> dict[str, int]:
        amounts: dict[str, int] = {"job": 1}
        for part in parts:
            piece = piece_of(part)
            for kind, units in sum_units(part.each, piece.copies, part.beside).items():
                amounts[kind] = amounts.get(kind, 0) + units * piece.wanted
            amounts["node"] = amounts.get("node", 0) + (part.nodes or 0)
        return amounts

    def _piece(
        self,
        part: Part,
        request: Request,
        timeline: Timeline,
        ground: Sequence[int],
        borrowed: Sequence[int],
        *,
        exclusive: bool,
    ) -> Piece:
        found = piece_of(part)
        units = sum_units(part.each, found.copies, part.beside)
        for kind, more in request.overhead.items():
            units[kind] = units.get(kind, 0) + more
        unknown = [kind for kind in units if kind not in timeline.kinds]
        pairs = tuple(
            (timeline.kinds[kind], count) for kind, count in units.items() if count and kind in timeline.kinds
        )
        forgiven = all(kind == "socket" for kind in unknown)
        whole = part.is_whole or exclusive

        def suits(number: int) -> bool:
            row = timeline.rows[number]
            if not forgiven or mismatch(row.node, part.requires, request.wishes.labels) is not None:
                return False
            return all(row.capacity[kind] >= least for kind, least in pairs)

        rows = [number for number in ground if suits(number)]
        return Piece(
            pairs,
            found.wanted,
            found.copies,
            rows,
            [number for number in borrowed if suits(number)],
            single=part.nodes is not None,
            whole=whole,
        )

    def _placed(self, entry: Entry, spot: Spot) -> Placed:
        rows = entry.timeline.rows
        return Placed(
            spot.choice,
            tuple({rows[number].name: count for number, count in places.items()} for places in spot.places),
        )

    def _spot_of(self, entry: Entry, placed: Placed, start: float) -> Spot:
        """A placement in the terms of rows; what is gone is left out."""
        timeline = entry.timeline
        places = [
            {timeline.numbers[name]: count for name, count in each.items() if name in timeline.numbers}
            for each in placed.places
        ]
        choice = entry.gang.choices[placed.alternative]
        return timeline.spot(start, choice, places, entry.gang.wishes)


def _helps(piece: Piece, timeline: Timeline, number: int) -> bool:
    row = timeline.rows[number]
    if number not in piece.grounds:
        return False
    free = row.free
    return all(free[kind] >= least for kind, least in (row.whole if piece.whole else piece.need))


def _frozen(request: Request) -> bytes:
    return msgspec.msgpack.encode((request.alternatives, request.wishes, request.overhead))
