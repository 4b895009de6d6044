"""Limits in a forecast: what somebody may hold is counted like what nodes have, as a kind of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import count

from jobman.sched.bounds import JOB
from jobman.sched.requests import Request

LimitsOf = Callable[[Request], Iterable[tuple[Hashable, Mapping[str, float]]]]
"""The limits a request counts against: whose each is, and the most of each kind; `job` is among them."""
_NOTHING = 1e-9
_MOST = 32
"""Limits that are counted at a time: each makes every sum in a play longer."""


class _Ceiling:
    """One kind of one limit, and what all that wait and run count for in it."""

    __slots__ = ("demand", "key", "kind", "most")

    def __init__(self, kind: str, key: tuple[Hashable, str]) -> None:
        self.kind = kind
        self.key = key
        self.most = 0.0
        self.demand = 0.0


class Ceilings:
    """Which limits are in the way of those who wait.

    One that is used by less than a half, with all that wait, holds back nobody and is not counted. Requests
    of one job count as one where jobs are counted: the first of them that is there does.
    """

    def __init__(self, limits_of: LimitsOf) -> None:
        self._limits_of = limits_of
        self._ceilings: dict[tuple[Hashable, str], _Ceiling] = {}
        self._counts: dict[str, dict[_Ceiling, float]] = {}
        self._siblings: dict[str, list[str]] = {}
        self._jobs: dict[str, str] = {}
        self._numbers = count()
        self.capacity: dict[str, float] = {}
        """The limits that count now, by the names of their kinds."""
        self.is_changed = False
        """Whether `capacity` is another one than it was; whoever has looked says so."""

    def join(self, request: Request, amounts: Mapping[str, float]) -> dict[str, float]:
        """One more waits or runs; returns what it counts for."""
        limits = list(self._limits_of(request))
        if not limits:
            return {}
        job = self._jobs[request.id] = request.job or request.id
        siblings = self._siblings.setdefault(job, [])
        counts = self._counts[request.id] = self._counted(limits, amounts, is_first=not siblings)
        siblings.append(request.id)
        for ceiling, amount in counts.items():
            self._use(ceiling, amount)
        return _named(counts)

    def leave(self, request_id: str) -> tuple[str, dict[str, float]] | None:
        """It counts no more; the request that counts for its job from now on, if that is another one."""
        counts = self._counts.pop(request_id, None)
        if counts is None:
            return None
        job = self._jobs.pop(request_id)
        siblings = self._siblings[job]
        was_first = siblings[0] == request_id
        siblings.remove(request_id)
        for ceiling, amount in counts.items():
            self._use(ceiling, -amount)
        if not siblings:
            del self._siblings[job]
        elif was_first:
            return siblings[0], self._promote(siblings[0])
        return None

    def of(self, request: Request, amounts: Mapping[str, float]) -> dict[str, float]:
        """What one would count for who is not there."""
        is_first = (request.job or request.id) not in self._siblings
        return _named(self._counted(self._limits_of(request), amounts, is_first=is_first))

    def _promote(self, request_id: str) -> dict[str, float]:
        counts = self._counts[request_id]
        for ceiling in counts:
            if ceiling.key[1] == JOB:
                counts[ceiling] = 1.0
                self._use(ceiling, 1.0)
        return _named(counts)

    def _counted(
        self,
        limits: Iterable[tuple[Hashable, Mapping[str, float]]],
        amounts: Mapping[str, float],
        *,
        is_first: bool,
    ) -> dict[_Ceiling, float]:
        counts = {}
        for whose, most in limits:
            for kind, limit in most.items():
                ceiling = self._ceilings.get((whose, kind))
                if ceiling is None:
                    ceiling = _Ceiling(f"{next(self._numbers)} {kind}", (whose, kind))
                    self._ceilings[whose, kind] = ceiling
                ceiling.most = limit
                counts[ceiling] = float(is_first) if kind == JOB else amounts.get(kind, 0.0)
        return counts

    def _use(self, ceiling: _Ceiling, amount: float) -> None:
        ceiling.demand += amount
        is_counted = ceiling.kind in self.capacity
        matters = 2 * ceiling.demand > ceiling.most and len(self.capacity) < _MOST
        if is_counted and ceiling.demand < _NOTHING:
            del self.capacity[ceiling.kind]
            self.is_changed = True
        elif (is_counted or matters) and self.capacity.get(ceiling.kind) != ceiling.most:
            self.capacity[ceiling.kind] = ceiling.most
            self.is_changed = True


def _named(counts: Mapping[_Ceiling, float]) -> dict[str, float]:
    return {ceiling.kind: amount for ceiling, amount in counts.items()}
