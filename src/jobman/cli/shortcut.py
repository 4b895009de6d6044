"""The quick way: what can be answered without the library of the command line.

`jobman submit` stands in loops of scripts, and reading its options with that library takes longer than all
the rest of it. So its well-formed uses are read here, by tables that a test compares with the command's own
declaration. What is not understood at once, a mistake above all, goes the long way and is explained there.
"""

from __future__ import annotations

import sys
from typing import Any

_GLOBAL = {"-s": "settings_file", "--settings": "settings_file", "-e": "engine", "--engine": "engine"}
_OUTPUT = {"-o": "output", "--output": "output"}
VALUES = {
    "-i": "image",
    "--image": "image",
    "-r": "flavor",
    "--resources": "flavor",
    "--duration": "duration",
    "--queue": "queue",
    "--account": "account",
    "-j": "name",
    "--job-name": "name",
    "--virtual": "virtual",
    "--reservation": "reservation",
    "--keep-logs": "keep_logs",
    "-e": "engine",
    "--engine": "engine",
    **_OUTPUT,
}
FLAGS = {
    "--hold": "hold",
    "--no-container": "no_container",
    "--dry-run": "dry_run",
    "--what-if": "what_if",
}
LISTS = {"--set": "parameters"}


def take(arguments: list[str]) -> None:
    """Answer and exit, or return where the whole command line is needed."""
    if arguments == ["--version"]:
        from jobman.version import __version__

        sys.stdout.write(f"jobman {__version__}\n")
        raise SystemExit(0)
    if arguments == ["__jobs"]:
        from jobman.cli.names import names

        names()
        raise SystemExit(0)
    before = read_options(arguments, _GLOBAL | _OUTPUT, {}, {}, most_words=0)
    if before is None or arguments[before.end : before.end + 1] != ["submit"]:
        return
    found = read_options(arguments[before.end + 1 :], VALUES, FLAGS, LISTS)
    if found is not None:
        _submit({**before.values, **found.values}, found.words, found.trailing)


class Found:
    """Options and words as they were written, up to `end`."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.words: list[str] = []
        self.trailing: list[str] | None = None
        self.end = 0


def read_options(
    arguments: list[str],
    values: dict[str, str],
    flags: dict[str, str],
    lists: dict[str, str],
    most_words: int | None = None,
) -> Found | None:
    """Options by their tables; stops at `--` or after so many words. None where one is not in a table."""
    found = Found()
    while found.end < len(arguments):
        word = arguments[found.end]
        if word == "--":
            found.trailing = arguments[found.end + 1 :]
            return found
        if not word.startswith("-") or word == "-":
            if most_words is not None and len(found.words) >= most_words:
                return found
            found.words.append(word)
            found.end += 1
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in flags and not equals:
            found.values[flags[name]] = True
            found.end += 1
            continue
        if name not in values and name not in lists:
            return None
        if not equals:
            if found.end + 1 >= len(arguments):
                return None
            found.end += 1
            value = arguments[found.end]
        if name in lists:
            found.values.setdefault(lists[name], []).append(value)
        else:
            found.values[values[name]] = value
        found.end += 1
    return found


def _submit(values: dict[str, Any], files: list[str], command: list[str] | None) -> None:
    """Submit and exit; returns where the use is not a sound one."""
    from jobman.cli.state import ENGINES, FORMATS, State
    from jobman.cli.submission import Wishes, mistake, submit

    state = State(
        values.pop("settings_file", None), values.pop("output", None), values.pop("engine", "local")
    )
    pairs = [text.partition("=") for text in values.pop("parameters", ())]
    form = state.output or "table"
    parameters = {name: value for name, _, value in pairs}
    wishes = Wishes(files=tuple(files), command=command, parameters=parameters, **values)
    is_sound = form in FORMATS and state.engine in ENGINES
    is_sound = is_sound and all(name and equals for name, equals, _ in pairs)
    if not is_sound or mistake(wishes):
        return
    try:
        submit(wishes, state, form)
    except Exception as error:
        _end_as_the_long_way(error)
    raise SystemExit(0)


def _end_as_the_long_way(error: Exception) -> None:
    """What ends a command there ends it here with the same code."""
    import typer

    if isinstance(error, typer.Exit):
        raise SystemExit(error.exit_code) from error
    raise error
