"""`jobman token`: who may speak to a shared service. Administrators only."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from jobman.cli.options import Output, Utc
from jobman.cli.state import State, emit, say

token = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Manage who may speak to a shared service."
)


@token.command("add")
def add(
    context: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", help="Who will be known by it.")],
    role: Annotated[
        Literal["admin", "user"], typer.Option("--role", help="Administrators see and do everything.")
    ] = "user",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="A name for it; otherwise that of the user.")
    ] = None,
    output: Output = None,
) -> None:
    """Make a token for a user: it is printed once, and only a hash of it is kept."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        made = client.make_token(name or user, user, role)
    if form != "table":
        emit(made, form)
        return
    sys.stdout.write(f"{made.token}\n")
    say(f"{made.user} puts this into JOBMAN_TOKEN or ~/.jobman/token; it is not shown again")


@token.command("list")
def list_tokens(context: typer.Context, utc: Utc = False, output: Output = None) -> None:
    """List the tokens there are, but not the tokens themselves."""
    from jobman.cli.calls import Calling
    from jobman.cli.tables import Cell, Column, print_table
    from jobman.cli.times import when

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        found = client.tokens()
    if form != "table":
        emit({"items": found}, form)
        return
    columns = (
        Column("token"),
        Column("user"),
        Column("role"),
        Column("made", rank=2),
        Column("revoked", rank=1),
    )
    rows = [
        (
            one.name,
            one.user,
            Cell(one.role, "bold" if one.role == "admin" else ""),
            when(one.created_at, utc=utc),
            Cell(when(one.revoked_at, utc=utc), "red"),
        )
        for one in found
    ]
    print_table(columns, rows)


@token.command("revoke")
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the token.")],
    output: Output = None,
) -> None:
    """Revoke a token: from now on nobody is let in by it."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        gone = client.revoke_token(name)
    if form == "table":
        sys.stdout.write(f"{gone.name}  revoked\n")
    else:
        emit(gone, form)
