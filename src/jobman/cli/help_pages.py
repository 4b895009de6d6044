"""`jobman help`: the page of a message, or of a command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobman.cli.options import Output
from jobman.cli.state import ExitCode, State, emit


def help_page(
    context: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(metavar="CODE|COMMAND", help="A message's code such as JS101, or a command."),
    ] = None,
    output: Output = None,
) -> None:
    """Explain a message by its code, or a command; without either, list the codes."""
    from jobman.convert.codes import CONVERSION_CODES
    from jobman.spec.codes import CODES

    state: State = context.obj
    form = state.format(output)
    page = (CODES | CONVERSION_CODES).get((topic or "").upper())
    if topic is None:
        _list(form)
    elif page is None:
        _command_help(context, topic)
    elif form == "table":
        typer.echo(f"{page.id}: {page.title} ({page.severity})\n\n{page.page}")
    else:
        emit(page, form)


def _command_help(context: typer.Context, topic: str) -> None:
    from jobman.spec.codes import CODES
    from jobman.spec.suggest import closest

    root: Any = context.parent
    if topic in root.command.commands:
        command = root.command.load(topic)
        with command.make_context(topic, [], parent=root, resilient_parsing=True) as inner:
            typer.echo(command.get_help(inner))
        return
    meant = closest(topic.upper(), CODES) or closest(topic, root.command.commands)
    hint = (
        f"did you mean {meant}?" if meant else "`jobman help` lists the codes, `jobman --help` the commands"
    )
    typer.echo(f"jobman: there is no code or command {topic}; {hint}", err=True)
    raise typer.Exit(ExitCode.USAGE)


def _list(form: str) -> None:
    from jobman.spec.codes import CODES

    if form != "table":
        emit(list(CODES.values()), form)
        return
    for page in CODES.values():
        typer.echo(f"{page.id}  {page.severity:<7}  {page.title}")
