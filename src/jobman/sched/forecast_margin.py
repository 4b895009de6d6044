"""The margin of a forecast: how much later than played is late enough, learned from what came of it."""

from __future__ import annotations

from math import exp, log2

COVERED = 0.9
"""The share of jobs that should start by their p90."""
_FLOOR = 300.0
"""Seconds under which waits are all alike."""
_BUCKETS = 16
_STEP = 0.01
_WARM_UP = 20
_WIDEST = 2.0


class Margin:
    """A factor for each length of wait, which grows with every job that starts late and shrinks with others.

    The steps are such that growing and shrinking are in balance where the wanted share is covered: that holds
    in the long run whatever the forecast is like, and follows where it becomes better or worse.
    """

    def __init__(self) -> None:
        self._logs = [0.0] * _BUCKETS
        self._seen = [0] * _BUCKETS

    @staticmethod
    def bucket(wait: float) -> int:
        """Which waits are taken for alike."""
        return min(int(log2(max(wait, 0.0) / _FLOOR + 1.0)), _BUCKETS - 1)

    def widened(self, wait: float) -> float:
        """The wait that will not be exceeded, where one is played that should not be."""
        return max(0.0, (wait + _FLOOR) * exp(self._logs[self.bucket(wait)]) - _FLOOR)

    def learn(self, bucket: int, late: bool) -> None:
        """What came of one forecast of this bucket."""
        step = max(_STEP, 1.0 / (self._seen[bucket] + _WARM_UP))
        self._seen[bucket] += 1
        moved = self._logs[bucket] + (step * COVERED if late else -step * (1.0 - COVERED))
        self._logs[bucket] = min(max(moved, -_WIDEST), _WIDEST)
