"""What waits in a queue, in the order of its policy, and what a planner knows of each."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from math import inf

from jobman.sched.gangs import Gang, Spot
from jobman.sched.profile import Pairs, Profile
from jobman.sched.queues import Queue
from jobman.sched.requests import Request
from jobman.sched.timeline import Timeline

Bounds = Sequence[tuple[Profile, Pairs]]
"""Limits that a request counts against, and what it takes of each."""
Key = tuple[float, int]
_MANY = 1000


class Entry:
    """A request that waits or runs. With a spot it has a reservation, or runs there."""

    __slots__ = (
        "bounds",
        "cause",
        "end",
        "gang",
        "guaranteed",
        "is_running",
        "key",
        "lane",
        "limit",
        "request",
        "spot",
        "tested",
        "timeline",
    )

    def __init__(
        self, request: Request, lane: Lane, gang: Gang, timeline: Timeline, bounds: Bounds, key: Key
    ) -> None:
        self.request = request
        self.lane = lane
        self.gang = gang
        self.timeline = timeline
        self.bounds = bounds
        self.key = key
        self.limit = request.limit
        self.spot: Spot | None = None
        self.end = inf
        self.is_running = False
        self.guaranteed: float | None = None
        self.tested = 0
        """What had been freed when it was last tried."""
        self.cause = ""
        """Why its guarantee was lost, until there is another one."""

    def __lt__(self, other: Entry) -> bool:
        return self.key < other.key


class Alike:
    """Requests that ask for the same, in order."""

    __slots__ = ("entries", "shortest")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.shortest: float | None = None

    def shortest_limit(self) -> float:
        if self.shortest is None:
            self.shortest = min((entry.limit for entry in self.entries), default=inf)
        return self.shortest


class Lane:
    """A queue and what waits in it."""

    __slots__ = (
        "by_gang",
        "by_limit",
        "depth",
        "fresh",
        "is_stale",
        "queue",
        "reserved",
        "seen",
        "strict",
        "waiting",
    )

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.strict = queue.is_interactive
        self.depth = inf if queue.depth is None else queue.depth
        self.waiting: list[Entry] = []
        self.by_limit: list[tuple[float, int, Entry]] | None = [] if queue.shortest_first else None
        self.by_gang: dict[Gang, Alike] | None = None
        """Those who ask for the same together, where so many wait that nobody wants to look at each."""
        self.reserved: dict[str, Entry] = {}
        """Those who wait with a reservation."""
        self.fresh: list[Entry] = []
        """What has come since the last pass."""
        self.seen = 0
        """What had been freed until the last pass."""
        self.is_stale = False
        """Whether everything must be looked at again."""

    def join(self, entry: Entry) -> None:
        _put(self.waiting, entry)
        if self.by_limit is not None:
            insort(self.by_limit, (entry.limit, entry.request.number, entry))
        if self.by_gang is not None:
            self._group(self.by_gang, entry)
        self.fresh.append(entry)

    def leave(self, entry: Entry) -> None:
        self._take_out(entry)
        if entry in self.fresh:
            self.fresh.remove(entry)

    def _take_out(self, entry: Entry) -> None:
        del self.waiting[bisect_left(self.waiting, entry)]
        if self.by_limit is not None:
            del self.by_limit[bisect_left(self.by_limit, (entry.limit, entry.request.number, entry))]
        if self.by_gang is not None:
            alike = self.by_gang[entry.gang]
            del alike.entries[bisect_left(alike.entries, entry)]
            alike.shortest = None

    def place(self, entry: Entry) -> int:
        return bisect_left(self.waiting, entry)

    def is_ahead(self, entry: Entry) -> bool:
        """Whether it is among the first, who get reservations."""
        depth, waiting = self.depth, self.waiting
        return len(waiting) <= depth or entry.key <= waiting[int(depth) - 1].key

    def started(self, entries: Sequence[Entry]) -> None:
        """Take those out who have started."""
        if len(entries) * 16 < len(self.waiting):
            for entry in entries:
                self._take_out(entry)
            return
        self.waiting = [entry for entry in self.waiting if not entry.is_running]
        if self.by_limit is not None:
            self.by_limit = [item for item in self.by_limit if not item[2].is_running]
        self.by_gang = None

    def alike(self) -> dict[Gang, Alike] | None:
        """Who waits by what they ask for; None where it is not worth the trouble."""
        if self.by_gang is None and len(self.waiting) > _MANY:
            self.by_gang = {}
            for entry in self.waiting:
                self._group(self.by_gang, entry)
        elif len(self.waiting) < _MANY // 2:
            self.by_gang = None
        return self.by_gang

    def _group(self, groups: dict[Gang, Alike], entry: Entry) -> None:
        group = groups.get(entry.gang)
        if group is None:
            group = groups[entry.gang] = Alike()
        _put(group.entries, entry)
        if group.shortest is not None and entry.limit < group.shortest:
            group.shortest = entry.limit

    def sort(self) -> None:
        self.waiting.sort()
        self.by_gang = None
        self.is_stale = True


def _put(waiting: list[Entry], entry: Entry) -> None:
    if waiting and entry.key < waiting[-1].key:
        insort(waiting, entry)
    else:
        waiting.append(entry)
