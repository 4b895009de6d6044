"""`jobman queue`, `nodes` and `resources-flavors`: what is in demand, what there is, what one may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobman.cli.amounts import MAKER, UNITS, amount_of, amounts_of
from jobman.cli.options import Output
from jobman.cli.state import State, emit, say

if TYPE_CHECKING:
    from jobman.cli.tables import Cell
    from jobman.control.answers import Node, QueueRow
    from jobman.engines.kubernetes.sight import Sight

_NO_NAME = "<no name>"


def queue(context: typer.Context, output: Output = None) -> None:
    """List the flavors in demand: jobs waiting and running, how many are yours, when the next can start."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        rows, sight = client.queue_in_sight()
    if form == "table":
        _print_queue(rows)
        _say_sight(sight)
    else:
        emit({"items": rows, **({"sight": sight} if sight is not None else {})}, form)


def nodes(
    context: typer.Context,
    facts: Annotated[bool, typer.Option("--facts", help="What `requires` and labels can ask for.")] = False,
    output: Output = None,
) -> None:
    """List the nodes, and how much of each is in use."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        found = client.nodes()
    if form == "table" and facts:
        _print_facts(found)
    elif form == "table":
        _print_nodes(found)
    else:
        emit({"items": found}, form)


def resources_flavors(context: typer.Context, output: Output = None) -> None:
    """List the flavors of the settings, what each asks for, and the file it came from."""
    state: State = context.obj
    form = state.format(output)
    settings = state.settings(form)
    flavors = settings.as_data().get("flavors", [])
    default = settings.values.get("default_flavor")
    rows = [
        {
            **flavor,
            "amounts": settings.site().flavors[flavor["name"]].each,
            "default": flavor["name"] == default,
            "from": settings.origins[f"flavors.{flavor['name']}"],
        }
        for flavor in flavors
    ]
    if form == "table":
        _print_flavors(rows)
    else:
        emit(rows, form)


def _print_queue(rows: list[QueueRow]) -> None:
    from jobman.cli.tables import Cell, Column, print_table

    if not rows:
        say("nothing waits and nothing runs")
        return
    columns = (
        Column("flavor"),
        Column("waiting", right=True),
        Column("running", right=True),
        Column("yours", rank=1, right=True),
        Column("resources", rank=3, folds=True),
        Column("next start", rank=2, folds=True),
    )
    table = [
        (
            row.flavor or Cell(_NO_NAME, "dim"),
            Cell(f"{row.waiting:,}", "yellow" if row.waiting else "dim"),
            Cell(f"{row.running:,}", "cyan" if row.running else "dim"),
            f"{row.yours_waiting + row.yours_running:,}",
            amounts_of(row.resources),
            row.next_start,
        )
        for row in rows
    ]
    print_table(columns, table)
    _print_gpus(rows)


def _say_sight(sight: Sight | None) -> None:
    """Tell in how many namespaces was counted, where those are not all."""
    if sight is not None:
        there = f" of {sight.of}" if sight.of is not None else ""
        word = "namespace" if (sight.of or len(sight.namespaces)) == 1 else "namespaces"
        rest = "you may not see the others" if there else "there may be others that you may not see"
        say(f"counted in {len(sight.namespaces)}{there} {word}, {_some(list(sight.namespaces))}: {rest}")


def _print_gpus(rows: list[QueueRow]) -> None:
    """Where it is known of whom they are: GPUs of each maker that are asked for and in use, and all."""
    from jobman.cli.tables import Column, print_table

    makers = dict.fromkeys(kind for row in rows for kind in row.resources if kind.startswith(MAKER))
    kinds = {kind.removeprefix(MAKER): kind for kind in makers} | ({"all": "gpu"} if len(makers) > 1 else {})
    if kinds:
        typer.echo()
        columns = (Column("gpus"), Column("waiting", right=True), Column("running", right=True))
        print_table(columns, [(title, *_demand(rows, kind)) for title, kind in kinds.items()])


def _demand(rows: list[QueueRow], kind: str) -> tuple[str, str]:
    waiting = sum(row.waiting * row.resources.get(kind, 0) for row in rows)
    return f"{waiting:,g}", f"{sum(row.running * row.resources.get(kind, 0) for row in rows):,g}"


_LEAST_TELLING = {"socket": 9, "storage": 7}
_RANKS = {"core": 1, "gpu": 1, "memory": 4}
"""Which columns of nodes give way first: figures stay longer than bars, and these longer than the rest."""
_WITH_BARS = ("core", "gpu")
_STATES = {"up": "green", "draining": "yellow", "suspect": "yellow"}


def _print_nodes(found: list[Node]) -> None:
    from jobman.cli.tables import Cell, Column, Row, print_table

    present = dict.fromkeys(kind for node in found for kind, amount in node.amounts.items() if amount)
    kinds = [kind for kind in _RANKS if kind in present] + [kind for kind in present if kind not in _RANKS]
    columns = [Column("node", least=12), Column("state")]
    for kind in kinds:
        if kind in _WITH_BARS:
            columns.append(Column(f"{kind} load" if kind != "core" else "load", rank=2))
        rank = _RANKS.get(kind) or _LEAST_TELLING.get(kind, 6)
        columns.append(Column(UNITS.get(kind, kind), rank=rank, right=True))
    has_others = any(node.foreign for node in found)
    columns += [Column("others", rank=4, folds=True)] if has_others else []
    columns += [Column("jobs", rank=5, folds=True), Column("reason", rank=3, folds=True, least=12)]
    rows: list[Row] = [
        (
            node.name,
            Cell(node.state, _STATES.get(node.state, "red")),
            *(cell for kind in kinds for cell in _cells(node, kind)),
            *([amounts_of(node.foreign)] if has_others else []),
            _some(node.jobs),
            node.reason,
        )
        for node in found
    ]
    print_table(columns, rows)


def _print_facts(found: list[Node]) -> None:
    from jobman.cli.tables import Cell, print_facts

    for node in found:
        print_facts([("node", Cell(node.name, "bold")), *sorted((node.facts | node.labels).items())])


def _cells(node: Node, kind: str) -> list[Cell]:
    """`2/8`: what is in use, of all; for some kinds behind a bar."""
    from jobman.cli.bars import bar, colour_of, letters_for
    from jobman.cli.tables import Cell

    total, used = node.amounts.get(kind, 0), node.used.get(kind, 0)
    style = colour_of(used, total)
    bars = [Cell(bar(used, total, letters=letters_for()), style)] if kind in _WITH_BARS else []
    use = f"{amount_of(kind, used)}/{amount_of(kind, total)}" if total else ""
    return [*bars, Cell(use, style)]


def _print_flavors(rows: list[dict[str, Any]]) -> None:
    from jobman.cli.tables import Cell, Column, print_table

    columns = (
        Column("flavor"),
        Column("resources", folds=True),
        Column("description", rank=2, folds=True),
        Column("from", rank=1),
    )
    table = [
        (
            Cell(
                f"{row['name']} (default)" if row["default"] else row["name"],
                "bold" if row["default"] else "",
            ),
            amounts_of(row["amounts"]),
            row.get("description", ""),
            row["from"],
        )
        for row in rows
    ]
    print_table(columns, table)


def _some(names: list[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
