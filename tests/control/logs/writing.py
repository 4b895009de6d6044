"""Copies that write: streams in a folder, with marks at the moments a test chooses."""

import os
from collections.abc import Iterator
from pathlib import Path

from jobman.control.logs import files
from jobman.control.logs.streams import LogStream
from jobman.control.logs.times import MarkWriter, times_beside


class Scribe:
    """Writes streams and their marks at moments that a test gives; each stream is named by a number."""

    def __init__(self, folder: Path, *, ended: bool = True):
        self.folder = folder
        self.ended = ended
        self.contents: dict[int, bytes] = {}
        self.marks: dict[int, list[tuple[int, float]]] = {}
        self.touched: dict[int, float] = {}

    def path(self, number: int) -> Path:
        return self.folder / f"{number}.out"

    def write(self, number: int, data: bytes, at: float = 1.0) -> None:
        self.contents[number] = self.contents.get(number, b"") + data
        self.touched[number] = at
        with self.path(number).open("ab") as file:
            file.write(data)
        os.utime(self.path(number), (at, at))

    def mark(self, number: int, at: float) -> None:
        size = len(self.contents.get(number, b""))
        if size > (self.marks.get(number) or [(0, 0.0)])[-1][0]:
            self.marks.setdefault(number, []).append((size, at))
            MarkWriter(times_beside(self.path(number))).mark(size, at, final=True)

    def say(self, number: int, text: str, at: float) -> None:
        """Write and mark at once."""
        self.write(number, text.encode(), at)
        self.mark(number, at)

    def streams(self, count: int | None = None) -> list[LogStream]:
        numbers = sorted(self.contents) if count is None else range(count)
        return [stream(self.path(number), number, ended=self.ended) for number in numbers]


def stream(path: Path, number: int = 0, **more) -> LogStream:
    return LogStream(f"train.{number}", 1, 0, "here", "stdout", path, **more)


def boundaries(data: bytes, start: int = 0) -> list[int]:
    """Where lines end, said as simply as can be: behind a newline, or behind a window that has none."""
    window = files.WINDOW
    ends = {place + 1 for place in range(start, len(data)) if data[place : place + 1] == b"\n"}
    for end in range(window, len(data) + 1, window):
        if end - window >= start and b"\n" not in data[end - window : end]:
            ends.add(end - cut_off(data[:end]))
    return sorted(ends)


def pieces(data: bytes, start: int = 0) -> list[tuple[int, bytes]]:
    """The ends and bytes of all lines, also of the last that has no end."""
    begins = [start, *boundaries(data, start)]
    ends = [*begins[1:], len(data)]
    return [(end, data[begin:end]) for begin, end in zip(begins, ends, strict=True) if begin < end]


def cut_off(data: bytes) -> int:
    """How many bytes of an unfinished character stand at the end."""
    for back in (1, 2, 3):
        head = data[-back]
        if head >= 0xC0:
            needs = 4 if head >= 0xF0 else 3 if head >= 0xE0 else 2
            return back if back < needs else 0
        if head < 0x80:
            return 0
    return 0


Row = tuple[float, str, str, bool, int]
"""Moment, replica, text, whether it goes on, and the offset behind it."""


def model(scribe: Scribe, count: int) -> list[Row]:
    """What a merge has to give."""
    found = [row for number in range(count) for row in _rows_of(scribe, number)]
    return sorted(found, key=lambda row: row[:2])


def _rows_of(scribe: Scribe, number: int) -> Iterator[Row]:
    data, marks = scribe.contents.get(number, b""), scribe.marks.get(number, [])
    for end, raw in pieces(data):
        behind = max([scribe.touched[number], *(at for _, at in marks[-1:])])
        at = next((moment for offset, moment in marks if offset >= end), behind)
        complete = raw.endswith(b"\n") or (scribe.ended and end == len(data))
        text = raw.removesuffix(b"\n").decode("utf-8", "replace")
        yield (at, f"train.{number}", text, not complete, end)


def rows(lines) -> list[Row]:
    return [(line.at, line.replica, line.text, line.partial, line.end) for line in lines]


def texts(lines) -> list[str]:
    return [line.text for line in lines]
