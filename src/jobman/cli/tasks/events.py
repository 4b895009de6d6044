"""`jobman task events`: what happened to workers and tasks that somebody may want to know of."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from jobman.cli.options import Utc
from jobman.cli.state import INTERRUPTED, emit, say
from jobman.cli.tasks.asking import Asking, asks

_WAIT = 20.0
_ABOUT = len("4294967297/9999")
"""Columns of most tasks: lines are printed as they come."""


@asks
def events(
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Wait for more, until Ctrl-C.")] = False,
    after: Annotated[
        int, typer.Option("--after", min=0, metavar="PLACE", help="Only what came behind this place.")
    ] = 0,
    *,
    asking: Asking,
    utc: Utc = False,
) -> None:
    """List what happened: workers that died, wrong answers, tasks given up, agents lost."""
    form = asking.form
    with asking as grid:
        found = _some(grid, after, wait=0.0)
        if follow:
            _follow(grid, found, form, utc=utc)
    if form != "table":
        emit(found, form)
    elif not found["events"]:
        say("nothing happened that anybody would want to know of")
    else:
        _print(found["events"], utc=utc)


def _some(grid: Any, after: int, *, wait: float) -> dict[str, Any]:
    found: dict[str, Any] = grid.ask("GET", f"/v1/tasks/events?after={after}&wait={wait}")
    return found


def _follow(grid: Any, found: dict[str, Any], form: str, *, utc: bool) -> None:
    """One line each, as it happens; nobody knows how wide a column will have to be."""
    from jobman.cli.events import emit_line
    from jobman.cli.times import clock

    place = 0
    try:
        while True:
            for each in found["events"]:
                if form != "table":
                    emit_line(each, form)
                else:
                    what = f"{each['kind']:<18}  {about(each) or each['image']:<{_ABOUT}}"
                    line = f"{clock(each['at'], utc=utc)}  {what}  {each['words']}"
                    sys.stdout.write(line.rstrip() + "\n")
            sys.stdout.flush()
            place = found["place"]
            found = _some(grid, place, wait=_WAIT)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        say(f"read on with --after {place}")
        raise SystemExit(INTERRUPTED) from None


def about(event: dict[str, Any]) -> str:
    """The tasks it is about: the first of them, and how many more."""
    if event.get("batch") is None:
        return ""
    first = str(event["batch"]) if event.get("index") is None else f"{event['batch']}/{event['index']}"
    more = event.get("count", 1) - 1
    return f"{first} and {more:,} more" if more > 0 else first


def _print(found: list[dict[str, Any]], *, utc: bool) -> None:
    from jobman.cli.tables import Column, print_table
    from jobman.cli.times import when

    columns = (
        Column("when", rank=2),
        Column("what"),
        Column("tasks", rank=1),
        Column("image", rank=3, least=16),
        Column("message", folds=True),
    )
    rows = [
        (when(each["at"], utc=utc), each["kind"], about(each), each["image"], each["words"]) for each in found
    ]
    print_table(columns, rows)
