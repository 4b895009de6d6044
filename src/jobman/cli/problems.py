"""Printing problems: the place, the line with a caret under the culprit, and the advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from jobman.spec.problems import Place, Problem

MOST_SHOWN = 100
_WIDTH = 140
_STYLES = {"error": "bold red", "warning": "bold yellow"}


def print_problems(problems: Sequence[Problem], *, error: bool = False) -> None:
    """Print problems to stdout, or to stderr where they are not the answer."""
    console = Console(stderr=error, highlight=False, emoji=False, markup=False, soft_wrap=True)
    for problem in problems[:MOST_SHOWN]:
        for line in render(problem):
            console.print(line)
    if len(problems) > MOST_SHOWN:
        console.print(f"… and {len(problems) - MOST_SHOWN} more; `-o json` lists them all")


def render(problem: Problem) -> Iterator[Text]:
    """The lines of one problem."""
    head = Text()
    if problem.place is not None:
        head.append(f"{problem.place}: ", "bold")
    head.append(f"{problem.severity} {problem.code}", _STYLES[problem.severity])
    head.append(f": {problem.message}")
    yield head
    if problem.place is not None and problem.line_text.strip():
        yield from _excerpt(problem.place, problem.line_text, _STYLES[problem.severity])
    for related in problem.related:
        yield Text(f"      see {related.place}: {related.text}", "dim")
    yield Text.assemble(("      help: ", "bold cyan"), problem.advice)


def _excerpt(place: Place, line: str, style: str) -> Iterator[Text]:
    start = place.column - 1
    end = place.end_column - 1 if place.end_line == place.line else len(line)
    line, start, end = _window(line.replace("\t", " "), start, end)
    gutter = f"{place.line:>5} | "
    yield Text.assemble((gutter, "dim"), line)
    before = " " * cell_len(line[:start])
    carets = "^" * max(1, cell_len(line[start:end]))
    yield Text.assemble((" " * 5 + " | ", "dim"), before, (carets, style))


def _window(line: str, start: int, end: int) -> tuple[str, int, int]:
    """Of a long line, the stretch around the culprit."""
    if len(line) <= _WIDTH:
        return line, start, min(max(end, start + 1), max(len(line), start + 1))
    first = max(0, start - 40)
    cut = line[first : first + _WIDTH]
    head = "…" if first else ""
    shown = head + cut + ("…" if first + _WIDTH < len(line) else "")
    return shown, start - first + len(head), min(end - first + len(head), len(shown))
