"""The units of a plan as boxes in boxes, and the wires between them, before anything has its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobman.plan.drawing.captions import Caption, caption, task_size
from jobman.plan.drawing.columns import Column, Item
from jobman.plan.drawing.model import MOST_UNITS
from jobman.plan.model import Edge, Plan, Unit


class Node:
    """A box that is being placed; first within its scope, then in the drawing."""

    def __init__(self, unit: Unit | None, parent: Node | None, text: Caption) -> None:
        self.unit = unit
        self.parent = parent
        self.caption = text
        self.depth: int = parent.depth + 1 if parent else 0
        self.rank = len(parent.children) if parent else 0
        self.children: list[Node] = []
        self.passages: list[Passage] = []
        self.lanes: dict[tuple[Node, str, int], Item] = {}
        self.columns: list[Column] = []
        self.layer = 0
        self.x = self.y = 0.0
        self.width, self.height = task_size(text)

    @property
    def is_group(self) -> bool:
        return self.unit is not None and self.unit.kind == "group"

    @property
    def id(self) -> str | None:
        return self.unit.id if self.unit else None

    @property
    def parent_node(self) -> Node:
        assert self.parent is not None
        return self.parent

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


class Wire:
    """An edge between drawn boxes, with the boxes around its ends up to the scope they share.

    `leaves` and `enters` are where it crosses the sides of the outermost of these, from their middles.
    """

    def __init__(self, source: Node, target: Node, when: str) -> None:
        self.source = source
        self.target = target
        self.when = when
        self.rising, self.falling = _way(source, target)
        self.leaves = 0.0
        self.enters = 0.0

    @property
    def is_labelled(self) -> bool:
        return self.when != "success"


class Passage(NamedTuple):
    """A wire inside one scope: without a start from its left side, without an end to its right side."""

    wire: Wire
    start: Node | None
    end: Node | None


class Tree(NamedTuple):
    """The nodes below the root, each group before what is in it, and the wires between them."""

    root: Node
    nodes: list[Node]
    wires: list[Wire]

    @property
    def scopes(self) -> list[Node]:
        return [self.root, *(node for node in self.nodes if node.is_group)]


def tree(plan: Plan) -> Tree:
    """The boxes to draw, and the wires between them."""
    root = Node(None, None, Caption(""))
    counts: dict[str | None, int] = {}
    for unit in plan.units:
        counts[unit.parent] = counts.get(unit.parent, 0) + 1
    drawn: dict[str | None, Node] = {None: root}
    nodes: list[Node] = []
    for unit in plan.units:
        scope = drawn[unit.parent]
        if scope is not root and not scope.is_group:
            drawn[unit.id] = scope
        elif len(scope.children) < MOST_UNITS:
            drawn[unit.id] = _added(nodes, scope, unit, caption(unit))
        elif len(scope.children) == MOST_UNITS:
            more = Caption(f"… and {counts[unit.parent] - MOST_UNITS} more")
            drawn[unit.id] = _added(nodes, scope, None, more)
        else:
            drawn[unit.id] = scope.children[-1]
    return Tree(root, nodes, _wires(plan.edges, drawn))


def _added(nodes: list[Node], scope: Node, unit: Unit | None, text: Caption) -> Node:
    node = Node(unit, scope, text)
    scope.children.append(node)
    nodes.append(node)
    return node


def _wires(edges: Iterable[Edge], drawn: dict[str | None, Node]) -> list[Wire]:
    ends = dict.fromkeys((drawn[edge.after], drawn[edge.unit], edge.when) for edge in edges)
    wires = [wire for wire in (Wire(*each) for each in ends) if wire.rising and wire.falling]
    for wire in wires:
        _pass(wire)
    return wires


def _pass(wire: Wire) -> None:
    """Tell every scope on its way of a wire."""
    for node in wire.rising[:-1]:
        node.parent_node.passages.append(Passage(wire, node, None))
    for node in wire.falling[1:]:
        node.parent_node.passages.append(Passage(wire, None, node))
    start, end = wire.rising[-1], wire.falling[0]
    start.parent_node.passages.append(Passage(wire, start, end))


def _way(source: Node, target: Node) -> tuple[list[Node], list[Node]]:
    """From the source outwards, and inwards to the target, below the scope they share."""
    rising: list[Node] = []
    falling: list[Node] = []
    while source is not target:
        if source.depth >= target.depth:
            rising.append(source)
            source = source.parent_node
        else:
            falling.append(target)
            target = target.parent_node
    return rising, falling[::-1]
