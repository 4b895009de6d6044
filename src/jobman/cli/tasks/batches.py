"""`jobman task batches` and `jobman task cancel`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from jobman.cli.options import Output, Utc
from jobman.cli.state import State, emit, misused, say
from jobman.cli.tasks.options import Batches, Broker, CaFile, Tenant, Token


def batches(
    context: typer.Context,
    broker: Broker = None,
    token: Token = None,
    tenant: Tenant = None,
    ca_file: CaFile = None,
    utc: Utc = False,
    output: Output = None,
) -> None:
    """List the batches that the broker has, the newest first: until they are forgotten, or expire."""
    from jobman.cli.tasks.asking import Asking, Way, batches_of

    state: State = context.obj
    form = state.format(output)
    with Asking(state, form, Way(broker, token, tenant, ca_file)) as grid:
        found = batches_of(grid)
    found.sort(key=lambda each: int(each["batch"]), reverse=True)
    if form != "table":
        emit({"items": found}, form)
    elif not found:
        say("there are no batches")
    else:
        _print(found, utc=utc)


def _print(found: list[dict[str, Any]], *, utc: bool) -> None:
    from jobman.cli.tables import Cell, Column, print_table
    from jobman.cli.times import when

    columns = (
        Column("batch"),
        Column("name", rank=2, least=12),
        Column("type", least=12),
        Column("version", rank=4),
        Column("image", rank=5, least=16),
        Column("tasks", right=True),
        Column("left", right=True),
        Column("failed", rank=1, right=True),
        Column("submitted", rank=3),
    )
    rows = [
        (
            str(each["batch"]),
            each["name"],
            each["type"],
            each["version"] or "",
            each["image"],
            f"{each['size']:,}",
            f"{each['left']:,}",
            Cell(f"{each['failed']:,}", "red") if each["failed"] else "",
            when(each["at"], utc=utc),
        )
        for each in found
    ]
    print_table(columns, rows)


def cancel(
    context: typer.Context,
    named: Batches = None,
    everything: Annotated[bool, typer.Option("--all", help="All batches that have not ended.")] = False,
    broker: Broker = None,
    token: Token = None,
    tenant: Tenant = None,
    ca_file: CaFile = None,
    output: Output = None,
) -> None:
    """End batches: what waits is not begun, what runs is stopped, what has ended stays as it is."""
    from jobman.cli.tasks.asking import Asking, Way, batches_named, batches_of

    state: State = context.obj
    form = state.format(output)
    if bool(named) is everything:
        misused("name batches, or say --all", "BATCH")
    done = []
    with Asking(state, form, Way(broker, token, tenant, ca_file)) as grid:
        if everything:
            found = [each["batch"] for each in batches_of(grid) if each["left"]]
        else:
            found = batches_named(grid, named)
        for batch in found:
            grid.cancel(batch)
            done.append({"batch": batch, "state": "cancelled"})
            if form == "table":  # at once: what is done is told although the next one may be refused
                sys.stdout.write(f"{batch}  cancelled\n")
    if form != "table":
        emit(done[0] if len(done) == 1 else done, form)
    elif not done:
        say("nothing is under way")
