"""Names of nodes, written singly and as ranges: `n1`, `n[1-4]`, `gpu[01-16,20],login`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.kinds import Kind, Schema, Text
from jobman.spec.reading import BAD, Reading
from jobman.spec.yaml import is_null

MAX_NODES = 100_000
_RANGE = re.compile(r"([^\[\]]*)\[([0-9,-]+)\]([^\[\]]*)\Z")
_BETWEEN = re.compile(r",(?![^\[]*\])")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)")
_LETTERS = r"[A-Za-z0-9._\[\],-]"
_RULE = "letters, digits, `-`, `_`, `.` and ranges in brackets"


def expand_names(text: str) -> tuple[str, ...] | None:
    """The names a bracketed range stands for; None where it is not one."""
    match = _RANGE.match(text)
    if match is None:
        return None if "[" in text or "]" in text else (text,)
    names: list[str] = []
    for span in match[2].split(","):
        low, dash, high = span.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            return None
        last = int(high or low)
        if last - int(low) + len(names) > MAX_NODES or last < int(low):
            return None
        names.extend(f"{match[1]}{number:0{len(low)}d}{match[3]}" for number in range(int(low), last + 1))
    return tuple(names)


def expand_list(text: str) -> tuple[str, ...] | None:
    """The names of `n[1-4],gpu7`, each once; None where a part is no name."""
    found: dict[str, None] = {}
    for part in _BETWEEN.split(text):
        names = expand_names(part.strip())
        if names is None or not all(
            re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", name) for name in names
        ):
            return None
        found.update(dict.fromkeys(names))
    return tuple(found)


class NodeRange(Kind):
    """`n1`, `n[1-4]` or `gpu[01-16,20]`; the value is a tuple of names."""

    noun = "a node's name such as `n1` or `n[1-4]`"

    def read(self, node: Node, reading: Reading) -> Any:
        text = Text(self.noun, _LETTERS + "{1,253}", _RULE).read(node, reading)
        if text is BAD:
            return BAD
        names = expand_names(text)
        if names is None:
            reading.report("JS201", node, noun=self.noun, text=text, rule="ranges such as `n[1-4,7]`")
            return BAD
        return names

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


class NodeSet(Kind):
    """Nodes as one text, `n[1-4],gpu7`, or as a list of such; the value is those texts, as written."""

    noun = "names of nodes such as `n[1-4],gpu7`"

    def read(self, node: Node, reading: Reading) -> Any:
        items = [node] if isinstance(node, ScalarNode) else node.value
        if isinstance(node, MappingNode) or is_null(node):
            return self.refuse(node, reading)
        if not items:
            reading.report("JS213", node, noun="the list of nodes")
            return BAD
        texts = [self._text(item, reading) for item in items]
        return BAD if BAD in texts else tuple(texts)

    def _text(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        text = reading.text(node)
        if expand_list(text) is None:
            reading.report("JS201", node, noun=self.noun, text=text[:60], rule=_RULE)
            return BAD
        return text

    def schema(self) -> Schema:
        text: Schema = {"type": "string", "minLength": 1}
        return {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]}


NODE_SET = NodeSet()


def names_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The names that texts of a set of nodes stand for, each once."""
    found: dict[str, None] = {}
    for text in texts:
        found.update(dict.fromkeys(expand_list(text) or ()))
    return tuple(found)


def fold_names(names: Iterable[str]) -> str:
    """Names as short as they can be written: `n[1-4],gpu7`; `expand_list` gives them back."""
    found = {name: _NUMBERED.fullmatch(name) for name in names}
    padded = {(m[1], m[3], len(m[2])) for m in found.values() if m is not None and m[2].startswith("0")}
    groups: dict[tuple[str, str, int], list[int]] = {}
    order: dict[str | tuple[str, str, int], None] = {}
    for name, match in found.items():
        if match is None:
            order[name] = None
            continue
        width = len(match[2])
        key = (match[1], match[3], width if (match[1], match[3], width) in padded else 0)
        groups.setdefault(key, []).append(int(match[2]))
        order[key] = None
    return ",".join(each if isinstance(each, str) else _folded(each, groups[each]) for each in order)


def _folded(key: tuple[str, str, int], numbers: list[int]) -> str:
    """One group of names that differ in a number only."""
    before, after, width = key
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    if len(numbers) == 1:
        return f"{before}{numbers[0]:0{width}d}{after}"
    written = (f"{low:0{width}d}" + (f"-{high:0{width}d}" if high > low else "") for low, high in spans)
    return f"{before}[{','.join(written)}]{after}"
