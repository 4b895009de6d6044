"""Resources: shapes, the types they are made of, names for them, and the facts their nodes must have."""

from __future__ import annotations

from typing import Annotated, Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from jobman.spec import quantities
from jobman.spec.expressions import ExpressionKind
from jobman.spec.kinds import Flag, Items, Kind, Names, Schema
from jobman.spec.names import FREE, NAME, TYPE
from jobman.spec.reading import BAD, Reading, child
from jobman.spec.records import Element, Key, Of
from jobman.spec.shapes import SIZED_TYPES

TYPES = ("node", "slot", "socket", "core", "gpu", *SIZED_TYPES)
PLURALS = {f"{name}s": name for name in TYPES if name not in SIZED_TYPES}
TYPE_HABITS = {
    "cpu": "core",
    "cpus": "core",
    "thread": "core",
    "pu": "core",
    "mem": "memory",
    "ram": "memory",
    "disk": "storage",
    "host": "node",
    "machine": "node",
    "task": "slot",
    "rank": "slot",
    "gres": "gpu",
}


class Requires(Kind):
    """Compatibility facts: nested mappings and dotted keys are the same thing, values are texts."""

    noun = "a mapping of facts"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, MappingNode):
            return self.refuse(node, reading)
        facts: dict[str, str] = {}
        self._flatten(node, "", facts, reading)
        return facts

    def _flatten(self, node: MappingNode, prefix: str, facts: dict[str, str], reading: Reading) -> None:
        for key, value in node.value:
            name = prefix + key.value
            if isinstance(value, MappingNode):
                self._flatten(value, name + ".", facts, reading)
            elif name in facts:
                reading.report("JS602", key, key=name)
            elif (text := self._value(value, reading)) is not BAD:
                facts[name] = text

    def _value(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, SequenceNode):
            reading.report("JS601", node)
            return BAD
        value = reading.scalar(node) if isinstance(node, ScalarNode) else BAD
        if isinstance(value, bool):
            return "yes" if value else "no"
        return FREE.read(node, reading)

    def schema(self) -> Schema:
        return {"$ref": "#/$defs/Requires"}


REQUIRES = Requires()


class _Count(Kind):
    """A count: checked against its type by the shape that holds it."""

    noun = "a count"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode):
            return self.refuse(node, reading)
        return reading.text(node).strip()

    def schema(self) -> Schema:
        sizes = r"^\d+(\.\d+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$|\{\{"
        return {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": sizes}]}


class Shape(Element, frozen=True, kw_only=True):
    """A tree of resources."""

    noun = "a shape"
    habits = {"number": "count", "amount": "count", "children": "with", "contains": "with", "kind": "type"}
    type: Annotated[
        str, Key(TYPE, "node, slot, socket, core, gpu, memory, storage or a site's own", required=True)
    ]
    count: Annotated[Any, Key(_Count(), "how many, or how much of memory and storage", required=True)]
    with_: Annotated[
        tuple[Any, ...],
        Key(Items(SHAPE, "a list of shapes", least=1), "what each of them holds", name="with"),
    ] = ()
    exclusive: Annotated[bool, Key(Flag(), "the whole node")] = False
    requires: Annotated[dict[str, str], Key(REQUIRES, "facts its nodes must have")] = {}


def _counted(shape: Shape, node: Node, reading: Reading) -> Any:
    """A shape with its type's singular and its count as a number."""
    kind = _singular(shape, node, reading)
    count_node = child(node, "count") or node
    count = (
        _size(shape.count, kind, count_node, reading)
        if kind in SIZED_TYPES
        else _number(shape.count, count_node, reading)
    )
    return Shape(
        type=kind,
        count=1 if count is BAD else count,
        with_=shape.with_,
        exclusive=shape.exclusive,
        requires=shape.requires,
        node=node,
        given=shape.given,
    )


def _singular(shape: Shape, node: Node, reading: Reading) -> str:
    singular = PLURALS.get(shape.type)
    if singular is None:
        return shape.type
    type_node = child(node, "type") or node
    reading.report(
        "JS405", type_node, fix=reading.replace(type_node, singular), plural=shape.type, singular=singular
    )
    return singular


def _number(text: str, node: Node, reading: Reading) -> Any:
    if text.isascii() and text.isdigit() and int(text[:12]) > 0 and len(text) < 12:
        return int(text)
    reading.report("JS406", node, text=text[:40])
    return BAD


def _size(text: str, kind: str, node: Node, reading: Reading) -> Any:
    size = quantities.parse_size(text)
    if not size:
        reading.report("JS209", node, text=text[:40], hint=quantities.size_hint(text))
        return BAD
    if size < 2**20:
        number = text.rstrip("Kik")
        why = "a bare number is bytes; " if number == text else ""
        reading.report("JS407", node, type=kind, text=text, number=number, why=why)
    return size


class _ShapeKind(Of):
    """A shape as a mapping; pointed words for the forms that look like one."""

    def __init__(self) -> None:
        super().__init__(Shape, _counted)

    @property
    def noun(self) -> str:  # type: ignore[override]
        return "a shape such as `{type: node, count: 1}`"

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, SequenceNode):
            reading.report("JS401", node)
            return BAD
        if isinstance(node, MappingNode) and node.value and all(_is_type(key.value) for key, _ in node.value):
            reading.report("JS403", node, example=_tree(node))
            return BAD
        return super().read(node, reading)


def _is_type(word: str) -> bool:
    return word in TYPES or word in PLURALS or word in TYPE_HABITS


def _tree(node: MappingNode) -> str:
    """The shape that a mapping such as `{nodes: 2, cores: 4}` was meant to be."""
    amounts = {}
    for key, value in node.value:
        kind = PLURALS.get(key.value, TYPE_HABITS.get(key.value, key.value))
        amounts[kind] = value.value if isinstance(value, ScalarNode) else "1"
    outer = next((kind for kind in ("node", "slot") if kind in amounts), next(iter(amounts)))
    inner = ", ".join(f"{{type: {kind}, count: {n}}}" for kind, n in amounts.items() if kind != outer)
    return f"{{type: {outer}, count: {amounts[outer]}" + (f", with: [{inner}]}}" if inner else "}")


SHAPE = _ShapeKind()
_EXPRESSION = ExpressionKind()


class Resources(Kind):
    """Where a shape is expected: an inline tree, or an expression over names."""

    noun = "a shape, a name or an expression such as `gpu|cpu`"

    def read(self, node: Node, reading: Reading) -> Any:
        return (_EXPRESSION if isinstance(node, ScalarNode) else SHAPE).read(node, reading)

    def schema(self) -> Schema:
        return {"anyOf": [_EXPRESSION.schema(), SHAPE.schema()]}


RESOURCES = Resources()


class NamedResources(Names):
    """The document's named shapes."""

    def __init__(self) -> None:
        super().__init__(NAME, RESOURCES, "a mapping of named shapes")

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, MappingNode) and isinstance(child(node, "type"), ScalarNode):
            reading.report("JS402", node)
            return BAD
        return super().read(node, reading)
