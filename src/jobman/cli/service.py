"""`jobman service`: your own service, which commands start by themselves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.options import Output, Utc
from jobman.cli.state import ExitCode, State, emit, say

if TYPE_CHECKING:
    from jobman.control.answers import Status

service = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show, start or stop your own service."
)


@service.command("status")
def status(context: typer.Context, utc: Utc = False, output: Output = None) -> None:
    """Show the service: since when it runs, where it keeps its things, what it has to do."""
    state: State = context.obj
    form = state.format(output)
    found = _ask(form)
    if found is None:
        say("no service runs; commands that need one start it")
        raise typer.Exit(ExitCode.UNREACHABLE)
    _show(found, form, utc=utc)


@service.command("start")
def start(context: typer.Context, output: Output = None) -> None:
    """Start the service, if it does not run yet."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        found = client.status()
    _show(found, form, utc=False)


@service.command("stop")
def stop(
    context: typer.Context,
    force: Annotated[
        bool, typer.Option("--force", help="Also while jobs wait or run; what runs goes on.")
    ] = False,
) -> None:
    """Stop the service; the next command that needs it starts it again."""
    from jobman.cli.calls import Calling
    from jobman.client import Refused

    del context
    if _ask("table") is None:
        say("no service runs")
        return
    with Calling(start=False) as client:
        try:
            client.stop(force=force)
        except Refused as error:
            if error.code != "wrong-state":
                raise
            say("jobs wait or run", "--force stops it all the same: what runs goes on, what waits waits")
            raise typer.Exit(error.exit_code) from None
    if not os.environ.get("JOBMAN_SERVER"):
        _await_end()
    say("the service has stopped")


def _ask(form: str) -> Status | None:
    """The service as it is; None where none runs."""
    from jobman.cli.calls import open_client, refused
    from jobman.client import Refused, Unreachable

    try:
        return open_client(start=False).status()
    except Unreachable:
        return None
    except Refused as error:
        refused(error.failure, form)


def _await_end() -> None:
    from jobman.control.embedded import wait_until_gone
    from jobman.control.places import find_places

    if not wait_until_gone(find_places()):
        say("the service was asked to stop, and is still about to")
        raise typer.Exit(ExitCode.FAILED)


def _show(found: Status, form: str, *, utc: bool) -> None:
    if form != "table":
        emit(found, form)
        return
    from jobman.cli.tables import Cell, print_facts
    from jobman.cli.times import clock, when

    since = clock(found.since, utc=True) if utc else f"{when(found.since, utc=False)} ({clock(found.since)})"
    health = Cell("healthy", "green") if found.healthy else Cell(f"in trouble: {found.trouble}", "red")
    print_facts(
        (
            ("service", health),
            ("note", "; ".join(found.notes)),
            ("version", found.version),
            ("process", str(found.pid)),
            ("since", since),
            ("mode", found.mode),
            ("engine", found.engine),
            ("folder", found.folder),
            ("database", found.database),
            ("socket", found.socket),
            ("listens at", found.listen),
            (
                "jobs",
                ", ".join(f"{count:,} {state}" for state, count in found.jobs.items() if count) or "none",
            ),
        )
    )
