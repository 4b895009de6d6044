"""What a forecast knows of one job, and how long it thinks that it will run."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

import msgspec

from jobman.plan.satisfy import piece_of
from jobman.sched.capacity import to_amount
from jobman.sched.forecast_amounts import Amounts
from jobman.sched.forecast_play import Runner, Waiter
from jobman.sched.history import History, Work
from jobman.sched.requests import Request
from jobman.spec.shapes import Alternative, totals

SHARES = (0.5, 0.9)
"""Of the spread of a run time: what is played for the p50, and what is played for the p90."""


class Pledge(NamedTuple):
    """By when one should start, and the bucket of the margin that learns from it."""

    due: float
    bucket: int


class Job:
    """One that waits or runs; what is thought of it is kept for as long as there is nothing new."""

    __slots__ = (
        "_fresh",
        "_stamp",
        "also",
        "amounts",
        "earliest",
        "need",
        "pledges",
        "runners",
        "since",
        "waiters",
        "work",
    )

    def __init__(
        self,
        request: Request,
        amounts: Mapping[str, float] | None,
        counted: Amounts,
        also: Mapping[str, float] | None = None,
    ) -> None:
        self.amounts = needed(request) if amounts is None else amounts
        self.work = Work(request.user, request.name, shape(self.amounts), request.flavor, request.limit)
        self.also = also
        self.need = counted.packed({**self.amounts, **also} if also else self.amounts)
        self.earliest = request.earliest
        self.since: float | None = None
        """Since when it runs."""
        self.pledges: list[Pledge | None] | None = None
        """By what it is judged, one for each share; None where that was done, or nothing was told yet."""
        self.waiters: tuple[Waiter, ...] = ()
        self.runners: tuple[Runner, ...] = ()
        """One for each of the shares, as those who wait."""
        self._stamp = -1
        self._fresh = -inf

    def fits(self, counted: Amounts) -> bool:
        """Whether there would be room for it if nothing else were there."""
        return (counted.all - self.need) & counted.marks == counted.marks

    def start(self, now: float) -> None:
        """It runs from now on."""
        self.since = now
        self._fresh = -inf

    def extend(self, limit: float) -> None:
        """It may run for so long."""
        self.work = msgspec.structs.replace(self.work, limit=limit)
        self._fresh = -inf

    def recount(self, counted: Amounts) -> None:
        """What it needs is counted anew."""
        self.need = counted.packed({**self.amounts, **self.also} if self.also else self.amounts)
        self.forget()

    def forget(self) -> None:
        """What is thought of it holds no more."""
        self._fresh = -inf

    def think(self, history: History, now: float) -> None:
        """Brings up to date how long it may run, if there is anything new."""
        stamp = history.stamp(self.work)
        if stamp == self._stamp and now < self._fresh:
            return
        self._stamp = stamp
        if self.since is None:
            self._think_ahead(history)
        else:
            self._think_on(history, self.since, now)

    def _think_ahead(self, history: History) -> None:
        spread = history.spread(self.work)
        limit = self.work.limit
        self._fresh = inf
        self.waiters = tuple(Waiter(self.need, limit, spread.at(share), self.earliest) for share in SHARES)

    def _think_on(self, history: History, since: float, now: float) -> None:
        spread = history.spread(self.work, now - since)
        # It holds until the shortest run it is compared with is over.
        self._fresh = since + spread.seconds[0]
        ends = [since + spread.at(share) for share in SHARES]
        self.runners = tuple(Runner(end, max(end, since + self.work.limit), self.need) for end in ends)


def needed(request: Request) -> dict[str, float]:
    """What a request needs in all, by kind, in the alternative it likes best."""
    parts = request.alternatives[0]
    amounts = asked_for(parts)
    pieces = sum(piece_of(part).wanted for part in parts)
    for kind, units in request.overhead.items():
        amounts[kind] = amounts.get(kind, 0.0) + to_amount(kind, units * pieces)
    return amounts


def asked_for(parts: Alternative) -> dict[str, float]:
    """What an alternative asks for in all; nodes are counted where it has them as a whole."""
    amounts: dict[str, float] = dict(totals(parts).amounts)
    if any(part.is_whole for part in parts):
        amounts["node"] = sum(part.nodes or 0 for part in parts if part.is_whole)
    return amounts


def shape(amounts: Mapping[str, float]) -> str:
    """Amounts in words that are the same for the same amounts."""
    return " ".join(f"{kind}={amount:g}" for kind, amount in sorted(amounts.items()))
