"""The planner: who starts now, and when everybody else will.

```
 submit, ended, node lost, window ──▶ planner ──plan(now)──▶ starts, revisions of guarantees

 compiler   requests → gangs           lanes    who waits, in order      turns    whose turn it is
 timeline   what is free when          schedule reservations, promises   starts   beginning and end
 upkeep     nodes and windows          extension, whys, suggestions      what people ask
```
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.sched.blocks import Block
from jobman.sched.bounds import Bound
from jobman.sched.circles import Circles
from jobman.sched.compiler import BoundsOf, Compiler
from jobman.sched.extension import extend
from jobman.sched.gangs import Spot
from jobman.sched.lanes import Entry, Key, Lane
from jobman.sched.queues import EVERYTHING, Queue, QueueState
from jobman.sched.requests import Extension, Placed, Promise, Request, Revision, Start
from jobman.sched.restoring import kept
from jobman.sched.schedule import Schedule
from jobman.sched.starts import Starts
from jobman.sched.timeline import Timeline
from jobman.sched.turns import Turns
from jobman.sched.upkeep import Upkeep
from jobman.sched.windows import Windows

Priority = Callable[[Request, float], float]
_A_MOMENT = 0.001
_ROUNDS = 3
_LONG_AGO = 1e12
"""Those who were promised something before a restart are before all others, in the order of that."""


class Pass(msgspec.Struct, gc=False):
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
        firm: float = inf,
    ) -> None:
        self.timeline = Timeline(nodes)
        self.compiler = Compiler(self.timeline, queues, bounds)
        self.schedule = Schedule(self.compiler, Windows(self.timeline), firm)
        self.lanes = self.schedule.lanes
        self.lanes.extend(Lane(queue) for queue in sorted(queues, key=lambda queue: -queue.factor))
        self.upkeep = Upkeep(self.schedule)
        self.entries = self.schedule.entries
        self._by_name = {lane.queue.name: lane for lane in self.lanes}
        self._default = self._by_name.get(EVERYTHING.name, self.lanes[-1])
        self._priority = priority
        self._starts = Starts(self.schedule)
        self._turns = Turns(self.schedule, self._starts)
        self._circles = Circles(self.entries)
        self._wakes: list[tuple[float, int, Entry]] = []
        """When somebody may start who could not before."""

    @property
    def _bounds(self) -> dict[Hashable, Bound]:
        return self.compiler.bounds

    # -- requests ------------------------------------------------------------------------------------

    def entry(self, request: Request, now: float) -> Entry:
        """A request in the terms of the planner, which does not know of it yet."""
        lane = self._by_name.get(request.queue, self._default)
        if request.reservation:
            lane = self._booked(lane, request.reservation)
        gang = self.compiler.gang(request, lane.queue.name)
        if self._priority is None and not lane.strict:
            return Entry(request, lane, gang, (-request.weight, request.number))
        return Entry(request, lane, gang, self._key(request, lane, now))

    def _booked(self, lane: Lane, reservation: str) -> Lane:
        """The lane of those of a queue who wait for an advance reservation; it is served first."""
        for other in self.lanes:
            if other.reservation == reservation and other.queue.name == lane.queue.name:
                return other
        self.lanes[:] = [other for other in self.lanes if other.waiting or not other.reservation]
        self.lanes.insert(0, Lane(lane.queue, reservation))
        return self.lanes[0]

    def _key(self, request: Request, lane: Lane, now: float) -> Key:
        """Its place among those who wait; in strict order only who came first counts.

        One who comes back with an old number is behind those who came meanwhile.
        """
        if lane.strict:
            last = lane.waiting[-1].key if lane.waiting else (0.0, 0)
            rank = max(last[0], 0.0)
            return (rank if (rank, request.number) > last else rank + 1, request.number)
        weight = request.weight if self._priority is None else self._priority(request, now)
        return (-weight, request.number)

    # -- what happens --------------------------------------------------------------------------------

    def submit(self, request: Request, now: float) -> None:
        """Let a request wait; the next pass decides about it."""
        if request.id in self.entries:
            self._replace(request.id, now)
        entry = self.entry(request, now)
        self.entries[request.id] = entry
        entry.lane.join(entry)
        if not entry.is_plain or self._circles.known:
            self._prepare(entry, now)

    def _replace(self, request_id: str, now: float) -> None:
        if self.entries[request_id].is_running:
            raise ValueError(f"{request_id} runs already; end it before it is submitted again")
        self.withdraw(request_id, now)

    def _prepare(self, entry: Entry, now: float) -> None:
        """One that is not like the others: it waits for a time, or for others."""
        request = entry.request
        if request.earliest > now:
            heappush(self._wakes, (request.earliest, request.number, entry))
        if request.together or request.id in self._circles.known:
            entry.is_plain = False
            circle = entry.circle = self._circles.join(request)
            for member in circle.waiting():
                member.lane.is_stale = True
                if member.spot is not None:
                    self.schedule.unreserve(member, f"{request.id} joins it")

    def withdraw(self, request_id: str, now: float) -> None:  # noqa: ARG002
        """Somebody who waits wants nothing any more."""
        entry = self.entries.pop(request_id)
        lane = entry.lane
        lane.leave(entry)
        if entry.spot is not None:
            self.schedule.unreserve(entry)
            self.schedule.happened(request_id, "left the queue")
        elif lane.strict or lane.depth < inf:
            lane.is_stale = True
        if entry.circle is not None:
            self._circles.leave(request_id)
            for member in entry.circle.waiting():
                member.lane.is_stale = True

    def ended(self, request_id: str, now: float) -> None:
        """What ran gives everything back."""
        entry = self.entries.pop(request_id)
        self._starts.finish(entry, now)
        self.schedule.happened(request_id, "ended")
        if entry.circle is not None:
            self._circles.leave(request_id)

    def restore(self, request: Request, placed: Placed, start: float, now: float) -> None:
        """Something that runs already, as it was before a restart; nodes that are gone are left out."""
        entry = self.entry(request, now)
        spot = self.compiler.spot_of(entry.gang, placed, start)
        if spot is None:
            raise ValueError(f"{request.id} does not ask for what it is said to have")
        self.entries[request.id] = entry
        self._starts.begin(entry, spot, start, max(start + entry.limit, now))

    def keep(self, request: Request, placed: Placed, guaranteed_by: float, now: float) -> None:
        """Something that waits with a guarantee, as it was before a restart; the first pass compresses it."""
        self.submit(request, now)
        entry = self.entries[request.id]
        if entry.lane.strict:
            entry.key = (guaranteed_by - _LONG_AGO, request.number)
            entry.lane.sort()
        entry.guaranteed = guaranteed_by
        entry.cause = "its place in the queue was lost with a restart"
        spot = kept(self.schedule, entry, placed, max(guaranteed_by, now))
        entry.lane.is_stale = True
        if spot is None:
            entry.lane.lost.append(entry)
            return
        self.schedule.hold(entry, spot)
        entry.tested = -1
        if spot.start != guaranteed_by:
            self.schedule.revise(entry, spot.start)
        entry.cause = ""

    # -- deciding ------------------------------------------------------------------------------------

    def plan(self, now: float) -> Pass:
        """One pass: start what can start, plan what is to be planned."""
        schedule, starts = self.schedule, self._starts
        self.timeline.forget(now)
        if starts.ends and starts.ends[0][0] < now:
            starts.put_off(now)
        if self.upkeep.dues and self.upkeep.dues[0] <= now:
            self.upkeep.pass_dues(now)
        if self._wakes and self._wakes[0][0] <= now:
            self._wake(now)
        if schedule.dues and schedule.dues[0][0] <= now:
            for entry in schedule.due(now):
                if entry.lane.barrier is entry:
                    entry.lane.is_stale = True
                else:
                    entry.lane.due[entry.request.id] = entry
        losses = schedule.losses
        for lane in self.lanes:
            if lane.waiting and not lane.is_closed:
                self._turns.serve(lane, now)
                if lane.begun:
                    lane.let_go()
        if schedule.losses != losses:
            self._serve_losers(now)
        done = Pass(starts.starts, schedule.revisions)
        starts.starts, schedule.revisions = [], []
        return done

    def _serve_losers(self, now: float) -> None:
        """Who lost a place to somebody who started late is planned in the same pass."""
        for _ in range(_ROUNDS):
            for lane in self.lanes:
                if lane.lost and not lane.is_closed:
                    self._turns.serve(lane, now)
                    lane.let_go()

    def _wake(self, now: float) -> None:
        """The time has come from which somebody may start."""
        while self._wakes and self._wakes[0][0] <= now:
            _, _, entry = heappop(self._wakes)
            entry.lane.is_stale = True

    # -- nodes and windows ---------------------------------------------------------------------------

    def set_node(self, name: str, state: str, now: float, cause: str = "") -> None:
        """A node is up, draining, down or suspect; what ran on one that is lost has to be ended apart."""
        self.upkeep.set_node(name, state, now, cause)

    def add_node(self, node: ClusterNode, now: float) -> None:
        """A node that was not there before."""
        self.upkeep.add_node(node, now)

    def change_node(self, node: ClusterNode, now: float) -> None:
        """A node that is known has more or less than before, or something else is true of it."""
        self.upkeep.change_node(node, now)

    def set_foreign(self, name: str, amounts: Mapping[str, float], now: float) -> None:
        """What others use of a node from now on; what cannot be kept beside it is planned anew."""
        self.upkeep.set_foreign(name, amounts, now)

    def block(self, block: Block, now: float) -> tuple[str, ...]:
        """Keep nodes free for a window; returns their names, which are chosen where only a count is given."""
        return self.upkeep.block(block, now)

    def unblock(self, name: str, now: float) -> None:
        """A window is over, or is not wanted any more."""
        self.upkeep.unblock(name, now)

    # -- queues --------------------------------------------------------------------------------------

    def set_queue(self, name: str, state: QueueState) -> None:
        """Open or close a queue. One that is draining starts what waits; a closed one promises nothing."""
        for lane in self.lanes:
            if lane.queue.name == name:
                lane.queue = msgspec.structs.replace(lane.queue, state=state)
                lane.is_closed = state is QueueState.CLOSED
                lane.is_stale = True
                if lane.is_closed:
                    self._take_back(lane)

    def _take_back(self, lane: Lane) -> None:
        for entry in list(lane.waiting):
            if entry.spot is not None:
                self.schedule.unreserve(entry)
            if entry.guaranteed is not None:
                entry.cause = f"the queue {lane.queue.name} is closed"
                self.schedule.revise(entry, None)
        lane.lose_nothing()
        self.schedule.happened(f"the queue {lane.queue.name}", "was closed")

    def resort(self, now: float) -> None:
        """Priorities have changed: put everybody where they belong. Guarantees stay as they are."""
        for lane in self.lanes:
            if not lane.strict:
                for entry in lane.waiting:
                    entry.key = self._key(entry.request, lane, now)
                lane.sort()

    # -- answers -------------------------------------------------------------------------------------

    def extend(self, request_id: str, seconds: float, now: float) -> Extension:
        """Let something run longer, if no guarantee moves; otherwise say how much longer it could."""
        return self.extend_all((request_id,), seconds, now)

    def extend_all(self, request_ids: Iterable[str], seconds: float, now: float) -> Extension:  # noqa: ARG002
        """The same for several at once: all of them run longer, or none does."""
        entries = [self.entries[each] for each in request_ids]
        answer = extend(self.schedule, entries, seconds)
        for entry in entries:
            if answer.granted and entry.end < inf:
                self._starts.will_end(entry)
        return answer

    def promise(self, request_id: str) -> Promise:
        """What is planned for somebody who waits."""
        entry = self.entries[request_id]
        lane = entry.lane
        is_planned = entry.spot is not None and lane.barrier is not entry
        placed = self.compiler.placed(entry.gang, entry.spot) if is_planned and entry.spot else None
        return Promise(entry.guaranteed, lane.place(entry) + 1, placed, lane.queue.name)

    def try_out(self, request: Request, now: float) -> Promise:
        """What a request would be promised if it were submitted now."""
        entry = self.entry(request, now)
        lane = entry.lane
        place = lane.place(entry) + 1
        spot = self._try(entry, now)
        if spot is None:
            return Promise(None, place, None, lane.queue.name)
        return Promise(spot.start, place, self.compiler.placed(entry.gang, spot), lane.queue.name)

    def _try(self, entry: Entry, now: float) -> Spot | None:
        lane, schedule = entry.lane, self.schedule
        after = now
        if lane.strict and not lane.reservation:
            if any(other.spot is None for other in lane.waiting):
                return None
            after = max([now, *(other.spot.start for other in lane.waiting if other.spot is not None)])
        elif entry.is_plain and (lane.depth or not lane.place(entry)):
            schedule.releases.warm(entry.gang, now)
            spot = self.timeline.now(entry.gang, entry.limit, now)
            if spot is not None and schedule.admits_now(entry, spot, now):
                return spot
        if not lane.strict and not lane.is_ahead(entry):
            return None
        spot = schedule.find(entry, after)
        return None if spot is None or spot.start > now + schedule.firm else spot

    def next_due(self, now: float) -> float | None:
        """When to make a pass although nothing happens."""
        dues = [self.schedule.next_due(now), *self.upkeep.dues[:1], *(wake for wake, _, _ in self._wakes[:1])]
        overdue = self._starts.next_end()
        if overdue < inf:
            dues.append(max(overdue, now) + _A_MOMENT)
        return min((due for due in dues if now < due < inf), default=None)
