"""`jobman convert`: a script or a job specification of others, written as a document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.options import Output
from jobman.cli.state import ExitCode, State, emit, say, stop

if TYPE_CHECKING:
    from jobman.convert import Converted
    from jobman.spec.problems import Problem


def convert(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A batch script or a jobspec of Flux; - is standard input.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT…]", help="What the script is called with.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="OUT", help="Write the document to this file.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Treat remarks as errors.")] = False,
    output: Output = None,
) -> None:
    """Write a batch script of Slurm or Flux, or Flux's own jobspec, as a document.

    The document goes to stdout. What could not be carried over goes to stderr, a line for each.
    """
    from datetime import datetime

    from jobman.cli.submission import read_text
    from jobman.convert import convert as read

    state: State = context.obj
    form = state.format(output)
    text = read_text(file, form)
    name = "<stdin>" if file == "-" else file
    found = read(name, text, datetime.now().astimezone(), arguments=arguments or (), strict=strict)
    tell_remarks(found, form)
    _put(found, form, to)


def tell_remarks(found: Converted, form: str) -> None:
    """Print what is to be told of a conversion; errors end the command."""
    errors = [problem for problem in found.problems if problem.severity == "error"]
    if errors and form != "table":
        stop(found.problems, form)
    for problem in found.problems:
        if problem not in errors:
            sys.stderr.write(f"{line_of(problem)}\n")
    if errors:
        stop(errors, form)


def line_of(problem: Problem) -> str:
    """A remark in one line."""
    place = f"{problem.place.file}:{problem.place.line}: " if problem.place is not None else ""
    text = f"{place}{problem.code}: {problem.message}; {problem.advice}"
    return "".join(one if one.isprintable() else " " for one in text)


def _put(found: Converted, form: str, to: str | None) -> None:
    if to is None and form == "json":
        emit(found.document, form)
    elif to is None:
        sys.stdout.write(found.text())
    else:
        _write(to, _as_json(found) if form == "json" or to.endswith(".json") else found.text())


def _as_json(found: Converted) -> str:
    import json

    return json.dumps(found.document, indent=2, ensure_ascii=False) + "\n"


def _write(to: str, text: str) -> None:
    try:
        Path(to).write_text(text, encoding="utf-8")
    except OSError as error:
        say(f"cannot write {to}: {error.strerror}")
        raise typer.Exit(ExitCode.FAILED) from None
