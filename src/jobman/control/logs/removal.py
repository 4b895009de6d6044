"""Removing files below one folder, without ever being led out of it.

Whoever removes may be root, and what lies in the folder may be the work of others: every step of the way is
opened from the one before it, no link is followed and no other file system is entered.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_NAMES = ("", ".", "..")


class OddPath(OSError):
    """A path that is not plainly one of a file below the folder."""


class Room:
    """A folder that is open. Its own path is taken as it is: only what is below it is mistrusted."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._device = os.fstat(descriptor).st_dev

    def check(self, path: str) -> None:
        """Raise OddPath where `remove` would: that is no file of this room, or is behind a link."""
        self._at(path, lambda _folder, _name: None)

    def remove(self, path: str) -> None:
        """Remove a file by its path below the folder; one that is not there is gone already.

        A link in the place of the file is removed itself, not what it leads to.
        """
        self._at(path, lambda folder, name: os.unlink(name, dir_fd=folder))

    def _at(self, path: str, act: Callable[[int, str], None]) -> None:
        """Do something to a file from within the folder that it lies in."""
        *way, name = _names(path)
        with suppress(FileNotFoundError), self._folder(way, path) as folder:
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise OddPath(f"{path} is a folder")
            act(folder, name)

    @contextmanager
    def _folder(self, way: Sequence[str], path: str) -> Iterator[int]:
        folder = os.dup(self._descriptor)
        try:
            for name in way:
                folder, before = self._step(folder, name, path), folder
                os.close(before)
            yield folder
        finally:
            os.close(folder)

    def _step(self, folder: int, name: str, path: str) -> int:
        try:
            found = os.open(name, _STEP, dir_fd=folder)
        except NotADirectoryError:
            raise OddPath(f"{path} is behind a link, or something else that is no folder: {name}") from None
        if os.fstat(found).st_dev != self._device:
            os.close(found)
            raise OddPath(f"{path} is on another file system, behind {name}")
        return found


@contextmanager
def entered(folder: Path) -> Iterator[Room]:
    """A folder to remove files from; raises OSError where it is not there or is a link."""
    descriptor = os.open(folder, _STEP)
    try:
        yield Room(descriptor)
    finally:
        os.close(descriptor)


def _names(path: str) -> list[str]:
    names = path.split("/")
    if any(name in _NO_NAMES for name in names):
        raise OddPath(f"{path} is no plain path")
    return names
