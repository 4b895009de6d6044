"""The state of reading one document: where problems go and what `{{parameters}}` stand for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.problems import Edit, Place, Problems, Related
from jobman.spec.source import Source
from jobman.spec.suggest import closest
from jobman.spec.yaml import PLAIN, Scalar, is_null, place_of, plain_value, scalar_value

_MOST_GUESSES = 50_000
BAD: Final[Any] = type("Bad", (), {"__repr__": lambda _self: "BAD", "__bool__": lambda _self: False})()
TEMPLATE = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*) *\}\}")


class Reading:
    """Everything a reader of nodes needs besides the node."""

    def __init__(self, source: Source, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.values: dict[str, str] = {}
        """What each parameter stands for, as it was typed."""
        self.matrix: frozenset[str] = frozenset()
        self.matrix_keys: frozenset[str] = frozenset()
        self.used: set[str] = set()
        self.promised: set[tuple[int, str]] = set()
        """Keys that a repair of this round will write into a mapping."""
        self._undefined_in: set[int] = set()
        self._guesses = _MOST_GUESSES
        self.key = ""
        self.enclosing: list[tuple[Any, Node]] = []

    def closest(
        self, word: str, known: Collection[str], habits: Mapping[str, str] | None = None
    ) -> str | None:
        """A guess at the word that was meant; after many guesses there are none, so that a file of nothing
        but unknown names is read as quickly as any other."""
        self._guesses -= len(known)
        return closest(word, known, habits) if self.may_guess else None

    @property
    def may_guess(self) -> bool:
        return self._guesses > 0

    def report(
        self,
        code: str,
        node: Node | None,
        *,
        related: tuple[tuple[Node | None, str], ...] = (),
        fix: tuple[Edit, ...] = (),
        culprit: str = "",
        offset: int = 0,
        **values: Any,
    ) -> None:
        """Record a problem at a node, or at the culprit inside its text."""
        if node is not None and id(node) in self._undefined_in and code != "JS801":
            return  # Whatever else is wrong with it follows from the parameter that is missing.
        place = place_of(node, self.source) if node is not None else None
        others = tuple(
            Related(place_of(other, self.source), text) for other, text in related if other is not None
        )
        text = self.source.line(place.line) if place else ""
        if culprit and place is not None:
            place = _narrowed(place, text, culprit)
        elif offset and place is not None and place.column + offset < place.end_column:
            start = place.column + offset
            place = Place(place.file, place.line, start, place.line, start + 1)
        if self.source.original is not None:
            fix = ()  # Positions in a repaired text are not positions in the file.
        self.problems.add(code, place, related=others, fix=fix, line_text=text, **values)

    def replace(self, node: Node, text: str) -> tuple[Edit, ...]:
        """The edit that writes `text` instead of a one-line node."""
        if node.start_mark.line != node.end_mark.line:
            return ()
        start = self.source.index(node.start_mark.line, node.start_mark.column)
        end = self.source.index(node.end_mark.line, node.end_mark.column)
        return (Edit(start, end, text),)

    def text(self, node: ScalarNode) -> str:
        """The text of a scalar with its parameters filled in."""
        text: str = node.value
        return self._fill(text, node) if "{{" in text else text

    def scalar(self, node: ScalarNode) -> Scalar:
        """The value of a scalar; one made of parameters is read as if it had been typed."""
        if "{{" in node.value:
            return plain_value(self._fill(node.value, node))
        return scalar_value(node)

    def plain(self, node: ScalarNode) -> bool:
        """Whether the scalar was written without quotes, or comes from a parameter."""
        return node.tag == PLAIN or "{{" in node.value

    def _fill(self, text: str, node: Node) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name in self.matrix_keys:
                return "{{" + name + "}}"
            if name in self.values:
                self.used.add(name)
                return self.values[name]
            self._undefined(name, node, match[0])
            return match[0]

        return TEMPLATE.sub(value, text)

    def _undefined(self, name: str, node: Node, written: str) -> None:
        self._undefined_in.add(id(node))
        known = [*self.values, *self.matrix_keys]
        meant = self.closest(name, known)
        here = " here" if name in self.matrix else ""
        if name in self.matrix:
            hint = "an axis stands in what a replica runs: command, image, steps, attributes, hooks"
        elif meant:
            hint = f"did you mean `{{{{{meant}}}}}`?"
        elif name.startswith("user."):
            hint = f"set `{name.removeprefix('user.')}` under `user` in the settings"
        else:
            hint = f"define it under `parameters`, e.g. `parameters: {{{name}: 1}}`"
        self.report("JS801", node, culprit=written, name=name, here=here, hint=hint)


def _narrowed(place: Place, line: str, culprit: str) -> Place:
    """The part of a place that holds a text; whole words only."""
    shown = line[place.column - 1 : place.end_column - 1]
    match = re.search(rf"(?<![\w.-]){re.escape(culprit)}(?![\w-])", shown)
    if match is None:
        return place
    start = place.column + match.start()
    return Place(place.file, place.line, start, place.line, start + len(culprit))


def child(node: Node | None, *path: str | int) -> Node | None:
    """The node below a prepared node at a path of keys and positions, as deep as it exists."""
    found = node
    for step in path:
        deeper = _step(found, step)
        if deeper is None:
            return found
        found = deeper
    return found


def _step(node: Node | None, step: str | int) -> Node | None:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step:
                found: Node = value
                return found
        return None
    if isinstance(step, int) and node is not None and isinstance(node.value, list) and step < len(node.value):
        item: Node = node.value[step]
        return item
    return None


def key_node(node: Node, key: str) -> Node:
    """The node of a key itself, for problems about its presence; the mapping where it has none."""
    if isinstance(node, MappingNode):
        return next((name for name, _ in node.value if name.value == key), node)
    return node


def describe(node: Node) -> str:
    """What a node is, for the sentence `expected …, found …`."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if not isinstance(node, ScalarNode):
        return "a list"
    if is_null(node):
        return "nothing"
    value = scalar_value(node)
    if isinstance(value, bool):
        return f"`{node.value}`"
    if isinstance(value, int | float):
        return f"the number {node.value}"
    shown = value if value is not None and len(value) <= 40 else f"{str(value)[:37]}…"
    return f"the text {_quoted(str(shown))}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\n", "\\n") + '"'
