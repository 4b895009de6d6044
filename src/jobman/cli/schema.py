"""`jobman schema`: the JSON schema of the language, for editors."""

from __future__ import annotations

import typer

from jobman.cli.options import Output
from jobman.cli.state import State, emit


def schema(context: typer.Context, output: Output = None) -> None:
    """Print the JSON schema (draft 2020-12) of a JobSpec, for editors and validators."""
    from jobman.spec.schema import json_schema

    state: State = context.obj
    form = state.format(output)
    emit(json_schema(), "json" if form == "table" else form)
