"""Why a request waits: found by trying what would be if this or that were not in its way. Changes nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import inf
from typing import Literal

import msgspec

from jobman.plan.wording import describe_amounts, format_amount, format_duration
from jobman.sched.bounds import JOB, Bound
from jobman.sched.capacity import to_amount
from jobman.sched.gangs import Choice, Piece, Spot
from jobman.sched.lanes import Entry, Lane
from jobman.sched.planner import Planner
from jobman.sched.profile import Pairs
from jobman.sched.quotas import Row
from jobman.sched.requests import Request

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
    for reason in (_itself, _booking, _nodes, _foreign, _limits, _windows, _others):
        found = reason(planner, entry, now)
        if found is not None:
            return found
    return Why("resources", _shortage(planner, entry))


def unpromised(planner: Planner, request: Request, now: float) -> str:
    """Why one who waits is promised no start, or would be, in words without a full stop."""
    entry = planner.entries.get(request.id) or planner.entry(request, now)
    lane = entry.lane
    found = _itself(planner, entry, now)
    if found is not None:
        return found.message
    if entry.request.reservation:
        name = entry.request.reservation
        if any(window.end > now for window in planner.schedule.windows.of(entry.request)):
            return f"it does not fit into what is left of the reservation {name}"
        return f"there is no reservation {name} for it any more"
    if not lane.strict and entry.spot is None and not lane.is_ahead(entry):
        return _not_among_the_first(lane)
    if entry.request.latest < inf:
        left = format_duration(max(0.0, entry.request.latest - now))
        return f"there is no room for it within the {left} in which it has to start"
    short = _nodes(planner, entry, now) or _foreign(planner, entry, now)
    return short.message if short is not None else "something in its way has no time limit"


def in_the_way(planner: Planner, request_ids: Iterable[str], more: float, now: float) -> str:
    """Who or what begins next on the nodes of what runs, if that ran for so much longer; in words."""
    running = [planner.entries[each] for each in request_ids]
    ends = min(entry.end for entry in running)
    rows = {number for entry in running if entry.spot is not None for number in entry.spot.rows}
    found = [
        (spot.start, f"job {other.job} was promised these nodes")
        for lane in planner.lanes
        for other in lane.reserved.values()
        if (spot := other.spot) is not None and not rows.isdisjoint(spot.rows) and lane.barrier is not other
    ]
    window = planner.schedule.windows.meeting(rows, ends, ends + more)
    if window is not None:
        found.append((window.start, f"{window.words} begins on these nodes"))
    first = min((each for each in found if ends <= each[0] < ends + more), default=None)
    return "" if first is None else f"{first[1]} in {format_duration(max(0.0, first[0] - now))}"


def _not_among_the_first(lane: Lane) -> str:
    queue = lane.queue.name
    if not lane.depth:
        return f"nobody in the queue {queue} is promised a start"
    who = "the first is" if lane.depth == 1 else f"the first {lane.depth} are"
    return f"in the queue {queue} only {who} promised a start"


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
    windows = [window for window in planner.schedule.windows.of(request) if window.end > now]
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
        # Of its queue's own: on others it runs only now and then, and nobody is promised that.
        own = piece.ground.rows
        gone = [rows[number].name for number in own if rows[number].name in away]
        left = len(own) - len(gone)
        if gone and left < (piece.wanted if piece.single else 1):
            named = ", ".join(f"{name} is {away[name].state}" for name in gone[:_MOST_NAMED])
            more = f" and {len(gone) - _MOST_NAMED} more are away" if len(gone) > _MOST_NAMED else ""
            return Why("node", f"{named}{more}")
    return None


def _foreign(planner: Planner, entry: Entry, now: float) -> Why | None:  # noqa: ARG001
    """Nodes of which others use so much that too few are left."""
    rows, away = planner.timeline.rows, planner.upkeep.away
    names = list(planner.timeline.kinds)
    for piece in entry.gang.choices[0].pieces:
        own = [rows[number] for number in piece.ground.rows]
        short = {
            row.name: {names[kind]: to_amount(names[kind], row.foreign[kind]) for kind in lacking}
            for row in own
            if (lacking := [kind for kind, least in piece.pairs if row.capacity[kind] < least])
        }
        left = sum(row.name not in short and row.name not in away for row in own)
        if short and left < (piece.wanted if piece.single else 1):
            used = [f"{describe_amounts(amounts)} of {name}" for name, amounts in short.items()]
            more = f" and much of {len(used) - _MOST_NAMED} more" if len(used) > _MOST_NAMED else ""
            return Why("node", f"others use {', '.join(used[:_MOST_NAMED])}{more}")
    return None


def _limits(planner: Planner, entry: Entry, now: float) -> Why | None:
    """A limit, where there would be room."""
    gang, schedule = entry.gang, planner.schedule
    for choice in gang.choices if gang.bounds else ():
        spot = _try_now(planner, entry, choice, entry.limit, now)
        for bound, pairs in () if spot is None else schedule.compiler.takes(gang, spot):
            if not bound.has_now(entry.job, pairs):
                return Why("limit", _reached(bound, pairs))
            if not bound.fits(entry.job, pairs, now, now + entry.limit):
                said = _whose(bound.name, _most(bound, [kind for kind, _ in pairs]))
                return Why("limit", f"{said} would be exceeded, since others before it were promised it")
    return None


def _reached(bound: Bound, pairs: Pairs) -> str:
    """Which amount of a limit is short, and by how much."""
    for number, units in pairs:
        kind, free = bound.kinds[number], bound.free[number]
        if units > free:
            most = bound.most[kind]
            held = format_amount(kind, most - to_amount(kind, free))
            needs = format_amount(kind, to_amount(kind, units))
            said = _whose(bound.name, describe_amounts({kind: most}))
            return f"{said} is reached: {held} in use, and this needs {needs}"
    return f"{_whose(bound.name, _jobs(bound))} is reached"


def _most(bound: Bound, numbers: Sequence[int]) -> str:
    """A limit in words, of some of its kinds."""
    amounts = {bound.kinds[number]: bound.most[bound.kinds[number]] for number in numbers}
    jobs = [_jobs(bound)] if JOB in bound.most else []
    return " and ".join([*([describe_amounts(amounts)] if amounts else []), *jobs])


def _jobs(bound: Bound) -> str:
    count = int(bound.most[JOB])
    return f"{count} running job{'' if count == 1 else 's'}"


def _whose(name: Hashable, most: str) -> str:
    if isinstance(name, tuple) and len(name) == 2 and name[0] == "share":
        return f"the share of {most} of the queue {name[1]}"
    whose = f"of {name.who}{name.where}" if isinstance(name, Row) else f"{name}"
    return f"the limit of {most} {whose}" if isinstance(name, Row) else f"the limit {whose} of {most}"


def _windows(planner: Planner, entry: Entry, now: float) -> Why | None:
    """A window that it would run into."""
    windows = planner.schedule.windows
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
            noun = "nodes" if piece.single else "slots"
            many = f"{found} of {piece.wanted} {noun} find{'s' if found == 1 else ''} room now"
            words = many if piece.wanted > 1 else _enough(planner, piece)
            break
    ahead = entry.lane.place(entry)
    return f"{words}; {_count(ahead)} before it in the queue {entry.lane.queue.name}" if ahead else words


def _enough(planner: Planner, piece: Piece) -> str:
    """What no node has."""
    names = list(planner.timeline.kinds)
    need = {names[kind]: to_amount(names[kind], least) for kind, least in piece.pairs if least}
    if piece.whole or not need:
        return "no node is free as a whole" if piece.whole else "no node has enough free"
    return f"no node has {describe_amounts(need)} free"


def _try_now(planner: Planner, entry: Entry, choice: Choice, limit: float, now: float) -> Spot | None:
    """Where an alternative could start now, without its own reservation in its way."""
    schedule, gang = planner.schedule, entry.gang
    spot, hot, barrier = entry.spot, gang.hot, entry.lane.barrier
    if spot is not None:
        schedule.unhold(entry)
    gang.hot = None
    found = planner.timeline.now_as(gang, choice, limit, now)
    gang.hot = hot
    if spot is not None:
        schedule.hold(entry, spot)
        entry.lane.barrier = barrier
    return found


def _count(ahead: int) -> str:
    return "nobody is" if not ahead else "1 request is" if ahead == 1 else f"{ahead} requests are"


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count} are"
