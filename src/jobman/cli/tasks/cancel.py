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
    from jobman.cli.tasks.names import Named

    if bool(named) is everything:
        misused("name batches or tasks, or say --all", "BATCH[/INDEX]")
    done = []
    with asking as grid:
        meant = _under_way(grid) if everything else Named(grid).tasks(named or ())
        for batch, some in meant.items():
            done.append(_cancelled(grid, batch, some))
            if asking.form == "table":  # at once: what is done is told although the next one may be refused
                sys.stdout.write(f"{_words(batch, some)}  cancelled\n")
    if asking.form != "table":
        emit(done[0] if len(done) == 1 else done, asking.form)
    elif not done:
        say("nothing is under way")


def _under_way(grid: Grid) -> Meant:
    from jobman.cli.tasks.names import batches_of

    return {each["batch"]: None for each in batches_of(grid) if each["left"]}


def _cancelled(grid: Grid, batch: int, some: list[range] | None) -> dict[str, Any]:
    from jobman.cli.tasks.names import indexes_of

    if some is None:
        grid.cancel(batch)
        return {"batch": batch, "state": "cancelled"}
    indexes = indexes_of(grid, batch, some)
    grid.cancel(batch, indexes)
    return {"batch": batch, "indexes": indexes, "state": "cancelled"}


def _words(batch: int, some: list[range] | None) -> str:
    """As it was typed."""
    if some is None:
        return str(batch)
    pieces = (str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in some)
    return f"{batch}/{','.join(pieces)}"
