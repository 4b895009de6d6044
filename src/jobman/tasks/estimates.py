"""How long a task will take: what its author says, else what others like it took, else a guess.

Histories forget: the last thousand or so count, so that an image that became faster is known as such. How
wrong estimates were is kept beside them.
"""

from __future__ import annotations

from math import exp, log

Kind = tuple[str, str | None, str]
"""Type, version and image."""
DEFAULT = 1.0
"""Seconds of a task of which nothing is known."""
MEMORY = 1000.0
"""Tasks after which what came before counts a third."""
_LEAST = 1e-6
"""Seconds, as nothing takes no time at all."""
_STEP = log(1.1)
"""Durations that differ by less than a tenth count as the same."""
_ENOUGH = 8
"""Tasks of different sizes before a line through them is believed."""


class History:
    """What tasks of one kind took."""

    def __init__(self, memory: float = MEMORY) -> None:
        self._keep = exp(-1 / memory)
        self._weight = 0.0
        self._buckets: dict[int, float] = {}
        self._line = _Line(self._keep)
        self.count = 0
        self.mean = DEFAULT
        self.errors = Errors(self._keep)

    def add(self, seconds: float, *, size: float | None = None, estimate: float | None = None) -> None:
        """One more took so long; of such a size, where tasks say one."""
        seconds = max(seconds, _LEAST)
        self.count += 1
        self._weight = self._weight * self._keep + 1
        self.mean += (seconds - self.mean) / self._weight
        growth, bucket = self._growth(), round(log(seconds) / _STEP)
        self._buckets[bucket] = self._buckets.get(bucket, 0.0) + growth
        if size is not None:
            self._line.add(size, seconds)
        if estimate is not None:
            self.errors.add(estimate, seconds)

    def _growth(self) -> float:
        """The old weighs less than the new: so the new grows, and at times all of it is made small."""
        if self.count % 100 == 0:
            small = self._keep**100
            kept = {bucket: weight * small for bucket, weight in self._buckets.items()}
            self._buckets = {bucket: weight for bucket, weight in kept.items() if weight > 1e-3}
        return self._keep ** -(self.count % 100)

    def quantile(self, part: float) -> float:
        """Seconds that so many of them took at most, to a tenth."""
        if not self._buckets:
            return DEFAULT
        left = part * sum(self._buckets.values())
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return exp(bucket * _STEP)
        return exp(max(self._buckets) * _STEP)

    def estimate(self, size: float | None = None) -> float:
        """Seconds that the next will take."""
        if size is not None and (found := self._line.at(size)) is not None:
            return max(found, _LEAST)
        return self.mean


class Errors:
    """How far estimates were off: as a part of what it took, and as factors: 2 is twice or half of it."""

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._weight = 0.0
        self._off = 0.0
        self._lean = 0.0
        self.relative = 0.0
        """The mean of how far off they are, beside what it took."""

    def add(self, estimate: float, seconds: float) -> None:
        error = log(max(seconds, _LEAST) / max(estimate, _LEAST))
        self._weight = self._weight * self._keep + 1
        beside = abs(estimate - seconds) / max(seconds, _LEAST)
        self.relative += (beside - self.relative) / self._weight
        self._off += (abs(error) - self._off) / self._weight
        self._lean += (error - self._lean) / self._weight

    @property
    def factor(self) -> float:
        """By how much they are usually off, whichever way."""
        return exp(self._off)

    @property
    def bias(self) -> float:
        """What tasks took beside what was estimated: above 1 they take longer."""
        return exp(self._lean)


class _Line:
    """A line through sizes and seconds: least squares, the old counting less."""

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._count = 0
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    def add(self, x: float, y: float) -> None:
        self._count += 1
        self._weight = self._weight * self._keep + 1
        part = 1 / self._weight
        dx, dy = x - self._x, y - self._y
        self._x += dx * part
        self._y += dy * part
        self._xx += (dx * (x - self._x) - self._xx) * part
        self._xy += (dx * (y - self._y) - self._xy) * part

    def at(self, x: float) -> float | None:
        """None while there are too few, or all have the same size, or larger ones seem to take less."""
        if self._count < _ENOUGH or self._xx <= 1e-12 * max(1.0, self._x**2) or self._xy < 0:
            return None
        return self._y + self._xy / self._xx * (x - self._x)


class Estimator:
    """Histories by type, version and image."""

    def __init__(self, default: float = DEFAULT) -> None:
        self._default = default
        self.histories: dict[Kind, History] = {}

    def estimate(self, kind: Kind, hint: float | None = None, size: float | None = None) -> float:
        if hint is not None:
            return max(hint, _LEAST)
        history = self.histories.get(kind)
        return self._default if history is None else history.estimate(size)

    def learn(self, kind: Kind, seconds: float, estimate: float, size: float | None = None) -> None:
        """A task of a kind took so long, and was thought to take so long."""
        self.histories.setdefault(kind, History()).add(seconds, size=size, estimate=estimate)
