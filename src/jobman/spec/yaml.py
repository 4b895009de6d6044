"""YAML to nodes with positions: libyaml's composer under the 1.2 core schema, within limits."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from jobman.spec.json_text import json_as_yaml
from jobman.spec.mistakes import explain_syntax_error
from jobman.spec.problems import Edit, Place, Problems
from jobman.spec.source import Source

try:
    from yaml._yaml import CParser as _Parser
except ImportError as _error:  # pragma: no cover - PyYAML wheels carry libyaml
    raise ImportError("jobman needs PyYAML built with libyaml; install a PyYAML wheel") from _error

MAX_DEPTH = 100
MAX_NODES = 1_000_000
_MOST_REPAIRS = 10
_LONGEST_NUMBER = 400
_BEYOND_COUNTING = 10**30

PLAIN = "plain"
QUOTED = "quoted"
_STRING_TAG = "tag:yaml.org,2002:str"
_KNOWN_TAGS = {PLAIN, QUOTED, _STRING_TAG, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}
_MERGE = "<<"

NULLS = frozenset(("", "~", "null", "Null", "NULL"))
BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
INT = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"
    r"|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)

Scalar = str | int | float | bool | None


class _Limit(Exception):
    """A document is larger than allowed, seen at a line counted from zero."""

    def __init__(self, code: str, limit: int, line: int) -> None:
        super().__init__(code)
        self.code = code
        self.limit = limit
        self.line = line


class _Loader(_Parser):
    """libyaml's composer; the hooks it calls for each node are used to count, not to guess types."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.count = 0

    def resolve(self, _kind: Any, _value: Any, implicit: Any) -> str:
        return PLAIN if implicit is True or (implicit and implicit[0]) else QUOTED

    def descend_resolver(self, parent: Any, _index: Any) -> None:
        # Composing recurses on the C stack: without this limit a deep file kills the process.
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH:
            raise _Limit("JS010", MAX_DEPTH, parent.start_mark.line if parent is not None else 0)
        if self.count > MAX_NODES:
            raise _Limit("JS011", MAX_NODES, parent.start_mark.line if parent is not None else 0)

    def ascend_resolver(self) -> None:
        self.depth -= 1


def place_of(node: Node, source: Source) -> Place:
    """The span of a node; of a block collection, its first line."""
    start, end = node.start_mark, node.end_mark
    line, column = start.line + 1, source.column(start.line, start.column) + 1
    end_line, end_column = end.line + 1, source.column(end.line, end.column) + 1
    if end_line > line:
        end_line, end_column = line, len(source.line(line)) + 1
    return Place(source.name, line, column, end_line, max(end_column, column + 1))


def scalar_value(node: ScalarNode) -> Scalar:
    """The value of a scalar under the YAML 1.2 core schema."""
    return plain_value(node.value) if node.tag == PLAIN else str(node.value)


