"""What time costs, in units of a grain that sums exactly in whatever order a database adds it up."""

from __future__ import annotations

_GRAIN = 2.0**20
_HOUR = 3600.0


def units_of(price: float, seconds: float) -> float:
    """What so much time costs at a price for an hour, to the grain."""
    return round(price * seconds / _HOUR * _GRAIN) / _GRAIN
