"""The command `jobman top`: whether it can be shown here, and showing it."""

from __future__ import annotations

import sys

import typer

from jobman.cli.state import ExitCode, State, misused, say


def top(context: typer.Context) -> None:
    """Show the queue and the nodes live: / filters, k cancels, enter explains, q quits."""
    state: State = context.obj
    if state.output not in (None, "table"):
        misused("it is for the eye; `jobman queue`, `list` and `nodes` answer as data", "-o")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say("top needs a terminal", "`jobman queue`, `jobman list` and `jobman nodes` print the same once")
        raise typer.Exit(ExitCode.USAGE)
    try:
        from jobman.cli.top.screen import Top
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        say("top needs the package textual", "pip install 'jobman[top]'")
        raise typer.Exit(ExitCode.UNABLE) from error
    from jobman.cli.calls import Calling

    with Calling() as client:
        client.health()  # One that cannot be reached is told before the screen is taken.
        Top(client).run()
