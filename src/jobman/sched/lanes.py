"""What waits in a queue, in the order of its policy, and what a planner knows of each."""

from __future__ import annotations

from bisect import bisect_left, insort
from math import inf
from typing import TYPE_CHECKING

from jobman.sched.gangs import Gang, Spot
from jobman.sched.queues import Queue, QueueState
from jobman.sched.requests import Request

if TYPE_CHECKING:
    from jobman.sched.circles import Circle
    from jobman.sched.compiler import Takes

Key = tuple[float, int]
_MANY = 1000
_FEW = 100


class Entry:
    """A request that waits or runs. With a spot it has a reservation, or runs there."""

    __slots__ = (
        "after",
        "blame",
        "cause",
        "circle",
        "end",
        "gang",
        "guaranteed",
        "is_plain",
        "is_running",
        "job",
        "key",
        "lane",
        "limit",
        "request",
        "spot",
        "takes",
        "tested",
        "window",
    )

    def __init__(self, request: Request, lane: Lane, gang: Gang, key: Key) -> None:
        self.request = request
        self.lane = lane
        self.gang = gang
        self.key = key
        self.limit = request.limit
        self.job = request.job or request.id
        """What counts as one where jobs are counted."""
        self.spot: Spot | None = None
        self.end = inf
        self.takes: Takes = ()
        """What it holds of limits."""
        self.is_running = False
        self.guaranteed: float | None = None
        self.tested = 0
        """What had been freed when it was last tried; less than nothing to try it in any case."""
        self.after = inf
        """The moment from which on it was last tried, in strict order."""
        self.cause = ""
        """Why its guarantee was lost, until there is another one."""
        self.blame = ""
        """Why its guarantee was last revised."""
        self.circle: Circle | None = None
        self.window = ""
        """The window of an advance reservation in which its spot is."""
        self.is_plain = (
            request.earliest == -inf
            and request.latest == inf
            and not request.together
            and not request.reservation
        )
        """Whether it can start at any time, anywhere, by itself."""

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
    """A queue and what waits in it; or those of a queue who wait for an advance reservation."""

    __slots__ = (
        "barrier",
        "begun",
        "by_gang",
        "by_limit",
        "depth",
        "due",
        "fresh",
        "is_closed",
        "is_special",
        "is_stale",
        "lost",
        "lost_rows",
        "queue",
        "reservation",
        "reserved",
        "seen",
        "strict",
        "waiting",
    )

    def __init__(self, queue: Queue, reservation: str = "") -> None:
        self.queue = queue
        self.reservation = reservation
        self.strict = queue.is_interactive
        self.is_special = self.strict or bool(reservation)
        """Whether it is not served by priority."""
        self.depth = inf if queue.depth is None or reservation else queue.depth
        self.is_closed = queue.state is QueueState.CLOSED
        self.waiting: list[Entry] = []
        self.begun: list[Entry] = []
        """Those who have started and are still among the waiting."""
        self.by_limit: list[tuple[float, int, Entry]] | None = [] if queue.shortest_first else None
        self.by_gang: dict[Gang, Alike] | None = None
        """Those who ask for the same together, where so many wait that nobody wants to look at each."""
        self.reserved: dict[str, Entry] = {}
        """Those who wait with a reservation."""
        self.barrier: Entry | None = None
        """The first to whom nothing can be promised; nobody who never ends may take its place."""
        self.lost: list[Entry] = []
        """Those who had one and lost it."""
        self.lost_rows: set[int] = set()
        """Where that was."""
        self.due: dict[str, Entry] = {}
        """Those with a reservation whose time has come."""
        self.fresh: dict[str, Entry] = {}
        """What has come since the last pass."""
        self.seen = 0
        """What had happened until the last pass."""
        self.is_stale = False
        """Whether everything must be looked at again."""

    def join(self, entry: Entry) -> None:
        waiting = self.waiting
        if waiting and entry.key < waiting[-1].key:
            insort(waiting, entry)
        else:
            waiting.append(entry)
        if self.by_limit is not None:
            insort(self.by_limit, (entry.limit, entry.request.number, entry))
        if self.by_gang is not None:
            self._group(self.by_gang, entry)
        self.fresh[entry.request.id] = entry

    def leave(self, entry: Entry) -> None:
        self._take_out(entry)
        self.fresh.pop(entry.request.id, None)
        if entry in self.lost:
            self.lost.remove(entry)
        self.due.pop(entry.request.id, None)

    def _take_out(self, entry: Entry) -> None:
        _remove(self.waiting, entry)
        if self.by_limit is not None:
            place = bisect_left(self.by_limit, (entry.limit, entry.request.number, entry))
            while self.by_limit[place][2] is not entry:
                place += 1
            del self.by_limit[place]
        if self.by_gang is not None:
            alike = self.by_gang[entry.gang]
            _remove(alike.entries, entry)
            alike.shortest = None
            if not alike.entries:
                del self.by_gang[entry.gang]

    def place(self, entry: Entry) -> int:
        return bisect_left(self.waiting, entry)

    def is_ahead(self, entry: Entry) -> bool:
        """Whether it is among the first, who get reservations."""
        depth, key = self.depth, entry.key
        if len(self.reserved) < depth:
            return True
        return sum(1 for other in self.reserved.values() if other.key < key) < depth

    def lose_nothing(self) -> None:
        """Everybody is going to be looked at: it does not matter who lost what, or whose time has come."""
        self.lost, self.due = [], {}
        self.lost_rows = set()

    def let_go(self) -> None:
        """Take those out who have started."""
        begun, self.begun = self.begun, []
        if len(begun) == len(self.waiting):
            self.waiting = []
            self.by_limit = None if self.by_limit is None else []
            self.by_gang = None
            return
        if len(begun) == 1 or len(begun) * 16 < len(self.waiting):
            for entry in begun:
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


def _remove(waiting: list[Entry], entry: Entry) -> None:
    """Take one out, who may have the same place as others."""
    place = bisect_left(waiting, entry) if len(waiting) > _FEW else 0
    while waiting[place] is not entry:
        place += 1
    del waiting[place]
