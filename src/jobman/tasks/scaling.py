"""How many workers an image should have: as many as its outstanding seconds keep busy, and not more.

Up at once, because somebody waits; down slowly, because starting a worker costs more than keeping it a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How an image is scaled."""

    least: int = 0
    most: int = 8
    slots: int = 1
    """Tasks that a worker executes at once."""
    target: float = 10.0
    """Seconds in which what is outstanding should be done."""
    calm: float = 60.0
    """Seconds for which fewer workers must have been enough before there are fewer."""

    def seconds_for(self, workers: float, slots: float) -> float:
        """The work that so many workers, and so many slots of them, do in the time that is aimed at."""
        return min(workers * self.slots, slots) * self.target


class Scale:
    """The workers that one image is wanted to have, over time."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._wanted: list[tuple[float, int]] = []
        """What was wanted lately and when, each less than the one before it."""

    def wanted(self, outstanding: float, busy: int, now: float) -> int:
        """Workers for so many outstanding seconds and so many slots that are busy; time only grows."""
        enough = self._enough(outstanding, busy)
        while self._wanted and self._wanted[-1][1] <= enough:
            self._wanted.pop()
        self._wanted.append((now, enough))
        # The most that was wanted within the time of calm.
        while len(self._wanted) > 1 and self._wanted[0][0] <= now - self.limits.calm:
            self._wanted.pop(0)
        return self._wanted[0][1]

    def _enough(self, outstanding: float, busy: int) -> int:
        limits = self.limits
        by_work = ceil(outstanding / (limits.target * limits.slots))
        by_slots = ceil(busy / limits.slots)
        some = 1 if outstanding > 0 or busy else 0
        return max(limits.least, min(limits.most, max(by_work, by_slots, some)))


class Scales:
    """Those of all images, by limits that a site names; `*` stands for all others."""

    def __init__(self, limits: Mapping[str, Limits] | None = None) -> None:
        self._limits = limits or {}
        self._all: dict[str, Scale] = {}

    def of(self, image: str) -> Scale:
        if image not in self._all:
            self._all[image] = Scale(self._limits.get(image) or self._limits.get("*") or Limits())
        return self._all[image]


def to_end(workers: dict[str, int], count: int) -> list[str]:
    """Whom to drain first, so many of them: those that execute least, by their names where that is equal."""
    return [name for name, _ in sorted(workers.items(), key=lambda each: (each[1], each[0]))][:count]
