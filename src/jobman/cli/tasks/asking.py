"""Asking a broker: which one, and what a person is told when it refuses or does not answer."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from jobman.cli.state import INTERRUPTED, ExitCode, State, emit, say
from jobman.tasks.failures import BrokerAway, GridError
from jobman.tasks.grid import Grid

if TYPE_CHECKING:
    from types import TracebackType

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


class Way(NamedTuple):
    """How a broker is found, as the options say it."""

    broker: str | None = None
    token: str | None = None
    tenant: str | None = None
    ca_file: str | None = None

    def open(self, state: State, form: str) -> Grid:
        """The broker of the option, of the environment, of the settings, or one's own."""
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
    """`with Asking(state, form, way) as grid:` ends the command in the right way where something fails."""

    def __init__(self, state: State, form: str, way: Way) -> None:
        self._state = state
        self._form = form
        self._way = way
        self._grid: Grid | None = None

    def __enter__(self) -> Grid:
        try:
            self._grid = self._way.open(self._state, self._form)
        except GridError as error:
            refused(error, self._form)
        self._grid.notice = say
        return self._grid

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        assert self._grid is not None
        self._grid.close()
        if isinstance(error, GridError):
            refused(error, self._form, is_own=self._grid.places is not None)
        if isinstance(error, KeyboardInterrupt):
            sys.stderr.write("\n")
            raise SystemExit(INTERRUPTED)


def refused(error: GridError, form: str, *, is_own: bool = False) -> NoReturn:
    """End the command because the broker will not or cannot do what was asked."""
    code = EXITS.get(error.code, ExitCode.DOCUMENT)
    advice = error.advice
    if error.code == "unmappable" and is_own:
        advice = f"{advice}\n{_HOW_TO_ADD}"
    if form == "table" or isinstance(error, BrokerAway):
        say(error.message, advice)
    else:
        emit({"code": error.code, "message": error.message, "advice": advice, "exit": int(code)}, form)
    raise SystemExit(code)


def batches_named(grid: Grid, words: list[str] | None) -> list[int]:
    """The batches that are meant: numbers as they are, names by what the broker has."""
    found: dict[int, None] = {}
    known: list[dict[str, Any]] | None = None
    for word in words or ():
        if word.isdecimal():
            found[int(word)] = None
            continue
        known = batches_of(grid) if known is None else known
        named = [each["batch"] for each in known if each["name"] == word]
        if not named:
            names = ", ".join(sorted({each["name"] for each in known if each["name"]})) or "none"
            raise GridError("unknown", f"there is no batch `{word}`", f"the known names are: {names}")
        found |= dict.fromkeys(named)
    return list(found)


def batches_of(grid: Grid) -> list[dict[str, Any]]:
    """All batches that the broker still has."""
    found: list[dict[str, Any]] = grid.ask("GET", "/v1/tasks/batches")
    return found
