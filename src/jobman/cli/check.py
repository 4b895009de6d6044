"""`jobman check`: every problem of a document, and mechanical repairs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from jobman.cli.options import Output, Parameters
from jobman.cli.state import ExitCode, State, emit, parse_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobman.api import JobSpec
    from jobman.spec.source import Source


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
    from jobman.cli.documents import read_again, read_documents

    state: State = context.obj
    form = state.format(output)
    results = []
    for path in files:
        fixed = _fix(path, state, parameters, form) if fix else None
        if fixed is None:
            specs = read_documents(path, state, form, parameters, strict=strict)
        else:
            specs = read_again(fixed, state, form, parameters, strict=strict)
        text = fixed.text if fixed is not None and path == "-" else None
        results.append(Checked(path, specs, text))
    if form == "table":
        _print(results)
    else:
        emit([checked.as_data() for checked in results], form)
    if not all(spec.ok for checked in results for spec in checked.specs):
        raise typer.Exit(ExitCode.DOCUMENT)


class Checked(NamedTuple):
    """A file that was checked; `fixed` is the text of standard input after repairs."""

    path: str
    specs: list[JobSpec]
    fixed: str | None

    def as_data(self) -> dict[str, object]:
        data: dict[str, object] = {
            "file": self.path,
            "ok": all(spec.ok for spec in self.specs),
            "digests": [spec.plan().digest for spec in self.specs if spec.ok],
            "problems": self.specs[0].problems,
        }
        return data if self.fixed is None else {**data, "fixed": self.fixed}


def _print(results: list[Checked]) -> None:
    """Problems and verdicts are the answer, unless a repaired document is."""
    from jobman.cli.problems import print_problems

    aside = any(checked.fixed is not None for checked in results)
    for checked in results:
        if checked.fixed is not None:
            sys.stdout.write(checked.fixed)
        print_problems(checked.specs[0].problems, error=aside)
        typer.echo(f"{checked.path}: {_verdict(checked.specs)}", err=aside)


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


# -- repairs ------------------------------------------------------------------------------------------------


def _fix(path: str, state: State, parameters: list[str] | None, form: str) -> Source | None:
    """Repair a file in place; of standard input only the text. None where it cannot be read."""
    from jobman.spec.fix import fix_source
    from jobman.spec.problems import Problems
    from jobman.spec.source import read_source

    source = read_source(path, Problems())
    if source is None:
        return None
    fixed = fix_source(source, state.settings(form).site(), parse_parameters(parameters, form))
    if fixed.text != source.text:
        if path != "-":
            _replace(path, "\ufeff" * source.has_mark + fixed.text)
        (sys.stderr if path == "-" or form != "table" else sys.stdout).writelines(_difference(source, fixed))
    return fixed


def _difference(source: Source, fixed: Source) -> Iterator[str]:
    import difflib

    before, after = (text.splitlines(keepends=True) for text in (source.text, fixed.text))
    return difflib.unified_diff(before, after, fromfile=source.name, tofile=f"{source.name} (fixed)")


def _replace(path: str, text: str) -> None:
    """Write a file as a whole or not at all, keeping its mode."""
    import os
    import shutil
    import tempfile
    from pathlib import Path

    target = Path(path).resolve()
    temporary = ""
    try:
        if not os.access(target, os.W_OK):
            raise PermissionError(13, "Permission denied")
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, temporary)
        Path(temporary).replace(target)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        typer.echo(f"jobman: cannot write {path}: {error.strerror}", err=True)
        raise typer.Exit(ExitCode.FAILED) from error
