"""From written shapes and expressions to the normal form."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from yaml.nodes import Node

from jobman.spec.expressions import MAX_ALTERNATIVES, Expression
from jobman.spec.reading import Reading, child
from jobman.spec.resources import TYPE_HABITS, TYPES, Shape
from jobman.spec.shapes import MAX_AMOUNT, SIZED_TYPES, Alternative, Alternatives, Amount, Part, levels
from jobman.spec.site import Site
from jobman.spec.suggest import closest, did_you_mean, listing

MAX_LEVELS = 50
_CONTAINERS = ("node", "socket", "slot")
_MAY_HOLD = {
    "node": ("socket", "slot", "core", "gpu", *SIZED_TYPES),
    "socket": ("slot", "core", "gpu", "memory"),
    "slot": ("socket", "core", "gpu", *SIZED_TYPES),
}


class Shapes:
    """The named shapes of a document and the flavors of a site, each normalised once."""

    def __init__(self, named: Mapping[str, Shape | Expression], site: Site, reading: Reading) -> None:
        self.named = named
        self.site = site
        self.reading = reading
        self._known: dict[str, Alternatives | None] = {}
        self._open: list[str] = []

    def of(self, written: Shape | Expression) -> Alternatives | None:
        """The alternatives of what was written; None where it is wrong, which has been reported."""
        if isinstance(written, Shape):
            part = _Tree(self.site, self.reading).part(written)
            return None if part is None else ((part,),)
        if written.text not in self._known:
            self._known[written.text] = self._expression(written)
        elif self._known[written.text] is None:
            # An unknown name is reported wherever it stands.
            for name in written.names:
                if name not in self.named and name not in self.site.flavors:
                    self.name(name, written.node)
        return self._known[written.text]

    def origin(self, written: Shape | Expression) -> tuple[str, str]:
        """Whether a shape was written in place, named in the document, or is a site's flavor."""
        if isinstance(written, Shape):
            return "inline", ""
        names = written.names
        return ("flavor" if any(name not in self.named for name in names) else "named"), written.text

    def _expression(self, expression: Expression) -> Alternatives | None:
        found: list[Alternative] = []
        for names in expression.alternatives:
            choices: list[Alternative] = [()]
            for name in names:
                alternatives = self.name(name, expression.node)
                if alternatives is None:
                    return None
                choices = [left + right for left in choices for right in alternatives]
                if len(choices) + len(found) > MAX_ALTERNATIVES:
                    self.reading.report(
                        "JS404",
                        expression.node,
                        text=expression.text[:60],
                        reason=f"it has more than {MAX_ALTERNATIVES} alternatives",
                    )
                    return None
            found.extend(choices)
        return tuple(found)

    def name(self, name: str, node: Node) -> Alternatives | None:
        if name in self._open:
            self.reading.report("JS409", node, name=name)
            return None
        if len(self._open) >= MAX_LEVELS:
            self.reading.report("JS419", node, name=name, limit=MAX_LEVELS)
            return None
        if name in self.named:
            self._open.append(name)
            found = self.of(self.named[name])
            self._open.pop()
            return found
        if name in self.site.flavors:
            return ((self.site.flavors[name],),)
        known = [*self.named, *self.site.flavors]
        meant = self.reading.closest(name, known)
        hint = did_you_mean(meant, _what_is_known(list(self.named), list(self.site.flavors)))
        self.reading.report("JS408", node, culprit=name, name=name, hint=hint)
        return None


def _what_is_known(named: list[str], flavors: list[str]) -> str:
    said = []
    if named:
        said.append(f"the document names {listing(named)}")
    if flavors:
        said.append(f"the settings have the flavors {listing(flavors)}")
    return "; ".join(said) or "define it under the document's `resources`"


