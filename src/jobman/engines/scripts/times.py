"""How long a script may take: all attempts of its task, with the time to end in peace."""

from __future__ import annotations

from jobman.engines.scripts.units import DEFAULT_GRACE
from jobman.plan.model import Plan, Unit

_SPARE = 60.0
"""Seconds beyond what a script allows itself: it ends by itself, and not by its manager."""


def time_needed(unit: Unit, plan: Plan, default: float | None = None) -> float | None:
    """Seconds for all attempts of a unit; None where there is no limit."""
    duration = unit.duration or default
    if duration is None:
        return None
    grace = DEFAULT_GRACE if unit.policies.grace is None else unit.policies.grace
    retries = unit.policies.retries
    tries = 1 if retries is None else retries.limit + 1
    pauses = 0.0 if retries is None else sum(retries.delay * retries.factor**n for n in range(retries.limit))
    cleanup = sum((child.duration or _SPARE) for child in plan.children(unit.id) if child.when == "always")
    return tries * (duration + grace + cleanup) + pauses + _SPARE
