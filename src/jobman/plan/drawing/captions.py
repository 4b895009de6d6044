"""What is written in a box, and how large the box must be for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from jobman.plan.drawing.text import Style, fit, plain, text_width
from jobman.plan.model import Unit

NAME_SIZE, FACTS_SIZE, COMMAND_SIZE = 13.0, 11.0, 10.5
INSET = 12.0
"""Between the side of a box and its text."""
_TEXT_WIDTH = 204.0
_FACTS_WIDTH = 272.0
_LEAST_WIDTH = 92.0
_LINE_HEIGHTS = (36.0, 18.0, 16.0)
_LONGEST_READ = 400
_WORDS_OF_CASE = {"failure": "on failure", "always": "always"}


class Caption(NamedTuple):
    """What is written in a box; empty lines are left out."""

    name: str
    facts: str = ""
    command: str = ""


def caption(unit: Unit) -> Caption:
    """The texts of a unit, short enough for its box."""
    words = " ".join(unit.command)[:_LONGEST_READ] or _steps(unit)
    return Caption(
        fit(plain(unit.name), _TEXT_WIDTH, NAME_SIZE, "bold"),
        fit(" · ".join(_facts(unit)), _FACTS_WIDTH, FACTS_SIZE),
        fit(plain(words), _TEXT_WIDTH, COMMAND_SIZE, "mono"),
    )


def task_size(text: Caption) -> tuple[float, float]:
    """The width and the height of a box with the texts below each other."""
    lines: tuple[tuple[str, float, Style], ...] = (
        (text.name, NAME_SIZE, "bold"),
        (text.facts, FACTS_SIZE, ""),
        (text.command, COMMAND_SIZE, "mono"),
    )
    widths = [text_width(line, size, style) for line, size, style in lines]
    height = sum(extra for (line, *_), extra in zip(lines, _LINE_HEIGHTS, strict=True) if line)
    return max(_LEAST_WIDTH, max(widths) + 2 * INSET), max(height, _LINE_HEIGHTS[0])


def title_width(text: Caption) -> float:
    """The width of a title bar: the name on its left, the facts on its right."""
    name = text_width(text.name, NAME_SIZE, "bold")
    return name + (text_width(text.facts, FACTS_SIZE) + 2 * INSET if text.facts else 0) + 2 * INSET


def _facts(unit: Unit) -> Iterator[str]:
    if unit.when in _WORDS_OF_CASE:
        yield _WORDS_OF_CASE[unit.when]
    if unit.replicas > 1:
        yield f"×{unit.replicas}"
    if not unit.alternatives:
        return
    preferred = unit.totals[0]
    amounts = preferred.amounts
    if preferred.copies > 1 and unit.kind == "task":
        yield f"{preferred.copies} copies"
    counted = {"node": preferred.nodes, "core": amounts.get("core"), "GPU": amounts.get("gpu")}
    for noun, amount in counted.items():
        if amount:
            yield f"{amount:g} {noun}" + ("s" if amount != 1 else "")
    if others := len(unit.alternatives) - 1:
        yield f"or {others} other" + ("s" if others > 1 else "")


def _steps(unit: Unit) -> str:
    return f"{len(unit.steps)} step" + ("s" if len(unit.steps) > 1 else "") if unit.steps else ""
