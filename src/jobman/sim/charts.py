"""The chart of a replay: processors in use and jobs that wait over time, for one policy or several."""

from __future__ import annotations

from collections.abc import Sequence

from jobman.sim.axes import number_marks, time_marks
from jobman.sim.outcome import Outcome
from jobman.sim.picture import FOOT, GAP, SHADES, TOP, Panel, axes, legend, page
from jobman.sim.series import Series, series

_STEPS = 512
_HEIGHT = 190.0


def chart(
    outcomes: Sequence[Outcome], title: str, begin: float | None = None, end: float | None = None
) -> str:
    """An SVG picture of replays of one trace, from one moment of it to another."""
    found = [series(outcome, _STEPS, begin, end) for outcome in outcomes]
    begin = min(each.begin for each in found) if begin is None else begin
    end = max(each.end for each in found) if end is None else end
    if len({(each.begin, each.end) for each in found}) > 1:
        found = [series(outcome, _STEPS, begin, end) for outcome in outcomes]
    most = max(outcome.processors for outcome in outcomes)
    queues = number_marks(max(1.0, *(max(each.waiting) for each in found)))
    above = Panel(TOP + 8, _HEIGHT, begin, end, most)
    below = Panel(above.top + _HEIGHT + GAP, _HEIGHT, begin, end, queues[-1].at)
    times = time_marks(begin, end, outcomes[0].began)
    used = [mark for mark in number_marks(most) if mark.at <= most]
    parts = axes(above, times, used, "processors in use", dated=False)
    parts += axes(below, times, queues, "jobs that wait", dated=True)
    for shade, each in zip(_shades(len(found)), found, strict=True):
        parts.append(_line(above, each, each.used, shade))
        parts.append(_line(below, each, each.waiting, shade))
    height = below.top + _HEIGHT + FOOT + 10
    parts += legend(
        [(shade, outcome.policy) for shade, outcome in zip(_shades(len(found)), outcomes, strict=True)],
        height - 12,
    )
    return page(title, _subtitle(outcomes, found[0]), height, parts)


def _shades(count: int) -> list[str]:
    return [SHADES[place % len(SHADES)] for place in range(count)]


def _subtitle(outcomes: Sequence[Outcome], one: Series) -> str:
    hours = one.step / 3600
    step = (
        f"{hours:.1f} h"
        if hours >= 1
        else f"{one.step / 60:.1f} min"
        if one.step >= 60
        else f"{one.step:.0f} s"
    )
    first = outcomes[0]
    return f"{len(first.jobs):,} jobs on {first.processors:,} processors; each point is the average of {step}"


def _line(panel: Panel, found: Series, values: Sequence[float], shade: str) -> str:
    """A step for each value; values that follow their equals need no point."""
    path = []
    last = None
    for place, value in enumerate(values):
        y = f"{panel.y(value):.1f}"
        if y != last:
            x = f"{panel.x(found.begin + place * found.step):.1f}"
            path.append(f"M{x} {y}" if last is None else f"H{x}V{y}")
            last = y
    path.append(f"H{panel.x(found.end):.1f}")
    return f'<path class="line" stroke="{shade}" d="{"".join(path)}"/>'
