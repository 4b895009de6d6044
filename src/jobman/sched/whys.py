"""Why a request waits: found by trying what would be if this or that were not in its way. Changes nothing."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

import msgspec

from jobman.plan.wording import format_duration
from jobman.sched.gangs import Choice, Spot
from jobman.sched.lanes import Entry
from jobman.sched.planner import Planner
from jobman.sched.quotas import Row

Kind = Literal[
    "resources", "limit", "reservation", "maintenance", "priority", "start", "queue", "node", "never"
]
_AN_INSTANT = 1e-3
_MOST_NAMED = 3


class Why(msgspec.Struct, frozen=True):
    """What blocks a request, in words without a full stop."""

    kind: Kind
    message: str


def why(planner: Planner, request_id: str, now: float) -> Why:
    """What blocks a request that waits."""
    entry = planner.entries[request_id]
    for reason in (_itself, _booking, _nodes, _limits, _windows, _others):
        found = reason(planner, entry, now)
        if found is not None:
            return found
    return Why("resources", _shortage(planner, entry))


def _itself(planner: Planner, entry: Entry, now: float) -> Why | None:
    """What it wants itself, its queue, and those it must start with."""
    request = entry.request
    if entry.is_running:
        return Why("start", "it has started")
    if entry.lane.is_closed:
        return Why("queue", f"the queue {entry.lane.queue.name} is closed")
    if request.earliest > now:
        return Why(
            "start", f"it is not to start before {format_duration(request.earliest - now)} have passed"
        )
    if request.latest < now:
        return Why(
            "start", f"it was to start until {format_duration(now - request.latest)} ago, and could not"
        )
    missing = entry.circle.missing if entry.circle is not None else []
    if missing:
        return Why("start", f"it starts together with {', '.join(missing)}, which does not wait yet")
    if not request.reservation and not planner.compiler.could_ever(entry.gang):
        return Why("never", _never(entry))
    return None


def _never(entry: Entry) -> str:
    choice = entry.gang.choices[0]
    for piece in choice.pieces:
        suited = len(piece.ground.rows)
        if not suited:
            return f"no node of the queue {entry.lane.queue.name} has what it asks for"
        if piece.single and suited < piece.wanted:
            return f"it asks for {piece.wanted} nodes, and {_are(suited)} there that suit it"
    return "it finds no room even when all nodes are empty"


def _booking(planner: Planner, entry: Entry, now: float) -> Why | None:
    """The advance reservation it asked for."""
    request = entry.request
    if not request.reservation:
        return None
    windows = [window for window in planner.book.windows.of(request) if window.end > now]
    if not windows:
        return Why("reservation", f"there is no reservation {request.reservation} for it any more")
    if windows[0].start > now:
        begins = format_duration(windows[0].start - now)
        return Why("reservation", f"the reservation {request.reservation} begins in {begins}")
    if entry.spot is None:
        return Why(
            "reservation", f"it does not fit into what is left of the reservation {request.reservation}"
        )
    return Why("reservation", f"others use the reservation {request.reservation} before it")


def _nodes(planner: Planner, entry: Entry, now: float) -> Why | None:  # noqa: ARG001
    """Nodes that are away, without which there are too few."""
    rows, away = planner.timeline.rows, planner.upkeep.away
    for piece in entry.gang.choices[0].pieces:
        gone = [rows[number].name for number in piece.ground.everywhere if rows[number].name in away]
        left = len(piece.ground.everywhere) - len(gone)
        if gone and left < (piece.wanted if piece.single else 1):
            named = ", ".join(f"{name} is {away[name].state}" for name in gone[:_MOST_NAMED])
            more = f" and {len(gone) - _MOST_NAMED} more are away" if len(gone) > _MOST_NAMED else ""
            return Why("node", f"{named}{more}")
    return None


def _limits(planner: Planner, entry: Entry, now: float) -> Why | None:
    """A limit, where there would be room."""
    gang, book = entry.gang, planner.book
    for choice in gang.choices if gang.bounds else ():
        spot = _try_now(planner, entry, choice, entry.limit, now)
        for bound, pairs in () if spot is None else book.compiler.takes(gang, spot):
            end = now + entry.limit
            if not bound.has_now(entry.job, pairs) or not bound.fits(entry.job, pairs, now, end):
                return Why("limit", f"{_whose(bound.name)} would be exceeded")
    return None


def _whose(name: Hashable) -> str:
    if isinstance(name, tuple) and len(name) == 2 and name[0] == "share":
        return f"the share of the queue {name[1]}"
    return f"the limit of {name.who}{name.where}" if isinstance(name, Row) else f"the limit {name}"


def _windows(planner: Planner, entry: Entry, now: float) -> Why | None:
    """A window that it would run into."""
    windows = planner.book.windows
    met = windows.all_meeting(set(_everywhere(entry)), now, now + entry.limit)
    for window in met:
        with windows.opened(window):
            if any(_try_now(planner, entry, choice, entry.limit, now) for choice in entry.gang.choices):
                kind: Kind = "maintenance" if window.block.kind == "maintenance" else "reservation"
                if window.start <= now:
                    return Why(kind, f"{window.words} is under way on nodes that it could have")
                begins = format_duration(window.start - now)
                return Why(kind, f"it would run into {window.words}, which begins in {begins}")
    return None


def _everywhere(entry: Entry) -> list[int]:
    return [number for piece in entry.gang.pieces for number in piece.ground.everywhere]


def _others(planner: Planner, entry: Entry, now: float) -> Why | None:
    """Those before it: there is room, but not for it."""
    lane = entry.lane
    ahead = lane.place(entry)
    for choice in entry.gang.choices:
        if _try_now(planner, entry, choice, entry.limit, now) is not None:
            return Why("priority", f"{_count(ahead)} before it in the queue {lane.queue.name}")
        if _try_now(planner, entry, choice, _AN_INSTANT, now) is not None:
            return Why("priority", "there is room, but others were promised it before its time would be over")
    return None


def _shortage(planner: Planner, entry: Entry) -> str:
    """What there is too little of, and what is planned."""
    choice = entry.gang.choices[0]
    rows = planner.timeline.rows
    words = "too little is free"
    for piece in choice.pieces:
        most = 1 if piece.single else piece.wanted
        found = sum(min(rows[number].has_now(piece), most) for number in piece.ground.everywhere)
        if found < piece.wanted:
            noun = "nodes" if piece.single else "pieces"
            many = f"{found} of {piece.wanted} {noun} find room now"
            words = many if piece.wanted > 1 else "no node has enough free"
            break
    ahead = entry.lane.place(entry)
    return f"{words}; {_count(ahead)} before it in the queue {entry.lane.queue.name}" if ahead else words


def _try_now(planner: Planner, entry: Entry, choice: Choice, limit: float, now: float) -> Spot | None:
    """Where an alternative could start now, without its own reservation in its way."""
    book, gang = planner.book, entry.gang
    spot, hot, barrier = entry.spot, gang.hot, entry.lane.barrier
    if spot is not None:
        book.unhold(entry)
    gang.hot = None
    found = planner.timeline.now_as(gang, choice, limit, now)
    gang.hot = hot
    if spot is not None:
        book.hold(entry, spot)
        entry.lane.barrier = barrier
    return found


def _count(ahead: int) -> str:
    return "nobody is" if not ahead else "1 request is" if ahead == 1 else f"{ahead} requests are"


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count} are"
