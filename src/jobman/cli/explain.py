"""`jobman explain`: the resolved tree, copies, totals, effective values and where each came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.options import Output, Parameters
from jobman.cli.state import ExitCode, State, emit, make_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    from jobman.plan.explanation import Explained, Explanation, Footprint, Value
    from jobman.plan.model import Plan
    from jobman.spec.shapes import Totals

_GRAPHS = (".svg", ".mmd")
_MOST_VALUES = 12


def explain(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The document; - is standard input.")],
    graph: Annotated[
        Path | None,
        typer.Option("--graph", metavar="OUT", help="Draw the graph: out.svg, or out.mmd for Mermaid."),
    ] = None,
    parameters: Parameters = None,
    output: Output = None,
) -> None:
    """Show what a document means: tasks, copies, totals, effective values and their origin, features."""
    from jobman.cli.documents import read_good_documents
    from jobman.plan.explanation import explain as explained

    state: State = context.obj
    form = state.format(output)
    if graph is not None and graph.suffix not in _GRAPHS:
        raise typer.BadParameter("the name must end in .svg or .mmd", param_hint="--graph")
    specs = read_good_documents(file, state, form, parameters)
    plans = [spec.plan() for spec in specs]
    answers = [
        explained(spec.job, plan) for spec, plan in zip(specs, plans, strict=True) if spec.job is not None
    ]
    if form == "table":
        for answer, plan in zip(answers, plans, strict=True):
            _print(answer, plan)
    else:
        emit(answers[0] if len(answers) == 1 else answers, form)
    if graph is not None:
        for number, plan in enumerate(plans):
            _draw(plan, graph if len(plans) == 1 else graph.with_stem(f"{graph.stem}-{number + 1}"))


def _draw(plan: Plan, path: Path) -> None:
    from jobman.plan.drawing import mermaid, svg

    draw = svg if path.suffix == ".svg" else mermaid
    try:
        path.write_text(draw(plan), encoding="utf-8")
    except OSError as error:
        typer.echo(f"jobman: cannot write {path}: {error.strerror}", err=True)
        raise typer.Exit(ExitCode.FAILED) from error
    typer.echo(f"graph: {path}", err=True)


def _print(answer: Explanation, plan: Plan) -> None:
    from rich.tree import Tree

    console = make_console()
    name = answer.name or "job"
    tree = Tree(_line(f"[bold]{_safe(name)}[/]  {_used(answer.at_once)} if all of it ran at once"))
    _add_values(tree, answer.values)
    branches: dict[str | None, Tree] = {None: tree}
    for unit in answer.units:
        branch = branches[unit.parent].add(_line(_title(unit)))
        branches[unit.id] = branch
        _add_details(branch, unit)
    console.print(tree)
    console.print(f"[dim]plan {plan.digest[:19]}…[/]")
    _print_features(answer, console)


def _print_features(answer: Explanation, console: Console) -> None:
    names = ", ".join(feature.id for feature in answer.features)
    console.print(f"[bold]features used[/] ({len(answer.features)}): {_safe(names)}")


def _title(unit: Explained) -> str:
    title = f"[bold]{_safe(unit.name)}[/] [dim]{unit.kind}, line {unit.line}[/]  {_copies(unit)}"
    waits = f"after {', '.join(unit.waits_for)}" if unit.waits_for else ""
    if unit.when != "success":
        case = "always" if unit.when == "always" else "on failure"
        waits = f"{case}, {waits or 'after the rest'}"
    return title + (f"  [green]{_safe(waits)}[/]" if waits else "")


def _line(markup: str) -> Text:
    """One line that is cut where the terminal ends."""
    from rich.text import Text

    line = Text.from_markup(markup, overflow="ellipsis", emoji=False)
    line.no_wrap = True
    return line


def _copies(unit: Explained) -> str:
    if unit.kind == "group":
        runs = f"{unit.replicas:,} × " if unit.replicas > 1 else ""
        return f"{runs}{_either(unit)}"
    copies = " or ".join(f"{count:,}" for count in dict.fromkeys(unit.copies))
    noun = "copy" if set(unit.copies) == {1} else "copies"
    replicas = f"{unit.replicas:,} replicas × " if unit.replicas > 1 else ""
    return f"{replicas}{copies} {noun}" + (f" on {_either(unit)}" if unit.totals else "")


def _either(unit: Explained) -> str:
    return " or ".join(dict.fromkeys(_used(one) for one in unit.totals)) or "no resources"


def _used(total: Totals | Footprint) -> str:
    from jobman.plan.wording import describe_amounts

    said = [f"{total.nodes:,} node{'' if total.nodes == 1 else 's'}"] if total.nodes else []
    if total.amounts:
        said.append(describe_amounts(total.amounts))
    return ", ".join(said) or "nothing"


def _add_details(branch: Tree, unit: Explained) -> None:
    if unit.command:
        import shlex

        branch.add(_line(f"[dim]$[/] {_safe(_short(shlex.join(unit.command)))}"))
    _add_values(branch, unit.values)


def _add_values(branch: Tree, values: tuple[Value, ...]) -> None:
    for value in values[:_MOST_VALUES]:
        branch.add(
            _line(f"{_safe(value.key)} = {_safe(_short(_value(value)))}  [dim]← {_safe(_origin(value))}[/]")
        )
    if len(values) > _MOST_VALUES:
        branch.add(f"[dim]… and {len(values) - _MOST_VALUES} more values; -o json shows all[/]")


def _origin(value: Value) -> str:
    words = " ".join(filter(None, (value.level, value.name)))
    if value.level == "sum":
        words = "sum of its tasks"
    return words + (f", line {value.line}" if value.line else "")


def _value(value: Value) -> str:
    import msgspec

    from jobman.spec.quantities import format_duration

    if value.key in ("duration", "grace"):
        return format_duration(value.value)
    if isinstance(value.value, str | int | float):
        return str(value.value)
    plain = msgspec.to_builtins(value.value)
    return msgspec.json.encode(plain).decode()


def _short(text: str, most: int = 100) -> str:
    line = text.replace("\n", "⏎")
    return line if len(line) <= most else line[: most - 1] + "…"


def _safe(text: str) -> str:
    from rich.markup import escape

    return escape(text)
