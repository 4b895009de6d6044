"""The drawing as plain data: boxes with their places, arrows as runs."""

from __future__ import annotations

from typing import NamedTuple

from jobman.plan.drawing.captions import Caption
from jobman.plan.model import Unit

MOST_UNITS = 400
"""Units drawn of one scope; one box stands for the others."""
TITLE_BAR = 30.0
STACK = 4.0
"""How far the card of further replicas looks out behind a box."""
PAD = 18.0
"""Between the side of a group and the boxes in it."""


class Point(NamedTuple):
    """A place in the drawing."""

    x: float
    y: float


class Box(NamedTuple):
    """A task, a group around its tasks, or what stands for the units left out, which has no unit."""

    unit: Unit | None
    parent: str | None
    caption: Caption
    x: float
    y: float
    width: float
    height: float


class Run(NamedTuple):
    """A level piece of an arrow."""

    start: float
    end: float
    y: float


class Arrow(NamedTuple):
    """An edge as level runs joined by curves; what was left out may stand at either end, then as None."""

    after: str | None
    unit: str | None
    when: str
    runs: tuple[Run, ...]
    label: Point | None


class Drawing(NamedTuple):
    """Boxes in the order written, each group before its tasks, and arrows in the order of the edges."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
