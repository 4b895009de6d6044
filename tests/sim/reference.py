"""Bare loops for FCFS, EASY, EASY-SJBF and conservative backfill, written apart from the scheduler.

They know nothing but processors. A job is `(submit, run, processors, requested)`; jobs come in order of
submission, and the answer is the start of each. Where several things happen in one second, submissions come
before ends, ends come in the order of the starts, and one whose requested time is over counts as gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf

Job = tuple[float, float, int, float]


def fcfs(jobs: Sequence[Job], processors: int) -> list[float]:
    """In order of submission; nobody passes the first."""
    ends: list[tuple[float, int]] = []
    starts, free, now = [], processors, -inf
    for submit, run, size, _ in jobs:
        now = max(now, submit)
        while free < size:
            now = max(now, ends[0][0])
            free += heappop(ends)[1]
        free -= size
        heappush(ends, (now + run, size))
        starts.append(now)
    return starts


def easy(jobs: Sequence[Job], processors: int, *, shortest_first: bool = False) -> list[float]:
    """One may pass the first where that does not delay it."""
    starts = [inf] * len(jobs)
    ends: list[tuple[float, int, int]] = []
    running: dict[int, tuple[float, int]] = {}
    waiting: list[int] = []
    free, begun, following = processors, 0, 0

    def start(number: int) -> None:
        nonlocal free, begun
        _, run, size, requested = jobs[number]
        starts[number] = now
        free -= size
        begun += 1
        running[number] = (now + requested, size)
        heappush(ends, (now + run, begun, number))
        waiting.remove(number)

    def serve() -> None:
        while waiting and jobs[waiting[0]][2] <= free:
            start(waiting[0])
        if not waiting:
            return
        spare, shadow = free - jobs[waiting[0]][2], now
        for end, size in sorted(running.values()):
            if spare >= 0 and end > shadow:
                break
            spare, shadow = spare + size, end
        behind = waiting[1:]
        if shortest_first:
            behind.sort(key=lambda number: jobs[number][3])
        for number in behind:
            _, _, size, requested = jobs[number]
            delays = now + requested > shadow
            if size <= (min(free, spare) if delays else free):
                spare -= size if delays else 0
                start(number)

    while following < len(jobs) or ends:
        is_submission = following < len(jobs) and (not ends or jobs[following][0] <= ends[0][0])
        now = jobs[following][0] if is_submission else ends[0][0]
        for number in [each for each, (end, _) in running.items() if end <= now]:
            free += running.pop(number)[1]
        if is_submission:
            waiting.append(following)
            following += 1
            if jobs[following - 1][2] <= free:
                serve()
        else:
            _, _, number = heappop(ends)
            if number in running:
                free += running.pop(number)[1]
            serve()
    return starts


def easy_sjbf(jobs: Sequence[Job], processors: int) -> list[float]:
    """EASY that looks at the shortest first."""
    return easy(jobs, processors, shortest_first=True)


class Profile:
    """How many processors are free from which time on."""

    def __init__(self, processors: int) -> None:
        self.times: list[float] = [-inf]
        self.free = [processors]

    def change(self, start: float, end: float, size: int) -> None:
        """Give back so many processors from start to end, or take them where the number is negative."""
        times, free = self.times, self.free
        first = bisect_left(times, start)
        if first == len(times) or times[first] != start:
            times.insert(first, start)
            free.insert(first, free[first - 1])
        last = bisect_left(times, end, first)
        if last == len(times) or times[last] != end:
            times.insert(last, end)
            free.insert(last, free[last - 1])
        for place in range(first, last):
            free[place] += size
        for place in (last, first):
            if free[place] == free[place - 1]:
                del times[place], free[place]

    def earliest(self, now: float, size: int, length: float) -> float:
        times, free = self.times, self.free
        place = bisect_right(times, now) - 1
        start = now
        while True:
            if free[place] < size:
                start = inf
            elif start == inf:
                start = times[place]
            place += 1
            if start < inf and (place == len(times) or times[place] >= start + length):
                return start


def conservative(jobs: Sequence[Job], processors: int) -> list[float]:
    """Everybody has a place of its own; at each end all move forward as far as they can, in turn."""
    starts = [inf] * len(jobs)
    profile = Profile(processors)
    ends: list[tuple[float, int, int]] = []
    waiting: dict[int, float] = {}
    following, begun = 0, 0

    def begin(number: int) -> None:
        nonlocal begun
        begun += 1
        starts[number] = now
        heappush(ends, (now + jobs[number][1], begun, number))

    while following < len(jobs) or ends:
        due = min(waiting.values(), default=inf)
        ending = ends[0][0] if ends else inf
        coming = jobs[following][0] if following < len(jobs) else inf
        now = min(due, ending, coming)
        if coming == now:
            _, _, size, length = jobs[following]
            place = profile.earliest(now, size, length)
            profile.change(place, place + length, -size)
            waiting[following] = place
            following += 1
        elif ending == now:
            number = heappop(ends)[2]
            limit = starts[number] + jobs[number][3]
            if limit > now:
                profile.change(now, limit, jobs[number][2])
            for number, place in waiting.items():
                _, _, size, length = jobs[number]
                profile.change(place, place + length, size)
                waiting[number] = place = profile.earliest(now, size, length)
                profile.change(place, place + length, -size)
        for number in [each for each, place in waiting.items() if place <= now]:
            del waiting[number]
            begin(number)
    return starts
