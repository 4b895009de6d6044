"""The places of the boxes in one scope, whose inner scopes have theirs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise

from jobman.plan.drawing.captions import title_width
from jobman.plan.drawing.columns import BETWEEN, Column, Item, order, settle
from jobman.plan.drawing.labels import label_width
from jobman.plan.drawing.layers import assign_layers
from jobman.plan.drawing.model import PAD, TITLE_BAR
from jobman.plan.drawing.tree import Node, Passage, Wire

_MARGIN = 24.0
_LANE = 3.0
_LABEL_ROOM = 52.0
_GRID_FROM = 9
_GRID_ASPECT = 1.7
_MOST_STOPS = 20_000


def arrange(scope: Node, waiting: set[str]) -> None:
    """Place the children of a scope, and give the scope its size; `waiting` are the units with edges."""
    assign_layers(scope.children, scope.passages, waiting)
    arrangement = _Arrangement(scope)
    arrangement.fill()
    arrangement.link()
    order(arrangement.columns)
    settle(arrangement.columns)
    arrangement.place()


class _Arrangement:
    """The columns of one scope, and the item that each child is in."""

    def __init__(self, scope: Node) -> None:
        self.scope = scope
        self.columns = scope.columns
        self.items: dict[Node, Item] = {}

    def fill(self) -> None:
        """Make the columns; many boxes that nothing is connected to stand in a grid."""
        children = self.scope.children
        last = max((child.layer for child in children), default=-1)
        self.columns.extend(Column() for _ in range(last + 1))
        linked = {node for _, *ends in self.scope.passages for node in ends}
        loose = self._by_layer(child for child in children if child not in linked and not child.is_group)
        grids = [nodes for nodes in loose if len(nodes) >= _GRID_FROM]
        gridded = set(chain.from_iterable(grids))
        others = [child for child in children if child not in gridded]
        for column in self._by_layer(others):
            _even([node for node in column if not node.is_group])
        for child in others:
            self._add([child], child.width, child.height)
        for nodes in grids:
            self._add(nodes, *_grid(nodes))

    def _by_layer(self, nodes: Iterable[Node]) -> list[list[Node]]:
        columns: list[list[Node]] = [[] for _ in self.columns]
        for node in nodes:
            columns[node.layer].append(node)
        return columns

    def _add(self, nodes: Sequence[Node], width: float, height: float) -> None:
        item = Item(width, height)
        self.columns[nodes[0].layer].items.append(item)
        self.items.update((node, item) for node in nodes)

    def link(self) -> None:
        """Add the lanes, and tell each item what it is connected to on either side."""
        passages = self.scope.passages
        spans = [self._between(passage) for passage in passages]
        if sum(map(len, spans)) > _MOST_STOPS:
            spans = [range(0)] * len(passages)
        for passage, span in zip(passages, spans, strict=True):
            wire, start, end = passage
            stops = [(self._lane(wire, layer), 0.0) for layer in span]
            if start is not None:
                stops.insert(0, (self.items[start], wire.leaves))
            if end is not None:
                stops.append((self.items[end], wire.enters))
            if start is not None and end is not None and end.layer <= start.layer:
                continue
            for (one, leaves), (other, enters) in pairwise(stops):
                one.behind.append((other, enters - leaves))
                other.before.append((one, leaves - enters))

    def _between(self, passage: Passage) -> range:
        first = passage.start.layer + 1 if passage.start else 0
        return range(first, passage.end.layer if passage.end else len(self.columns))

    def _lane(self, wire: Wire, layer: int) -> Item:
        """Arrows from one box for one condition share a lane."""
        key = (wire.source, wire.when, layer)
        lane = self.scope.lanes.get(key)
        if lane is None:
            lane = self.scope.lanes[key] = Item(0.0, _LANE, is_lane=True)
            self.columns[layer].items.append(lane)
        return lane

    def place(self) -> None:
        """Give the columns, the boxes in them and the scope their coordinates."""
        items = [item for column in self.columns for item in column.items]
        top = min((item.y - item.height / 2 for item in items), default=0.0)
        bottom = max((item.y + item.height / 2 for item in items), default=0.0)
        is_root = self.scope.parent is None
        side, head = (_MARGIN, _MARGIN) if is_root else (PAD, TITLE_BAR + PAD)
        right = self._place_columns(side)
        width = max(right + side, 0.0 if is_root else title_width(self.scope.caption))
        shift = (width - right - side) / 2
        for item in items:
            item.y += head - top
        for column in self.columns:
            column.left += shift
            column.right += shift
        self._place_nodes()
        self.scope.width, self.scope.height = width, head + (bottom - top) + side
        self._place_ports()

    def _place_columns(self, x: float) -> float:
        labels = self._label_rooms()
        for layer, column in enumerate(self.columns):
            column.left = x
            x = column.right = x + max((item.width for item in column.items), default=0.0)
            x += max(column.gap, labels[layer]) if layer + 1 < len(self.columns) else 0.0
        return x

    def _label_rooms(self) -> list[float]:
        """What the labels behind each column need."""
        rooms = [0.0] * len(self.columns)
        for wire, start, end in self.scope.passages:
            if start and end and end.layer and wire.is_labelled:
                rooms[end.layer - 1] = max(rooms[end.layer - 1], label_width(wire.when) + _LABEL_ROOM)
        return rooms

    def _place_nodes(self) -> None:
        for node, item in self.items.items():
            column = self.columns[node.layer]
            node.x += column.left + (column.right - column.left - item.width) / 2
            node.y += item.y - item.height / 2

    def _place_ports(self) -> None:
        """Where the wires that cross the sides of this scope do so."""
        middle = self.scope.height / 2
        for wire, start, end in self.scope.passages:
            if end is None and start is not None:
                lane = self.scope.lanes.get((wire.source, wire.when, len(self.columns) - 1))
                is_last = start.layer == len(self.columns) - 1
                wire.leaves = (lane.y if lane and not is_last else start.middle + wire.leaves) - middle
            elif start is None and end is not None:
                lane = self.scope.lanes.get((wire.source, wire.when, 0))
                wire.enters = (lane.y if lane and end.layer else end.middle + wire.enters) - middle


def _even(nodes: Iterable[Node]) -> None:
    """Boxes below each other are equally wide."""
    nodes = list(nodes)
    width = max((node.width for node in nodes), default=0.0)
    for node in nodes:
        node.width = width


def _grid(nodes: Sequence[Node]) -> tuple[float, float]:
    """Rows of boxes that nothing is connected to; their places are from the grid's corner."""
    _even(nodes)
    width, height = nodes[0].width, max(node.height for node in nodes)
    across = round((_GRID_ASPECT * len(nodes) * (height + BETWEEN) / (width + BETWEEN)) ** 0.5) or 1
    for number, node in enumerate(nodes):
        node.height = height
        node.x = number % across * (width + BETWEEN)
        node.y = number // across * (height + BETWEEN)
    rows = -(-len(nodes) // across)
    return across * (width + BETWEEN) - BETWEEN, rows * (height + BETWEEN) - BETWEEN
