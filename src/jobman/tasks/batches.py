"""Tasks that were submitted together, held as columns: a million of them are no million objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy


class Status(IntEnum):
    """Where a task is; from `COMPLETED` on it has ended."""

    QUEUED = 0
    GIVEN = 1
    RESTING = 2
    """Not in the queue: it failed and waits for its next attempt, or is to be given out alone."""
    COMPLETED = 3
    FAILED = 4
    KILLED = 5
    EXPIRED = 6
    DROPPED = 7
    """It failed, and nobody wants to hear of it any more."""


ENDED = Status.COMPLETED
OPEN = (Status.QUEUED, Status.GIVEN, Status.RESTING)
_QUEUED = bytes([Status.QUEUED])


class Batch:
    """Tasks of one tenant for one image. What most have in common is said once."""

    __slots__ = (
        "attempts",
        "deadline",
        "estimates",
        "id",
        "image",
        "is_fetched",
        "left",
        "priority",
        "since",
        "states",
        "tenant",
        "volume",
    )

    def __init__(
        self,
        id_: int,
        *,
        image: str,
        tenant: str,
        estimates: float | Sequence[float],
        size: int | None = None,
        priority: int = 0,
        deadline: float | None = None,
        volume: int = 0,
        since: float = 0.0,
    ) -> None:
        count = size or 0 if isinstance(estimates, float | int) else len(estimates)
        self.id = id_
        self.image = image
        self.tenant = tenant
        self.estimates = estimates
        """Seconds of each, or of all."""
        self.priority = priority
        self.deadline = deadline
        """On the clock of the broker."""
        self.since = since
        """When it was submitted, on the clock of the broker."""
        self.volume = volume
        """Bytes of all payloads."""
        self.is_fetched = False
        """Whether nobody will ask for its results again."""
        self.states = bytearray(count)
        self.attempts: dict[int, int] = {}
        """How often a task was given out; once, where nothing is said."""
        self.left = count
        """How many have not ended."""

    def __len__(self) -> int:
        return len(self.states)

    def estimate(self, index: int) -> float:
        return self.estimates if isinstance(self.estimates, float) else self.estimates[index]

    def seconds(self, low: int, high: int) -> float:
        """Estimated seconds of a range."""
        if isinstance(self.estimates, float):
            return self.estimates * (high - low)
        return sum(self.estimates[low:high])

    def seconds_of(self, indexes: Sequence[int]) -> float:
        """Estimated seconds of some."""
        if isinstance(self.estimates, float):
            return self.estimates * len(indexes)
        return sum(self.estimates[index] for index in indexes)

    def attempt(self, index: int) -> int:
        return self.attempts.get(index, 1)

    def mark(self, low: int, high: int, status: Status) -> None:
        """Set the status of a range; whoever ends is not counted as left any more."""
        open_before = sum(self.states.count(each, low, high) for each in OPEN)
        self.states[low:high] = bytes([status]) * (high - low)
        self.left += (0 if status >= ENDED else high - low) - open_before

    def count(self, status: Status) -> int:
        """How many are there."""
        return self.states.count(status)

    def where(self, *statuses: Status) -> list[int]:
        """The indexes of those that are in one of these."""
        states = numpy.frombuffer(self.states, numpy.uint8)
        found: list[int] = numpy.flatnonzero(numpy.isin(states, statuses)).tolist()
        return found

    def queued(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The ranges of those that still wait: others were cancelled meanwhile."""
        states = self.states
        at = low
        while at < high:
            start = states.find(_QUEUED, at, high)
            if start < 0:
                return
            at = _other(states, start, high)
            yield start, at


def _other(states: bytearray, start: int, high: int) -> int:
    """Where those that wait end."""
    rest = states[start:high].lstrip(_QUEUED)
    return high - len(rest)


class Span(NamedTuple):
    """Some tasks of a batch, one behind the other."""

    batch: Batch
    low: int
    high: int

    @property
    def size(self) -> int:
        return self.high - self.low

    @property
    def seconds(self) -> float:
        return self.batch.seconds(self.low, self.high)
