"""Marks: by when a file had grown to which size.

A mark says that everything before an offset had been written by a moment. A file of marks is a row of 16-byte
records, two little-endian 64-bit numbers each: the offset, and the moment in microseconds since 1970. Both
only ever rise. A record torn by a crash is not read, and is cut off before the next one is written.
"""

from __future__ import annotations

import errno
import math
import os
import struct
import sys
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_RECORD = struct.Struct("<QQ")
_PAGE = 256
_MICRO = 1_000_000
_SHORTEST = 0.004
"""Seconds between two marks: a little below the pause of a watcher, which wakes for all its files at once."""
_LONGEST = 0.1
_PLENTY = 100_000
"""So many marks lengthen the pause between them, so that months of output leave megabytes of marks."""


class Mark(NamedTuple):
    """Everything before `offset` had been written at `at`."""

    offset: int
    at: float


NO_MARK = Mark(0, 0.0)


def times_beside(path: Path) -> Path:
    """Where the marks of a file are kept unless somebody says otherwise."""
    return path.with_name(path.name + ".times")


class Times:
    """The marks of one file, read in pages, so that a long file of marks costs no memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0
        self._first = 0
        self._offsets: array[int] = array("Q")
        self._moments: array[int] = array("Q")
        self.refresh()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Mark:
        """The mark at an index, or no mark where the file has lost it since."""
        if not self._first <= index < self._first + len(self._offsets):
            self._turn(index)
        place = index - self._first
        if place >= len(self._offsets):
            return NO_MARK
        return Mark(self._offsets[place], self._moments[place] / _MICRO)

    @property
    def last(self) -> Mark:
        return self[self._count - 1] if self._count else NO_MARK

    def refresh(self) -> None:
        """Take note of the marks that were added since."""
        count = _size(self._path) // _RECORD.size
        if count == self._count:
            return
        if count < self._count or len(self._offsets) < _PAGE:
            self._forget()
        self._count = count
        if count and self.last.offset == 0:
            # A crash of the machine may leave a tail of zeros where data never reached the disk.
            self._count = bisect_left(range(count), True, key=lambda index: self[index].offset == 0)

    def covering(self, end: int) -> Mark | None:
        """The first mark at or behind an offset, which tells when the byte before it was written."""
        place = bisect_left(self._offsets, end)
        certain = place > 0 or self._first == 0
        if place == len(self._offsets) and self._first + place < self._count:
            # Reading goes forwards: the page behind this one is the likeliest.
            self._turn(self._first + place)
            place = bisect_left(self._offsets, end)
            certain = True
        if not certain or place == len(self._offsets):
            index = self._search(lambda mark: mark.offset, end)
            found = index < self._count and self[index].offset >= end
            return self[index] if found else None
        return Mark(self._offsets[place], self._moments[place] / _MICRO)

    def first_since(self, moment: float, lo: int = 0) -> int:
        """The index of the first mark that is not earlier than a moment, or the number of marks."""
        return self._search(lambda mark: mark.at, moment, lo)

    def _search(self, key: Callable[[Mark], float], value: float, lo: int = 0) -> int:
        lo = min(lo, self._count)
        return bisect_left(range(self._count), value, lo=lo, key=lambda index: key(self[index]))

    def _turn(self, index: int) -> None:
        """Read the page that holds a mark."""
        self._first = index - index % _PAGE
        data = _bytes_at(self._path, self._first * _RECORD.size, min(_PAGE, self._count - self._first))
        page = array("Q", data)
        if sys.byteorder == "big":
            page.byteswap()
        self._offsets, self._moments = page[0::2], page[1::2]

    def _forget(self) -> None:
        self._first, self._offsets, self._moments = 0, array("Q"), array("Q")


class MarkWriter:
    """Adds marks for one file; there is one writer at a time."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._taken = -math.inf
        times = Times(path)
        self._count = len(times)
        self.last = times.last
        self._mended = _size(path) == self._count * _RECORD.size

    def mark(self, offset: int, at: float, *, final: bool = False) -> bool:
        """Note that everything before an offset had been written by a moment; False where it is too soon.

        A final mark is never too soon. A clock that went back does not take the marks back with it.
        """
        if offset <= self.last.offset:
            return True
        now = self._clock()
        if not final and now - self._taken < self._pause():
            return False
        self._append(Mark(offset, max(at, self.last.at)))
        self._taken = now
        return True

    def _pause(self) -> float:
        return min(_LONGEST, _SHORTEST * (1 + self._count // _PLENTY))

    def _append(self, mark: Mark) -> None:
        # Opened for each mark: thousands of files are watched at once, and few of them grow.
        record = _RECORD.pack(mark.offset, round(mark.at * _MICRO))
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not self._mended:
                os.ftruncate(file, self._count * _RECORD.size)
                self._mended = True
            if os.write(file, record) < len(record):
                self._mended = False
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        finally:
            os.close(file)
        self._count += 1
        self.last = mark


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _bytes_at(path: Path, offset: int, records: int) -> bytes:
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            data = file.read(max(0, records) * _RECORD.size)
    except OSError:
        return b""
    return data[: len(data) - len(data) % _RECORD.size]
