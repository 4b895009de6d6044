"""The text of a document: where it comes from and why it may be unreadable."""

from __future__ import annotations

import codecs
import re
import sys
from bisect import bisect_right
from functools import cached_property
from pathlib import Path

from jobman.spec.problems import Edit, Place, Problems

MAX_BYTES = 16 * 1024 * 1024
STDIN = "-"
_BINARY_PROBE = 8192
# libyaml counts these as line breaks; positions must agree with it.
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Source:
    """A named text with its lines.

    A text that was repaired only to read on keeps the original for what is shown; `shifts` tells by how
    much a line has moved, so that positions stay those of the original.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.has_mark = False
        """Whether the file starts with a byte order mark, which is not part of the text."""
        self.original: Source | None = None
        self.shifts: dict[int, int] = {}

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_BREAK.finditer(self.text))]

    @cached_property
    def lines(self) -> list[str]:
        return _LINE_BREAK.split(self.text)

    def line(self, number: int) -> str:
        """The text of a line as written, counted from one; empty past the end."""
        lines = (self.original or self).lines
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def column(self, line: int, column: int) -> int:
        """The column as written; both counted from zero."""
        return max(0, column - self.shifts.get(line, 0))

    def repaired(self, edits: tuple[Edit, ...]) -> Source:
        """This source with one-line edits applied, to read on behind a mistake."""
        text = self.text
        shifts = dict(self.shifts)
        for edit in sorted(edits, key=lambda e: e.start, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
            line = bisect_right(self.line_starts, edit.start) - 1
            shifts[line] = shifts.get(line, 0) + len(edit.text) - (edit.end - edit.start)
        source = Source(self.name, text)
        source.original = self.original or self
        source.shifts = shifts
        return source

    def index(self, line: int, column: int) -> int:
        """The position in the text of a line and column, both counted from zero."""
        return self.line_starts[line] + column


def read_source(path: str | Path, problems: Problems) -> Source | None:
    """Read a file, or standard input for `-`; report why it cannot be read."""
    name = "<stdin>" if str(path) == STDIN else str(path)
    data = _read_bytes(str(path), name, problems)
    return None if data is None else decode_source(name, data, problems)


def decode_source(name: str, data: bytes, problems: Problems) -> Source | None:
    """Turn bytes into a source, or report what they are instead of a document."""
    if len(data) > MAX_BYTES:
        problems.add("JS005", _whole(name), size=len(data) / 2**20, limit=MAX_BYTES // 2**20)
        return None
    if data.startswith(_UTF16_MARKS):
        problems.add("JS004", _whole(name), byte="UTF-16 byte order mark", position=0)
        return None
    if b"\0" in data[:_BINARY_PROBE]:
        problems.add("JS003", _whole(name), name=name)
        return None
    try:
        source = Source(name, data.decode("utf-8-sig"))
        source.has_mark = data.startswith(codecs.BOM_UTF8)
        return source
    except UnicodeDecodeError as error:
        place = _byte_place(name, data, error.start)
        problems.add("JS004", place, byte=f"byte 0x{data[error.start]:02x}", position=error.start)
        return None


def _read_bytes(path: str, name: str, problems: Problems) -> bytes | None:
    try:
        if path == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        problems.add("JS001", None, name=name)
    except IsADirectoryError:
        problems.add("JS002", None, name=name, candidates=_documents_in(Path(path)))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problems.add("JS006", None, name=name, reason=reason)
    return None


def _documents_in(folder: Path) -> str:
    try:
        found = sorted(p.name for p in folder.iterdir() if p.suffix in {".yaml", ".yml", ".json"})
    except OSError:
        found = []
    shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
    return f"it holds {shown}" if found else "it holds no .yaml file"


def _whole(name: str) -> Place:
    return Place(name, 1, 1, 1, 1)


def _byte_place(name: str, data: bytes, position: int) -> Place:
    line_start = data.rfind(b"\n", 0, position) + 1
    line = data.count(b"\n", 0, position) + 1
    column = len(data[line_start:position].decode("utf-8", "replace")) + 1
    return Place(name, line, column, line, column + 1)
