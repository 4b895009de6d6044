"""The command line as a whole: global options before the command, and the commands."""

from __future__ import annotations

from typing import Annotated

import typer

from jobman.cli.commands import Directory
from jobman.cli.options import Output
from jobman.cli.state import ENGINES, State, check_engine
from jobman.version import __version__

app = typer.Typer(
    name="jobman",
    cls=Directory,
    help="One job language, one command, any cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jobman {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    settings_file: Annotated[
        str | None,
        typer.Option("-s", "--settings", metavar="FILE", help="Settings to use instead of the usual ones."),
    ] = None,
    engine: Annotated[
        str, typer.Option("-e", "--engine", metavar="|".join(ENGINES), help="Where jobs run.")
    ] = "local",
    output: Output = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """One job language, one command, any cluster."""
    del version
    context.obj = State(settings_file, output, check_engine(engine))
