"""What would help a request to start sooner, found by trying."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import msgspec

from jobman.plan.wording import format_duration
from jobman.sched.planner import Planner
from jobman.sched.requests import Request
from jobman.spec.shapes import Part

_MOST = 8
"""Variants that are tried."""
_SHORTEST = 60.0
"""Seconds: nobody is advised to ask for less."""


class Suggestion(msgspec.Struct, frozen=True):
    """A variant that was tried, and when it would start."""

    words: str
    start: float


def suggest(planner: Planner, request: Request, now: float) -> list[Suggestion]:
    """Variants of a request that start sooner, the soonest first; the words complete "… it would start …"."""
    known = planner.try_out(_free(request), now).guaranteed_by
    entry = planner.entries.get(request.id)
    if entry is not None and entry.guaranteed is not None:
        known = entry.guaranteed
    found = []
    for number, (words, variant) in enumerate(_variants(planner, request)):
        if number == _MOST:
            break
        start = planner.try_out(variant, now).guaranteed_by
        if start is not None and (known is None or start < known):
            found.append(Suggestion(words, start))
    return sorted(found, key=lambda each: each.start)


def _free(request: Request) -> Request:
    """The request as one who is not bound to others asks."""
    return msgspec.structs.replace(request, id=f"{request.id}?", together=())


def _variants(planner: Planner, request: Request) -> Iterator[tuple[str, Request]]:
    yield from _fewer(request)
    yield from _shorter(request)
    yield from _elsewhere(planner, request)


def _fewer(request: Request) -> Iterator[tuple[str, Request]]:
    """Half as many nodes, or slots, and half of that."""
    parts = request.alternatives[0]
    if len(parts) != 1:
        return
    part = parts[0]
    noun = "slots" if part.nodes is None else "nodes"
    many = part.slots if part.nodes is None else part.nodes
    count = many // 2
    while count and count >= many // 4:
        smaller = msgspec.structs.replace(
            part, **({"slots": count} if part.nodes is None else {"nodes": count})
        )
        words = f"with {count} {noun if count > 1 else noun[:-1]} instead of {many}"
        yield words, _changed(request, smaller)
        count //= 2


def _changed(request: Request, part: Part) -> Request:
    return msgspec.structs.replace(_free(request), alternatives=((part,),))


def _shorter(request: Request) -> Iterator[tuple[str, Request]]:
    """A limit of a half, a quarter, an eighth."""
    limit = request.limit / 2
    for _ in range(3):
        if not _SHORTEST <= limit < inf:
            return
        words = f"with a limit of {format_duration(limit)} instead of {format_duration(request.limit)}"
        yield words, msgspec.structs.replace(_free(request), limit=limit)
        limit /= 2


def _elsewhere(planner: Planner, request: Request) -> Iterator[tuple[str, Request]]:
    """Another queue that is open."""
    mine = planner.entry(_free(request), 0.0).lane.queue.name
    for lane in planner.lanes:
        if not lane.reservation and lane.queue.name != mine and lane.queue.state == "open":
            name = lane.queue.name
            yield f"in the queue {name}", msgspec.structs.replace(_free(request), queue=name)
