"""Where the boxes and arrows of a drawn plan stand: layers from left to right, scope by scope. Pure geometry.

Every scope is laid out on its own, the innermost first: its units in columns by longest path, an arrow over
several columns on a lane of its own between the boxes, so that lines bend only in the gaps.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Literal, NamedTuple

from jobman.plan.model import Edge, Plan, Unit

MOST_UNITS = 400
"""Units drawn of one scope; one box stands for the others."""
NAME_SIZE, FACTS_SIZE, COMMAND_SIZE, LABEL_SIZE = 13.0, 11.0, 10.5, 10.5
INSET = 12.0
"""Between the side of a box and its text."""
TITLE_BAR = 30.0
STACK = 4.0
"""How far the card of further replicas looks out behind a box."""
_TEXT_WIDTH = 204.0
_FACTS_WIDTH = 272.0
_LEAST_WIDTH = 92.0
_LINE_HEIGHTS = (36.0, 18.0, 16.0)
_PAD = 18.0
_MARGIN = 24.0
_BETWEEN = 16.0
_LANE = 3.0
_GAP, _STEEP, _WIDEST = 48.0, 0.12, 110.0
_LABEL_ROOM = 52.0
_LABEL_HEIGHT = 16.0
_BACK = 64.0
"""How far an arrow swings out that goes back to the left."""
_GRID_FROM = 9
_GRID_ASPECT = 1.7
_MOST_STOPS = 20_000
_SWEEPS = 6
_LONGEST_READ = 400
_WORDS_OF_CASE = {"failure": "on failure", "always": "always"}
# In em, those of DejaVu Sans: the widest of the common sans fonts, so that text fits in the others too.
_WIDTHS = {
    character: width
    for width, characters in {
        0.30: "'ijlIJ",
        0.36: " ,./:;\\|f-·",
        0.41: "()[]t!r",
        0.56: '"*_`szc?L',
        0.79: "KAVBRXZCUHNDG&OQ",
        0.84: "w#+<=>^~×",
        1.00: "M%mW@…",
    }.items()
    for character in characters
}
_BOLD = 1.13
_MONO = 0.61


class Caption(NamedTuple):
    """What is written in a box; empty lines are left out."""

    name: str
    facts: str = ""
    command: str = ""


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


def layout(plan: Plan) -> Drawing:
    """The drawing of a plan."""
    root, nodes, arrows = _tree(plan)
    waiting = {edge.unit for edge in plan.edges}
    scopes = [root, *(node for node in nodes if node.is_group)]
    for scope in reversed(scopes):
        _Arrangement(scope, waiting).arrange()
    for node in nodes:
        node.x += node.parent_node.x
        node.y += node.parent_node.y
    runs = [_runs(arrow) for arrow in arrows]
    labels = _labels(arrows, runs)
    return Drawing(
        root.width,
        root.height,
        tuple(_box(node) for node in nodes),
        tuple(_arrow(arrow, along, label) for arrow, along, label in zip(arrows, runs, labels, strict=True)),
    )


def caption(unit: Unit) -> Caption:
    """The texts of a unit, short enough for its box."""
    words = " ".join(unit.command)[:_LONGEST_READ] or _steps(unit)
    return Caption(
        fit(plain(unit.name), _TEXT_WIDTH, NAME_SIZE, "bold"),
        fit(" · ".join(_facts(unit)), _FACTS_WIDTH, FACTS_SIZE),
        fit(plain(words), _TEXT_WIDTH, COMMAND_SIZE, "mono"),
    )


def plain(text: str) -> str:
    """A text on one line in which every character can be seen and written."""
    return "".join(map(_seen, " ".join(text.split())))


def text_width(text: str, size: float, style: Literal["", "bold", "mono"] = "") -> float:
    """About how wide a text is, rather too much than too little."""
    if style == "mono":
        return size * sum(_MONO if character < "\u0300" else max(_MONO, _em(character)) for character in text)
    return size * sum(map(_em, text)) * (_BOLD if style == "bold" else 1)


def fit(text: str, width: float, size: float, style: Literal["", "bold", "mono"] = "") -> str:
    """The text, or as much of its beginning as there is room for, with an ellipsis."""
    if text_width(text, size, style) <= width:
        return text
    room = width - text_width("…", size, style)
    widths = accumulate(text_width(character, size, style) for character in text)
    return text[: sum(1 for _ in _while(widths, room))].rstrip() + "…"


def _while(widths: Iterable[float], room: float) -> Iterator[float]:
    for width in widths:
        if width > room:
            return
        yield width


def _em(character: str) -> float:
    if character < "\u0300":
        return _WIDTHS.get(character, 0.64 if character < "\u007f" else 0.8)
    if unicodedata.combining(character):
        return 0.0
    return 1.3 if unicodedata.east_asian_width(character) in "WF" else 0.9


def _seen(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Co"):
        return "\ufffd"
    return character


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


class _Node:
    """A box that is being placed; first within its scope, then in the drawing."""

    def __init__(self, unit: Unit | None, parent: _Node | None, text: Caption) -> None:
        self.unit = unit
        self.parent = parent
        self.caption = text
        self.depth: int = parent.depth + 1 if parent else 0
        self.rank = len(parent.children) if parent else 0
        self.children: list[_Node] = []
        self.passages: list[_Passage] = []
        self.lanes: dict[tuple[_Node, str, int], _Item] = {}
        self.columns: list[_Column] = []
        self.layer = 0
        self.x = self.y = 0.0
        self.width, self.height = _size(text)

    @property
    def is_group(self) -> bool:
        return self.unit is not None and self.unit.kind == "group"

    @property
    def id(self) -> str | None:
        return self.unit.id if self.unit else None

    @property
    def parent_node(self) -> _Node:
        assert self.parent is not None
        return self.parent

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


class _Wire:
    """An edge between drawn boxes, with the boxes around its ends up to the scope they share.

    `leaves` and `enters` are where it crosses the sides of the outermost of these, from their middles.
    """

    def __init__(self, source: _Node, target: _Node, when: str) -> None:
        self.source = source
        self.target = target
        self.when = when
        self.rising, self.falling = _way(source, target)
        self.leaves = 0.0
        self.enters = 0.0

    @property
    def is_labelled(self) -> bool:
        return self.when != "success"


class _Passage(NamedTuple):
    """A wire inside one scope: without a start from its left side, without an end to its right side."""

    wire: _Wire
    start: _Node | None
    end: _Node | None


class _Item:
    """What takes room in a column: a box, a grid of boxes, or a lane (without boxes)."""

    def __init__(self, nodes: Sequence[_Node], width: float, height: float) -> None:
        self.nodes = nodes
        self.width = width
        self.height = height
        self.y = 0.0
        self.before: list[tuple[_Item, float]] = []
        self.behind: list[tuple[_Item, float]] = []

    @property
    def weight(self) -> float:
        return 1.0 if self.nodes else 3.0


class _Column:
    """Items from top to bottom."""

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self.left = 0.0
        self.right = 0.0

    def stack(self) -> None:
        """One below the other, around the middle line."""
        heights = [item.height for item in self.items]
        top = -(sum(heights) + sum(_room(a, b) for a, b in pairwise(self.items))) / 2
        for item, above in zip(self.items, [None, *self.items], strict=False):
            top += _room(above, item) if above else 0
            item.y = top + item.height / 2
            top += item.height


def _tree(plan: Plan) -> tuple[_Node, list[_Node], list[_Wire]]:
    """The boxes to draw, and the wires between them."""
    root = _Node(None, None, Caption(""))
    counts: dict[str | None, int] = {}
    for unit in plan.units:
        counts[unit.parent] = counts.get(unit.parent, 0) + 1
    drawn: dict[str | None, _Node] = {None: root}
    nodes: list[_Node] = []
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
    return root, nodes, _wires(plan.edges, drawn)


def _added(nodes: list[_Node], scope: _Node, unit: Unit | None, text: Caption) -> _Node:
    node = _Node(unit, scope, text)
    scope.children.append(node)
    nodes.append(node)
    return node


def _wires(edges: Iterable[Edge], drawn: dict[str | None, _Node]) -> list[_Wire]:
    wires: list[_Wire] = []
    seen: set[tuple[_Node, _Node, str]] = set()
    for edge in edges:
        ends = (drawn[edge.after], drawn[edge.unit], edge.when)
        if ends in seen:
            continue
        seen.add(ends)
        wire = _Wire(*ends)
        if not wire.rising or not wire.falling:
            continue
        wires.append(wire)
        for node in wire.rising[:-1]:
            node.parent_node.passages.append(_Passage(wire, node, None))
        for node in wire.falling[1:]:
            node.parent_node.passages.append(_Passage(wire, None, node))
        start, end = wire.rising[-1], wire.falling[0]
        start.parent_node.passages.append(_Passage(wire, start, end))
    return wires


def _way(source: _Node, target: _Node) -> tuple[list[_Node], list[_Node]]:
    """From the source outwards, and inwards to the target, below the scope they share."""
    rising: list[_Node] = []
    falling: list[_Node] = []
    while source is not target:
        if source.depth >= target.depth:
            rising.append(source)
            source = source.parent_node
        else:
            falling.append(target)
            target = target.parent_node
    return rising, falling[::-1]


def _size(text: Caption) -> tuple[float, float]:
    lines = (
        (text.name, NAME_SIZE, "bold"),
        (text.facts, FACTS_SIZE, ""),
        (text.command, COMMAND_SIZE, "mono"),
    )
    widths = [text_width(line, size, style) for line, size, style in lines]  # type: ignore[arg-type]
    height = sum(extra for (line, *_), extra in zip(lines, _LINE_HEIGHTS, strict=True) if line)
    return max(_LEAST_WIDTH, max(widths) + 2 * INSET), max(height, _LINE_HEIGHTS[0])


def _layer(children: Sequence[_Node], passages: Iterable[_Passage], waiting: set[str]) -> None:
    """Give each child its column, by longest path.

    Inner edges may point both ways between two groups; what is left in such a knot is taken as written.
    """
    followers = _followers(children, passages, waiting)
    missing = [0] * len(followers)
    for node, _ in chain.from_iterable(followers):
        missing[node] += 1
    layers = [0] * len(followers)
    done = [False] * len(followers)
    ready = deque(node for node, count in enumerate(missing) if not count)
    for fallback in range(len(followers)):
        if not done[fallback]:
            ready.append(fallback)
        while ready:
            node = ready.popleft()
            if done[node]:
                continue
            done[node] = True
            for follower, step in followers[node]:
                if not done[follower]:
                    layers[follower] = max(layers[follower], layers[node] + step)
                    missing[follower] -= 1
                    if not missing[follower]:
                        ready.append(follower)
    # A knot may leave a column empty.
    used = {layer: column for column, layer in enumerate(sorted({layers[child.rank] for child in children}))}
    for child in children:
        child.layer = used[layers[child.rank]]


def _followers(
    children: Sequence[_Node], passages: Iterable[_Passage], waiting: set[str]
) -> list[list[tuple[int, int]]]:
    """Who stands behind whom, by how many columns; behind the children stand marks of all before each."""
    followers: list[list[tuple[int, int]]] = [[] for _ in range(2 * len(children))]
    for _, start, end in passages:
        if start is not None and end is not None:
            followers[start.rank].append((end.rank, 1))
    blocker = settled = -1
    for child in children:
        unit = child.unit
        if blocker >= 0:
            followers[blocker].append((child.rank, 1))
        if unit is not None and unit.when != "success":
            if unit.id not in waiting and settled >= 0:
                followers[settled].append((child.rank, 1))
        else:
            mark = len(children) + child.rank
            followers[child.rank].append((mark, 0))
            if settled >= 0:
                followers[settled].append((mark, 0))
            settled = mark
        if unit is not None and _blocks(unit):
            blocker = child.rank
    return followers


def _blocks(unit: Unit) -> bool:
    return unit.kind == "task" and not unit.service and (unit.local or unit.watch)


class _Arrangement:
    """Lays out the children of one scope, whose inner scopes are laid out."""

    def __init__(self, scope: _Node, waiting: set[str]) -> None:
        self.scope = scope
        self.waiting = waiting
        self.columns = scope.columns
        self.items: dict[_Node, _Item] = {}

    def arrange(self) -> None:
        _layer(self.scope.children, self.scope.passages, self.waiting)
        self._fill()
        self._link()
        self._order()
        self._settle()
        self._place()

    def _fill(self) -> None:
        children = self.scope.children
        last = max((child.layer for child in children), default=-1)
        self.columns.extend(_Column() for _ in range(last + 1))
        linked = {node for _, *ends in self.scope.passages for node in ends}
        loose: list[list[_Node]] = [[] for _ in self.columns]
        alone = [child for child in children if child not in linked and not child.is_group]
        for child in alone:
            loose[child.layer].append(child)
        gridded = {node for nodes in loose if len(nodes) >= _GRID_FROM for node in nodes}
        for column in self._by_layer(child for child in children if child not in gridded):
            _even([node for node in column if not node.is_group])
        for child in children:
            if child not in gridded:
                self._add(child.layer, [child], child.width, child.height)
        for layer, nodes in enumerate(loose):
            if len(nodes) >= _GRID_FROM:
                self._add(layer, nodes, *_grid(nodes))

    def _by_layer(self, nodes: Iterable[_Node]) -> list[list[_Node]]:
        columns: list[list[_Node]] = [[] for _ in self.columns]
        for node in nodes:
            columns[node.layer].append(node)
        return columns

    def _add(self, layer: int, nodes: Sequence[_Node], width: float, height: float) -> _Item:
        item = _Item(nodes, width, height)
        self.columns[layer].items.append(item)
        self.items.update((node, item) for node in nodes)
        return item

    def _link(self) -> None:
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

    def _between(self, passage: _Passage) -> range:
        first = passage.start.layer + 1 if passage.start else 0
        return range(first, passage.end.layer if passage.end else len(self.columns))

    def _lane(self, wire: _Wire, layer: int) -> _Item:
        """Arrows from one box for one condition share a lane."""
        key = (wire.source, wire.when, layer)
        lane = self.scope.lanes.get(key)
        if lane is None:
            lane = self.scope.lanes[key] = self._add(layer, (), 0.0, _LANE)
        return lane

    def _order(self) -> None:
        """Swap items of a column where fewer arrows cross for it; the written order wins a tie."""
        for column in self.columns:
            column.stack()
        best = [list(column.items) for column in self.columns]
        fewest = self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            for column in self.columns if sweep % 2 == 0 else reversed(self.columns):
                column.items.sort(key=_pulled_before if sweep % 2 == 0 else _pulled_behind)
                column.stack()
            crossings = self._crossings()
            if crossings < fewest:
                fewest, best = crossings, [list(column.items) for column in self.columns]
        for column, items in zip(self.columns, best, strict=True):
            column.items = items
            column.stack()

    def _crossings(self) -> int:
        return sum(_inversions(column) for column in self.columns)

    def _settle(self) -> None:
        """Straighten the arrows as far as the order allows."""
        for pull in [_pulled_before, _pulled_behind] * (_SWEEPS // 2) + [_pulled]:
            for column in self.columns if pull is not _pulled_behind else reversed(self.columns):
                _spread(column.items, pull)
        self._centre()

    def _centre(self) -> None:
        """Columns that nothing pulls stand in the middle of the others."""
        free = [column for column in self.columns if not any(i.before or i.behind for i in column.items)]
        ys = [item.y for column in self.columns if column not in free for item in column.items]
        middle = (min(ys) + max(ys)) / 2 if ys else 0.0
        for column in free:
            column.stack()
            for item in column.items:
                item.y += middle

    def _place(self) -> None:
        items = [item for column in self.columns for item in column.items]
        top = min((item.y - item.height / 2 for item in items), default=0.0)
        bottom = max((item.y + item.height / 2 for item in items), default=0.0)
        is_root = self.scope.parent is None
        side, head = (_MARGIN, _MARGIN) if is_root else (_PAD, TITLE_BAR + _PAD)
        right = self._place_columns(side)
        width = max(right + side, 0.0 if is_root else self._title_width())
        height = head + (bottom - top) + side
        shift = (width - right - side) / 2
        for item in items:
            item.y += head - top
        for column in self.columns:
            column.left += shift
            column.right += shift
            for item in column.items:
                _put(item, column)
        self.scope.width, self.scope.height = width, height
        self._ports()

    def _place_columns(self, x: float) -> float:
        labels = self._label_rooms()
        for layer, column in enumerate(self.columns):
            column.left = x
            x = column.right = x + max((item.width for item in column.items), default=0.0)
            x += max(_gap(column), labels[layer]) if layer + 1 < len(self.columns) else 0.0
        return x

    def _label_rooms(self) -> list[float]:
        """What the labels behind each column need."""
        rooms = [0.0] * len(self.columns)
        for wire, start, end in self.scope.passages:
            if start and end and end.layer and wire.is_labelled:
                rooms[end.layer - 1] = max(rooms[end.layer - 1], label_width(wire.when) + _LABEL_ROOM)
        return rooms

    def _title_width(self) -> float:
        text = self.scope.caption
        name = text_width(text.name, NAME_SIZE, "bold")
        return name + (text_width(text.facts, FACTS_SIZE) + 2 * INSET if text.facts else 0) + 2 * INSET

    def _ports(self) -> None:
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


def _even(nodes: Iterable[_Node]) -> None:
    """Boxes below each other are equally wide."""
    nodes = list(nodes)
    width = max((node.width for node in nodes), default=0.0)
    for node in nodes:
        node.width = width


def _grid(nodes: Sequence[_Node]) -> tuple[float, float]:
    """Rows of boxes that nothing is connected to; their places are from the grid's corner."""
    _even(nodes)
    width, height = nodes[0].width, max(node.height for node in nodes)
    across = round((_GRID_ASPECT * len(nodes) * (height + _BETWEEN) / (width + _BETWEEN)) ** 0.5) or 1
    for number, node in enumerate(nodes):
        node.height = height
        node.x = number % across * (width + _BETWEEN)
        node.y = number // across * (height + _BETWEEN)
    rows = -(-len(nodes) // across)
    return across * (width + _BETWEEN) - _BETWEEN, rows * (height + _BETWEEN) - _BETWEEN


def _gap(column: _Column) -> float:
    """Room for the curves behind a column, wider where they are steep."""
    rises = (abs(other.y + shift - item.y) for item in column.items for other, shift in item.behind)
    return _GAP + min(_WIDEST, _STEEP * max(rises, default=0.0))


def _put(item: _Item, column: _Column) -> None:
    left = column.left + (column.right - column.left - item.width) / 2
    for node in item.nodes:
        node.x += left
        node.y += item.y - item.height / 2


def _room(one: _Item, other: _Item) -> float:
    return _BETWEEN + (STACK if one.nodes and other.nodes else 0)


def _mean(item: _Item, others: Sequence[tuple[_Item, float]]) -> float:
    return sum(other.y + shift for other, shift in others) / len(others) if others else item.y


def _pulled_before(item: _Item) -> float:
    return _mean(item, item.before)


def _pulled_behind(item: _Item) -> float:
    return _mean(item, item.behind)


def _pulled(item: _Item) -> float:
    return _mean(item, item.before + item.behind)


def _spread(items: Sequence[_Item], pull: Callable[[_Item], float]) -> None:
    """Move items towards where they are pulled without changing their order (isotonic regression)."""
    offsets = list(accumulate((_distance(a, b) for a, b in pairwise(items)), initial=0.0))
    blocks: list[tuple[float, float, int]] = []
    for item, offset in zip(items, offsets, strict=False):
        weight = item.weight if item.before or item.behind else 0.01
        total, count = weight * (pull(item) - offset), 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / weight:
            above = blocks.pop()
            total, weight, count = total + above[0], weight + above[1], count + above[2]
        blocks.append((total, weight, count))
    means = chain.from_iterable([total / weight] * count for total, weight, count in blocks)
    for item, offset, mean in zip(items, offsets, means, strict=False):
        item.y = mean + offset


def _distance(one: _Item, other: _Item) -> float:
    return one.height / 2 + _room(one, other) + other.height / 2


def _inversions(column: _Column) -> int:
    """How many pairs of connections to the column before cross."""
    ends = [y for item in column.items for y in sorted(other.y + shift for other, shift in item.before)]
    places = {y: place for place, y in enumerate(sorted(set(ends)), 1)}
    counts = [0] * (len(places) + 1)
    crossings = 0
    for seen, y in enumerate(ends):
        place = places[y]
        crossings += seen
        while place:
            crossings -= counts[place]
            place -= place & -place
        place = places[y]
        while place < len(counts):
            counts[place] += 1
            place += place & -place
    return crossings


def _runs(wire: _Wire) -> tuple[Run, ...]:
    """From the right side of the source to the left side of the target."""
    start, end = wire.rising[-1], wire.falling[0]
    runs = [Run(wire.source.x + wire.source.width, _right(wire.source), wire.source.middle)]
    for node in wire.rising[:-1]:
        runs.extend(_lanes(wire, node.parent_node, node.layer + 1, len(node.parent_node.columns)))
        runs[-1] = runs[-1]._replace(end=_right(node.parent_node))
    runs.extend(_lanes(wire, start.parent_node, start.layer + 1, end.layer))
    arriving = [Run(_left(wire.target), wire.target.x, wire.target.middle)]
    for node in reversed(wire.falling[1:]):
        arriving[:0] = _lanes(wire, node.parent_node, 0, node.layer)
        arriving[0] = arriving[0]._replace(start=_left(node.parent_node))
    return (*runs, *arriving)


def _lanes(wire: _Wire, scope: _Node, first: int, behind: int) -> Iterator[Run]:
    for layer in range(first, behind):
        lane = scope.lanes.get((wire.source, wire.when, layer))
        if lane is not None:
            column = scope.columns[layer]
            yield Run(scope.x + column.left, scope.x + column.right, scope.y + lane.y)


def _right(node: _Node) -> float:
    return node.parent_node.x + node.parent_node.columns[node.layer].right


def _left(node: _Node) -> float:
    return node.parent_node.x + node.parent_node.columns[node.layer].left


def label_width(text: str) -> float:
    """How wide the label of an arrow is."""
    return text_width(text, LABEL_SIZE) + 10


def bend(one: Run, other: Run) -> tuple[Point, Point, Point, Point]:
    """The curve from the end of a run to the start of the next."""
    reach = (other.start - one.end) / 2 if other.start - one.end > _PAD else _BACK
    return (
        Point(one.end, one.y),
        Point(one.end + reach, one.y),
        Point(other.start - reach, other.y),
        Point(other.start, other.y),
    )


def _labels(wires: Sequence[_Wire], runs: Sequence[tuple[Run, ...]]) -> list[Point | None]:
    """Places on the arrows where no label hides another, as far as there are any; shared lanes have one."""
    shared: set[tuple[object, ...]] = set()
    taken: dict[tuple[int, int], list[tuple[Point, float]]] = {}
    labels: list[Point | None] = []
    for wire, along in zip(wires, runs, strict=True):
        if not wire.is_labelled:
            labels.append(None)
            continue
        # The last gap of the scope that both ends share is made wide enough for a label.
        inner = sum(1 for node in wire.falling[1:] for _ in _lanes(wire, node.parent_node, 0, node.layer))
        curve = bend(*along[len(along) - inner - 2 :][:2])
        if (wire.source, wire.when, curve) in shared:
            labels.append(None)
            continue
        shared.add((wire.source, wire.when, curve))
        width = label_width(wire.when)
        candidates = [_on(curve, share / 20) for share in (10, 9, 11, 8, 12, 7, 13, 6, 14, 5, 15, 4, 16)]
        place = next((spot for spot in candidates if _free(taken, spot, width)), candidates[0])
        taken.setdefault(_cell(place), []).append((place, width))
        labels.append(place)
    return labels


def _cell(spot: Point) -> tuple[int, int]:
    return int(spot.x // 100), int(spot.y // 100)


def _free(taken: dict[tuple[int, int], list[tuple[Point, float]]], spot: Point, width: float) -> bool:
    column, row = _cell(spot)
    cells = ((column + x, row + y) for x in (-1, 0, 1) for y in (-1, 0, 1))
    return not any(
        abs(other.x - spot.x) < (wide + width) / 2 + 2 and abs(other.y - spot.y) < _LABEL_HEIGHT + 2
        for cell in cells
        for other, wide in taken.get(cell, ())
    )


def _on(curve: tuple[Point, Point, Point, Point], share: float) -> Point:
    rest = 1 - share
    factors = (rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3)
    return Point(
        sum(factor * point.x for factor, point in zip(factors, curve, strict=True)),
        sum(factor * point.y for factor, point in zip(factors, curve, strict=True)),
    )


def _box(node: _Node) -> Box:
    return Box(node.unit, node.parent_node.id, node.caption, node.x, node.y, node.width, node.height)


def _arrow(wire: _Wire, runs: tuple[Run, ...], label: Point | None) -> Arrow:
    return Arrow(wire.source.id, wire.target.id, wire.when, runs, label)
