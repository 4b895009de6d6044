"""The kernel's word that files changed: inotify, called directly."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MODIFIED = 0x2
APPEARED = 0x80 | 0x100
"""In a folder: moved there, or created."""

_LOST = 0x4000
_ENDED = 0x8000
_EVENT = struct.Struct("iIII")
_ONCE = 16 * 1024
"""Bytes of events to read at once: about a thousand."""

Key = tuple[int, bytes]
"""A watch, and the name in it if the watch is on a folder."""


class Heard(NamedTuple):
    """What changed, each once and in order; watches that ended with their files; whether some was lost."""

    changed: list[Key]
    ended: set[Key]
    lost: bool


class Inotify:
    """One queue of events. Raises OSError where the kernel cannot or will not give one."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError("This system has no inotify.")
        self.descriptor = self._call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)

    def add(self, path: Path, events: int) -> int:
        """Watch a file or folder; the same one always gives the same number."""
        return self._call("inotify_add_watch", self.descriptor, os.fsencode(path), ctypes.c_uint32(events))

    def remove(self, watch: int) -> None:
        """End a watch; one that the kernel has ended already is no error."""
        self._libc.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> Heard:
        """What the kernel has said since."""
        try:
            events = list(_events(os.read(self.descriptor, _ONCE)))
        except BlockingIOError:
            events = []
        return Heard(
            changed=list(dict.fromkeys(key for key, _ in events)),
            ended={key for key, mask in events if mask & _ENDED},
            lost=any(mask & _LOST for _, mask in events),
        )

    def close(self) -> None:
        os.close(self.descriptor)

    def _call(self, name: str, *arguments: object) -> int:
        answer: int = getattr(self._libc, name)(*arguments)
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer


def _events(data: bytes) -> Iterator[tuple[Key, int]]:
    place = 0
    while place < len(data):
        watch, mask, _, length = _EVENT.unpack_from(data, place)
        place += _EVENT.size
        yield (watch, data[place : place + length].rstrip(b"\0")), mask
        place += length
