"""Words for when something starts: `starts by 14:32 at the latest, expected around 14:10; 3rd in batch`."""

from __future__ import annotations

import time
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.control.answers import Estimate

_CLOSE = 600.0
"""Below so many seconds a moment is told to the second."""
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def sentence(estimate: Estimate, now: float | None = None, *, would: bool = False) -> str:
    """All that an estimate says, in one line; `would` where nothing was submitted."""
    now = time.time() if now is None else now
    verb = "would start" if would else "starts"
    if is_now(estimate, now):
        return f"{verb} now"
    parts = [no_promise(estimate, would=would)]
    expected = expectation(estimate, now, certain=estimate.guaranteed_by)
    if estimate.guaranteed_by is not None:
        parts = [f"{verb} by {latest(estimate.guaranteed_by, now)} at the latest"]
        if expected:
            parts = [f"{parts[0]}, expected {expected}"]
    elif expected:
        parts.append(f"expected {expected}")
    if estimate.position:
        parts.append(place(estimate.position, estimate.queue))
    return "; ".join(parts)


def no_promise(estimate: Estimate, *, would: bool = False) -> str:
    """`no promise: the queue batch is closed`, and why, where the service can tell."""
    words = "would get no promise" if would else "no promise" if estimate.unpromised else "no promise yet"
    return f"{words}: {estimate.unpromised}" if estimate.unpromised else words


def is_now(estimate: Estimate, now: float) -> bool:
    """Whether it starts as soon as anybody can see to it."""
    return estimate.starts_now or (estimate.guaranteed_by is not None and estimate.guaranteed_by <= now)


def expectation(estimate: Estimate, now: float, *, certain: float | None = None) -> str:
    """`around 14:10 (9 in 10: by 14:25)`; nothing where nobody can tell.

    The chances of what is not before `certain` were told already.
    """
    if estimate.expected_at is None:
        return ""
    said = "any moment" if estimate.expected_at <= now else f"around {moment(estimate.expected_at, now)}"
    p90 = estimate.expected_p90
    if p90 is None or p90 <= now or (certain is not None and p90 >= certain):
        return said
    by = latest(p90, now)
    return said if said == f"around {by}" else f"{said} (9 in 10: by {by})"


def place(position: int, queue: str = "") -> str:
    """`3rd in batch`."""
    return f"{ordinal(position)} in {queue or 'the queue'}"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    ending = "th" if number % 100 in (11, 12, 13) else _ORDINALS.get(number % 10, "th")
    return f"{number:,}{ending}"


def latest(at: float, now: float) -> str:
    """A moment that is a promise: rounded up, so that it is kept."""
    return _clock(ceil(at / _step(at, now)) * _step(at, now), now)


def moment(at: float, now: float) -> str:
    """A moment as near as it makes sense: `14:32:05` if it is close, `14:32` today, else with the date."""
    return _clock(round(at / _step(at, now)) * _step(at, now), now)


def _step(at: float, now: float) -> int:
    return 1 if abs(at - now) < _CLOSE else 60


def _clock(at: float, now: float) -> str:
    then, today = time.localtime(at), time.localtime(now)
    form = "%H:%M:%S" if abs(at - now) < _CLOSE else "%H:%M"
    is_today = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime(form if is_today else f"%Y-%m-%d {form}", then)
