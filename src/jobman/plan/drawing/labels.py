"""The conditions written on arrows: where no label hides another."""

from __future__ import annotations

from collections.abc import Sequence

from jobman.plan.drawing.model import Point, Run
from jobman.plan.drawing.routes import Curve, bend, lanes, point_on
from jobman.plan.drawing.text import text_width
from jobman.plan.drawing.tree import Node, Wire

LABEL_SIZE = 10.5
_HEIGHT = 16.0
_CELL = 100
_SHARES = tuple(twentieths / 20 for twentieths in (10, 9, 11, 8, 12, 7, 13, 6, 14, 5, 15, 4, 16))
"""The places on a curve that are tried, from its middle outwards."""


def label_width(text: str) -> float:
    """How wide the label of an arrow is."""
    return text_width(text, LABEL_SIZE) + 10


def label_places(wires: Sequence[Wire], routes: Sequence[tuple[Run, ...]]) -> list[Point | None]:
    """Places on the arrows where no label hides another, as far as there are any; shared lanes have one."""
    labels = _Labels()
    return [
        labels.add(wire, _labelled_curve(wire, runs)) if wire.is_labelled else None
        for wire, runs in zip(wires, routes, strict=True)
    ]


def _labelled_curve(wire: Wire, runs: tuple[Run, ...]) -> Curve:
    """The last gap of the scope that both ends share is made wide enough for a label."""
    inner = sum(1 for node in wire.falling[1:] for _ in lanes(wire, node.parent_node, 0, node.layer))
    return bend(*runs[len(runs) - inner - 2 :][:2])


class _Labels:
    """The labels that have their place, found again by the cell of the drawing they are in."""

    def __init__(self) -> None:
        self.shared: set[tuple[Node, str, Curve]] = set()
        self.taken: dict[tuple[int, int], list[tuple[Point, float]]] = {}

    def add(self, wire: Wire, curve: Curve) -> Point | None:
        if (wire.source, wire.when, curve) in self.shared:
            return None
        self.shared.add((wire.source, wire.when, curve))
        width = label_width(wire.when)
        candidates = [point_on(curve, share) for share in _SHARES]
        place = next((spot for spot in candidates if self._is_free(spot, width)), candidates[0])
        self.taken.setdefault(_cell(place), []).append((place, width))
        return place

    def _is_free(self, spot: Point, width: float) -> bool:
        column, row = _cell(spot)
        cells = ((column + x, row + y) for x in (-1, 0, 1) for y in (-1, 0, 1))
        return not any(
            abs(other.x - spot.x) < (wide + width) / 2 + 2 and abs(other.y - spot.y) < _HEIGHT + 2
            for cell in cells
            for other, wide in self.taken.get(cell, ())
        )


def _cell(spot: Point) -> tuple[int, int]:
    return int(spot.x // _CELL), int(spot.y // _CELL)
