"""The arithmetic of metrics: averages, percentiles, and how even things are."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil


def average(values: Sequence[float]) -> float:
    """The mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], part: float) -> float:
    """The least value that so large a part of all does not exceed; 0 of nothing."""
    if not values:
        return 0.0
    return sorted(values)[max(0, ceil(part * len(values)) - 1)]


def share(count: float, of: float) -> float | None:
    """A part of all; None where there is nothing to have a part of."""
    return count / of if of else None


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 where all are equal, 1/n where one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0
