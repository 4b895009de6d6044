"""How a replay treated its users: what each waited, and what each got of what it asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import accumulate

import msgspec

from jobman.sim.metrics import slowdowns
from jobman.sim.numbers import average, jain, percentile, share
from jobman.sim.outcome import Outcome


class UserRow(msgspec.Struct, frozen=True, kw_only=True):
    """One user; shares are of all users."""

    user: str
    jobs: int
    average_wait: float
    bounded_slowdown: float
    work: float
    """Its part of all processor-seconds."""
    demanded: float
    """Its part of what was asked for while somebody waited: by jobs that waited and jobs that ran."""
    received: float
    """Its part of what was in use while somebody waited."""


class Spread(msgspec.Struct, frozen=True):
    """How far apart the users' averages are."""

    p10: float
    median: float
    p90: float
    most: float


class Fairness(msgspec.Struct, frozen=True, kw_only=True):
    """All users, those with the most work first."""

    users: list[UserRow]
    wait: Spread
    slowdown: Spread
    jain_wait: float
    jain_slowdown: float
    """Jain's index: 1 where all users are slowed down alike."""
    jain_received: float
    """The same of what each received by what it demanded."""


def fairness(outcome: Outcome) -> Fairness:
    """The users of a replay side by side."""
    rows = _rows(outcome)
    waits = [row.average_wait for row in rows]
    slow = [row.bounded_slowdown for row in rows]
    return Fairness(
        users=rows,
        wait=_spread(waits),
        slowdown=_spread(slow),
        jain_wait=jain(waits),
        jain_slowdown=jain(slow),
        jain_received=jain([row.received / row.demanded for row in rows if row.demanded]),
    )


def _rows(outcome: Outcome) -> list[UserRow]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, job in enumerate(outcome.jobs):
        places[job.user].append(place)
    jobs, waits, slow = outcome.jobs, outcome.waits, slowdowns(outcome)
    scarce = _Scarcity(outcome)
    demanded = [
        scarce.between(job.submit, end) * job.processors for job, end in zip(jobs, outcome.ends, strict=True)
    ]
    received = [
        scarce.between(start, start + job.run) * job.processors
        for job, start in zip(jobs, outcome.starts, strict=True)
    ]
    rows = [
        UserRow(
            user=user,
            jobs=len(mine),
            average_wait=average([waits[place] for place in mine]),
            bounded_slowdown=average([slow[place] for place in mine]),
            work=_part(mine, [job.work for job in jobs]),
            demanded=_part(mine, demanded),
            received=_part(mine, received),
        )
        for user, mine in places.items()
    ]
    return sorted(rows, key=lambda row: (-row.work, row.user))


def _part(mine: list[int], of: list[float]) -> float:
    return share(sum(of[place] for place in mine), sum(of)) or 0.0


class _Scarcity:
    """The time during which somebody waited."""

    def __init__(self, outcome: Outcome) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        self._before = [0.0]
        spans = zip(outcome.jobs, outcome.starts, strict=True)
        for begin, end in sorted((job.submit, start) for job, start in spans if start > job.submit):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._begins.append(begin)
                self._ends.append(end)
        lengths = (end - begin for begin, end in zip(self._begins, self._ends, strict=True))
        self._before += accumulate(lengths)

    def between(self, start: float, end: float) -> float:
        """How much of it lies between two moments."""
        return self._until(end) - self._until(start)

    def _until(self, moment: float) -> float:
        place = bisect_right(self._begins, moment)
        if not place:
            return 0.0
        return self._before[place - 1] + min(moment, self._ends[place - 1]) - self._begins[place - 1]


def _spread(values: list[float]) -> Spread:
    return Spread(
        percentile(values, 0.1), percentile(values, 0.5), percentile(values, 0.9), max(values, default=0.0)
    )