class _Tree:
    """Walks one written tree into a part."""

    def __init__(self, site: Site, reading: Reading) -> None:
        self.site = site
        self.reading = reading
        self.good = True
        self.nodes: int | None = None
        self.slots = 0
        self.each: dict[str, Amount] = {}
        self.beside: dict[str, Amount] = {}
        self.within: list[tuple[str, int]] = []
        self.exclusive = False
        self.requires: dict[str, str] = {}

    def part(self, shape: Shape) -> Part | None:
        self._visit(shape, None, 1, in_slot=False)
        if not self.good:
            return None
        if not self.slots:
            self.each, self.beside = {**self.beside, **self.each}, {}
        within = tuple(self.within)
        nodes = None if self.nodes is None else self.nodes * levels(within)
        return Part(
            nodes=nodes,
            slots=self.slots,
            each=self.each,
            beside=self.beside,
            exclusive=self.exclusive,
            within=within,
            requires=self.requires,
        )

    def _visit(self, shape: Shape, outer: Shape | None, times: int, *, in_slot: bool) -> None:
        if not self._known(shape) or not self._allowed(shape, outer):
            self.good = False
            return
        self.requires.update(shape.requires)
        if shape.exclusive:
            self._exclusive(shape)
        inner_times = self._enter(shape, times, in_slot=in_slot)
        if inner_times > MAX_AMOUNT:
            self.reading.report(
                "JS417", shape.node, type=shape.type, outer=outer.type if outer else "the job"
            )
            self.good = False
            return
        seen: set[str] = set()
        for inner in shape.with_:
            if inner.type in seen:
                self.reading.report("JS413", child(inner.node, "type"), type=inner.type)
                self.good = False
            seen.add(inner.type)
            self._visit(inner, shape, inner_times, in_slot=in_slot or shape.type == "slot")

    def _enter(self, shape: Shape, times: int, *, in_slot: bool) -> int:
        """Take the shape in; returns how many of it one node (or one slot) has for what is inside."""
        count = shape.count
        if shape.type == "node":
            self.nodes = count
            return 1
        if shape.type == "slot":
            self.slots = count * times
            return 1
        if self.nodes is None and not self.slots and any(_holds_node(inner) for inner in shape.with_):
            self.within.append((shape.type, count))
            return 1
        target = self.each if in_slot else self.beside
        target[shape.type] = target.get(shape.type, 0) + count * times
        return int(count * times)

    def _exclusive(self, shape: Shape) -> None:
        if shape.type != "node":
            self.reading.report("JS416", child(shape.node, "exclusive"), type=shape.type)
            self.good = False
        self.exclusive = True

    def _known(self, shape: Shape) -> bool:
        if shape.type in TYPES or shape.type in self.site.resource_types:
            return True
        known = [*TYPES, *self.site.resource_types]
        meant = closest(shape.type, known, TYPE_HABITS)
        hint = did_you_mean(meant, "a site's own types are listed under `resource_types` in the settings")
        self.reading.report("JS410", child(shape.node, "type"), type=shape.type, hint=hint)
        return False

    def _allowed(self, shape: Shape, outer: Shape | None) -> bool:
        if outer is None:
            return True
        if outer.type in self.site.resource_types and shape.type == "node" and self.nodes is None:
            return True
        if outer.type in _MAY_HOLD and (shape.type in _MAY_HOLD[outer.type] or shape.type not in TYPES):
            if shape.type != "slot" or not self.slots:
                return True
        elif outer.type in self.site.resource_types and shape.type not in _CONTAINERS:
            return True
        self.reading.report(
            "JS412",
            child(shape.node, "type"),
            inner=shape.type,
            outer=outer.type,
            hint=_placement_hint(shape, outer),
        )
        return False


def _holds_node(shape: Shape) -> bool:
    return shape.type == "node" or any(_holds_node(inner) for inner in shape.with_)


def _placement_hint(shape: Shape, outer: Shape) -> str:
    if shape.type == outer.type:
        return f"multiply the counts into one `{shape.type}`"
    if shape.type == "node":
        return f"put the node outside: `{{type: node, count: …, with: [{{type: {outer.type}, …}}]}}`"
    if shape.type == "slot":
        return "a shape has one kind of slot; for two kinds use two shapes and `a&b`"
    return f"`{outer.type}` holds nothing; write `{shape.type}` beside it"


def merge_requires(
    alternatives: Alternatives, before: Mapping[str, str], after: Mapping[str, str]
) -> Alternatives:
    """Facts from around a shape lose against the shape's own, those of the task win."""
    if not before and not after:
        return alternatives
    return tuple(
        tuple(msgspec.structs.replace(part, requires={**before, **part.requires, **after}) for part in parts)
        for parts in alternatives
    )
