"""Reading documents for a command: settings, parameters, and the end of the command where they are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobman.cli.state import State, parse_parameters, stop

if TYPE_CHECKING:
    from jobman.api import JobSpec
    from jobman.spec.source import Source


def read_documents(
    path: str, state: State, output: str, written: Sequence[str] | None = None, *, strict: bool = False
) -> list[JobSpec]:
    """The documents of a file with the settings in force, right or wrong."""
    from jobman.api import load_all

    parameters = parse_parameters(written, output)
    return load_all(path, settings=state.settings(output), parameters=parameters, strict=strict)


def read_again(
    source: Source, state: State, output: str, written: Sequence[str] | None = None, *, strict: bool = False
) -> list[JobSpec]:
    """The documents of a text that was changed after it was read."""
    from jobman.api import load_source

    parameters = parse_parameters(written, output)
    return load_source(source, settings=state.settings(output), parameters=parameters, strict=strict)


def read_good_documents(
    path: str, state: State, output: str, written: Sequence[str] | None = None
) -> list[JobSpec]:
    """The documents of a file; the command ends if one of them has an error."""
    specs = read_documents(path, state, output, written)
    if not all(spec.ok for spec in specs):
        stop(specs[0].problems, output)
    if specs[0].problems:
        from jobman.cli.problems import print_problems

        print_problems(specs[0].problems, error=True)
    return specs
