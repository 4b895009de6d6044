"""The measurement that is the same for all: single tasks that do nothing, then many.

The standard library is all that it needs, since it runs in the environment of each peer.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

WORKERS = 2
SECONDS = 6.0
"""That one round takes, about; so many tasks are in it."""
ROUNDS = 3
SINGLES = 300
_FIRST = 100
_ENOUGH = 2.0
"""Seconds after which a rate is known well enough to choose a number of tasks by it."""

Many = Callable[[int], int]
"""Submits so many tasks, and returns when it has all their results how many those are."""
One = Callable[[], object]
"""Submits one task and returns when it has its result."""


class Found(NamedTuple):
    """What was measured of one system."""

    tasks: int
    """In one round."""
    rate: float
    """Tasks a second, from the first submission to the last result: median of all rounds."""
    p50: float
    """Seconds from the submission of a single task to its result."""
    p95: float


def measure(many: Many, one: One) -> Found:
    """Single tasks one after the other, then so many as to take a while, in some rounds."""
    _all(many, _FIRST)
    p50, p95 = latency(singles(one))
    tasks = max(_FIRST, round(SECONDS * _first_rate(many)))
    rate = median(tasks / seconds(lambda: _all(many, tasks)) for _ in range(ROUNDS))
    return Found(tasks, rate, p50, p95)


def singles(one: One) -> list[float]:
    """Seconds that each of many single tasks took, while nothing else was to be done."""
    one()
    return [seconds(one) for _ in range(SINGLES)]


def latency(took: list[float]) -> tuple[float, float]:
    """Half of the single tasks are faster than the first number, and 95 of 100 than the second."""
    return median(took), sorted(took)[len(took) * 95 // 100]


def seconds(work: One) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _first_rate(many: Many) -> float:
    tasks, took = _FIRST, 0.0
    while took < _ENOUGH:
        tasks *= 2
        took = seconds(functools.partial(_all, many, tasks))
    return tasks / took


def _all(many: Many, tasks: int) -> None:
    """A system that loses some is not fast."""
    if (found := many(tasks)) != tasks:
        raise RuntimeError(f"{tasks} tasks, and {found} results")


def tell(found: Found) -> None:
    """As the last line of the output, where the caller looks for it."""
    print(json.dumps(found), flush=True)


def nothing(number: int = 0) -> int:
    """The task."""
    return number
