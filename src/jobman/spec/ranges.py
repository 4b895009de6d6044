"""Sets of numbers, written as single numbers and ranges: exit codes and replicas."""

from __future__ import annotations

import re
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.kinds import Kind, Schema
from jobman.spec.reading import BAD, Reading
from jobman.spec.yaml import is_null

MAX_REPLICAS = 1_000_000
Span = tuple[int, int]


class Ranges(Kind):
    """A list of numbers and `a-b` ranges; the value is sorted numbers."""

    def __init__(self, noun: str, least: int, most: int) -> None:
        self.noun = noun
        self.least = least
        self.most = most

    def read(self, node: Node, reading: Reading) -> Any:
        if isinstance(node, MappingNode) or is_null(node):
            return self.refuse(node, reading)
        items = [node] if isinstance(node, ScalarNode) else node.value
        if not items:
            reading.report("JS213", node, noun=f"the list of {self.noun}")
            return BAD
        found: set[Span] = set()
        for item in items:
            if isinstance(item, ScalarNode) and (span := self._span(item, reading)):
                found.add(span)
            else:
                reading.report("JS231", item, noun=self.noun, least=self.least, most=self.most)
                return BAD
        return tuple(_joined(found))

    def _span(self, node: ScalarNode, reading: Reading) -> Span | None:
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", reading.text(node).strip())
        if not match:
            return None
        low, high = int(match[1]), int(match[2] or match[1])
        return (low, high) if self.least <= low <= high <= self.most else None

    def hint(self, _node: Node) -> str:
        return "write a list of numbers and ranges such as `[1, 3-5]`"

    def schema(self) -> Schema:
        one = {
            "anyOf": [{"type": "integer", "minimum": self.least, "maximum": self.most}, {"type": "string"}]
        }
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


def _joined(spans: set[Span]) -> list[Span]:
    """Overlapping and touching ranges as one, so that one meaning has one form."""
    joined: list[Span] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


EXIT_CODES = Ranges("exit codes", 1, 255)
REPLICA_INDEXES = Ranges("replica numbers", 0, MAX_REPLICAS - 1)
