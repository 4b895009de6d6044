"""The queue played forward: who starts when, if everything runs as long as it is thought to."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

from jobman.sched.forecast_steps import Bounds, Steps
from jobman.sched.queues import Queue

DEEPEST = 8
"""Reservations that are played; more of them change next to nothing and cost much."""
_COARSER = 16
"""How many grains what ends by its limit is rounded to."""


class Runner(NamedTuple):
    """What holds something: when it is thought to end, when it must have ended, and what it holds."""

    end: float
    latest: float
    need: int


class Waiter(NamedTuple):
    """What waits: what it needs, how long it may and is thought to run, and from when on it may start."""

    need: int
    limit: float
    seconds: float
    earliest: float = -inf


class Closure(NamedTuple):
    """What cannot be used for some time."""

    start: float
    end: float
    need: int


class Rules(NamedTuple):
    """How the queue is served."""

    depth: int = DEEPEST
    shortest_first: bool = False

    @classmethod
    def of(cls, queue: Queue) -> Rules:
        """As its policy says; an interactive queue lets nobody pass."""
        if queue.is_interactive:
            return cls(0)
        return cls(DEEPEST if queue.depth is None else min(queue.depth, DEEPEST), queue.shortest_first)


class Scene(NamedTuple):
    """What there is at the beginning of a play; those who wait are in the order in which they are served."""

    now: float
    marks: int
    free: int
    running: Sequence[Runner]
    waiting: Sequence[Waiter]
    closures: Sequence[Closure] = ()


class Play:
    """Time goes from one expected end to the next, and at each those start whom the rules let start.

    Nobody passes who would delay a reservation, and that goes by limits, as the planner does it; but
    everything ends when it is thought to end. `grain` is how many seconds are taken for one moment, which
    bounds the number of looks; `reach` bounds how many of those who wait a look takes in.
    """

    def __init__(self, scene: Scene, rules: Rules, *, grain: float = 0.0, reach: int | None = None) -> None:
        self.starts = [inf] * len(scene.waiting)
        self._rules = rules
        self._grain = grain
        self._reach = reach
        self._now = scene.now
        self._marks = scene.marks
        self._free = scene.free
        self._waiting = scene.waiting
        self._needs = [waiter[0] for waiter in scene.waiting]
        self._ends: list[tuple[float, float, int]] = list(scene.running)
        heapify(self._ends)
        self._bounds = Bounds(((runner[1], runner[2]) for runner in scene.running), _COARSER * grain)
        self._closures = sorted(scene.closures, reverse=True)
        self._later = sorted(
            [(waiter[3], place) for place, waiter in enumerate(scene.waiting) if waiter[3] > scene.now],
            reverse=True,
        )
        self._queue = [place for place, waiter in enumerate(scene.waiting) if waiter[3] <= scene.now]

    def run(self, target: int | None = None) -> list[float]:
        """When each starts; where one is named, no further than to its start."""
        self._come_to(self._now)
        while self._queue or self._later:
            self._look()
            if target is not None and self.starts[target] < inf:
                break
            time = self._next()
            if time == inf:
                break
            self._come_to(time)
        return self.starts

    def _next(self) -> float:
        """The next time at which something changes."""
        time = self._ends[0][0] if self._ends else inf
        if self._closures:
            time = min(time, self._closures[-1].start)
        if self._later:
            time = min(time, self._later[-1][0])
        return max(time, self._now + self._grain)

    def _come_to(self, time: float) -> None:
        """Ends what ends by then, closes what closes, and lets in whose time has come."""
        self._now = time
        ends = self._ends
        while ends and ends[0][0] <= time:
            self._end(*heappop(ends)[1:])
        while self._closures and self._closures[-1].start <= time:
            closure = self._closures.pop()
            self._hold(closure.end, closure.end, closure.need)
        while self._later and self._later[-1][0] <= time:
            insort(self._queue, self._later.pop()[1])

    def _look(self) -> None:
        """Starts those who may start now."""
        free, marks, needs = self._free, self._marks, self._needs
        queue = self._queue if self._reach is None else self._queue[: self._reach]
        fitting = [spot for spot, place in enumerate(queue) if (free - needs[place]) & marks == marks]
        if not fitting:
            return
        for spot in sorted(self._serve(queue, fitting), reverse=True):
            del self._queue[spot]

    def _serve(self, queue: list[int], fitting: list[int]) -> list[int]:
        """Starts in order until all reservations are made, then those who do not delay them."""
        depth = self._rules.depth
        steps = self._steps() if self._closures else None
        started: list[int] = []
        reserved = spot = 0
        while spot <= fitting[-1] and (reserved < depth or not depth):
            place = queue[spot]
            if self._starts(place, steps):
                started.append(spot)
            elif reserved < depth:
                steps = steps or self._steps()
                steps.reserve(self._needs[place], self._waiting[place].limit)
                reserved += 1
            else:
                return started
            spot += 1
        behind = fitting[bisect_left(fitting, spot) :]
        if self._rules.shortest_first:
            behind.sort(key=lambda spot: self._waiting[queue[spot]].limit)
        return started + self._pass(queue, behind, steps)

    def _pass(self, queue: list[int], behind: list[int], steps: Steps | None) -> list[int]:
        """Starts those of a queue who delay no reservation."""
        waiting, marks, free = self._waiting, self._marks, self._free
        refused: dict[int, float] = {}
        started = []
        for spot in behind:
            need, limit, _, _ = waiting[queue[spot]]
            if (free - need) & marks != marks or limit >= refused.get(need, inf):
                continue
            if self._starts(queue[spot], steps):
                started.append(spot)
                free = self._free
            else:
                refused[need] = limit
        return started

    def _starts(self, place: int, steps: Steps | None) -> bool:
        """Starts one if there is room for it now, and for as long as it may run."""
        need, limit, seconds, _ = self._waiting[place]
        if (self._free - need) & self._marks != self._marks:
            return False
        until = self._now + limit
        if steps is not None:
            if not steps.fits(need, until):
                return False
            steps.take(self._now, until, need)
        self.starts[place] = self._now
        self._hold(self._now + seconds, until, need)
        return True

    def _steps(self) -> Steps:
        """What will be free, going by limits."""
        steps = Steps(self._marks, self._now, self._free, self._bounds.times, self._bounds.needs)
        for closure in self._closures:
            steps.set_aside(closure.start, closure.end, closure.need)
        return steps

    def _hold(self, end: float, latest: float, need: int) -> None:
        self._free -= need
        heappush(self._ends, (end, latest, need))
        self._bounds.add(latest, need)

    def _end(self, latest: float, need: int) -> None:
        self._free += need
        self._bounds.remove(latest, need)
