"""How busy a machine was over a replay: processors in use and jobs that wait, in equal steps of time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import msgspec

from jobman.sim.outcome import Outcome


class Series(msgspec.Struct, frozen=True):
    """Averages over steps of time, the first of which begins at `begin`."""

    begin: float
    step: float
    used: list[float]
    """Processors in use."""
    waiting: list[float]
    """Jobs that were submitted and had not started."""

    @property
    def end(self) -> float:
        return self.begin + self.step * len(self.used)


def series(outcome: Outcome, steps: int, begin: float | None = None, end: float | None = None) -> Series:
    """The use of the machine in so many steps, of all the replay or of a part of it."""
    first, last = outcome.span if outcome.jobs else (0.0, 1.0)
    begin = first if begin is None else begin
    end = max(last if end is None else end, begin + 1.0)
    step = (end - begin) / steps
    jobs, starts = outcome.jobs, outcome.starts
    used = _averages(
        ((start, start + job.run, job.processors) for job, start in zip(jobs, starts, strict=True)),
        begin,
        step,
        steps,
    )
    waiting = _averages(
        ((job.submit, start, 1) for job, start in zip(jobs, starts, strict=True) if start > job.submit),
        begin,
        step,
        steps,
    )
    return Series(begin, step, used, waiting)


def _averages(
    spans: Iterable[tuple[float, float, float]], begin: float, step: float, steps: int
) -> list[float]:
    """What spans add up to, on average in each step; whole steps are entered at their two ends only."""
    partial = [0.0] * (steps + 1)
    change = [0.0] * (steps + 2)
    for start, end, amount in spans:
        low = min(max((start - begin) / step, 0.0), steps)
        high = min(max((end - begin) / step, 0.0), steps)
        if high <= low:
            continue
        first, last = int(low), int(high)
        if first == last:
            partial[first] += amount * (high - low)
            continue
        partial[first] += amount * (first + 1 - low)
        partial[last] += amount * (high - last)
        change[first + 1] += amount
        change[last] -= amount
    whole = accumulate(change[:steps])
    return [found + rest for found, rest in zip(whole, partial[:steps], strict=True)]
