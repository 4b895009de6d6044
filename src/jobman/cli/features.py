"""`jobman features`: what a document can ask for, and how each engine realises it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from jobman.cli.options import Output
from jobman.cli.state import State, emit, make_console

if TYPE_CHECKING:
    from jobman.plan.features import Feature

_STYLES = {"native": "green", "emulated": "yellow", "refused": "red"}


def features(context: typer.Context, output: Output = None) -> None:
    """List every feature of the language, and how each engine realises it."""
    from jobman.engines.matrix import MATRIX
    from jobman.plan.features import CATALOGUE

    state: State = context.obj
    form = state.format(output)
    if form != "table":
        emit([_as_data(feature) for feature in CATALOGUE], form)
        return
    from rich.table import Table

    headings = ("feature", "what it is", "section", *MATRIX)
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for feature in CATALOGUE:
        ways = (engine[feature.id].how for engine in MATRIX.values())
        marks = (f"[{_STYLES[how]}]{how}[/]" for how in ways)
        table.add_row(feature.id, feature.title, str(feature.section), *marks)
    make_console().print(table)


def _as_data(feature: Feature) -> dict[str, Any]:
    import msgspec

    from jobman.engines.matrix import MATRIX

    engines = {name: engine[feature.id] for name, engine in MATRIX.items()}
    return {**msgspec.structs.asdict(feature), "engines": engines}
