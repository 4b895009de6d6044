"""`jobman settings`: the settings in force, and where each value came from."""

from __future__ import annotations

import typer

from jobman.cli.options import Output
from jobman.cli.state import State, emit, make_console


def settings(context: typer.Context, output: Output = None) -> None:
    """Print the settings in force and the file each value came from."""
    state: State = context.obj
    form = state.format(output)
    loaded = state.settings(form)
    if form != "table":
        emit({"settings": loaded.as_data(), "origins": loaded.origins}, form)
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table("setting", "value", "from", box=None, pad_edge=False, header_style="bold")
    for key, value in loaded.rows():
        table.add_row(*map(escape, (key, value, loaded.origins[key])))
    make_console().print(table)
