"""`jobman task dead`: tasks that were given up, each with its reason: try them again, or drop them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobman.cli.options import Output
from jobman.cli.state import State, emit, misused, say
from jobman.cli.tasks.options import Broker, CaFile, Tenant, Token, task_of

dead = typer.Typer(
    add_completion=False, no_args_is_help=True, help="See to tasks that were given up: dead letters."
)
Tasks = Annotated[
    list[str] | None, typer.Argument(metavar="BATCH[/INDEX]…", help="As `task dead list` names them.")
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@dead.command("list")
def list_dead(
    context: typer.Context,
    most: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=1000, metavar="N", help="At most so many.")
    ] = 100,
    broker: Broker = None,
    token: Token = None,
    tenant: Tenant = None,
    ca_file: CaFile = None,
    output: Output = None,
) -> None:
    """List tasks that were given up, and why."""
    from jobman.cli.tasks.asking import Asking, Way

    state: State = context.obj
    form = state.format(output)
    with Asking(state, form, Way(broker, token, tenant, ca_file)) as grid:
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


@dead.command("retry")
def retry(
    context: typer.Context,
    tasks: Tasks = None,
    everything: All = False,
    broker: Broker = None,
    token: Token = None,
    tenant: Tenant = None,
    ca_file: CaFile = None,
    output: Output = None,
) -> None:
    """Try tasks again that were given up; all their attempts are theirs anew."""
    _decide(context, "retry", tasks, everything, (broker, token, tenant, ca_file), output)


@dead.command("drop")
def drop(
    context: typer.Context,
    tasks: Tasks = None,
    everything: All = False,
    broker: Broker = None,
    token: Token = None,
    tenant: Tenant = None,
    ca_file: CaFile = None,
    output: Output = None,
) -> None:
    """Forget tasks that were given up."""
    _decide(context, "drop", tasks, everything, (broker, token, tenant, ca_file), output)


_DONE = {"retry": "tried again", "drop": "dropped"}


def _decide(
    context: typer.Context,
    act: str,
    tasks: list[str] | None,
    everything: bool,
    way: tuple[str | None, ...],
    output: str | None,
) -> None:
    from jobman.cli.tasks.asking import Asking, Way
    from jobman.cli.tasks.progress import count_of

    state: State = context.obj
    form = state.format(output)
    if bool(tasks) is everything:
        misused("name tasks, or say --all", "BATCH[/INDEX]")
    meant = [task_of(text, "BATCH[/INDEX]") for text in tasks or ()]
    with Asking(state, form, Way(*way)) as grid:
        some = None if everything else _all_of(grid, meant)
        count = grid.ask("POST", f"/v1/tasks/dead/{act}", some)
    if form != "table":
        emit({"tasks": count}, form)
    else:
        typer.echo(f"{count_of(count, 'task')} {_DONE[act]}")


def _all_of(grid: Any, meant: list[tuple[int, int | None]]) -> list[tuple[int, int]]:
    """Tasks as they were named, and of a batch all that were given up."""
    whole = {batch for batch, index in meant if index is None}
    found = [(batch, index) for batch, index in meant if index is not None]
    if whole:
        letters = grid.ask("GET", "/v1/tasks/dead")
        found += [(each["batch"], each["index"]) for each in letters if each["batch"] in whole]
    return found
