"""How long jobs ran, and what that says of the next one: a spread of run times for what waits or runs."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate
from math import inf, isfinite
from typing import NamedTuple

import msgspec

WIDE = 32
"""Runs kept where everybody's count."""
ENOUGH = 2.0
"""The weight at which coarser likenesses are no longer asked."""
_FADE = 0.85
"""What a run weighs against the one after it."""
_UNKNOWN = (0.02, 0.1, 0.3, 0.6, 1.0)
"""Parts of its limit that a job uses where nothing was ever seen."""
_UNLIMITED = (60.0, 600.0, 3600.0, 4 * 3600.0, 86400.0)
"""Seconds, where there is not even a limit."""
_LONGER = (1.1, 1.4, 2.0, 4.0, 10.0)
"""What has run longer than everything known goes on for about as long again."""


class Work(msgspec.Struct, frozen=True):
    """What makes one run like another."""

    user: str = ""
    name: str = ""
    shape: str = ""
    flavor: str = ""
    limit: float = inf


class Spread(NamedTuple):
    """Run times that may be, in order, and the weight of all up to each."""

    seconds: Sequence[float]
    weights: Sequence[float]

    def at(self, share: float) -> float:
        """The run time that this share of the weight does not exceed."""
        wanted = share * self.weights[-1]
        for seconds, weight in zip(self.seconds, self.weights, strict=True):
            if weight >= wanted:
                return seconds
        return self.seconds[-1]


class _Likeness(NamedTuple):
    """One way in which runs are alike, and how much such a run counts."""

    key: Callable[[Work], Hashable]
    """None where the work has nothing of the kind."""
    weight: float
    scaled: bool
    """Whether it is the part of the limit that is alike, and not the seconds."""
    wide: bool = False


LIKENESSES = (
    _Likeness(lambda work: work, 1.0, False),
    _Likeness(lambda work: ("name", work.user, work.name) if work.name else None, 1.5, False),
    _Likeness(lambda work: ("shape", work.user, work.shape, work.flavor), 0.2, True),
    _Likeness(lambda work: ("limit", work.user, work.limit), 0.5, False),
    _Likeness(lambda work: ("user", work.user), 0.25, True),
    _Likeness(lambda work: ("flavor", work.flavor) if work.flavor else None, 0.06, True, wide=True),
    _Likeness(lambda _work: "everything", 0.06, True, wide=True),
)
"""From the finest to the coarsest."""

_Run = tuple[float, float]
"""Seconds, and the limit it had."""


class History:
    """The last runs of each likeness: bounded, in a time that does not grow, rebuilt from what ran.

    Holds at most `keys` likenesses with `kept` runs each; the one not added to for longest goes first.
    """

    def __init__(self, *, keys: int = 50_000, kept: int = 16) -> None:
        self._runs: OrderedDict[Hashable, deque[_Run]] = OrderedDict()
        self._stamps: OrderedDict[str, int] = OrderedDict()
        self._keys = keys
        self._kept = kept
        self._count = 0
        self._faded = [_FADE**age for age in range(kept)]

    @classmethod
    def of(cls, runs: Iterable[tuple[Work, float]]) -> History:
        """A history of what ran, the oldest first, each with its seconds."""
        history = cls()
        for work, seconds in runs:
            history.add(work, seconds)
        return history

    def __len__(self) -> int:
        return self._count

    def stamp(self, work: Work) -> int:
        """Changes when there is something new on the user of this work."""
        return self._stamps.get(work.user, 0)

    def add(self, work: Work, seconds: float) -> None:
        """Remembers one run."""
        self._count += 1
        self._stamps[work.user] = self._count
        self._stamps.move_to_end(work.user)
        for likeness in LIKENESSES:
            key = likeness.key(work)
            if key is not None:
                self._remember(key, (max(0.0, seconds), work.limit), WIDE if likeness.wide else self._kept)
        self._forget()

    def spread(self, work: Work, elapsed: float = 0.0) -> Spread:
        """How long this work may run in all, given that it has run for so long already."""
        found: list[tuple[float, float]] = []
        total = 0.0
        for likeness in LIKENESSES:
            key = likeness.key(work)
            runs = self._runs.get(key) if key is not None else None
            if runs:
                total += self._collect(found, runs, likeness, work.limit, elapsed)
                if total >= ENOUGH:
                    break
        return _in_order(found or _guess(work.limit, elapsed))

    def remaining(self, work: Work, elapsed: float, share: float = 0.5) -> float:
        """Seconds that what runs for so long goes on, with this probability at most."""
        return max(0.0, self.spread(work, elapsed).at(share) - elapsed)

    def _collect(
        self,
        found: list[tuple[float, float]],
        runs: deque[_Run],
        likeness: _Likeness,
        limit: float,
        elapsed: float,
    ) -> float:
        """Adds what ran longer than `elapsed`, as it would under this limit; returns its weight."""
        weight = likeness.weight
        total = 0.0
        for age, (seconds, had) in enumerate(reversed(runs)):
            if likeness.scaled and had != limit and isfinite(had) and isfinite(limit) and had > 0:
                seconds *= limit / had
            seconds = min(seconds, limit)
            if seconds > elapsed or elapsed <= 0.0:
                counts = weight if likeness.wide else weight * self._faded[age]
                found.append((seconds, counts))
                total += counts
        return total

    def _remember(self, key: Hashable, run: _Run, kept: int) -> None:
        runs = self._runs.get(key)
        if runs is None:
            self._runs[key] = deque((run,), maxlen=kept)
            return
        runs.append(run)
        self._runs.move_to_end(key)

    def _forget(self) -> None:
        while len(self._runs) > self._keys:
            self._runs.popitem(last=False)
        while len(self._stamps) > self._keys:
            self._stamps.popitem(last=False)


def _guess(limit: float, elapsed: float) -> list[tuple[float, float]]:
    """What may be where nothing like it ran for so long."""
    if elapsed >= limit:
        return [(elapsed, 1.0)]
    typical = _UNLIMITED if limit == inf else [part * limit for part in _UNKNOWN]
    longer = [seconds for seconds in typical if seconds > elapsed]
    if limit == inf and len(longer) <= len(_UNLIMITED) // 2:
        longer = [elapsed * times for times in _LONGER]
    return [(seconds, 1.0) for seconds in longer]


def _in_order(found: list[tuple[float, float]]) -> Spread:
    found.sort()
    return Spread([seconds for seconds, _ in found], list(accumulate(weight for _, weight in found)))
