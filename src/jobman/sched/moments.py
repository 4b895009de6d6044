"""Moments to look at, where there are more of them than anybody wants to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_FEW = 32


def spaced(moments: Sequence[float]) -> Iterator[float]:
    """The first moments, and ever fewer of those behind them, where it does not matter so much."""
    yield from moments[:_FEW]
    place, step = _FEW, 2
    while place < len(moments) - 1:
        yield moments[place]
        place += step
        step += step // 2
    if len(moments) > _FEW:
        yield moments[-1]
