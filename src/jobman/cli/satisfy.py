"""`jobman satisfy`: which nodes could take each task, and what rules the others out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.options import Output, Parameters, Virtual
from jobman.cli.state import ExitCode, State, emit, make_console, stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.tree import Tree

    from jobman.plan.model import Plan
    from jobman.plan.nodes import ClusterNode
    from jobman.plan.satisfy import Match, PartMatch

_ASKED = ("slurm", "flux")
"""Engines whose own nodes are asked for."""


def satisfy(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The document; - is standard input.")],
    nodes: Annotated[
        str | None,
        typer.Option(
            "--nodes",
            metavar="NODES",
            help="A file that describes nodes; without it this machine, or those of the engine.",
        ),
    ] = None,
    virtual: Virtual = None,
    parameters: Parameters = None,
    output: Output = None,
) -> None:
    """Match requires and shapes against nodes: which qualify, and why the others do not."""
    from jobman.cli.documents import read_good_documents

    state: State = context.obj
    form = state.format(output)
    if nodes is not None and virtual is not None:
        raise typer.BadParameter("give either --nodes or --virtual", param_hint="--virtual")
    if nodes is None and virtual is None and state.engine in _ASKED:
        plans = [spec.plan() for spec in read_good_documents(file, state, form, parameters)]
        matches, count = _there(plans, state, form)
    else:
        cluster = _described(nodes, form) if nodes is not None else _here(virtual, state, form)
        plans = [spec.plan() for spec in read_good_documents(file, state, form, parameters)]
        matches, count = _matched(plans, cluster), len(cluster)
    if form == "table":
        _print(matches, count)
    else:
        emit(matches, form)
    if not all(match.satisfied for match in matches):
        raise typer.Exit(ExitCode.UNABLE)


def _matched(plans: Sequence[Plan], cluster: Sequence[ClusterNode]) -> list[Match]:
    from jobman.plan.satisfy import satisfy as matched

    return [match for plan in plans for match in matched(plan, cluster)]


def _there(plans: Sequence[Plan], state: State, form: str) -> tuple[list[Match], int]:
    """Matches with the nodes that the manager has now, and how many those are."""
    from jobman.cli.calls import unreachable
    from jobman.client.batch_opening import matches_there
    from jobman.client.failures import Unreachable

    try:
        return matches_there(state.engine, state.settings(form).values, plans)
    except Unreachable as error:
        unreachable(error)


def _described(path: str, form: str) -> list[ClusterNode]:
    from jobman.plan.nodes import read_nodes
    from jobman.spec.problems import SpecError

    try:
        return read_nodes(path)
    except SpecError as error:
        stop(error.problems, form)


def _here(virtual: str | None, state: State, form: str) -> list[ClusterNode]:
    """This machine, or the emulated nodes it would be."""
    from jobman.control.places import find_places
    from jobman.engines.local.nodes import VirtualNodesError, this_machine, virtual_nodes

    facts = state.settings(form).values.get("facts", {})
    found = this_machine(facts, scratch=find_places().state)
    if virtual is not None:
        try:
            found = virtual_nodes(virtual, found[0])
        except VirtualNodesError as error:
            raise typer.BadParameter(str(error), param_hint="--virtual") from None
    return [local.node for local in found]


def _print(matches: list[Match], count: int) -> None:
    from rich.markup import escape
    from rich.tree import Tree

    console = make_console()
    for match in matches:
        mark = "[green]can run[/]" if match.satisfied else "[red]cannot run[/]"
        tree = Tree(f"[bold]{escape(match.unit)}[/] [dim]{match.kind}[/]  {mark}")
        for number, alternative in enumerate(match.alternatives):
            branch = tree
            if len(match.alternatives) > 1:
                chosen = " [green]← chosen[/]" if number == match.chosen else ""
                branch = tree.add(f"alternative {number + 1}{chosen}")
            for part in alternative.parts:
                _add_part(branch, part, count)
            if not alternative.satisfied and all(part.enough for part in alternative.parts):
                branch.add("[red]the parts compete for the same nodes[/]")
        console.print(tree)


def _add_part(branch: Tree, part: PartMatch, count: int) -> None:
    from rich.markup import escape

    style = "green" if part.enough else "red"
    room = "" if part.enough or not part.nodes else f", with room for {part.room:,}"
    found = branch.add(f"{escape(part.wanted)}: [{style}]{len(part.nodes)} of {count} nodes qualify{room}[/]")
    if part.nodes:
        found.add(f"[green]{escape(_some(part.nodes))}[/]")
    for obstacle in part.obstacles:
        found.add(f"{escape(_some(obstacle.nodes))}: {escape(obstacle.words)}")


def _some(names: tuple[str, ...], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
