"""The Gantt chart of a replay: which job had which processors when. The largest jobs of a part of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush, nlargest
from typing import NamedTuple
from xml.sax.saxutils import escape

from jobman.sim.axes import number_marks, time_marks
from jobman.sim.outcome import Outcome
from jobman.sim.picture import FOOT, SHADES, TOP, Panel, axes, page

Span = tuple[int, int]
MOST = 4000
"""Rectangles in one picture; more than that nobody sees and few programs like."""
_HEIGHT = 480.0


class Bar(NamedTuple):
    """A job on neighbouring processors, from `low` up to but not including `high`."""

    position: int
    start: float
    end: float
    low: int
    high: int

    @property
    def area(self) -> float:
        return (self.end - self.start) * (self.high - self.low)


def gantt(
    outcome: Outcome, title: str, begin: float | None = None, end: float | None = None, most: int = MOST
) -> str:
    """An SVG picture of a replay, from one moment of it to another; colours tell users apart."""
    first, last = outcome.span
    begin = first if begin is None else begin
    end = max(last if end is None else end, begin + 1.0)
    seen = [clipped for bar in bars(outcome) if (clipped := _clip(bar, begin, end)) is not None]
    shown = nlargest(most, seen, key=lambda bar: bar.area)
    panel = Panel(TOP + 8, _HEIGHT, begin, end, outcome.processors)
    marks = [mark for mark in number_marks(outcome.processors, 8) if mark.at <= outcome.processors]
    parts = axes(panel, time_marks(begin, end, outcome.began), marks, "processors", dated=True)
    parts += (_rectangle(panel, bar, outcome) for bar in sorted(shown))
    return page(title, _subtitle(outcome, seen, shown), TOP + 8 + _HEIGHT + FOOT, parts)


def bars(outcome: Outcome) -> Iterator[Bar]:
    """Every job on the lowest processors that were free as it started, of its nodes where they are known."""
    jobs, starts = outcome.jobs, outcome.starts
    rows = _Rows(outcome)
    ends: list[tuple[float, int, list[Span]]] = []
    for position in sorted(range(len(jobs)), key=lambda place: (starts[place], place)):
        while ends and ends[0][0] <= starts[position]:
            rows.give(heappop(ends)[2])
        taken = rows.take(position)
        end = starts[position] + jobs[position].run
        heappush(ends, (end, position, taken))
        for low, high in taken:
            yield Bar(position, starts[position], end, low, high)


class _Rows:
    """Which processors are free: spans in order, none of which reaches over two nodes."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._floors: dict[str, Span] = {}
        low = 0
        for name, cores in outcome.nodes or [("", outcome.processors)]:
            self._floors[name] = (low, low + cores)
            low += cores
        self._bounds = {low for low, _ in self._floors.values()}
        self._free = list(self._floors.values())

    def take(self, position: int) -> list[Span]:
        job = self._outcome.jobs[position]
        placed = self._outcome.places[position] if self._outcome.places else None
        if placed is None or len(self._floors) == 1:
            return self._from((0, self._outcome.processors), job.processors)
        pieces = Counter[str]()
        for part in placed.places:
            pieces.update(part)
        each = max(1, job.processors // max(1, pieces.total()))
        return [
            span for name, count in pieces.items() for span in self._from(self._floors[name], count * each)
        ]

    def _from(self, floor: Span, wanted: int) -> list[Span]:
        """So many processors of those between two; fewer where a job shares them with others."""
        taken: list[Span] = []
        kept: list[Span] = []
        for low, high in self._free:
            part = min(wanted, high - low) if floor[0] <= low < floor[1] else 0
            wanted -= part
            if part:
                taken.append((low, low + part))
            if low + part < high:
                kept.append((low + part, high))
        self._free = kept
        return taken

    def give(self, taken: Sequence[Span]) -> None:
        joined: list[Span] = []
        for low, high in sorted((*self._free, *taken)):
            if joined and joined[-1][1] == low and low not in self._bounds:
                joined[-1] = (joined[-1][0], high)
            else:
                joined.append((low, high))
        self._free = joined


def _clip(bar: Bar, begin: float, end: float) -> Bar | None:
    if bar.end <= begin or bar.start >= end:
        return None
    return bar._replace(start=max(bar.start, begin), end=min(bar.end, end))


def _rectangle(panel: Panel, bar: Bar, outcome: Outcome) -> str:
    job = outcome.jobs[bar.position]
    x, right = panel.x(bar.start), panel.x(bar.end)
    top, bottom = panel.y(bar.high), panel.y(bar.low)
    words = f"job {job.number}, user {job.user or '?'}: {job.processors} × {job.run:.0f} s"
    place = f'x="{x:.1f}" y="{top:.1f}" width="{max(right - x, 0.3):.1f}" height="{bottom - top:.1f}"'
    return f'<rect class="job" fill="{_shade(job.user)}" {place}><title>{escape(words)}</title></rect>'


def _shade(user: str) -> str:
    """A colour that a user has in every picture."""
    return SHADES[sum(place * ord(letter) for place, letter in enumerate(user, 1)) % len(SHADES)]


def _subtitle(outcome: Outcome, seen: Sequence[Bar], shown: Sequence[Bar]) -> str:
    jobs = len({bar.position for bar in seen})
    words = f"{outcome.policy}: {jobs:,} jobs on {outcome.processors:,} processors, a colour for each user"
    if len(shown) < len(seen):
        words += f"; only the {len(shown):,} largest of {len(seen):,} rectangles, take a shorter part for all"
    return words
