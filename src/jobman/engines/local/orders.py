"""Orders: what the launcher is asked to run, one copy each, complete to the last variable."""

from __future__ import annotations

from typing import Literal

import msgspec

Reason = Literal[
    "success", "exit", "signal", "timeout", "out-of-memory", "launch-failed", "stage-failed", "lost"
]
DEFAULT_GRACE = 30.0


class Stage(msgspec.Struct, frozen=True, tag="stage", tag_field="name"):
    """Make a file or folder present at `to`; with a digest, only that content will do."""

    path: str
    to: str | None = None
    digest: str | None = None


class Write(msgspec.Struct, frozen=True, tag="write", tag_field="name"):
    """Write a file; the mode is octal, as in a document."""

    path: str
    content: str
    mode: str = "0644"


Step = Stage | Write


class Order(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One copy of an attempt. `id` is its own for all time: no two orders share one.

    Paths may be relative to `cwd`. `folder` is where the copy's files are (see `records`), `environment` is
    all the copy sees but for the marker. Without an `argv` the steps and hooks are all there is to do.
    `duration` counts from the start, steps and hooks included, and stands still while the copy is frozen.
    """

    id: str
    folder: str
    copy: int = 0
    argv: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    cwd: str = "/"
    stdout: str | None = None
    stderr: str | None = None

    cores: tuple[int, ...] = ()
    memory: int | None = None
    cgroup: str | None = None

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] | None = None
    umask: int | None = None
    no_new_privileges: bool = True
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()

    steps: tuple[Step, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    on_stop: tuple[str, ...] = ()
    scratch: str | None = None
    result_file: str | None = None

    duration: float | None = None
    signal: str | None = None
    signal_before: float = 60.0
    grace: float = DEFAULT_GRACE


class CannotRun(Exception):
    """An order that cannot be carried out, in a user's words."""

    def __init__(self, message: str, *, reason: Reason = "launch-failed", exit_code: int = 126) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.exit_code = exit_code
