"""The entry point: global options, commands, exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from jobman.cli import check, completion, explain, features, help_pages, satisfy, schema, settings
from jobman.cli.state import ExitCode, State
from jobman.version import __version__

app = typer.Typer(
    name="jobman",
    help="One job language, one command, any cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for family in (check, explain, schema, features, satisfy, settings, help_pages, completion):
    family.register(app)


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
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="table|json|yaml", help="Form of the answer.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """One job language, one command, any cluster."""
    del version
    context.obj = State(settings_file, output)


def main() -> None:
    """Run the command line; a reader that has gone, as in `jobman features | head`, ends it quietly."""
    try:
        app(prog_name="jobman")
    except SystemExit as end:
        if _reader_has_gone():
            end.code = ExitCode.DONE
        raise


def _reader_has_gone() -> bool:
    # The command line's library replaces stdout when a pipe breaks under it.
    if type(sys.stdout).__name__ == "PacifyFlushWrapper":
        return True
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


if __name__ == "__main__":
    main()
