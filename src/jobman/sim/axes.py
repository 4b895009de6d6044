"""Round marks for axes: numbers, lengths of time and dates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 14, 28, 56, 112, 365, 730, 1825, 3650)),
)


class Mark(NamedTuple):
    """A place on an axis and what is written there."""

    at: float
    words: str


def number_marks(most: float, wanted: int = 4) -> list[Mark]:
    """Round numbers from 0 to at least so much, about as many as are wanted."""
    step = _round_step(max(most, 1e-9) / wanted)
    count = 1
    while step * count < most:
        count += 1
    return [Mark(step * place, f"{step * place:,g}") for place in range(count + 1)]


def _round_step(least: float) -> float:
    size = 1.0
    while size < least:
        size *= 10
    while size / 10 >= least:
        size /= 10
    return next(size * part for part in (0.2, 0.25, 0.5, 1.0) if size * part >= least)


def time_marks(begin: float, end: float, began: float | None, wanted: int = 8) -> list[Mark]:
    """Round moments between two; dates where it is known when the trace began, lengths of time otherwise."""
    span = end - begin
    step = next((step for step in _STEPS if span / step <= wanted), _STEPS[-1])
    offset = began or 0.0
    first = -int(-(begin + offset) // step) * step
    marks = []
    at = first
    while at <= end + offset:
        words = _date(at, step) if began else _length(at, step)
        marks.append(Mark(at - offset, words))
        at += step
    return marks


def _date(moment: float, step: float) -> str:
    form = "%Y-%m-%d" if step >= _DAY else "%m-%d %H:%M" if step >= _MINUTE else "%H:%M:%S"
    return datetime.fromtimestamp(moment, UTC).strftime(form)


def _length(seconds: float, step: float) -> str:
    """`day 12`, `3:15 h` or `40 s` since the trace began."""
    days, rest = divmod(round(seconds), _DAY)
    if step >= _DAY:
        return f"day {days}"
    clock = f"{rest // _HOUR}:{rest % _HOUR // _MINUTE:02}"
    if step < _MINUTE:
        clock += f":{rest % _MINUTE:02}"
    return f"day {days}, {clock}" if days else clock
