"""Types of tasks that are Python functions of a program, for the workers of this machine.

A function is written to a file by what it does, so two programs that call theirs by one name do not meet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from jobman.control.places import Places, make_private
from jobman.tasks.embedded import functions_of, types_of
from jobman.tasks.local_types import LocalType

CALLS = "python-call"
"""The type whose payload is a function with its arguments."""
_CALLS_WORKER = "jobman.tasks.calls:call"


def register(
    places: Places,
    function: Callable[..., Any],
    name: str,
    version: str | None,
    resources: Mapping[str, str] | None = None,
) -> str:
    """Make a function a type of this machine; tells the version that is this very function.

    Raises GridError where no worker can ever have these resources.
    """
    import cloudpickle  # type: ignore[import-untyped]

    if resources:
        from jobman.tasks.machine import check_resources

        check_resources(resources)
    content: bytes = cloudpickle.dumps(function)
    exact = f"{version or '0'}+{_mark(content, resources)}"
    folder = functions_of(places)
    make_private(folder)
    path = folder / f"{_mark(content)}.pickle"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(content)
        draft.replace(path)
    _add(places, name, exact, "--pickled", str(path), resources=resources)
    return exact


def register_calls(places: Places) -> str:
    """Make calls of any function a type of this machine; tells its version for this interpreter."""
    exact = f"0+{_mark(b'')}"
    _add(places, CALLS, exact, _CALLS_WORKER)
    return exact


def _add(
    places: Places, name: str, version: str, *words: str, resources: Mapping[str, str] | None = None
) -> None:
    entry = LocalType(
        type=name,
        versions=version,
        command=(sys.executable, "-m", "jobman.tasks.worker", *words),
        environment={"PYTHONPATH": _path()},
        folder=str(Path.cwd()),
        resources=dict(resources or {}),
    )
    types_of(places).add(entry)


def _mark(content: bytes, resources: Mapping[str, str] | None = None) -> str:
    """Tells apart what is executed, by which interpreter, from which folders and with which resources."""
    said = "".join(f"{name}={amount}" for name, amount in sorted((resources or {}).items()))
    parts = (content, sys.executable.encode(), _path().encode(), os.fsencode(Path.cwd()), said.encode())
    whole = b"\0".join(parts if said else parts[:-1])
    return f"h{sha256(whole).hexdigest()[:12]}"


def _path() -> str:
    return os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path)
