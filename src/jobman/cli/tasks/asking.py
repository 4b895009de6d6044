"""Asking a broker: which one, and what a person is told when it refuses or does not answer."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import typer

from jobman.cli.options import Output
from jobman.cli.state import INTERRUPTED, ExitCode, State, emit, say
from jobman.cli.tasks.options import Broker, CaFile, Tenant, Token

if TYPE_CHECKING:
    from types import TracebackType

    from jobman.tasks.failures import GridError
    from jobman.tasks.grid import Grid

EXITS = {
    "broker-away": ExitCode.UNREACHABLE,
    "broker": ExitCode.UNREACHABLE,
    "unauthorized": ExitCode.REFUSED,
    "forbidden": ExitCode.REFUSED,
    "quota": ExitCode.REFUSED,
    "unmappable": ExitCode.UNABLE,
    "mapper": ExitCode.UNABLE,
    "unable": ExitCode.UNABLE,
    "unknown": ExitCode.FAILED,
    "wrong-address": ExitCode.USAGE,
}
"""By the code of a refusal; the rest is wrong input."""
_HOW_TO_ADD = "add one to your own broker with `jobman task types add TYPE -- COMMAND…`"
_WAY = {"broker": Broker, "token": Token, "tenant": Tenant, "ca_file": CaFile}
_ASKING = "asking"


class Way(NamedTuple):
    """How a broker is found, as the options say it."""

    broker: str | None = None
    token: str | None = None
    tenant: str | None = None
    ca_file: str | None = None

    def open(self, state: State, form: str) -> Grid:
        """The broker of the option, of the environment, of the settings, or one's own."""
        from jobman.tasks.grid import Grid

        url = self.broker or os.environ.get("JOBMAN_BROKER") or None
        ca_file = self.ca_file
        if url is None and (told := _settings(state, form)):
            url = told.get("broker")
            ca_file = ca_file or told.get("ca_file")
        return Grid(url, token=self.token, tenant=self.tenant, ca_file=_path(ca_file))


def _settings(state: State, form: str) -> dict[str, Any]:
    """What the settings say of tasks. Reading them takes a while: only where somebody wrote some."""
    if state.settings_file is None and not any((Path.home() / ".jobman").glob("settings.*")):
        return {}
    found: dict[str, Any] = state.settings(form).values.get("tasks", {})
    return found


def _path(text: str | None) -> str | None:
    return None if text is None else str(Path(text).expanduser())


class Asking:
    """`with asking as grid:` ends the command in the right way where something fails."""

    def __init__(self, context: typer.Context, way: Way, output: str | None) -> None:
        self.context = context
        self._state: State = context.obj
        self._way = way
        self._grid: Grid | None = None
        self.form = self._state.format(output)
        # Results are for programs, unless somebody asks for words.
        self.form_of_results = self.form if output or self._state.output else "json"

    def __enter__(self) -> Grid:
        from jobman.tasks.failures import GridError

        try:
            self._grid = self._way.open(self._state, self.form)
        except GridError as error:
            refused(error, self.form)
        self._grid.notice = say
        return self._grid

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        from jobman.tasks.failures import GridError

        assert self._grid is not None
        self._grid.close()
        if isinstance(error, GridError):
            refused(error, self.form, is_own=self._grid.places is not None)
        if isinstance(error, KeyboardInterrupt):
            sys.stderr.write("\n")
            raise SystemExit(INTERRUPTED)


def asks(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function that is handed its `asking`: what says which broker stands in its place.

    The form of the answer is the last option of all of them.
    """

    @functools.wraps(command)
    def run(context: typer.Context, output: str | None, **given: Any) -> None:
        # `task types --broker B add` means the same as `task types add --broker B`.
        above = {} if context.parent is None else context.parent.params
        way = Way(**{name: given.pop(name) or above.get(name) for name in _WAY})
        command(asking=Asking(context, way, output or above.get("output")), **given)

    run.__dict__["__signature__"] = inspect.Signature(list(_parameters(command)))
    return run


def _parameters(command: Callable[..., None]) -> Iterator[inspect.Parameter]:
    """What the library of the command line reads: all of them by name, so their order is that of the help."""
    yield inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if name == _ASKING:
            yield from (_option(*each) for each in _WAY.items())
        else:
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    yield _option("output", Output)


def _option(name: str, declared: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=declared)


def refused(error: GridError, form: str, *, is_own: bool = False) -> NoReturn:
    """End the command because the broker will not or cannot do what was asked."""
    from jobman.tasks.failures import BrokerAway

    code = EXITS.get(error.code, ExitCode.DOCUMENT)
    advice = error.advice
    if error.code == "unmappable" and is_own:
        advice = f"{advice}\n{_HOW_TO_ADD}"
    if form == "table" or isinstance(error, BrokerAway):
        say(error.message, advice)
    else:
        emit({"code": error.code, "message": error.message, "advice": advice, "exit": int(code)}, form)
    raise SystemExit(code)
