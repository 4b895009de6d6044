"""What came of the tasks of a tenant on an image so far: numbers, runtimes, rates."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy

from jobman.tasks.batches import Status

BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Seconds: the upper ends of the bins in which runtimes are counted."""
_FEW = 50
"""Below it, a column is not worth the while."""
_MEMORY = 5.0
"""Seconds that count for a rate."""


class Tally:
    """Of one tenant on one image."""

    def __init__(self) -> None:
        self.submitted = 0
        self.ended = dict.fromkeys((Status.COMPLETED, Status.FAILED, Status.KILLED, Status.EXPIRED), 0)
        self.seconds = 0.0
        """That workers spent."""
        self.runtimes = [0] * (len(BOUNDS) + 1)
        """How many took as long as each of the bins says, the last one for all above."""
        self.rate = 0.0
        """Tasks a second that ended lately."""
        self._lately = 0

    def count(self, status: Status, count: int) -> None:
        """So many more ended so; fewer, where they are tried again."""
        self.ended[status] += count
        self._lately += max(0, count)

    def took(self, seconds: Sequence[float]) -> None:
        """Each of these was executed, for so long."""
        self.seconds += sum(seconds)
        if len(seconds) < _FEW:
            for each in seconds:
                self.runtimes[bisect_left(BOUNDS, each)] += 1
            return
        bins = numpy.bincount(numpy.searchsorted(BOUNDS, seconds), minlength=len(self.runtimes))
        self.runtimes = [before + more for before, more in zip(self.runtimes, bins.tolist(), strict=True)]

    def pass_time(self, seconds: float) -> None:
        if seconds > 0:
            self.rate += (self._lately / seconds - self.rate) * min(1.0, seconds / _MEMORY)
            self._lately = 0


class Tallies:
    """By tenant and image."""

    def __init__(self) -> None:
        self.all: dict[tuple[str, str], Tally] = {}

    def of(self, tenant: str, image: str) -> Tally:
        found = self.all.get((tenant, image))
        if found is None:
            found = self.all[tenant, image] = Tally()
        return found

    def pass_time(self, seconds: float) -> None:
        for tally in self.all.values():
            tally.pass_time(seconds)
