"""`jobman features`: the catalogue of what a document can ask for."""

from __future__ import annotations

import typer

from jobman.cli.state import Output, State, emit, make_console


def register(app: typer.Typer) -> None:
    app.command("features")(features)


def features(context: typer.Context, output: Output = None) -> None:
    """List every feature of the language, by section of the reference."""
    from jobman.plan.features import CATALOGUE

    state: State = context.obj
    form = state.format(output)
    if form != "table":
        emit(list(CATALOGUE), form)
        return
    from rich.table import Table

    table = Table("feature", "what it is", "section", box=None, pad_edge=False, header_style="bold")
    for feature in CATALOGUE:
        table.add_row(feature.id, feature.title, str(feature.section))
    make_console().print(table)
