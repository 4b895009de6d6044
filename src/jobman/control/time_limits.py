"""Time limits as the planner counts them: with grace and a margin, and what stands for none."""

from __future__ import annotations

from math import inf

from jobman.engines.local.orders import DEFAULT_GRACE
from jobman.sched.scheduling import Scheduling

ASSUMED = 365 * 86400.0
"""Seconds for which something without a time limit is taken to run: long enough that nobody waits for it, and
that it keeps its turn."""
FAR = ASSUMED / 2
"""A start as far away as that depends on something without a limit: nothing can be promised."""


def limit_of(duration: float | None, grace: float | None, scheduling: Scheduling) -> float:
    """For how long somebody may hold what they get, all in all.

    The limit of jobs that give none is in their plans since they were submitted: nobody stops what came in
    before there was one.
    """
    if duration is None or duration == inf:
        return ASSUMED
    return duration + (DEFAULT_GRACE if grace is None else grace) + scheduling.stop_margin
