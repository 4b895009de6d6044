"""The margin of a forecast: how much later than played is late enough, learned from what came of it."""

from __future__ import annotations

from math import copysign, exp, log2

import msgspec

_FLOOR = 300.0
"""Seconds under which waits are all alike."""
_BUCKETS = 16
_NEAR = 2
_WIDEST = 5.0


class Margin(msgspec.Struct, kw_only=True):
    """A factor for each length of wait, which grows with every job that starts late and shrinks with others.

    The steps are such that growing and shrinking are in balance where `share` of the jobs start in time: that
    holds in the long run whatever the forecast is like, and follows where it becomes better or worse. A plain
    value: it can be written down and read again.
    """

    share: float
    """Of the jobs, that should have started by then."""
    step: float
    first_step: float = 0.0
    """Steps begin with this size and become smaller with what is seen."""
    ignored: float = 0.0
    """A factor with a smaller logarithm is not applied, and of a larger one only what is above this."""
    logs: list[float] = msgspec.field(default_factory=lambda: [0.0] * _BUCKETS)
    seen: list[float] = msgspec.field(default_factory=lambda: [0.0] * _BUCKETS)

    @staticmethod
    def bucket(wait: float) -> int:
        """Which waits are taken for alike."""
        return min(int(log2(max(wait, 0.0) / _FLOOR + 1.0)), _BUCKETS - 1)

    def applied(self, wait: float) -> float:
        """The wait that is told where this one is played."""
        log = self.logs[self.bucket(wait)]
        return _times(wait, copysign(max(0.0, abs(log) - self.ignored), log))

    def edge(self, wait: float) -> float:
        """The wait by which this one is judged: whoever waits longer was late."""
        return _times(wait, self.logs[self.bucket(wait)])

    def learn(self, bucket: int, late: bool) -> None:
        """What came of one forecast of this bucket; its neighbours learn from it too, but less."""
        for other in range(max(0, bucket - _NEAR), min(bucket + _NEAR + 1, _BUCKETS)):
            self._move(other, late, 0.5 ** abs(other - bucket))

    def _move(self, bucket: int, late: bool, weight: float) -> None:
        step = weight * max(self.step, self.first_step / (1.0 + self.first_step * self.seen[bucket]))
        self.seen[bucket] += weight
        moved = self.logs[bucket] + (step * self.share if late else -step * (1.0 - self.share))
        self.logs[bucket] = min(max(moved, -_WIDEST), _WIDEST)


def _times(wait: float, log: float) -> float:
    return max(0.0, (max(wait, 0.0) + _FLOOR) * exp(log) - _FLOOR)


def for_p50() -> Margin:
    """The p50 is moved only where the play is off by more than a factor of two.

    A correction for less makes the middle truer, but fewer starts come close to it.
    """
    return Margin(share=0.5, step=0.002, ignored=0.7)


def for_p90() -> Margin:
    """The p90 is always moved to where nine in ten start in time."""
    return Margin(share=0.9, step=0.01, first_step=0.05)
