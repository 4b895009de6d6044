"""What scripts left word of, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

_FIELDS = 8


class Line(msgspec.Struct, frozen=True):
    """Something that happened, as a script wrote it down."""

    at: float
    kind: str
    key: str
    attempt: int
    exit_code: int | None
    reason: str
    nodes: str
    message: str
    signal: int | None = None


def read_log(text: str) -> Iterator[Line]:
    """The lines of a log; one that is not whole yet is left for the next time."""
    for line in text.split("\n")[:-1]:
        fields = line.split("\t", _FIELDS - 1)
        if len(fields) == _FIELDS and (found := _line(fields)) is not None:
            yield found


def _line(fields: list[str]) -> Line | None:
    at, kind, key, attempt, code, reason, nodes, message = fields
    signal = None
    if message.startswith("@"):
        number, _, message = message[1:].partition(" ")
        signal = int(number) if number.isdecimal() else None
    try:
        return Line(
            float(at),
            kind,
            key,
            int(attempt or 0),
            int(code) if code else None,
            reason,
            nodes,
            message,
            signal,
        )
    except ValueError:
        return None


def read_logs(folder: Path) -> list[Line]:
    """Everything that happened to a job, in order."""
    try:
        files = sorted(folder.iterdir())
    except OSError:
        return []
    found = [line for file in files for line in read_log(_text(file))]
    return sorted(found, key=lambda line: line.at)


def _text(file: Path) -> str:
    try:
        # As it is: a carriage return in a message ends no line.
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def by_key(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """The lines of each replica."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.key, []).append(line)
    return found
