"""What would help a request to start sooner, found by trying."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import msgspec

from jobman.plan.wording import format_duration
from jobman.sched.planner import Planner
from jobman.sched.requests import Request
from jobman.spec.shapes import Part

_MOST = 8
"""Variants that are tried."""
_SHORTEST = 60.0
"""Seconds: nobody is advised to ask for less."""
_USUAL = (86400.0, 14400.0, 3600.0)
"""Seconds: limits for one that has none."""


class Suggestion(msgspec.Struct, frozen=True):
    """A variant that was tried, and when it would start."""

    words: str
    start: float


def suggest(
    planner: Planner, request: Request, now: float, *, duration: float | None = inf, beside: float = 0.0
) -> list[Suggestion]:
    """Variants of a request that start sooner, the soonest first; the words complete "… it would start …".

    `duration` is what was asked for, where the request's own limit stands for more than that; None for no
    limit at all. `beside` is what any limit holds beside a duration.
    """
    known = planner.try_out(_free(request), now).guaranteed_by
    entry = planner.entries.get(request.id)
    if entry is not None and entry.guaranteed is not None:
        known = entry.guaranteed
    if planner.entry(_free(request), now).lane.is_closed:
        known = None
    times = _Times(request.limit if duration == inf else duration, beside)
    found = []
    for number, (words, variant) in enumerate(_variants(planner, request, times)):
        if number == _MOST:
            break
        start = planner.try_out(variant, now).guaranteed_by
        if start is not None and (known is None or start < known):
            found.append(Suggestion(words, start))
    return sorted(found, key=lambda each: each.start)


def _free(request: Request) -> Request:
    """The request as one who is not bound to others asks."""
    return msgspec.structs.replace(request, id=f"{request.id}?", together=())


class _Times(NamedTuple):
    """The time that was asked for, and what a limit holds beside that."""

    duration: float | None
    beside: float


def _variants(planner: Planner, request: Request, times: _Times) -> Iterator[tuple[str, Request]]:
    if not planner.entry(_free(request), 0.0).lane.is_closed:
        yield from _fewer(request)
        yield from _shorter(request, times)
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


def _shorter(request: Request, times: _Times) -> Iterator[tuple[str, Request]]:
    """A limit of a half, a quarter, an eighth; for one that has none, limits that are usual."""
    asked = times.duration
    shorter = _USUAL if asked is None else [asked / 2, asked / 4, asked / 8]
    instead = "" if asked is None else f" instead of {format_duration(asked)}"
    for duration in shorter:
        if _SHORTEST <= duration < inf:
            words = f"with a time limit of {format_duration(duration)}{instead}"
            yield words, msgspec.structs.replace(_free(request), limit=duration + times.beside)


def _elsewhere(planner: Planner, request: Request) -> Iterator[tuple[str, Request]]:
    """Another queue that is open."""
    mine = planner.entry(_free(request), 0.0).lane.queue.name
    for lane in planner.lanes:
        if not lane.reservation and lane.queue.name != mine and lane.queue.state == "open":
            name = lane.queue.name
            yield f"in the queue {name}", msgspec.structs.replace(_free(request), queue=name)
