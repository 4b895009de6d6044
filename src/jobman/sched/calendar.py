"""The calendar: windows of maintenance and advance reservations, once or again and again.

A definition says when the first one begins by the clock on the wall of a time zone, and how it repeats;
`occurrences` gives the blocks of a span of time. What comes by days, weeks or months keeps its hour when the
clocks are changed, and its length is counted in seconds that pass. An hour that the clocks leave out is the
one behind it; of one that comes twice the first is meant.
"""

from __future__ import annotations

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import islice, pairwise
from math import inf
from re import fullmatch
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from jobman.sched.blocks import Block, clash

DAY = 86400.0
MOST_STEPS = 1000
"""Of hours, days, weeks or months between two."""
Unit = Literal["hour", "day", "week", "month"]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ENDLESS = 10_000_000
"""More than any recurrence can have before the calendar of the standard library ends."""
_SHORTEST = {"hour": 3600.0, "day": DAY, "week": 7 * DAY, "month": 28 * DAY}


class Recurrence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How something comes again: every so many hours, days, weeks or months."""

    every: Unit
    interval: int = 1
    weekdays: tuple[Weekday, ...] = ()
    """Of a week: on which days; none for the day of the first."""
    until: date | None = None
    """The last day on which one may begin."""
    count: int | None = None
    """How many there are in all, those that are left out included."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """What windows and reservations have in common."""

    name: str
    start: datetime
    """When the first begins by the clock of the zone; it has no zone of its own."""
    zone: str = "UTC"
    """A zone such as `Europe/Berlin`, or an offset such as `+01:00`."""
    duration: float | None = None
    """Seconds; None until it is taken away."""
    nodes: tuple[str, ...] = ()
    """By name; none for every node, unless so many are counted."""
    repeats: Recurrence | None = None
    skips: tuple[date, ...] = ()
    """Days on which none begins, after all."""
    reason: str = ""


class Window(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="maintenance"):
    """A window of maintenance: nothing runs on its nodes."""


class Reservation(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="reservation"):
    """Nodes kept free in advance for users and accounts."""

    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    count: int | None = None
    """So many nodes, whichever; the one who plans chooses them."""
    requires: dict[str, str] = {}
    """Facts of the nodes that are counted."""


Definition = Window | Reservation


class Fault(msgspec.Struct, frozen=True):
    """Why a definition cannot be used, and what to do about it."""

    message: str
    advice: str


# -- when ----------------------------------------------------------------------------------------------------


def occurrences(definition: Definition, since: float, until: float) -> list[Block]:
    """The blocks that have a moment in common with a span of time, in the order they begin."""
    if until == inf and _number_of(definition) == _ENDLESS:
        raise ValueError("of what has no end only a part can be listed")
    found: list[Block] = []
    for block in _from(definition, since):
        if block.start >= until:
            break
        found.append(block)
    return found


def upcoming(definition: Definition, now: float, most: int = 1) -> list[Block]:
    """The next ones that are not over, that which holds now included."""
    return list(islice(_from(definition, now), most))


def is_over(definition: Definition, now: float) -> bool:
    """Whether none of it is still to come or holds now."""
    return not upcoming(definition, now)


def clashes(first: Definition, second: Definition, since: float, until: float) -> tuple[Block, Block] | None:
    """The first two blocks, one of each, that want the same node at the same time."""
    ours, theirs = occurrences(first, since, until), occurrences(second, since, until)
    a = b = 0
    while a < len(ours) and b < len(theirs):
        if clash(ours[a], theirs[b]):
            return ours[a], theirs[b]
        # Blocks of one definition do not overlap, so the one that ends first has met all it can meet.
        if ours[a].end <= theirs[b].end:
            a += 1
        else:
            b += 1
    return None


def _from(definition: Definition, since: float) -> Iterator[Block]:
    """Blocks that end after a moment."""
    length = inf if definition.duration is None else definition.duration
    limit = _number_of(definition)
    number = bisect_right(range(limit), since, key=lambda n: _begins(definition, n) + length)
    while number < limit:
        start = _begins(definition, number)
        if start == inf or _is_past_the_last(definition, day := _day(definition, number)):
            return
        # A day of 23 hours is too short for a window of 24: it gives way to the next.
        following = _begins(definition, number + 1) if number + 1 < limit else inf
        end = min(start + length, following)
        if end > max(start, since) and day not in definition.skips:
            yield _block(definition, number, start, end)
        number += 1


def _number_of(definition: Definition) -> int:
    if definition.repeats is None:
        return 1
    return _ENDLESS if definition.repeats.count is None else definition.repeats.count


def _is_past_the_last(definition: Definition, day: date) -> bool:
    last = definition.repeats.until if definition.repeats is not None else None
    return last is not None and day > last


def _block(definition: Definition, number: int, start: float, end: float) -> Block:
    name = f"{definition.name}/{_label(definition, number)}"
    if isinstance(definition, Window):
        return Block(name=name, start=start, end=end, nodes=definition.nodes, kind="maintenance")
    return Block(
        name=name,
        start=start,
        end=end,
        nodes=definition.nodes,
        kind="reservation",
        users=definition.users,
        accounts=definition.accounts,
        count=definition.count,
        requires=definition.requires,
    )


def _label(definition: Definition, number: int) -> str:
    if definition.repeats is not None and definition.repeats.every == "hour":
        return datetime.fromtimestamp(_begins(definition, number), UTC).strftime("%Y-%m-%dT%H:%MZ")
    return _wall(definition, number).date().isoformat()


def _begins(definition: Definition, number: int) -> float:
    """The moment at which the one of this number begins; infinity where the calendar ends."""
    try:
        if definition.repeats is not None and definition.repeats.every == "hour":
            first = moment_of(definition.start, definition.zone)
            return first + number * definition.repeats.interval * 3600.0
        return moment_of(_wall(definition, number), definition.zone)
    except (OverflowError, ValueError):
        return inf


def _day(definition: Definition, number: int) -> date:
    """The day on which it begins where its zone is."""
    if definition.repeats is None or definition.repeats.every != "hour":
        return _wall(definition, number).date()
    return datetime.fromtimestamp(_begins(definition, number), _zone(definition.zone)).date()


def _wall(definition: Definition, number: int) -> datetime:
    """What the clock on the wall shows when the one of this number begins."""
    start, repeats = definition.start, definition.repeats
    if repeats is None:
        return start
    steps = number * repeats.interval
    if repeats.every == "month":
        months = start.year * 12 + start.month - 1 + steps
        year, month = months // 12, months % 12 + 1
        # A month that lacks the day has it on its last one.
        return start.replace(year=year, month=month, day=min(start.day, monthrange(year, month)[1]))
    if repeats.every == "week" and repeats.weekdays:
        return _on_weekday(start, repeats, number)
    return start + timedelta(days=steps * (7 if repeats.every == "week" else 1))


def _on_weekday(start: datetime, repeats: Recurrence, number: int) -> datetime:
    days = sorted({WEEKDAYS.index(day) for day in repeats.weekdays})
    missed = sum(day < start.weekday() for day in days)
    weeks, place = divmod(number + missed, len(days))
    monday = start - timedelta(days=start.weekday())
    return monday + timedelta(weeks=weeks * repeats.interval, days=days[place])


# -- zones ---------------------------------------------------------------------------------------------------


def moment_of(wall: datetime, zone: str) -> float:
    """The moment at which the clock of a zone shows this."""
    return wall.replace(tzinfo=_zone(zone)).timestamp()


def wall_of(moment: float, zone: str) -> datetime:
    """What the clock of a zone shows at a moment."""
    return datetime.fromtimestamp(moment, _zone(zone)).replace(tzinfo=None, fold=0)


def is_zone(name: str) -> bool:
    """Whether there is a zone of this name, here at least."""
    try:
        _zone(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    if match := fullmatch(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])", name):
        span = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(span if match[1] == "+" else -span)
    try:
        return ZoneInfo(name)
    except Exception as error:  # what the standard library raises for odd names depends on the file system
        raise ValueError(f"there is no time zone {name}") from error


# -- whether it makes sense ----------------------------------------------------------------------------------


def faults(definition: Definition) -> list[Fault]:
    """Everything that is wrong with a definition in itself."""
    found = [*_faults_of_time(definition), *_faults_of_nodes(definition)]
    if definition.repeats is not None and not found:
        found += _faults_of_recurrence(definition, definition.repeats)
    return found


def _faults_of_time(definition: Definition) -> Iterator[Fault]:
    if not is_zone(definition.zone):
        yield Fault(
            f"There is no time zone {definition.zone}.", "Write one such as Europe/Berlin, UTC or +01:00."
        )
    if definition.start.tzinfo is not None or not 2000 <= definition.start.year <= 2199:
        yield Fault("The start is no day of this or the next century.", "Write it such as 2026-12-01T08:00.")
    if definition.duration is not None and not 1 <= definition.duration <= 3660 * DAY:
        yield Fault("It lasts from a second to ten years.", "Write how long such as 4h or 2d.")


def _faults_of_nodes(definition: Definition) -> Iterator[Fault]:
    if isinstance(definition, Window):
        return
    if not definition.users and not definition.accounts:
        yield Fault("A reservation is for somebody.", "Name users or accounts.")
    if definition.count is None and definition.requires:
        yield Fault("Facts are for nodes that are counted.", "Say how many, or leave them out.")
    if definition.count is not None and definition.nodes:
        yield Fault("Nodes are either named or counted.", "Leave out one of them.")
    if definition.count is not None and definition.count < 1:
        yield Fault("A reservation is for one node at least.", "Write a larger number.")


def _faults_of_recurrence(definition: Definition, repeats: Recurrence) -> Iterator[Fault]:
    if not 1 <= repeats.interval <= MOST_STEPS or (
        repeats.count is not None and not 1 <= repeats.count <= _ENDLESS
    ):
        yield Fault("It cannot come so often, or so seldom.", f"Write numbers from 1 to {MOST_STEPS}.")
        return
    if repeats.weekdays and repeats.every != "week":
        yield Fault("Days of the week are for what comes by weeks.", "Say that it comes every week.")
        return
    if definition.duration is None:
        yield Fault("What has no end cannot come again.", "Say how long it lasts.")
    elif definition.duration > shortest_gap(repeats):
        yield Fault(
            "It would begin again before it has ended.", "Make it shorter, or let it come less often."
        )
    if is_over(definition, -inf):
        yield Fault("It never happens: all of it is left out.", "Look at its last day and what is skipped.")


def shortest_gap(repeats: Recurrence) -> float:
    """The seconds between the beginnings of two that follow each other, where these are nearest."""
    whole = _SHORTEST[repeats.every] * repeats.interval
    days = sorted({WEEKDAYS.index(day) for day in repeats.weekdays})
    if len(days) < 2:
        return whole
    around = whole / DAY - days[-1] + days[0]
    return min(around, *(late - early for early, late in pairwise(days))) * DAY


def rhythm(definition: Definition) -> str:
    """How it comes again, in words: `every 2 weeks on mon, thu`."""
    repeats = definition.repeats
    if repeats is None:
        return "once"
    words = f"every {repeats.interval} {repeats.every}s" if repeats.interval > 1 else f"every {repeats.every}"
    if repeats.weekdays:
        words += " on " + ", ".join(day for day in WEEKDAYS if day in repeats.weekdays)
    if repeats.until is not None:
        words += f" until {repeats.until}"
    if repeats.count is not None:
        words += f", {repeats.count} times"
    return words
