"""Priority: what each factor adds for a request that waits, so that all of it can be shown."""

from __future__ import annotations

import msgspec

from jobman.sched.queues import Queue
from jobman.sched.requests import Request

FULL_CLASS = 1000.0
"""The weight of a priority class that counts as 1. Heavier classes count for more: they are not cut off."""


class Factor(msgspec.Struct, frozen=True, gc=False):
    """One factor: how much of it a request has, what it weighs in the queue, and the two multiplied."""

    raw: float
    weight: float
    contribution: float


class Factors(msgspec.Struct, frozen=True, gc=False):
    """All factors of one request at one moment, and their sum: the highest goes first."""

    priority: Factor
    """Its priority class; below 0 for one that gives way."""
    age: Factor
    size: Factor
    fair_share: Factor
    queue: Factor
    total: float

    @property
    def parts(self) -> dict[str, Factor]:
        """By name, in the order in which they are shown."""
        return {
            "priority": self.priority,
            "age": self.age,
            "size": self.size,
            "fair share": self.fair_share,
            "queue": self.queue,
        }


def priority(request: Request, queue: Queue, now: float, *, fair: float, size_fraction: float) -> Factors:
    """What counts for a request now: `fair` from the fair tree, `size_fraction` of the whole cluster.

    A large request has the larger size factor; a queue in which small ones go first weighs size below 0.
    """
    weights = queue.weights
    parts = (
        _factor(request.weight / FULL_CLASS, weights.priority),
        _factor(_age(request, now, weights.longest_age), weights.age),
        _factor(_within(size_fraction), weights.size),
        _factor(_within(fair), weights.fair_share),
        _factor(_within(queue.factor), weights.queue),
    )
    total = 0.0
    for part in parts:
        total += part.contribution
    return Factors(*parts, total)


def place(request: Request, factors: Factors) -> tuple[float, int]:
    """What requests are sorted by: the highest priority first, and of equals the one submitted first."""
    return -factors.total, request.number


def _factor(raw: float, weight: float) -> Factor:
    return Factor(raw, weight, raw * weight)


def _age(request: Request, now: float, longest: float) -> float:
    """From 0 to 1. Waiting begins when it could start: nobody grows old before the time they asked for."""
    since = request.submitted if request.submitted > request.earliest else request.earliest
    waited = now - since
    if waited >= longest:
        return 1.0
    return waited / longest if waited > 0 else 0.0


def _within(value: float) -> float:
    return 0.0 if value < 0.0 else value if value < 1.0 else 1.0
