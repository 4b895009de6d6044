"""Kinds of values: each reads a node, or reports what is wrong with it, and has a JSON schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from jobman.spec import quantities
from jobman.spec.reading import BAD, TEMPLATE, Reading, describe
from jobman.spec.suggest import closest, did_you_mean, listing
from jobman.spec.yaml import is_null, scalar_value

Schema = dict[str, Any]
_NO_LIMIT = "write how long it may run, or leave `duration` out for the engine's default"
_HOW_LONG = "write how long, such as `10s`, or remove the key"
_TIME_WORDS = ("days", "hours", "minutes", "seconds")
TEMPLATE_SCHEMA: Schema = {"type": "string", "pattern": r"\{\{.+\}\}"}
_YES_NO = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}


class Kind:
    """One kind of value. `noun` completes the sentence `expected …`."""

    noun = "a value"

    def read(self, node: Node, reading: Reading) -> Any:
        raise NotImplementedError

    def schema(self) -> Schema:
        raise NotImplementedError

    def refuse(self, node: Node, reading: Reading) -> Any:
        """Report that the node is of another kind than this."""
        if is_null(node):
            reading.report("JS104", node, what="value", noun=self.noun)
        else:
            reading.report("JS103", node, noun=self.noun, found=describe(node), hint=self.hint(node))
        return BAD

    def hint(self, _node: Node) -> str:
        return f"write {self.noun}"


class Text(Kind):
    """Any scalar, as the text that was typed."""

    def __init__(
        self,
        noun: str = "a text",
        pattern: str | None = None,
        rule: str = "",
        *,
        empty: bool = False,
        code: str = "JS201",
    ) -> None:
        self.noun = noun
        self.pattern = re.compile(pattern) if pattern else None
        self.rule = rule
        self.empty = empty
        self.code = code

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        text = reading.text(node)
        if "\0" in text:
            reading.report("JS202", node)
            return BAD
        if not text and not self.empty:
            reading.report("JS203", node, noun=self.noun)
            return BAD
        if self.pattern and not self.pattern.fullmatch(text) and not TEMPLATE.search(text):
            reading.report(self.code, node, noun=self.noun, text=_short(text), rule=self.rule)
            return BAD
        return text

    def schema(self) -> Schema:
        takes_numbers = self.pattern is None or any(map(self.pattern.fullmatch, ("1", "100")))
        schema: Schema = {"type": ["string", "number", "boolean"] if takes_numbers else "string"}
        if not self.empty:
            schema["minLength"] = 1
        if self.pattern:
            schema["pattern"] = rf"^(?:{self.pattern.pattern})$|\{{\{{"
        return schema


class Whole(Kind):
    """A whole number in a range."""

    def __init__(self, least: int = 0, most: int | None = None, noun: str = "a whole number") -> None:
        self.least = least
        self.most = most
        self.noun = noun

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        value = reading.scalar(node)
        if isinstance(value, float) and value.is_integer() and reading.plain(node):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            return self.refuse(node, reading)
        if value < self.least or (self.most is not None and value > self.most):
            reading.report("JS204", node, noun=self.noun, value=_short(str(value)), range=self._range())
            return BAD
        return value

    def _range(self) -> str:
        return f"at least {self.least}" if self.most is None else f"from {self.least} to {self.most:,}"

    def hint(self, node: Node) -> str:
        if isinstance(node, ScalarNode) and re.fullmatch(r"\d+", node.value):
            return f"remove the quotes: `{node.value}`"
        return f"write {self.noun}, {self._range()}"

    def schema(self) -> Schema:
        number: Schema = {"type": "integer", "minimum": self.least}
        if self.most is not None:
            number["maximum"] = self.most
        return {"anyOf": [number, TEMPLATE_SCHEMA]}


class Number(Kind):
    """A number in a range, fractions allowed."""

    def __init__(self, least: float, most: float, noun: str = "a number") -> None:
        self.least = least
        self.most = most
        self.noun = noun

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        value = reading.scalar(node)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return self.refuse(node, reading)
        if not self.least <= value <= self.most:
            span = f"from {self.least:g} to {self.most:g}"
            reading.report("JS204", node, noun=self.noun, value=_short(str(value)), range=span)
            return BAD
        return float(value)

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "number", "minimum": self.least, "maximum": self.most}, TEMPLATE_SCHEMA]}


class Flag(Kind):
    noun = "`true` or `false`"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        value = reading.scalar(node)
        if isinstance(value, bool):
            return value
        meant = _YES_NO.get(str(value).lower())
        if meant is None:
            return self.refuse(node, reading)
        word = "true" if meant else "false"
        reading.report("JS205", node, fix=reading.replace(node, word), text=node.value, word=word)
        return BAD

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "boolean"}, TEMPLATE_SCHEMA]}


class Duration(Kind):
    """Seconds, from `300s`, `1h30m` or a bare number of seconds."""

    noun = "a duration"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, MappingNode):
            reading.report("JS207", node, key=reading.key, value=_inner_duration(node))
            return BAD
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        text = reading.text(node).strip()
        seconds = quantities.parse_duration(text)
        if seconds is None:
            reading.report("JS206", node, text=_short(text), hint=quantities.duration_hint(text))
            return BAD
        if seconds == 0 and not self.zero:
            hint = (
                _NO_LIMIT if reading.key == "duration" else "write how long, such as `10s`, or remove the key"
            )
            reading.report("JS208", node, hint=hint)
            return BAD
        return seconds

    def schema(self) -> Schema:
        number: Schema = {"type": "number", "minimum" if self.zero else "exclusiveMinimum": 0}
        some = "" if self.zero else "(?=.*[1-9])"
        units = r"(?:(\d+(\.\d+)?(ms|d|h|m|s))+|\d+(\.\d+)?)"
        return {"anyOf": [number, {"type": "string", "pattern": rf"^\s*{some}{units}\s*$|\{{\{{"}]}


def _inner_duration(node: MappingNode) -> str:
    """The duration that a mapping such as `{hours: 1}` was meant to be."""
    inner = {key.value: value.value for key, value in node.value if isinstance(value, ScalarNode)}
    if "duration" in inner:
        return str(inner["duration"])
    parts = [f"{inner[name]}{name[0]}" for name in _TIME_WORDS if name in inner]
    return "".join(parts) or "300s"


class Size(Kind):
    """Bytes, from `4Gi`, `500M` or a bare number."""

    noun = "a size"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        text = reading.text(node).strip()
        size = quantities.parse_size(text)
        if size is None or size == 0:
            reading.report("JS209", node, text=_short(text), hint=quantities.size_hint(text))
            return BAD
        return size

    def schema(self) -> Schema:
        text = {"type": "string", "pattern": r"^\d+(\.\d+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$|\{\{"}
        return {"anyOf": [{"type": "integer", "minimum": 1}, text]}


class MomentKind(Kind):
    """A point in time in ISO 8601, or `+2h` after submission."""

    noun = "a moment"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        moment = quantities.parse_moment(reading.text(node).strip())
        if moment is None:
            reading.report("JS210", node, text=_short(node.value))
            return BAD
        if not moment[1]:
            reading.report("JS211", node, text=node.value)
        return moment[0]

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"^\+|^\d{4}-\d\d|\{\{"}


class Choice(Kind):
    """One of a few words."""

    def __init__(self, words: Iterable[str], noun: str, habits: Mapping[str, str] | None = None) -> None:
        self.words = tuple(words)
        self.noun = noun
        self.habits = habits or {}

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        word = reading.text(node)
        if word in self.words:
            return word
        meant = closest(word, self.words, self.habits)
        hint = did_you_mean(meant, f"write one of {listing(self.words, 30)}")
        reading.report("JS212", node, text=_short(word), noun=self.noun, hint=hint)
        return BAD

    def hint(self, _node: Node) -> str:
        return f"write one of {listing(self.words, 30)}"

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": list(self.words)}, TEMPLATE_SCHEMA]}


class Items(Kind):
    """A list of values of one kind; a lone scalar counts as a list of one where `single` says so."""

    def __init__(
        self, item: Kind, noun: str = "a list", *, least: int = 0, unique: bool = False, single: bool = False
    ) -> None:
        self.item = item
        self.noun = noun
        self.least = least
        self.unique = unique
        self.single = single

    def read(self, node: Node, reading: Reading) -> Any:
        if self.single and not isinstance(node, SequenceNode) and not is_null(node):
            value = self.item.read(node, reading)
            return BAD if value is BAD else (value,)
        if not isinstance(node, SequenceNode):
            return self.refuse(node, reading)
        if len(node.value) < self.least:
            reading.report("JS213", node, noun=self.noun)
            return BAD
        read = self.item.read
        values = [self._empty(item, reading) if is_null(item) else read(item, reading) for item in node.value]
        if self.unique:
            self._report_repeated(node, values, reading)
        return tuple(value for value in values if value is not BAD)

    def _empty(self, item: Node, reading: Reading) -> Any:
        reading.report("JS104", item, what="item", noun=self.item.noun)
        return BAD

    def hint(self, node: Node) -> str:
        if not isinstance(node, MappingNode):
            return super().hint(node)
        first = next(iter(node.value), None)
        if first is not None and isinstance(first[1], MappingNode):
            return f"write each as an item of a list: `- name: {first[0].value}`"
        return "put it into a list: `[{…}]`"

    def _report_repeated(self, node: SequenceNode, values: list[Any], reading: Reading) -> None:
        seen: set[Any] = set()
        for item, value in zip(node.value, values, strict=True):
            if value is not BAD and value in seen:
                reading.report("JS214", item, value=value)
            seen.add(value)

    def schema(self) -> Schema:
        many: Schema = {"type": "array", "items": self.item.schema()}
        if self.least:
            many["minItems"] = self.least
        return {"anyOf": [many, self.item.schema()]} if self.single else many


class Names(Kind):
    """A mapping from names to values of one kind."""

    def __init__(self, name: Text, value: Kind, noun: str = "a mapping") -> None:
        self.name = name
        self.value = value
        self.noun = noun

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, MappingNode):
            return self.refuse(node, reading)
        read: dict[str, Any] = {}
        for key, item in node.value:
            name = self.name.read(key, reading)
            value = self.value.read(item, reading)
            if name is not BAD and value is not BAD:
                read[name] = value
        return read

    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.value.schema()}
        if self.name.pattern:
            schema["propertyNames"] = {"pattern": f"^(?:{self.name.pattern.pattern})$"}
        return schema


class Forms(Kind):
    """A value that may be written as a scalar, a list or a mapping."""

    def __init__(
        self, noun: str, *, scalar: Kind | None = None, items: Kind | None = None, mapping: Kind | None = None
    ) -> None:
        self.noun = noun
        self._forms: dict[type[Node], Kind | None] = {
            ScalarNode: scalar,
            SequenceNode: items,
            MappingNode: mapping,
        }

    def read(self, node: Node, reading: Reading) -> Any:
        form = self._forms[type(node)]
        if form is None or is_null(node):
            return self.refuse(node, reading)
        return form.read(node, reading)

    @property
    def forms(self) -> list[Kind]:
        return [form for form in self._forms.values() if form]

    def schema(self) -> Schema:
        return {"anyOf": [form.schema() for form in self.forms]}


class Verbatim(Kind):
    """Any YAML, kept as it is."""

    def __init__(self, noun: str = "a value") -> None:
        self.noun = noun

    def read(self, node: Node, reading: Reading) -> Any:
        return _filled(node, reading)

    def schema(self) -> Schema:
        return {}


class VerbatimMapping(Verbatim):
    def read(self, node: Node, reading: Reading) -> Any:
        return _filled(node, reading) if isinstance(node, MappingNode) else self.refuse(node, reading)

    def schema(self) -> Schema:
        return {"type": "object"}


def _filled(node: Node, reading: Reading) -> Any:
    """Plain data with the parameters in its texts filled in."""
    if isinstance(node, ScalarNode):
        value = reading.text(node) if "{{" in node.value else scalar_value(node)
        if isinstance(value, float) and not isfinite(value):
            reading.report("JS215", node, text=node.value)
        return value
    if isinstance(node, SequenceNode):
        return [_filled(item, reading) for item in node.value]
    return {key.value: _filled(value, reading) for key, value in node.value}


def _short(text: str) -> str:
    text = text.replace("\n", "\\n")
    return text if len(text) <= 60 else text[:57] + "…"
