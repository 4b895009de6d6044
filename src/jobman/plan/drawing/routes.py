"""The way of an arrow: level runs through the lanes of its scopes, and the curves between them."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.plan.drawing.model import PAD, Point, Run
from jobman.plan.drawing.tree import Node, Wire

Curve = tuple[Point, Point, Point, Point]
_BACK = 64.0
"""How far an arrow swings out that goes back to the left."""


def route(wire: Wire) -> tuple[Run, ...]:
    """From the right side of the source to the left side of the target."""
    start, end = wire.rising[-1], wire.falling[0]
    runs = [Run(wire.source.x + wire.source.width, _right(wire.source), wire.source.middle)]
    for node in wire.rising[:-1]:
        runs.extend(lanes(wire, node.parent_node, node.layer + 1, len(node.parent_node.columns)))
        runs[-1] = runs[-1]._replace(end=_right(node.parent_node))
    runs.extend(lanes(wire, start.parent_node, start.layer + 1, end.layer))
    arriving = [Run(_left(wire.target), wire.target.x, wire.target.middle)]
    for node in reversed(wire.falling[1:]):
        arriving[:0] = lanes(wire, node.parent_node, 0, node.layer)
        arriving[0] = arriving[0]._replace(start=_left(node.parent_node))
    return (*runs, *arriving)


def lanes(wire: Wire, scope: Node, first: int, behind: int) -> Iterator[Run]:
    """The runs of a wire in a scope, from a first column to the one before `behind`."""
    for layer in range(first, behind):
        lane = scope.lanes.get((wire.source, wire.when, layer))
        if lane is not None:
            column = scope.columns[layer]
            yield Run(scope.x + column.left, scope.x + column.right, scope.y + lane.y)


def _right(node: Node) -> float:
    return node.parent_node.x + node.parent_node.columns[node.layer].right


def _left(node: Node) -> float:
    return node.parent_node.x + node.parent_node.columns[node.layer].left


def bend(one: Run, other: Run) -> Curve:
    """The curve from the end of a run to the start of the next."""
    reach = (other.start - one.end) / 2 if other.start - one.end > PAD else _BACK
    return (
        Point(one.end, one.y),
        Point(one.end + reach, one.y),
        Point(other.start - reach, other.y),
        Point(other.start, other.y),
    )


def point_on(curve: Curve, share: float) -> Point:
    """Where one is on a curve after a share of it."""
    rest = 1 - share
    factors = (rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3)
    return Point(
        sum(factor * point.x for factor, point in zip(factors, curve, strict=True)),
        sum(factor * point.y for factor, point in zip(factors, curve, strict=True)),
    )
