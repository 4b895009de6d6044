"""What `maintenance` and `reserve` have in common: when, how long, how often, and how it is told."""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jobman.cli.options import Output, Utc, a_length
from jobman.cli.state import State, emit, misused, say

if TYPE_CHECKING:
    from jobman.cli.tables import Cell
    from jobman.control.administration import CalendarEntry, CalendarKind
    from jobman.sched.calendar import Recurrence

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
Start = Annotated[
    str,
    typer.Option(
        "--start", metavar="WHEN", help="2026-12-01T08:00, 08:00, tomorrow 08:00, mon 08:00, +2h or now."
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option("--nodes", metavar="NODES", help="Names and ranges, such as n[1-4],gpu7, or all."),
]
Every = Annotated[
    str | None,
    typer.Option("--every", metavar="TIME", help="It comes again: day, week, month, 2weeks, 6h or mon,thu."),
]
On = Annotated[
    str | None, typer.Option("--on", metavar="DAYS", help="Of a week: on which days, such as mon,thu.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="DATE", help="The last day on which one may begin.")
]
Times = Annotated[int | None, typer.Option("--times", min=1, metavar="N", help="How often in all.")]
Skip = Annotated[
    list[str] | None, typer.Option("--skip", metavar="DATE", help="A day on which it is left out.")
]
Zone = Annotated[
    str | None,
    typer.Option("--zone", metavar="ZONE", help="Whose clock is meant; by default this machine's."),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for those who wait.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME…", help="What is not wanted any more.")]


class Booking(NamedTuple):
    """The words of the command line, as they were given."""

    name: str
    start: str
    length: str | None
    nodes: str | None
    every: str | None
    on: str | None
    until: str | None
    times: int | None
    skip: list[str] | None
    zone: str | None
    reason: str


def add(
    context: typer.Context, kind: CalendarKind, booking: Booking, output: str | None, **more: Any
) -> None:
    """Add an entry, and tell when it will be."""
    from jobman.cli.calls import Calling
    from jobman.cli.dates import local_zone
    from jobman.control.administration import NewEntry

    state: State = context.obj
    form = state.format(output)
    now = time.time()
    zone = booking.zone or local_zone(now)
    wanted = NewEntry(
        kind=kind,
        name=_name(booking.name),
        start=_start(booking.start, zone, now),
        zone=zone,
        duration=None if booking.length is None else a_length(booking.length, "--for"),
        nodes=[] if booking.nodes in (None, "all") else [booking.nodes or ""],
        repeats=_repeats(booking),
        skips=[_day(text, "--skip") for text in booking.skip or ()],
        reason=booking.reason,
        **more,
    )
    with Calling(form) as client:
        made = client.add_calendar(wanted)
    for note in made.notes:
        say(note)
    if form == "table":
        sys.stdout.write(f"{made.name}  {_told(made)}\n")
    else:
        emit(made, form)


def complete(family: typer.Typer, kind: CalendarKind, *, listing: str, removing: str) -> None:
    """Give a family of commands its `list` and `remove`, with the words of their help."""

    @family.command("list", help=listing)
    def show(context: typer.Context, utc: Utc = False, output: Output = None) -> None:
        _show(context, kind, output, utc=utc)

    @family.command("remove", help=removing)
    def remove(context: typer.Context, names: Names, output: Output = None) -> None:
        _remove(context, kind, names, output)


def _show(context: typer.Context, kind: CalendarKind, output: str | None, *, utc: bool) -> None:
    """List the entries of a kind."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        found = client.calendar(kind)
    if form != "table":
        emit({"items": found}, form)
    elif found:
        _print(found, utc=utc)
    else:
        say("no maintenance is planned" if kind == "maintenance" else "nothing is reserved")


def _remove(context: typer.Context, kind: CalendarKind, names: list[str], output: str | None) -> None:
    """Take entries away."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    gone = []
    with Calling(form) as client:
        for name in names:
            gone.append(client.remove_calendar(name, kind))
            if form == "table":  # at once: what is done is told although the next one may be refused
                sys.stdout.write(f"{name}  removed\n")
    if form != "table":
        emit(gone[0] if len(gone) == 1 else gone, form)


# -- reading -------------------------------------------------------------------------------------------------


def _name(text: str) -> str:
    from typing import get_args

    from jobman.control.administration import Name as Known

    if not re.match(get_args(Known)[1].pattern, text):
        misused(f"'{text}' is no name: write up to 63 letters, digits, '.', '_' and '-'", "NAME")
    return text


def _start(text: str, zone: str, now: float) -> Any:
    from jobman.cli.dates import parse_start
    from jobman.sched.calendar import is_zone

    if not is_zone(zone):
        misused(f"'{zone}' is no time zone such as Europe/Berlin, UTC or +01:00", "--zone")
    found = parse_start(text, zone, now)
    if found is None:
        misused(f"'{text}' is no moment such as 2026-12-01T08:00, 08:00, tomorrow 08:00 or +2h", "--start")
    return found


def _repeats(booking: Booking) -> Recurrence | None:
    from msgspec.structs import replace

    from jobman.cli.dates import parse_every

    if booking.every is None:
        if booking.on or booking.until or booking.times or booking.skip:
            misused("--on, --until, --times and --skip are for what comes again", "--every")
        return None
    found = parse_every(booking.every, booking.on)
    if found is None:
        misused(f"'{booking.every}' is no time such as day, 2weeks, 6h or mon,thu", "--every")
    until = None if booking.until is None else _day(booking.until, "--until")
    return replace(found, until=until, count=booking.times)


def _day(text: str, option: str) -> Any:
    from jobman.cli.dates import parse_day

    found = parse_day(text)
    if found is None:
        misused(f"'{text}' is no day such as 2026-12-24", option)
    return found


# -- telling -------------------------------------------------------------------------------------------------


def _told(entry: CalendarEntry) -> str:
    from jobman.cli.times import clock

    end = clock(entry.next_end) if entry.next_end is not None else "its removal"
    often = "" if entry.repeats is None else f", {entry.rhythm}"
    return f"on {_on_nodes(entry)} from {clock(entry.next_start)} to {end}{often}"


def _print(found: list[CalendarEntry], *, utc: bool) -> None:
    from jobman.cli.tables import Column, print_table

    columns = (
        Column("name"),
        Column("from"),
        Column("to", rank=1),
        Column("nodes", folds=True),
        Column("for", rank=2, folds=True),
        Column("often", rank=3, folds=True),
        Column("reason", rank=4, folds=True),
        Column("by", rank=5),
    )
    rows = [
        (
            entry.name,
            *_span(entry, utc=utc),
            _on_nodes(entry),
            ", ".join([*entry.users, *(f"account {name}" for name in entry.accounts)]),
            "" if entry.repeats is None else entry.rhythm,
            entry.reason,
            entry.created_by,
        )
        for entry in found
    ]
    print_table(columns, rows)


def _span(entry: CalendarEntry, *, utc: bool) -> tuple[Cell, Cell]:
    """From when to when, the day only once; what holds now is yellow."""
    from jobman.cli.tables import Cell
    from jobman.cli.times import clock

    if entry.next_start is None:
        return Cell("over", "dim"), Cell("")
    style = "yellow" if entry.next_start <= time.time() else ""
    begin = clock(entry.next_start, utc=utc)
    end = "until removed" if entry.next_end is None else clock(entry.next_end, utc=utc)
    if not utc:
        end = end.removeprefix(begin[: len("2026-12-01 ")]).removesuffix(":00")
        begin = begin.removesuffix(":00")
    return Cell(begin, style), Cell(end, style)


def _on_nodes(entry: CalendarEntry) -> str:
    from jobman.spec.node_names import fold_names

    if entry.count is not None:
        facts = " ".join(f"{key}={value}" for key, value in entry.requires.items())
        return f"{entry.count} node{'s' * (entry.count != 1)}" + (f" with {facts}" if facts else "")
    return fold_names(entry.nodes) or "all nodes"
