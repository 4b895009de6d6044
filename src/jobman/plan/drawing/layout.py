"""Where the boxes and arrows of a drawn plan stand: layers from left to right, scope by scope.

Every scope is laid out on its own, the innermost first: its units in columns by longest path, an arrow over
several columns on a lane of its own between the boxes, so that lines bend only in the gaps.
"""

from __future__ import annotations

from jobman.plan.drawing.arrangement import arrange
from jobman.plan.drawing.labels import label_places
from jobman.plan.drawing.model import Arrow, Box, Drawing, Point, Run
from jobman.plan.drawing.routes import route
from jobman.plan.drawing.tree import Node, Wire, tree
from jobman.plan.model import Plan


def layout(plan: Plan) -> Drawing:
    """The drawing of a plan."""
    placed = tree(plan)
    root, nodes, wires = placed
    waiting = {edge.unit for edge in plan.edges}
    for scope in reversed(placed.scopes):
        arrange(scope, waiting)
    for node in nodes:
        node.x += node.parent_node.x
        node.y += node.parent_node.y
    routes = [route(wire) for wire in wires]
    labels = label_places(wires, routes)
    return Drawing(
        root.width,
        root.height,
        tuple(map(_box, nodes)),
        tuple(map(_arrow, wires, routes, labels)),
    )


def _box(node: Node) -> Box:
    return Box(node.unit, node.parent_node.id, node.caption, node.x, node.y, node.width, node.height)


def _arrow(wire: Wire, runs: tuple[Run, ...], label: Point | None) -> Arrow:
    return Arrow(wire.source.id, wire.target.id, wire.when, runs, label)
