"""`jobman nodes`: what there is and how much of it is in use, and taking nodes out of use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli import cluster
from jobman.cli.options import Output
from jobman.cli.state import State, misused
from jobman.cli.switches import switch

if TYPE_CHECKING:
    from jobman.control.administration import NodeStateName

nodes = typer.Typer(
    add_completion=False, invoke_without_command=True, help="List the nodes; take them out of use and back."
)
Name = Annotated[list[str], typer.Argument(metavar="NODE…", help="Names and ranges, such as n[1-4].")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for those who ask.")]


@nodes.callback()
def list_nodes(
    context: typer.Context,
    facts: Annotated[bool, typer.Option("--facts", help="What `requires` and labels can ask for.")] = False,
    output: Output = None,
) -> None:
    """List the nodes, and how much of each is in use."""
    state: State = context.obj
    state.output = output or state.output
    if context.invoked_subcommand is None:
        cluster.nodes(context, facts, output)


@nodes.command("drain")
def drain(context: typer.Context, names: Name, reason: Reason = "", output: Output = None) -> None:
    """Drain nodes: what runs there goes on, and nothing new starts."""
    _switch(context, names, "draining", reason, output)


@nodes.command("resume")
def resume(context: typer.Context, names: Name, reason: Reason = "", output: Output = None) -> None:
    """Use nodes again that were drained."""
    _switch(context, names, "up", reason, output)


def _switch(
    context: typer.Context, names: list[str], to: NodeStateName, reason: str, output: str | None
) -> None:
    switch(context, _expanded(names), output, lambda client, name: client.set_node_state(name, to, reason))


def _expanded(names: list[str]) -> list[str]:
    from jobman.spec.node_names import expand_list

    found: dict[str, None] = {}
    for text in names:
        some = expand_list(text)
        if some is None:
            misused(f"'{text}' is no name of a node, or range such as n[1-4]", "NODE")
        found.update(dict.fromkeys(some))
    return list(found)
