"""Policies by the names people know them by, as queues of the scheduler."""

from __future__ import annotations

import msgspec

from jobman.sched.queues import Queue, Weights
from jobman.sim.trace import TraceError

IN_ORDER = Weights(priority=0.0, age=0.0, size=0.0, fair_share=0.0, queue=0.0)
"""Nothing counts but the order of submission."""
_NAME = "batch"
POLICIES = {
    "fcfs": Queue(name=_NAME, depth=0, weights=IN_ORDER),
    "easy": Queue(name=_NAME, depth=1, weights=IN_ORDER),
    "easy-sjbf": Queue(name=_NAME, depth=1, shortest_first=True, weights=IN_ORDER),
    "conservative": Queue(name=_NAME, depth=None, weights=IN_ORDER),
}
NAMES = (*POLICIES, "hybrid:K")


def policy(name: str) -> Queue:
    """The queue of a policy; raises TraceError where there is none of that name."""
    if name in POLICIES:
        return POLICIES[name]
    kind, _, depth = name.partition(":")
    if kind == "hybrid" and depth.isdecimal() and 0 < int(depth) < 10**9:
        return msgspec.structs.replace(POLICIES["easy"], depth=int(depth))
    advice = "in hybrid:K, K is how many have a place of their own, such as hybrid:64"
    raise TraceError(f"{name!r} is not one of {', '.join(NAMES)}", advice)
