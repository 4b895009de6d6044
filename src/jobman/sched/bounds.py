"""Limits over time: what queues, users and accounts may hold at once, and who takes what of it when."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from math import inf

from jobman.sched.capacity import to_units
from jobman.sched.profile import Pairs, Profile

JOB = "job"
NODE = "node"
"""Kinds that no node has: jobs and nodes are counted."""


class Bound:
    """One limit: what may be held of each kind, and how much of that is free when.

    All requests of a job count as one job: while one of them holds something, the others add nothing.
    """

    __slots__ = ("_held", "_job", "_running", "free", "kinds", "most", "name", "profile")

    def __init__(self, name: Hashable, most: Mapping[str, float]) -> None:
        self.name = name
        self.kinds = list(most)
        self.most = dict(most)
        self.profile = Profile([to_units(kind, most[kind]) for kind in self.kinds])
        self.free = [to_units(kind, most[kind]) for kind in self.kinds]
        """What is free now, whatever was planned."""
        self._running: dict[str, int] = {}
        """How many requests of each job run."""
        self._job: Pairs = ((self.kinds.index(JOB), 1),) if JOB in self.kinds else ()
        self._held: dict[str, Profile] = {}
        """How many requests of each job hold something when, below zero."""

    def __iter__(self) -> Iterator[list[str] | Profile]:
        yield self.kinds
        yield self.profile

    def pairs(self, amounts: Mapping[str, int]) -> Pairs:
        """What amounts take of it, beside being a job."""
        needs = ((number, amounts.get(kind, 0)) for number, kind in enumerate(self.kinds))
        return tuple(need for need in needs if need[1])

    def set_most(self, most: Mapping[str, float]) -> None:
        """The limit is another one now; who holds more than that keeps it."""
        for number, kind in enumerate(self.kinds):
            more = to_units(kind, most.get(kind, 0)) - to_units(kind, self.most[kind])
            self.profile.give(-inf, inf, ((number, more),))
            self.free[number] += more
        self.most = {kind: most.get(kind, 0) for kind in self.kinds}

    # -- holding -------------------------------------------------------------------------------------

    def take(self, job: str, pairs: Pairs, start: float, end: float) -> None:
        """Somebody of a job holds amounts from one moment to another."""
        self.profile.take(start, end, pairs)
        if self._job:
            held = self._held.get(job)
            if held is None:
                held = self._held[job] = Profile((0,))
            for first, last in _idle(held, start, end):
                self.profile.take(first, last, self._job)
            held.take(start, end, ((0, 1),))

    def give(self, job: str, pairs: Pairs, start: float, end: float) -> None:
        self.profile.give(start, end, pairs)
        held = self._held.get(job)
        if held is not None:
            held.give(start, end, ((0, 1),))
            for first, last in _idle(held, start, end):
                self.profile.give(first, last, self._job)
            self._tidy(job, held)

    def start(self, job: str, pairs: Pairs) -> None:
        """Somebody of a job runs."""
        count = self._running.get(job, 0)
        self._running[job] = count + 1
        self._change_free(pairs if count else (*pairs, *self._job), -1)

    def stop(self, job: str, pairs: Pairs) -> None:
        count = self._running.pop(job) - 1
        if count:
            self._running[job] = count
        self._change_free(pairs if count else (*pairs, *self._job), 1)

    def _change_free(self, pairs: Pairs, sign: int) -> None:
        for kind, units in pairs:
            self.free[kind] += sign * units

    def has_now(self, job: str, pairs: Pairs) -> bool:
        """Whether it admits amounts of a job beside what really runs."""
        needs = pairs if job in self._running else (*pairs, *self._job)
        return all(self.free[kind] >= units for kind, units in needs)

    # -- asking --------------------------------------------------------------------------------------

    def earliest(self, job: str, pairs: Pairs, limit: float, after: float) -> float:
        """The first moment from which it admits amounts of a job for so long."""
        with self._without(job):
            return self.profile.earliest((*pairs, *self._job), limit, after)

    def fits(self, job: str, pairs: Pairs, start: float, end: float) -> bool:
        with self._without(job):
            return self.profile.fits((*pairs, *self._job), start, end)

    def ends(self, pairs: Pairs, start: float) -> float:
        """Until when more of the same job is admitted from a moment on."""
        return self.profile.ends((*pairs, *self._job), start)

    def is_exceeded(self, pairs: Pairs, start: float, end: float) -> bool:
        """Whether more is held in between than may be, of something that is asked for."""
        return self.profile.low((*pairs, *self._job), start, end) < 0

    @contextmanager
    def _without(self, job: str) -> Iterator[None]:
        """As if a job held nothing yet, where jobs are counted."""
        held = self._held.get(job)
        spans = list(_busy(held)) if held is not None else []
        for start, end in spans:
            self.profile.give(start, end, self._job)
        yield
        for start, end in spans:
            self.profile.take(start, end, self._job)

    def forget(self, now: float, job: str) -> None:
        """Drop what is over, and of a job what it held until now."""
        self.profile.forget(now)
        held = self._held.get(job)
        if held is not None:
            held.forget(now)
            self._tidy(job, held)

    def _tidy(self, job: str, held: Profile) -> None:
        if not any(held.columns[0]):
            del self._held[job]


def _idle(held: Profile, start: float, end: float) -> list[tuple[float, float]]:
    """When in between nobody holds anything."""
    return [
        (max(first, start), min(last, end))
        for first, last, count in _steps(held)
        if not count and max(first, start) < min(last, end)
    ]


def _busy(held: Profile) -> Iterator[tuple[float, float]]:
    return ((first, last) for first, last, count in _steps(held) if count)


def _steps(held: Profile) -> Iterator[tuple[float, float, int]]:
    return zip(held.times, [*held.times[1:], inf], held.columns[0], strict=True)
