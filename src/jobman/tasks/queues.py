"""Who is next: the tasks of one image, in lines of tenants that share its workers by weight.

Fair by estimated seconds: a tenant with few long tasks gets as much time as one with many short ones. Each
tenant has a clock of its own that runs by the seconds it was given, divided by its weight; whoever is
furthest behind is next. Who had nothing to do begins where the others are, so that nobody saves up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from math import ceil, inf

from jobman.tasks.batches import Batch, Span, Status

Room = Callable[[str], float]
"""How many more tasks of a tenant may be with workers."""
Lean = Callable[[Batch], float]
"""What tasks of a batch take beside their estimates."""
QUANTUM = 0.01
"""Seconds by which a tenant may get ahead of the others in one turn, so that turns are not single tasks."""
_INSTANT = 1e-6
"""Seconds that a task takes at least: what takes no time must still take turns."""
_MOST_BYTES = 16 * 2**20
"""Of payloads that are given out at once."""


def anything(_: str) -> float:
    """The room of tenants without limits."""
    return inf


def straight(_: Batch) -> float:
    """The lean of estimates that are right."""
    return 1.0


class Line:
    """What one tenant waits for: the highest priority first, then in order."""

    def __init__(self) -> None:
        self._spans: dict[int, deque[Span]] = {}
        self.count = 0
        self.seconds = 0.0
        self.clock = 0.0

    def put(self, span: Span, *, first: bool = False) -> None:
        """Behind all others of its priority, or before them."""
        spans = self._of(span.batch.priority)
        if first:
            spans.appendleft(span)
        else:
            spans.append(span)
        self.count += span.size
        self.seconds += span.seconds

    def _of(self, priority: int) -> deque[Span]:
        if priority not in self._spans:
            self._spans[priority] = deque()
            self._spans = dict(sorted(self._spans.items(), reverse=True))
        return self._spans[priority]

    def take(self, seconds: float, most: float, lean: Lean = straight) -> Span | None:
        """The first that fill so many seconds, at least one and at most so many, all of one batch."""
        for spans in self._spans.values():
            while spans:
                batch, low, high = spans.popleft()
                # Those that were cancelled meanwhile are passed over.
                for start, end in batch.queued(low, high):
                    until = min(end, start + _filling(batch, start, end, seconds / lean(batch), most))
                    if until < high:
                        spans.appendleft(Span(batch, until, high))
                    found = Span(batch, start, until)
                    # At once, as another span may hold the same: of such as were put back.
                    batch.mark(start, until, Status.GIVEN)
                    self.forget(found)
                    return found
        return None

    def forget(self, span: Span) -> None:
        """These wait no longer: they were taken, or cancelled."""
        self.count -= span.size
        self.seconds = self.seconds - span.seconds if self.count else 0.0


def _filling(batch: Batch, low: int, high: int, seconds: float, most: float) -> int:
    """How many of a range fill so many seconds."""
    most = min(most, high - low, _MOST_BYTES * len(batch) / max(1, batch.volume))
    if isinstance(batch.estimates, float):
        return max(1, int(min(most, ceil(seconds / max(batch.estimates, _INSTANT)))))
    count = 0
    while count < most and seconds > 0:
        seconds -= max(batch.estimates[low + count], _INSTANT)
        count += 1
    return max(1, count)


class Queue:
    """The lines of all tenants for one image."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._last = 0.0
        """Where the one stood who was furthest behind when somebody was served last."""
        self.lines: dict[str, Line] = {}

    @property
    def count(self) -> int:
        return sum(line.count for line in self.lines.values())

    @property
    def seconds(self) -> float:
        """Outstanding work."""
        return sum(line.seconds for line in self.lines.values())

    def put(self, span: Span, *, first: bool = False) -> None:
        line = self.lines.setdefault(span.batch.tenant, Line())
        if not line.count:
            line.clock = max(line.clock, self._now())
        line.put(span, first=first)

    def _now(self) -> float:
        return min((line.clock for line in self.lines.values() if line.count), default=self._last)

    def take(
        self, seconds: float, most: float = inf, room: Room = anything, lean: Lean = straight
    ) -> list[Span]:
        """Work of so many seconds, by turns of whoever is furthest behind."""
        found: list[Span] = []
        given: dict[str, int] = {}
        size = 0.0
        while seconds > 0 and most >= 1 and size < _MOST_BYTES:
            waiting = self._waiting(lambda tenant: room(tenant) - given.get(tenant, 0))
            if not waiting:
                break
            clock, tenant = waiting[0]
            self._last = clock
            lead = (waiting[1][0] - clock) * self._weight(tenant) if len(waiting) > 1 else inf
            span = self.lines[tenant].take(
                min(seconds, lead + QUANTUM), min(most, room(tenant) - given.get(tenant, 0)), lean
            )
            if span is None:
                break
            worth = span.seconds * lean(span.batch)
            self.charge(tenant, worth)
            found.append(span)
            given[tenant] = given.get(tenant, 0) + span.size
            seconds -= max(worth, span.size * _INSTANT)
            most -= span.size
            size += span.size * span.batch.volume / len(span.batch)
        return found

    def _waiting(self, room: Room) -> list[tuple[float, str]]:
        """Who may have something, whoever is furthest behind first."""
        found = []
        for tenant, line in self.lines.items():
            if line.count and room(tenant) >= 1:
                found.append((line.clock, tenant))
            elif line.count:
                # Who has all it may have does not save up either.
                line.clock = max(line.clock, self._last)
        return sorted(found)

    def estimate(self, batch: Batch, seconds: float) -> None:
        """Each task of a batch that waits is known to take so long from now on."""
        assert isinstance(batch.estimates, float)
        more = seconds - batch.estimates
        self.lines[batch.tenant].seconds += more * batch.count(Status.QUEUED)
        batch.estimates = seconds

    def charge(self, tenant: str, seconds: float) -> None:
        """Time that a tenant was given, or took; less than nothing is given back."""
        self.lines.setdefault(tenant, Line()).clock += seconds / self._weight(tenant)

    def _weight(self, tenant: str) -> float:
        return self._weights.get(tenant, 1.0)
