"""`jobman task types`: the kinds of tasks that somebody executes, here or at a site."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobman.cli.commands import Trailing, trailing
from jobman.cli.state import emit, misused, say
from jobman.cli.tasks.asking import Asking, asks
from jobman.cli.tasks.options import pairs_of

if TYPE_CHECKING:
    from jobman.tasks.grid import Grid
    from jobman.tasks.local_types import LocalType

types = typer.Typer(add_completion=False, help="List, add and remove the kinds of tasks there are.")
TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="Its name.")]


@types.callback(invoke_without_command=True)
@asks
def all_types(*, asking: Asking) -> None:
    """List the types that are executed; or add and remove them."""
    if asking.context.invoked_subcommand is None:
        _list(asking)


@types.command("list")
@asks
def list_types(*, asking: Asking) -> None:
    """List the types that are executed, by what, and how long their tasks take."""
    _list(asking)


def _list(asking: Asking) -> None:
    form = asking.form
    with asking as grid:
        found = grid.ask("GET", "/v1/tasks/types")
        own = _own(grid)
        for each in found:
            local = own.get(each["image"])
            each["command"] = [] if local is None else list(local.command)
            each["least"], each["most"] = (None, None) if local is None else (local.least, local.most)
        is_own = grid.places is not None
    if form != "table":
        emit({"items": found}, form)
    elif not found:
        say("no types are known", "add one with `jobman task types add TYPE -- COMMAND…`" if is_own else "")
    else:
        _print(found)


def _own(grid: Grid) -> dict[str, LocalType]:
    """The types of one's own broker, by image."""
    from jobman.tasks.embedded import types_of

    return {} if grid.places is None else types_of(grid.places).by_image()


def _print(found: list[dict[str, Any]]) -> None:
    import shlex

    from jobman.cli.tables import Column, print_table
    from jobman.cli.tasks.progress import off_by
    from jobman.cli.times import length

    columns = (
        Column("type"),
        Column("versions", least=8),
        Column("image", rank=3, least=20),
        Column("command", rank=2, least=20),
        Column("resources", rank=4, least=20),
        Column("workers", rank=4),
        Column("executed", rank=1, right=True),
        Column("half take", rank=1, right=True),
        Column("90% take", rank=1, right=True),
        Column("estimates off", rank=4, right=True),
    )
    rows = []
    for each in found:
        known = each["estimate"]
        numbers = ("", "", "", "")
        if known is not None:
            times = (length(known["p50"]), length(known["p90"]))
            numbers = (f"{known['count']:,}", *times, off_by(known["error"]))
        image = "" if each["command"] else each["image"]
        resources = " ".join(f"{name}={amount}" for name, amount in each["resources"].items())
        told = (image, shlex.join(each["command"]), resources, _workers(each["least"], each["most"]))
        rows.append((each["type"], each["versions"], *told, *numbers))
    print_table(columns, rows)


def _workers(least: int | None, most: int | None) -> str:
    """How many of them there may be, where somebody said so."""
    if not least and most is None:
        return ""
    return f"{least or 0} to {most}" if most is not None else f"{least} or more"


@types.command("add", cls=Trailing)
@asks
def add(
    type_: TypeName,
    versions: Annotated[
        str, typer.Option("--versions", metavar="RANGE", help="Which it executes: 2.x, >=2,<3 or *.")
    ] = "*",
    slots: Annotated[
        int, typer.Option("--slots", min=1, metavar="N", help="Tasks that a worker executes at once.")
    ] = 1,
    on_port: Annotated[
        bool,
        typer.Option("--on-port", help="The worker listens at a port and not at a Unix socket."),
    ] = False,
    image: Annotated[
        str | None, typer.Option("--image", metavar="IMAGE", help="At a site: what executes them.")
    ] = None,
    resources: Annotated[
        list[str] | None,
        typer.Option(
            "--resource", metavar="NAME=AMOUNT", help="Of a worker, such as cpu=2, memory=1Gi or gpu=1."
        ),
    ] = None,
    least: Annotated[
        int, typer.Option("--least", min=0, metavar="N", help="Workers that are there without work, too.")
    ] = 0,
    most: Annotated[
        int | None, typer.Option("--most", min=1, metavar="N", help="Workers that there are at most.")
    ] = None,
    environment: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="Of a worker.")
    ] = None,
    *,
    asking: Asking,
) -> None:
    """Say who executes a type: on this machine the COMMAND behind `--`, at a site an image."""
    form = asking.form
    command = trailing(asking.context) or []
    more = {
        "versions": versions,
        "environment": pairs_of(environment, "--env"),
        "resources": pairs_of(resources, "--resource"),
    }
    with asking as grid:
        if grid.places is None:
            if command or not image:
                misused("at a site an image executes tasks, and no command of this machine", "--image")
            if least or most is not None:
                misused("at a site its settings say so, under `scaling`", "--least, --most")
            grid.ask("POST", "/v1/tasks/types", {"type": type_, "image": image, **more})
        else:
            if not command or image:
                misused("your own broker starts a command: write it behind --", "COMMAND")
            of_machine = {"slots": slots, "on_port": on_port, "least": least, "most": most}
            _add_own(grid, type_, _found(command), **of_machine, **more)
    if form != "table":
        emit({"type": type_, "versions": versions, "image": image or "", "command": command}, form)
    else:
        sys.stdout.write(f"{type_}  {versions}  added\n")
        if grid.places is not None:
            say(f"try it with `jobman task submit --type {type_} --payload TEXT --results`")


def _add_own(grid: Grid, type_: str, command: list[str], **more: Any) -> None:
    from jobman.tasks.embedded import types_of
    from jobman.tasks.failures import GridError
    from jobman.tasks.local_types import LocalType
    from jobman.tasks.machine import check_resources

    assert grid.places is not None
    check_resources(more["resources"])
    entry = LocalType(type=type_, command=tuple(command), folder=str(Path.cwd()), **more)
    try:
        types_of(grid.places).add(entry)
    except ValueError as error:
        raise GridError("wrong", str(error)) from None


def _found(command: list[str]) -> list[str]:
    """The command with the whole path of its program: the broker may look in other folders than you."""
    first = command[0]
    path = str(Path(first).absolute()) if "/" in first else shutil.which(first)
    if path is None or not Path(path).is_file():
        from jobman.tasks.failures import GridError

        advice = "is it installed, and its name spelled so? A program of this folder is ./NAME"
        raise GridError("wrong", f"there is no program `{first}`", advice)
    return [path, *command[1:]]


@types.command("remove")
@asks
def remove(
    type_: TypeName,
    versions: Annotated[
        str | None, typer.Option("--versions", metavar="RANGE", help="Only this line, as it was added.")
    ] = None,
    *,
    asking: Asking,
) -> None:
    """Execute a type no longer; its tasks that wait go on waiting."""
    from jobman.tasks.embedded import types_of
    from jobman.tasks.failures import GridError

    form = asking.form
    with asking as grid:
        if grid.places is None:
            grid.ask("POST", "/v1/tasks/types/remove", {"type": type_, "versions": versions})
        elif not types_of(grid.places).remove(type_, versions):
            known = sorted({each.type for each in types_of(grid.places).read()})
            advice = f"the known types are: {', '.join(known) or 'none'}"
            raise GridError("unknown", f"there is no type `{type_}` {versions or ''}".rstrip(), advice)
    if form != "table":
        emit({"type": type_, "versions": versions}, form)
    else:
        sys.stdout.write(f"{type_}  {versions or 'all versions'}  removed\n")
