"""`jobman satisfy`: which nodes could take each task, and what rules the others out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.state import ExitCode, Output, Parameters, State, emit, make_console, stop

if TYPE_CHECKING:
    from rich.tree import Tree

    from jobman.plan.satisfy import Match, PartMatch


def register(app: typer.Typer) -> None:
    app.command("satisfy")(satisfy)


def satisfy(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The document; - is standard input.")],
    nodes: Annotated[str, typer.Option("--nodes", metavar="NODES", help="A file that describes the nodes.")],
    parameters: Parameters = None,
    output: Output = None,
) -> None:
    """Match requires and shapes against nodes: which qualify, and why the others do not."""
    from jobman.cli.documents import read_good_documents
    from jobman.plan.nodes import read_nodes
    from jobman.plan.satisfy import satisfy as matched
    from jobman.spec.problems import SpecError

    state: State = context.obj
    form = state.format(output)
    try:
        cluster = read_nodes(nodes)
    except SpecError as error:
        stop(error.problems, form)
    specs = read_good_documents(file, state, form, parameters)
    matches = [match for spec in specs for match in matched(spec.plan(), cluster)]
    if form == "table":
        _print(matches, len(cluster))
    else:
        emit(matches, form)
    if not all(match.satisfied for match in matches):
        raise typer.Exit(ExitCode.UNABLE)


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
