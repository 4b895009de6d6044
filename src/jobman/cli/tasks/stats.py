"""`jobman task stats`: what there is of each image, how fast it goes, and who does it."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from jobman.cli.state import emit, say
from jobman.cli.tasks.asking import Asking, asks

_WATCH_SECONDS = 2.0
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_SUMMED = ("queued", "running", "completed", "failed", "killed", "expired", "agents", "slots")


@asks
def stats(
    watch: Annotated[bool, typer.Option("--watch", help="Show them anew every two seconds.")] = False,
    *,
    asking: Asking,
) -> None:
    """Show your tasks by image: waiting, running, ended, the rate, the work that is left and its workers."""
    with asking as grid:
        while True:
            found = grid.ask("GET", "/v1/tasks/stats")
            _show(found, asking.form, clears=watch and sys.stdout.isatty())
            if not watch:
                return
            time.sleep(_WATCH_SECONDS)


def _show(found: dict[str, Any], form: str, *, clears: bool) -> None:
    if clears:
        sys.stdout.write(_CLEAR)
    if form != "table":
        emit(found, form)
    elif not found["images"]:
        say("there are no tasks, and there were none")
    else:
        _print(found)
    sys.stdout.flush()


def _print(found: dict[str, Any]) -> None:
    from jobman.cli.tables import Cell, Column, print_table

    columns = (
        Column("image", least=16),
        Column("queued", right=True),
        Column("running", right=True),
        Column("completed", right=True),
        Column("failed", rank=1, right=True),
        Column("killed", rank=5, right=True),
        Column("expired", rank=5, right=True),
        Column("rate", rank=2, right=True),
        Column("to do", rank=2, right=True),
        Column("waits", rank=4, right=True),
        Column("workers", rank=3, right=True),
        Column("used", rank=6, right=True),
        Column("estimates off", rank=7, right=True),
    )
    images = found["images"]
    rows = [_row(each) for each in images]
    if len(images) > 1:
        rows.append([Cell(str(getattr(cell, "text", cell)), "bold") for cell in _row(_total(images))])
    print_table(columns, rows)


def _row(image: dict[str, Any]) -> list[Any]:
    from jobman.cli.tables import Cell
    from jobman.cli.tasks.progress import off_by, rate_of
    from jobman.cli.times import length

    slots = f" × {image['slots'] // image['agents']}" if image["slots"] > image["agents"] > 0 else ""
    failed = _number(image["failed"])
    return [
        image["image"],
        f"{image['queued']:,}",
        f"{image['running']:,}",
        f"{image['completed']:,}",
        Cell(failed, "red") if failed else "",
        _number(image["killed"]),
        _number(image["expired"]),
        rate_of(image["rate"]),
        length(image["outstanding_seconds"]) if image["outstanding_seconds"] else "",
        length(image["oldest_seconds"]) if image["oldest_seconds"] else "",
        f"{image['agents']:,}{slots}",
        length(image["seconds_used"]) if image["seconds_used"] else "",
        off_by(image["estimate_error"]),
    ]


def _total(images: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "image": "total",
        **{name: sum(each[name] for each in images) for name in _SUMMED},
        "rate": sum(each["rate"] for each in images),
        "outstanding_seconds": sum(each["outstanding_seconds"] for each in images),
        "oldest_seconds": max(each["oldest_seconds"] for each in images),
        "seconds_used": sum(each["seconds_used"] for each in images),
        "estimate_error": 0.0,
    }


def _number(count: int) -> str:
    """Nothing for nothing."""
    return f"{count:,}" if count else ""