def plain_value(text: str) -> Scalar:
    """What a plain scalar means under the YAML 1.2 core schema."""
    if len(text) > _LONGEST_NUMBER:
        return text
    if INT.match(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if text in NULLS:
        return None
    if text in BOOLS:
        return BOOLS[text]
    if FLOAT.match(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def is_null(node: Node) -> bool:
    return node.__class__ is ScalarNode and node.value in NULLS and node.tag == PLAIN


def compose(source: Source, problems: Problems) -> tuple[list[Node], Source]:
    """All documents of a source, checked and with merge keys resolved, and the source they were read from.

    Behind a mistake that has one evident repair the repaired text is read on, so that the other problems
    of the file are found in the same run.
    """
    documents: list[Node] = []
    source = json_as_yaml(source)
    for _ in range(_MOST_REPAIRS):
        documents, error = _compose_text(source, problems)
        repair = explain_syntax_error(error, source, problems) if error is not None else ()
        if not repair:
            break
        source = source.repaired(repair)
    return [node for node in documents if _Preparation(source, problems).prepare(node)], source


def _compose_text(source: Source, problems: Problems) -> tuple[list[Node], yaml.MarkedYAMLError | None]:
    documents: list[Node] = []
    try:
        loader = _Loader(source.text)
        while loader.check_node():
            node = loader.get_node()
            documents += [] if node is None else [node]
    except _Limit as limit:
        line = limit.line + 1
        place = Place(source.name, line, 1, line, 2)
        problems.add(limit.code, place, limit=limit.limit, line_text=source.line(line)[:120])
    except yaml.reader.ReaderError as error:
        _report_character(error, source, problems)
    except yaml.MarkedYAMLError as error:
        return documents, error
    except UnicodeEncodeError as error:
        _report_at(error.start, _code_point(source.text[error.start]), source, problems)
    return documents, None


_FORBIDDEN = re.compile(r"[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _report_character(error: yaml.reader.ReaderError, source: Source, problems: Problems) -> None:
    bad = _FORBIDDEN.search(source.text)
    _report_at(bad.start() if bad else 0, _code_point(bad[0]) if bad else str(error.reason), source, problems)


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"


def _report_at(index: int, character: str, source: Source, problems: Problems) -> None:
    line = bisect_right(source.line_starts, index)
    column = index - source.line_starts[line - 1] + 1
    problems.add("JS008", Place(source.name, line, column, line, column + 1), character=character)


class _Preparation:
    """One walk over a composed document: limits, duplicate keys, merge keys, tags."""

    def __init__(self, source: Source, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self._sizes: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()
        self._merged = 0

    def prepare(self, root: Node) -> bool:
        size, depth = self._measure(root)
        if size > MAX_NODES:
            self._report("JS009", root, size=_roughly(size), limit=MAX_NODES)
            return False
        if depth > MAX_DEPTH:
            self._report("JS010", root, limit=MAX_DEPTH)
            return False
        return size > 0

    def _report(self, code: str, node: Node, fix: tuple[Edit, ...] = (), **values: Any) -> None:
        place = place_of(node, self.source)
        self.problems.add(code, place, fix=fix, line_text=self.source.line(place.line), **values)

    def _measure(self, node: Node) -> tuple[int, int]:
        """Size and depth with aliases expanded; size 0 marks a document that cannot be used."""
        if isinstance(node, ScalarNode):
            self._check_tag(node)
            return 1, 1
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in self._open:
            self._report("JS014", node)
            return 0, 0
        self._check_tag(node)
        if isinstance(node, MappingNode) and self._unquoted_parameter(node):
            return 1, 1
        self._open.add(id(node))
        measured = (
            self._measure_mapping(node) if isinstance(node, MappingNode) else self._measure_items(node.value)
        )
        self._open.discard(id(node))
        self._sizes[id(node)] = measured
        return measured

    def _measure_items(self, items: list[Node]) -> tuple[int, int]:
        size, depth = 1, 0
        for item in items:
            if item.__class__ is ScalarNode and (item.tag is PLAIN or item.tag is QUOTED):
                size += 1
                continue
            item_size, item_depth = self._measure(item)
            if not item_size:
                return 0, 0
            size += item_size
            depth = max(depth, item_depth)
        return min(size, _BEYOND_COUNTING), max(depth, 1 if items else 0) + 1

    def _measure_mapping(self, node: MappingNode) -> tuple[int, int]:
        seen: dict[str, Node] = {}
        kept: list[tuple[Node, Node]] = []
        merged: list[Node] = []
        values: list[Node] = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._report("JS016", key)
                values.append(key)
                continue
            values.append(value)
            text = key.value
            if text == _MERGE and key.tag is PLAIN:
                merged.append(value)
            elif text in seen:
                first = seen[text].start_mark.line + 1
                self._report("JS012", key, key=text, first=first)
            else:
                seen[text] = key
                kept.append((key, value))
        # In the order written: what an alias stands for is then always measured before the alias.
        size, depth = self._measure_items(values)
        if not size:
            return size, depth
        for value in merged:
            if self._merged > MAX_NODES:
                return _BEYOND_COUNTING, depth
            kept.extend(self._merge_pairs(value, seen))
            self._merged += len(kept)
        node.value = kept
        return min(size + len(kept), _BEYOND_COUNTING), depth

    def _merge_pairs(self, value: Node, seen: dict[str, Node]) -> list[tuple[Node, Node]]:
        sources = value.value if isinstance(value, SequenceNode) else [value]
        pairs: list[tuple[Node, Node]] = []
        for mapping in sources:
            if not isinstance(mapping, MappingNode):
                self._report("JS015", mapping)
                continue
            for inner_key, inner_value in mapping.value:
                if inner_key.value not in seen:
                    seen[inner_key.value] = inner_key
                    pairs.append((inner_key, inner_value))
        return pairs

    def _unquoted_parameter(self, node: Any) -> bool:
        """`{{name}}` without quotes is a mapping inside a mapping: read it as the text that was meant."""
        start, end = node.start_mark, node.end_mark
        if not node.flow_style or start.line != end.line:
            return False
        index = self.source.index(start.line, start.column)
        raw = self.source.text[index : index + end.column - start.column]
        if not (raw.startswith("{{") and raw.endswith("}}")):
            return False
        fix = (Edit(index, index + len(raw), f'"{raw}"'),)
        self._report("JS017", node, fix=fix if self.source.original is None else (), text=raw)
        node.__class__ = ScalarNode
        node.tag, node.value, node.style = QUOTED, raw, '"'
        return True

    def _check_tag(self, node: Node) -> None:
        if node.tag is PLAIN or node.tag is QUOTED:
            return
        if node.tag == _STRING_TAG:
            node.tag = QUOTED
        elif node.tag not in _KNOWN_TAGS:
            self._report("JS013", node, tag=str(node.tag).replace("tag:yaml.org,2002:", "!!"))
            node.tag = PLAIN


def _roughly(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"about 10^{len(str(number)) - 1}"
