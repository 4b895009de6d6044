"""`jobman events`: what happened to a job, one line each."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.options import Job, JobName, Output, Utc, one_job
from jobman.cli.state import State, emit

if TYPE_CHECKING:
    from jobman.control.answers import Event

_STYLES = {"retrying": "yellow", "held": "yellow", "stopping": "yellow"}


def events(
    context: typer.Context,
    job: Job = None,
    named: JobName = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Wait for more, until the job is over.")
    ] = False,
    utc: Utc = False,
    output: Output = None,
) -> None:
    """List what happened to a job, the oldest first."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        found = client.events(one_job(job, named), follow=follow)
        if follow:
            _print_as_they_come(found, form, utc=utc)
            return
        happened = list(found)
    if form == "table":
        _print(happened, utc=utc)
    else:
        emit(happened, form)


def _print(happened: list[Event], *, utc: bool) -> None:
    from jobman.cli.tables import Cell, Column, print_table
    from jobman.cli.times import when

    columns = (
        Column("when", rank=2),
        Column("what"),
        Column("replica", rank=1),
        Column("message", folds=True),
    )
    rows = [
        (when(event.at, utc=utc), Cell(event.kind, style_of(event)), name_of(event), event.message)
        for event in happened
    ]
    print_table(columns, rows)


def _print_as_they_come(happened: Iterable[Event], form: str, *, utc: bool) -> None:
    """One line each, as soon as it happens; nobody knows how wide a column will have to be."""
    from jobman.cli.colours import clean, paint, wanted
    from jobman.cli.times import clock

    on = wanted()
    for event in happened:
        if form != "table":
            emit_line(event, form)
            continue
        kind = paint(f"{event.kind:<10}", style_of(event), on=on)
        replica = f"{name_of(event)}  " if event.replica else ""
        moment = paint(clock(event.at, utc=utc), "dim", on=on)
        sys.stdout.write(f"{moment}  {kind}  {replica}{clean(event.message)}".rstrip() + "\n")
        sys.stdout.flush()


def emit_line(answer: object, form: str) -> None:
    """Print one of a stream of answers: JSON on a line, or a YAML document."""
    import msgspec

    if form == "json":
        sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    else:
        sys.stdout.write("---\n")
        emit(answer, form)
    sys.stdout.flush()


def style_of(event: Event) -> str:
    """The colour of what happened."""
    from jobman.cli.colours import STATES

    return _STYLES.get(event.kind) or STATES.get(event.kind, "cyan" if event.kind == "started" else "")


def name_of(event: Event) -> str:
    """The replica it happened to, with the attempt where it was not the first."""
    is_told = event.attempt in (None, 1) or f"attempt {event.attempt}" in event.message
    again = "" if is_told else f" (attempt {event.attempt})"
    return f"{event.replica}{again}" if event.replica else ""
