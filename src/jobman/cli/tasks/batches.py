"""`jobman task batches`: what was submitted, and how far it is."""

from __future__ import annotations

from typing import Any

from jobman.cli.options import Utc
from jobman.cli.state import emit, say
from jobman.cli.tasks.asking import Asking, asks


@asks
def batches(*, asking: Asking, utc: Utc = False) -> None:
    """List the batches that the broker has, the newest first: until they are forgotten, or expire."""
    from jobman.cli.tasks.names import batches_of

    form = asking.form
    with asking as grid:
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
