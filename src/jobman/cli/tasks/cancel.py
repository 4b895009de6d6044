"""`jobman task cancel`: ends batches, or single tasks of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobman.cli.state import emit, misused, say
from jobman.cli.tasks.asking import Asking, asks

if TYPE_CHECKING:
    from jobman.cli.tasks.names import Meant
    from jobman.tasks.grid import Grid


@asks
def cancel(
    named: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BATCH[/INDEX]…",
            help="Numbers or names of batches; or tasks of one, such as 12/3, 12/3-7 or 12/0,3-7.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All batches that have not ended.")] = False,
    *,
    asking: Asking,
) -> None:
    """End batches or tasks: what waits is not begun, what runs is stopped, what has ended stays as it is."""
    from jobman.cli.tasks.names import Named, batches_of

    if bool(named) is everything:
        misused("name batches or tasks, or say --all", "BATCH[/INDEX]")
    done = []
    with asking as grid:
        meant = _under_way(batches_of(grid)) if everything else Named(grid).tasks(named or ())
        for batch, some in meant.items():
            done.append(_cancelled(grid, batch, some))
            if asking.form == "table":  # at once: what is done is told although the next one may be refused
                sys.stdout.write(f"{_words(batch, some)}  {_outcome(done[-1])}\n")
    if asking.form != "table":
        emit(done[0] if len(done) == 1 else done, asking.form)
    elif not done:
        say("nothing is under way")


def _under_way(batches: list[dict[str, Any]]) -> Meant:
    return {each["batch"]: None for each in batches if each["left"]}


def _cancelled(grid: Grid, batch: int, some: list[range] | None) -> dict[str, Any]:
    from jobman.cli.tasks.names import indexes_of

    indexes = None if some is None else indexes_of(grid, batch, some)
    count = grid.cancel(batch, indexes)
    which = {} if indexes is None else {"indexes": indexes}
    return {"batch": batch, **which, "state": "cancelled" if count else "ended", "cancelled": count}


def _outcome(done: dict[str, Any]) -> str:
    """What became of it, in words."""
    if not (count := done["cancelled"]):
        return "has ended before"
    before = len(done.get("indexes", ())) - count
    return f"{count} cancelled, {before} had ended before" if before > 0 else "cancelled"


def _words(batch: int, some: list[range] | None) -> str:
    """As it was typed."""
    if some is None:
        return str(batch)
    pieces = (str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in some)
    return f"{batch}/{','.join(pieces)}"
