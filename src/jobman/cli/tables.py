"""Tables that fit the terminal: no borders, the least important columns give way first."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TextIO
from unicodedata import combining, east_asian_width

from jobman.cli.colours import clean, paint, wanted

GAP = "  "
_ROOM_TO_READ = 20


class Column(NamedTuple):
    """A column; `rank` says who gives way first: the highest, and never one of rank 0."""

    title: str
    rank: int = 0
    right: bool = False
    folds: bool = False
    """Whether a long text goes on in the next line; others are cut."""
    least: int = 0
    """To how many columns of a terminal it may shrink before another has to go; 0: it does not shrink."""


class Cell(NamedTuple):
    """A text with a style."""

    text: str
    style: str = ""


Row = Sequence[str | Cell]


def print_table(columns: Sequence[Column], rows: Sequence[Row], stream: TextIO | None = None) -> None:
    """Print a table to a stream, as wide as the stream is."""
    stream = stream or sys.stdout
    for line in render(columns, rows, width_of(stream), colour=wanted(stream)):
        stream.write(line + "\n")


def width_of(stream: TextIO) -> int | None:
    """The width of a terminal; None, without an end, for what is no terminal."""
    if (columns := os.environ.get("COLUMNS", "")).isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return None


def render(
    columns: Sequence[Column], rows: Sequence[Row], width: int | None, *, colour: bool = False
) -> list[str]:
    """The lines of a table that is no wider than `width`. Columns in which nothing stands are left out."""
    cells = [[_cell(value) for value in row] for row in rows]
    kept = [n for n, column in enumerate(columns) if not column.rank or any(row[n].text for row in cells)]
    kept, widths = _fit(columns, cells, kept, width)
    head = [Cell(columns[n].title, "bold") for n in kept]
    lines = _lines(head, [columns[n] for n in kept], widths, colour)
    for row in cells:
        lines += _lines([row[n] for n in kept], [columns[n] for n in kept], widths, colour)
    return lines


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def cut(text: str, width: int) -> str:
    """A text in at most so many columns, with an ellipsis where some of it is missing."""
    if columns_of(text) <= width:
        return text
    return _start(text, width - 1).rstrip() + "…" if width > 0 else ""


def _start(text: str, width: int) -> str:
    """As much of a text as fits."""
    used = 0
    for number, one in enumerate(text):
        used += columns_of(one)
        if used > width:
            return text[:number]
    return text


def fold(text: str, width: int) -> list[str]:
    """A text in lines of at most so many columns, broken between words where it has some."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if columns_of(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        while columns_of(word) > width:
            piece = _start(word, width) or word[0]
            lines.append(piece)
            word = word[len(piece) :]
        line = word
    return [*lines, line] if line or not lines else lines


def _cell(value: str | Cell) -> Cell:
    cell = value if isinstance(value, Cell) else Cell(value)
    return cell if cell.text.isprintable() else cell._replace(text=clean(cell.text))


def _fit(
    columns: Sequence[Column], rows: list[list[Cell]], kept: list[int], width: int | None
) -> tuple[list[int], list[int]]:
    """Which columns remain, and how wide each is: folding and cutting first, then doing without."""
    wants = {
        n: max(columns_of(text) for text in (columns[n].title, *(r[n].text for r in rows))) for n in kept
    }
    while True:
        widths = _share(columns, kept, wants, width)
        if widths is not None:
            return kept, widths
        # The last of those that matter least: tables put what is read first to the left.
        weakest = max(kept, key=lambda n: (columns[n].rank, n))
        kept = [n for n in kept if n != weakest]


def _share(
    columns: Sequence[Column], kept: list[int], wants: dict[int, int], width: int | None
) -> list[int] | None:
    """Widths that fit, taken from the widest; None where one more column has to go."""
    widths = {n: wants[n] for n in kept}
    if width is None:
        return list(widths.values())
    room = width - len(GAP) * (len(kept) - 1)
    may_go = any(columns[n].rank for n in kept)
    while sum(widths.values()) > room:
        # Only where nothing can be left out is everything cut.
        giving = [n for n in kept if widths[n] > _least(columns[n], wants[n])]
        if not giving and may_go:
            return None
        giving = giving or [n for n in kept if widths[n] > 1]
        if not giving:
            break
        widest = max(giving, key=lambda n: widths[n])
        widths[widest] -= 1
    return list(widths.values())


def _least(column: Column, wanted: int) -> int:
    return min(wanted, column.least or (_ROOM_TO_READ if column.folds else wanted))


def _lines(cells: list[Cell], columns: list[Column], widths: list[int], colour: bool) -> list[str]:
    pieces = [
        fold(cell.text, width) if column.folds else [cut(cell.text, width)]
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, pieces))):
        parts = []
        for piece, cell, column, width in zip(pieces, cells, columns, widths, strict=True):
            text = piece[number] if number < len(piece) else ""
            space = " " * (width - columns_of(text))
            painted = paint(text, cell.style, on=colour)
            parts.append(space + painted if column.right else painted + space)
        lines.append(GAP.join(parts).rstrip())
    return lines


Facts = Iterable[tuple[str, str | Cell]]
"""Names and values; what is empty is left out."""


def print_facts(facts: Facts, stream: TextIO | None = None) -> None:
    """Print names and values one below the other."""
    stream = stream or sys.stdout
    for line in render_facts(facts, width_of(stream), colour=wanted(stream)):
        stream.write(line + "\n")


def render_facts(facts: Facts, width: int | None, *, colour: bool = False) -> list[str]:
    """The lines of names and values; long values go on below themselves."""
    shown = [
        (name, _cell(value)) for name, value in facts if value and (isinstance(value, str) or value.text)
    ]
    margin = max((len(name) for name, _ in shown), default=0) + len(GAP)
    room = None if width is None else max(width - margin, _ROOM_TO_READ)
    lines = []
    for name, cell in shown:
        for number, piece in enumerate([cell.text] if room is None else fold(cell.text, room)):
            label = paint(f"{name:<{margin}}", "bold", on=colour) if not number else " " * margin
            lines.append(f"{label}{paint(piece, cell.style, on=colour)}")
    return lines
