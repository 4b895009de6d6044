"""`jobman task dead`: tasks that were given up, each with its reason: try them again, or drop them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jobman.cli.state import emit, misused, say
from jobman.cli.tasks.asking import Asking, asks

if TYPE_CHECKING:
    from jobman.cli.tasks.names import Meant
    from jobman.tasks.grid import Grid

dead = typer.Typer(
    add_completion=False, no_args_is_help=True, help="See to tasks that were given up: dead letters."
)
Tasks = Annotated[
    list[str] | None, typer.Argument(metavar="BATCH[/INDEX]…", help="As `task dead list` names them.")
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@dead.command("list")
@asks
def list_dead(
    most: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=1000, metavar="N", help="At most so many.")
    ] = 100,
    *,
    asking: Asking,
) -> None:
    """List tasks that were given up, and why."""
    form = asking.form
    with asking as grid:
        found = grid.ask("GET", f"/v1/tasks/dead?most={most}")
    if form != "table":
        emit({"items": [_as_data(each) for each in found]}, form)
    elif not found:
        say("no task was given up")
    else:
        _print(found)
        if len(found) == most:
            say("there may be more; show them with -n")


def _as_data(letter: dict[str, Any]) -> dict[str, Any]:
    from jobman.cli.tasks.told import text_or_base64

    rest = {name: value for name, value in letter.items() if name != "payload"}
    return {**rest, **text_or_base64("payload", _whole_letters(letter["payload"]))}


def _whole_letters(start: bytes) -> bytes:
    """The beginning of a text may end in the middle of a letter."""
    for cut in range(4):
        try:
            start[: len(start) - cut].decode()
        except UnicodeDecodeError:
            continue
        return start[: len(start) - cut]
    return start


def _print(found: list[dict[str, Any]]) -> None:
    from jobman.cli.tables import Column, print_table

    columns = (
        Column("task"),
        Column("type", rank=2),
        Column("version", rank=4),
        Column("attempts", rank=3, right=True),
        Column("workers lost", rank=3, right=True),
        Column("reason", folds=True),
        Column("payload", rank=5, least=20),
    )
    rows = [
        (
            f"{each['batch']}/{each['index']}",
            each["type"],
            each["version"] or "",
            str(each["attempts"]),
            str(each["deaths"] or ""),
            each["reason"],
            each["payload"].decode(errors="replace"),
        )
        for each in found
    ]
    print_table(columns, rows)


class _Act(NamedTuple):
    help: str
    done: str


_ACTS = {
    "retry": _Act("Try tasks again that were given up; all their attempts are theirs anew.", "tried again"),
    "drop": _Act("Forget tasks that were given up.", "dropped"),
}


def _command(name: str, act: _Act) -> Callable[..., None]:
    @asks
    def decide(tasks: Tasks = None, everything: All = False, *, asking: Asking) -> None:
        from jobman.cli.tasks.names import Named
        from jobman.cli.tasks.progress import count_of

        if bool(tasks) is everything:
            misused("name tasks, or say --all", "BATCH[/INDEX]")
        with asking as grid:
            some = None if everything else _all_of(grid, Named(grid).tasks(tasks or ()))
            count = grid.ask("POST", f"/v1/tasks/dead/{name}", some)
        if asking.form != "table":
            emit({"tasks": count}, asking.form)
            return
        typer.echo(f"{count_of(count, 'task')} {act.done}")
        if not count:
            say("none of them was given up", "`jobman task dead list` shows those that were")

    return decide


for _name, _act in _ACTS.items():
    dead.command(_name, help=_act.help)(_command(_name, _act))


def _all_of(grid: Grid, meant: Meant) -> list[tuple[int, int]]:
    """Tasks as they were named, and of a batch all it has: the broker passes over those that are not dead."""
    from jobman.cli.tasks.names import indexes_of, size_of

    return [
        (batch, index)
        for batch, some in meant.items()
        for index in (range(size_of(grid, batch)) if some is None else indexes_of(grid, batch, some))
    ]
