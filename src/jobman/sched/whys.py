"""Why a request waits."""

from __future__ import annotations

from typing import Literal

import msgspec

from jobman.sched.planner import Planner

Kind = Literal["resources", "limit", "reservation", "maintenance", "priority", "start", "queue", "node", "never"]


class Why(msgspec.Struct, frozen=True):
    """What blocks a request, in words."""

    kind: Kind
    message: str


def why(planner: Planner, request_id: str, now: float) -> Why:
    """What blocks a request that waits."""
    position = planner.promise(request_id).position
    return Why("resources", f"{position - 1} before it in the queue" if position > 1 else "too little is free")
