"""The pages people read, and what stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
_FENCE = re.compile(
    r"(?:^<!-- file: (?P<file>\S+) -->\n)?^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S
)
_INLINE = re.compile(r"`([^`\n]+)`")


class Fence(NamedTuple):
    """A block of code; `file` is what it is to be kept as, where the page says so."""

    page: Path
    line: int
    kind: str
    text: str
    file: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def text_of(page: Path | str) -> str:
    """A page, by its path or by its name in docs/."""
    return (ROOT / "docs" / page if isinstance(page, str) else page).read_text(encoding="utf-8")


def fences(page: Path | str, kind: str | None = None) -> list[Fence]:
    """The blocks of code of a page, of one kind or of all."""
    path = ROOT / "docs" / page if isinstance(page, str) else page
    text = text_of(path)
    return [
        Fence(path, text.count("\n", 0, found.start("text")), found["kind"], found["text"], found["file"])
        for found in _FENCE.finditer(text)
        if kind in (None, found["kind"])
    ]


def inline(page: Path) -> Iterator[str]:
    """The code that stands in the sentences of a page."""
    return (found[1] for found in _INLINE.finditer(_FENCE.sub("", text_of(page))))


def rows(page: str, title: str) -> list[list[str]]:
    """The rows of the table that begins with a text, or is the first behind it; each as its cells."""
    text = text_of(page)
    assert title in text, f"{page} has no {title}"
    table = re.search(r"^\|[^\n]*\n\| ---[^\n]*\n((?:\|[^\n]*\n)+)", text[text.index(title) :], re.M)
    assert table, f"{page} has no table behind {title}"
    return [[cell.strip() for cell in row.strip("|").split(" |")] for row in table[1].splitlines()]


def code_in(cell: str) -> list[str]:
    """What stands in backticks."""
    return _INLINE.findall(cell)
