"""`jobman queue`: what is in demand, which queues there are, and opening and closing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli import cluster
from jobman.cli.options import Output, Utc
from jobman.cli.state import State, emit
from jobman.cli.switches import switch

if TYPE_CHECKING:
    from jobman.control.administration import QueueInfo, QueueStateName

queue = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    help="List the flavors in demand; open and close queues.",
)
_COLOURS = {"open": "green", "draining": "yellow", "closed": "red"}
Name = Annotated[list[str], typer.Argument(metavar="QUEUE…", help="Which queues.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for those who wait.")]


@queue.callback()
def demand(context: typer.Context, output: Output = None) -> None:
    """List the flavors in demand: jobs waiting and running, how many are yours, when the next can start."""
    state: State = context.obj
    state.output = output or state.output
    if context.invoked_subcommand is None:
        cluster.queue(context, output)


@queue.command("list")
def list_queues(context: typer.Context, utc: Utc = False, output: Output = None) -> None:
    """List the queues: how each is served, its nodes, and whether it is open."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        found = client.queues()
    if form == "table":
        _print(found, utc=utc)
    else:
        emit({"items": found}, form)


@queue.command("open")
def open_queue(context: typer.Context, names: Name, reason: Reason = "", output: Output = None) -> None:
    """Open queues: they take jobs in and start them."""
    _switch(context, names, "open", reason, output)


@queue.command("drain")
def drain(context: typer.Context, names: Name, reason: Reason = "", output: Output = None) -> None:
    """Drain queues: they take nothing in, and what waits is still started."""
    _switch(context, names, "draining", reason, output)


@queue.command("close")
def close(context: typer.Context, names: Name, reason: Reason = "", output: Output = None) -> None:
    """Close queues: they take nothing in and start nothing; what runs goes on."""
    _switch(context, names, "closed", reason, output)


def _switch(
    context: typer.Context, names: list[str], to: QueueStateName, reason: str, output: str | None
) -> None:
    switch(context, names, output, lambda client, name: client.set_queue_state(name, to, reason))


def _print(found: list[QueueInfo], *, utc: bool) -> None:
    from jobman.cli.tables import Cell, Column, print_table
    from jobman.cli.times import when
    from jobman.spec.node_names import fold_names

    columns = (
        Column("queue"),
        Column("state"),
        Column("policy"),
        Column("depth", rank=3, right=True),
        Column("nodes", rank=2, folds=True),
        Column("share", rank=4, right=True),
        Column("borrows", rank=5, folds=True),
        Column("reason", rank=1, folds=True),
        Column("by", rank=6),
        Column("since", rank=7),
    )
    rows = [
        (
            one.name,
            Cell(one.state, _COLOURS[one.state]),
            one.policy,
            "" if one.policy == "interactive" else "all" if one.depth is None else f"{one.depth}",
            fold_names(one.nodes) or "all",
            "" if one.share is None else f"{one.share:.0%}",
            ", ".join(one.borrow),
            one.reason,
            one.by,
            when(one.at, utc=utc),
        )
        for one in found
    ]
    print_table(columns, rows)
