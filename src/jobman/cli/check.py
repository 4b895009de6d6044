"""`jobman check`: every problem of a document, and mechanical repairs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.state import ExitCode, Output, Parameters, State, emit, parse_parameters

if TYPE_CHECKING:
    from jobman.api import JobSpec


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Documents to check; - is standard input.")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair what is mechanical and show the difference.")
    ] = False,
    parameters: Parameters = None,
    output: Output = None,
) -> None:
    """Check documents: all problems of each file, with place and advice."""
    from jobman.cli.documents import read_documents

    state: State = context.obj
    form = state.format(output)
    results = []
    for path in files:
        text = _fix(path, state, parameters, form) if fix else None
        if text is None:
            specs = read_documents(path, state, form, parameters, strict=strict)
        else:
            specs = _reread(text, path, state, parameters, form, strict=strict)
        results.append((path, specs))
    if form == "table":
        _print(results, quiet=fix and "-" in files)
    else:
        emit([_as_data(path, specs) for path, specs in results], form)
    if not all(spec.ok for _, specs in results for spec in specs):
        raise typer.Exit(ExitCode.DOCUMENT)


def _print(results: list[tuple[str, list[JobSpec]]], *, quiet: bool) -> None:
    from jobman.cli.problems import print_problems

    for path, specs in results:
        problems = specs[0].problems
        print_problems(problems, error=quiet)
        typer.echo(f"{path}: {_verdict(specs)}", err=quiet)


def _verdict(specs: list[JobSpec]) -> str:
    problems = specs[0].problems
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    counts = [_count(errors, "error")] if errors else []
    counts += [_count(warnings, "warning")] if warnings else []
    if errors:
        return ", ".join(counts)
    units = [unit for spec in specs if spec.job for unit in spec.job.units]
    groups = sum(unit.is_group for unit in units)
    what = [_count(len(specs), "job")] if len(specs) > 1 else []
    what += [_count(len(units) - groups, "task")] + ([_count(groups, "group")] if groups else [])
    return f"ok ({', '.join(what + counts)})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _as_data(path: str, specs: list[JobSpec]) -> dict[str, object]:
    return {
        "file": path,
        "ok": all(spec.ok for spec in specs),
        "digests": [spec.plan().digest for spec in specs if spec.ok],
        "problems": specs[0].problems,
    }


# -- repairs ------------------------------------------------------------------------------------------------


def _fix(path: str, state: State, parameters: list[str] | None, form: str) -> str | None:
    """Repair a file in place, or standard input to standard output; None where it cannot be read."""
    import difflib

    from jobman.spec.fix import fix_source
    from jobman.spec.problems import Problems
    from jobman.spec.source import read_source

    source = read_source(path, Problems())
    if source is None:
        return None
    fixed = fix_source(source, state.settings().site(), parse_parameters(parameters, form))
    is_stdin = path == "-"
    if fixed.text != source.text:
        lines = source.text.splitlines(keepends=True), fixed.text.splitlines(keepends=True)
        difference = difflib.unified_diff(*lines, fromfile=source.name, tofile=f"{source.name} (fixed)")
        (sys.stderr if is_stdin or form != "table" else sys.stdout).writelines(difference)
        if not is_stdin:
            _replace(path, fixed.text)
    if is_stdin:
        sys.stdout.write(fixed.text)
    return fixed.text


def _replace(path: str, text: str) -> None:
    """Write a file as a whole or not at all, keeping its mode."""
    import os
    import shutil
    import tempfile
    from pathlib import Path

    target = Path(path).resolve()
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, temporary)
        Path(temporary).replace(target)
    except OSError as error:
        typer.echo(f"jobman: cannot write {path}: {error.strerror}", err=True)
        raise typer.Exit(ExitCode.FAILED) from error


def _reread(
    text: str, path: str, state: State, parameters: list[str] | None, form: str, *, strict: bool
) -> list[JobSpec]:
    from jobman.api import loads

    name = "<stdin>" if path == "-" else path
    values = parse_parameters(parameters, form)
    return [loads(text, name=name, settings=state.settings(), parameters=values, strict=strict)]
