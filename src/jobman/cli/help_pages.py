"""`jobman help CODE`: the page of a message."""

from __future__ import annotations

from typing import Annotated

import typer

from jobman.cli.state import ExitCode, Output, State, emit


def register(app: typer.Typer) -> None:
    app.command("help")(help_page)


def help_page(
    context: typer.Context,
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="A message's code, such as JS101.")
    ] = None,
    output: Output = None,
) -> None:
    """Explain a message by its code; without a code, list them all."""
    from jobman.spec.codes import CODES
    from jobman.spec.suggest import closest

    state: State = context.obj
    form = state.format(output)
    if code is None:
        _list(form)
        return
    page = CODES.get(code.upper())
    if page is None:
        meant = closest(code.upper(), CODES)
        hint = f"; did you mean {meant}?" if meant else "; `jobman help` lists the codes"
        typer.echo(f"jobman: there is no code {code}{hint}", err=True)
        raise typer.Exit(ExitCode.USAGE)
    if form != "table":
        emit(page, form)
        return
    typer.echo(f"{page.id}: {page.title} ({page.severity})\n\n{page.page}")


def _list(form: str) -> None:
    from jobman.spec.codes import CODES

    if form != "table":
        emit(list(CODES.values()), form)
        return
    for page in CODES.values():
        typer.echo(f"{page.id}  {page.severity:<7}  {page.title}")
