"""`jobman task usage`: the seconds that workers spent on tasks, and what they cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobman.cli.options import a_moment
from jobman.cli.state import emit, say
from jobman.cli.tasks.asking import Asking, asks


@asks
def usage(
    since: Annotated[
        str, typer.Option("--since", metavar="7d|MOMENT", help="What was used since then; all: ever.")
    ] = "30d",
    everybody: Annotated[bool, typer.Option("--all", help="Of all tenants; for operators.")] = False,
    *,
    asking: Asking,
) -> None:
    """Show what your tasks used by image, and what it cost."""
    form = asking.form
    start = 0.0 if since == "all" else a_moment(since, "--since") or 0.0
    with asking as grid:
        every = "&all=1" if everybody else ""
        found = grid.ask("GET", f"/v1/tasks/usage?since={start}{every}")
    if form != "table":
        emit({"items": found}, form)
    elif not found:
        say("nothing was used in this time, or it is not charged yet")
    else:
        _print(found)


def _print(found: list[dict[str, Any]]) -> None:
    from jobman.cli.tables import Cell, Column, print_table
    from jobman.cli.times import length

    columns = (
        Column("tenant", rank=1),
        Column("image", least=16),
        Column("used", right=True),
        Column("units", right=True),
    )
    rows: list[Any] = [
        (each["tenant"], each["image"], length(each["seconds"]), f"{each['units']:,.4f}") for each in found
    ]
    if len(found) > 1:
        seconds, units = (sum(each[name] for each in found) for name in ("seconds", "units"))
        rows.append([Cell(text, "bold") for text in ("total", "", length(seconds), f"{units:,.4f}")])
    print_table(columns, rows)
