"""What every command shares: exit codes, global options and how answers are printed.

Imports nothing slow, not even the library of the command line: `jobman submit` goes without it.
"""

from __future__ import annotations

import re
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from jobman.settings import Settings
    from jobman.spec.problems import Problem

FORMATS = ("table", "json", "yaml")
ENGINES = ("local", "kubernetes", "slurm", "flux")
INTERRUPTED = 130
"""What shells say of a command that was ended by Ctrl-C."""
_ABOUT_JOBS = (
    r"\bjobman (cancel|delete|details|events|gate|list|logs|nodes|queue|release|rerun|run|submit|wait|why)\b"
)


class ExitCode(IntEnum):
    """What the shell is told."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DOCUMENT = 3
    UNABLE = 4
    UNREACHABLE = 5
    REFUSED = 6


class Chosen:
    """The engine that this command is for, and its settings; whoever calls need not be handed the options."""

    engine = "local"
    settings_file: str | None = None


def typed(words: str) -> str:
    """How a command is typed that is for the same engine."""
    return f"jobman {words}" if Chosen.engine == "local" else f"jobman -e {Chosen.engine} {words}"


def aimed(text: str) -> str:
    """The same words, in which commands about jobs are for the engine of this one."""
    return text if Chosen.engine == "local" else re.sub(_ABOUT_JOBS, rf"jobman -e {Chosen.engine} \1", text)


class State:
    """The global options."""

    def __init__(
        self, settings_file: str | None = None, output: str | None = None, engine: str = "local"
    ) -> None:
        self.settings_file = Chosen.settings_file = settings_file
        self.output = output
        self.engine = Chosen.engine = engine
        self._settings: Settings | None = None

    def choose(self, engine: str) -> None:
        """Take the engine that a command names for itself; `local` leaves the global one."""
        if check_engine(engine) != "local":
            self.engine = Chosen.engine = engine

    def format(self, local: str | None) -> str:
        """The form of the answer: the command's own option before the global one."""
        chosen = local or self.output or "table"
        if chosen not in FORMATS:
            misused(f"'{chosen}' is not one of {', '.join(FORMATS)}", "-o")
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


def check_engine(name: str) -> str:
    """An engine; the command ends where there is none of that name."""
    if name not in ENGINES:
        misused(f"'{name}' is not one of {', '.join(ENGINES)}", "-e")
    return name


def misused(message: str, option: str) -> NoReturn:
    """End the command because it was used wrongly."""
    import typer

    raise typer.BadParameter(message, param_hint=option)


def say(message: str, advice: str = "") -> None:
    """Tell the person something that is not the answer."""
    sys.stderr.write(f"jobman: {aimed(message)}\n")
    for line in aimed(advice).splitlines():
        sys.stderr.write(f"        {line}\n")


def stop(problems: Sequence[Problem], output: str) -> NoReturn:
    """End the command because a document or the settings are wrong."""
    import typer

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
    values: dict[str, str] = {}
    wrong = []
    for text in written or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            wrong.append(text)
        values[name] = value
    if wrong:
        from jobman.spec.problems import Problems

        problems = Problems()
        for text in wrong:
            problems.add("JS809", None, text=text)
        stop(problems.in_order(), output)
    return values
