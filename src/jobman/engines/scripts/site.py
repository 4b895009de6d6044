"""What a script must know of the job and of the place it runs in; managers add their own."""

from __future__ import annotations

import msgspec


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The job that scripts belong to."""

    id: str
    name: str
    folder: str
    """Where scripts leave word; on a file system that the nodes share with whoever asks."""
    file: str = "-"
    """The document's name, for comments."""
    cwd: str | None = None
    scratch: str | None = None
    prologue: tuple[str, ...] = ()
    """Lines that every script begins with, such as `module load`."""
    container: tuple[str, ...] = ()
    """Words before the command of a task with an image; `{image}` in them is its name."""
    no_container: bool = False
    done: dict[str, tuple[int, ...]] = {}
    """Replicas that an earlier run of the job has done."""
    earliest: float | None = None
    latest: float | None = None
    """The window in which it may start, in seconds since the epoch."""
