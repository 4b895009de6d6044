"""Records: mappings with known keys. A class declares them; reading and schema follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, get_type_hints

import msgspec
from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.kinds import Kind, Schema
from jobman.spec.problems import Edit
from jobman.spec.reading import BAD, Reading, child, key_node
from jobman.spec.suggest import listing
from jobman.spec.yaml import is_null

_MISPLACED_MEANING = {
    "command": "a command is a key of the task, beside `resources`",
}


class Key:
    """How one key of a record is read; an annotation of the field it fills."""

    def __init__(self, kind: Kind, doc: str, *, name: str | None = None, required: bool = False) -> None:
        self.kind = kind
        self.doc = doc
        self.name = name
        self.required = required


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A mapping with known keys, as a value without positions."""

    noun: ClassVar[str] = "this mapping"
    habits: ClassVar[Mapping[str, str]] = {}
    retired: ClassVar[Mapping[str, str]] = {}


class Element(Record, frozen=True, kw_only=True):
    """A record that remembers the node it was read from and every value that was given.

    The keys of the `includes` are read too; their values are found in `given` only.
    """

    includes: ClassVar[tuple[type[Record], ...]] = ()
    refused: ClassVar[tuple[str, ...]] = ()
    """Keys of the `includes` that mean nothing here."""
    node: Any = None
    given: dict[str, Any] = {}


@cache
def keys_of(cls: type[Record]) -> dict[str, tuple[str, Key]]:
    """The keys of a record class as written in documents, each with its field."""
    keys = own_keys_of(cls)
    if issubclass(cls, Element):
        for included in cls.includes:
            keys = keys | {name: key for name, key in keys_of(included).items() if name not in cls.refused}
    return keys


@cache
def own_keys_of(cls: type[Record]) -> dict[str, tuple[str, Key]]:
    """The keys that are fields of the class itself."""
    keys: dict[str, tuple[str, Key]] = {}
    for field, hint in get_type_hints(cls, include_extras=True).items():
        for annotation in getattr(hint, "__metadata__", ()):
            if isinstance(annotation, Key):
                keys[annotation.name or field] = (field, annotation)
    return keys


class Of(Kind):
    """The kind of a record class."""

    def __init__(self, cls: type[Record], check: Callable[[Any, Node, Reading], Any] | None = None) -> None:
        self.cls = cls
        self.check = check
        self.is_element = issubclass(cls, Element)
        self._table: dict[str, tuple[str, Callable[[Node, Reading], Any]]] | None = None

    @property
    def noun(self) -> str:  # type: ignore[override]
        return f"a mapping with keys such as {listing(list(keys_of(self.cls))[:3])}"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, MappingNode):
            return self.refuse(node, reading)
        table = self._table or self._make_table()
        values: dict[str, Any] = {}
        meant: list[str | None] = []
        reading.enclosing.append((self.cls, node))
        for key, value in node.value:
            entry = table.get(key.value)
            if entry is None:
                meant.append(report_unknown_key(self.cls, node, key, value, reading))
                continue
            if is_null(value):
                reading.report("JS104", key, what="key", noun=keys_of(self.cls)[key.value][1].kind.noun)
                continue
            reading.key = key.value
            read = entry[1](value, reading)
            if read is not BAD:
                values[entry[0]] = read
        reading.enclosing.pop()
        return self._build(values, meant, node, reading)

    def _build(
        self, values: dict[str, Any], meant: list[str | None], node: MappingNode, reading: Reading
    ) -> Any:
        for name, (field, key) in required_keys(self.cls).items():
            if field not in values and name not in meant and not has_key(node, name):
                reading.report("JS105", node, key=name, noun=self.cls.noun, doc=key.doc)
            if field not in values:
                return BAD
        record = self._element(values, node) if self.is_element else self.cls(**values)
        return self.check(record, node, reading) if self.check else record

    def _element(self, values: dict[str, Any], node: MappingNode) -> Any:
        own = {field: values[field] for field in values if field in self.cls.__struct_fields__}
        return self.cls(**own, node=node, given=values)

    def _make_table(self) -> dict[str, tuple[str, Callable[[Node, Reading], Any]]]:
        self._table = {name: (field, key.kind.read) for name, (field, key) in keys_of(self.cls).items()}
        return self._table

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.cls.__name__}"}


def has_key(node: Node, *names: str) -> bool:
    """Whether a mapping was given one of the keys, rightly or wrongly."""
    return isinstance(node, MappingNode) and any(key.value in names for key, _ in node.value)


@cache
def required_keys(cls: type[Record]) -> dict[str, tuple[str, Key]]:
    return {name: entry for name, entry in keys_of(cls).items() if entry[1].required}


