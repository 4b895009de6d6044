"""Reading lines out of files of any size: forwards in blocks, and backwards from the end.

A line longer than a window is cut into pieces, so that nothing ever needs more than two windows of memory.
Windows lie at fixed offsets, and a cut is made behind each that holds no newline: where a file is cut does
not depend on where reading began. A cut never divides a character.

No file stays open between two reads: there may be more streams than a process may open files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

WINDOW = 64 * 1024
NEWLINE = b"\n"


class Block(NamedTuple):
    """Whole lines at an offset, or a piece of a long line, or the rest (not `whole`) that has no end yet."""

    offset: int
    data: bytes
    whole: bool


def blocks(path: Path, begin: int, end: int, chunk: int | None = None) -> Iterator[Block]:
    """Everything between two offsets, with only the last block perhaps lacking its end.

    `chunk` divides the window: the smaller, the less memory and the more reads.
    """
    chunk = chunk or WINDOW
    held, position = b"", begin
    while position < end:
        data = read_at(path, position, min(chunk - position % chunk, end - position))
        if not data:
            break
        offset, position = position - len(held), position + len(data)
        held, whole = held + data, data.rfind(NEWLINE) + 1
        if whole:
            whole += len(held) - len(data)
        elif position % WINDOW == 0 and len(held) >= WINDOW:
            whole = len(held) - _unfinished(held)
        if whole:
            yield Block(offset, held[:whole], True)
            held = held[whole:]
    if held:
        yield Block(position - len(held), held, False)


def boundaries(path: Path, begin: int, end: int, before: int) -> Iterator[int]:
    """Where lines and pieces between `begin` and `end` start, from the last not behind `before` down."""
    window = (before - 1) // WINDOW * WINDOW
    while window + WINDOW > begin and before > begin:
        low = max(window, begin)
        data = read_at(path, low, min(window + WINDOW, end) - low)
        place = data.rfind(NEWLINE)
        if place < 0 and len(data) == WINDOW:
            yield from _within(begin, low + WINDOW - _unfinished(data), before)
        while place >= 0:
            yield from _within(begin, low + place + 1, before)
            place = data.rfind(NEWLINE, 0, place)
        window -= WINDOW
    yield begin


def last_lines(path: Path, begin: int, end: int, count: int) -> tuple[int, int]:
    """Where the last lines start, and how many they are, if there are fewer than asked for."""
    found = 0
    for boundary in boundaries(path, begin, end, end):
        if found == count:
            return (end, 0)
        if boundary == end:
            continue
        found += 1
        if found == count:
            return (boundary, found)
    return (begin, found)


def read_at(path: Path, offset: int, size: int) -> bytes:
    """The bytes at an offset, fewer at the end of the file."""
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        return file.read(size)


def _within(begin: int, boundary: int, before: int) -> Iterator[int]:
    if begin < boundary <= before:
        yield boundary


def _unfinished(data: bytes) -> int:
    """How many bytes at the end are the beginning of a character that the end cuts off."""
    for back in range(1, 4):
        byte = data[-back]
        if byte & 0b1100_0000 != 0b1000_0000:
            length = 1 + sum(byte & mask == mask for mask in (0b1100_0000, 0b1110_0000, 0b1111_0000))
            return back if length > back else 0
    return 0
