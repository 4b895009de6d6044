"""What would help a request to start sooner, found by trying."""

from __future__ import annotations

import msgspec

from jobman.sched.planner import Planner
from jobman.sched.requests import Request


class Suggestion(msgspec.Struct, frozen=True):
    """A variant that was tried, and when it would start."""

    words: str
    start: float


def suggest(planner: Planner, request: Request, now: float) -> list[Suggestion]:
    """Variants of a request that start sooner."""
    return []