def report_unknown_key(
    cls: type[Record], node: MappingNode, key: Node, value: Node, reading: Reading
) -> str | None:
    """Say which key was meant, or where this one belongs; returns the key that was meant."""
    word = key.value
    if word in cls.retired:
        hint = cls.retired[word].replace("VALUE", _shown(value, word))
        reading.report("JS107", key, key=word, noun=cls.noun, hint=hint)
        return None
    known = [name for name in keys_of(cls) if key_node(node, name) is node]
    meant = reading.closest(word, keys_of(cls), cls.habits)
    if meant in known:
        promised = (id(node), meant)
        fix = () if promised in reading.promised else reading.replace(key, meant)
        reading.promised.add(promised)
        reading.report("JS101", key, fix=fix, key=word, noun=cls.noun, hint=f"did you mean `{meant}`?")
    elif outer := _enclosing_with(word, reading):
        outer_cls, levels = outer
        target = reading.enclosing[-2][1]
        free = levels == 1 and not has_key(target, word) and (id(target), word) not in reading.promised
        reading.promised.add((id(target), word))
        fix = _move_out(key, value, node, reading) if free else ()
        where = _MISPLACED_MEANING.get(word, f"`{word}` is a key of {outer_cls.noun}")
        reading.report("JS102", key, fix=fix, key=word, noun=cls.noun, where=where)
    elif found := _inner_with(word, cls):
        inner, real = found
        reading.report("JS106", key, key=word, noun=cls.noun, inner=inner, real=real)
    elif meant:
        hint = f"`{meant}` is there already; remove one of them"
        reading.report("JS101", key, key=word, noun=cls.noun, hint=hint)
    else:
        hint = f"{cls.noun} knows {listing(sorted(keys_of(cls)))}"
        reading.report("JS101", key, key=word, noun=cls.noun, hint=hint)
    return meant


def _shown(value: Node, word: str) -> str:
    """The author's own value, for an advice that can be copied."""
    if isinstance(value, MappingNode):
        value = child(value, word) or value
    return str(value.value) if isinstance(value, ScalarNode) and value.value else "…"


def _enclosing_with(word: str, reading: Reading) -> tuple[type[Record], int] | None:
    for levels, (cls, _) in enumerate(reversed(reading.enclosing[:-1]), 1):
        if word in keys_of(cls):
            return cls, levels
    return None


def _inner_with(word: str, cls: type[Record]) -> tuple[str, str] | None:
    """The key whose mapping has the word, or what people call it, and the word itself."""
    for name, (_, key) in keys_of(cls).items():
        if isinstance(key.kind, Of):
            real = key.kind.cls.habits.get(word.lower(), word)
            if real in keys_of(key.kind.cls):
                return name, real
    return None


def _move_out(key: Node, value: Node, node: MappingNode, reading: Reading) -> tuple[Edit, ...]:
    """Take an entry of a block mapping out to the end of it, indented as the mapping's own key."""
    outer = reading.enclosing[-2][1]
    column = outer.value[0][0].start_mark.column
    shift = key.start_mark.column - column
    if node.flow_style or shift <= 0 or node.value[0][0] is key:
        return ()
    source = reading.source
    first = key.start_mark.line
    last = _last_line(value, first, key.start_mark.column, source.lines)
    end_of_mapping = max(
        _last_line(v, k.start_mark.line, k.start_mark.column, source.lines) for k, v in node.value
    )
    lines = source.lines[first : last + 1]
    moved = "".join((line[shift:] if line[:shift].isspace() else line) + "\n" for line in lines)
    start = source.line_starts[first]
    stop = _line_end(source.line_starts, last, len(source.text))
    target = _line_end(source.line_starts, end_of_mapping, len(source.text))
    if last == end_of_mapping:
        return (Edit(start, stop, moved),)
    if not source.text.endswith("\n") and target == len(source.text):
        moved = "\n" + moved
    return (Edit(start, stop, ""), Edit(target, target, moved))


def _line_end(starts: list[int], line: int, length: int) -> int:
    return starts[line + 1] if line + 1 < len(starts) else length


def _last_line(value: Node, first: int, column: int, lines: list[str]) -> int:
    """The last line that belongs to an entry: the following ones stand deeper than its key."""
    last = max(first, value.start_mark.line)
    for number in range(first + 1, len(lines)):
        text = lines[number]
        if not text.strip():
            continue
        indent = len(text) - len(text.lstrip(" "))
        is_own_list = indent == column and text.lstrip().startswith("- ")
        if indent <= column and not is_own_list:
            break
        last = number
    return last


def record_schema(cls: type[Record]) -> Schema:
    """The JSON schema of one record class."""
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: {**key.kind.schema(), "description": key.doc} for name, (_, key) in keys_of(cls).items()
        },
    }
    if required := sorted(required_keys(cls)):
        schema["required"] = required
    return schema
