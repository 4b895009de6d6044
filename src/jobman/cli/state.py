"""What every command shares: exit codes, global options and how answers are printed."""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from jobman.settings import Settings
    from jobman.spec.problems import Problem

FORMATS = ("table", "json", "yaml")
Output = Annotated[
    str | None, typer.Option("-o", "--output", metavar="table|json|yaml", help="Form of the answer.")
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Give a parameter of the document.")
]


class ExitCode(IntEnum):
    """What the shell is told."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DOCUMENT = 3
    UNABLE = 4
    UNREACHABLE = 5
    REFUSED = 6


class State:
    """The global options."""

    def __init__(self, settings_file: str | None, output: str | None) -> None:
        self.settings_file = settings_file
        self.output = output
        self._settings: Settings | None = None

    def format(self, local: str | None) -> str:
        """The form of the answer: the command's own option before the global one."""
        chosen = local or self.output or "table"
        if chosen not in FORMATS:
            raise typer.BadParameter(f"'{chosen}' is not one of {', '.join(FORMATS)}", param_hint="-o")
        return chosen

    def settings(self, form: str) -> Settings:
        """The settings in force, read once; a wrong file ends the command."""
        from jobman.settings import load_settings
        from jobman.spec.problems import SpecError

        try:
            self._settings = self._settings or load_settings(self.settings_file)
        except SpecError as error:
            stop(error.problems, form)
        return self._settings


def stop(problems: Sequence[Problem], output: str) -> NoReturn:
    """End the command because a document or the settings are wrong."""
    if output == "table":
        from jobman.cli.problems import print_problems

        print_problems(problems, error=True)
    else:
        emit({"problems": list(problems)}, output)
    raise typer.Exit(ExitCode.DOCUMENT)


def emit(answer: Any, output: str) -> None:
    """Print an answer as data."""
    import msgspec

    plain = msgspec.to_builtins(answer, str_keys=True)
    if output == "json":
        text = msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
    else:
        import yaml

        text = yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).rstrip()
    sys.stdout.write(text + "\n")


def make_console() -> Console:
    """A console for answers; where nobody watches, lines are not folded to a terminal's width."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 160)


def parse_parameters(written: Sequence[str] | None, output: str) -> Mapping[str, str]:
    """`--set name=value`; of several for one name the last counts."""
    from jobman.spec.problems import Problems

    problems = Problems()
    values: dict[str, str] = {}
    for text in written or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            problems.add("JS809", None, text=text)
        values[name] = value
    if len(problems):
        stop(problems.in_order(), output)
    return values
