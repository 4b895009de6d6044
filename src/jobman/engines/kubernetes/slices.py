"""How the copies of a task become pods: which of them are alike enough to share a Job.

A Job makes equal pods with numbers. Copies that stand on nodes of their own are told to avoid each other;
copies that share a node get a Job for each node, because only so can they be told to stay together.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from jobman.plan.model import Unit
from jobman.spec.shapes import Alternative, Alternatives, Part

_NOTHING = Part()


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """Equal copies of one replica: their ranks and nodes follow each other."""

    part: Part
    count: int
    first_rank: int = 0
    first_node: int = 0
    is_apart: bool = False
    """Each copy has a node of its own."""
    is_together: bool = False
    """All copies share a node."""
    has_node: bool = False
    """Nodes were asked for, so no other node of the same replica may be the same."""

    def node_of(self, index: int) -> int:
        """The number of the node of a copy, among those of its replica."""
        return self.first_node + (0 if self.is_together else index)


def chosen(unit: Unit, number: int) -> Alternative:
    """The parts of an alternative; a local task asks for nothing."""
    return unit.alternatives[number] if unit.alternatives and not unit.local else (_NOTHING,)


def slices(parts: Alternative) -> tuple[Slice, ...]:
    """The Jobs that one replica needs, in the order of their ranks."""
    found: list[Slice] = []
    rank = node = 0
    for part in parts:
        for piece in _pieces(part):
            found.append(msgspec.structs.replace(piece, first_rank=rank, first_node=node))
            rank += piece.count
            node += 1 if piece.is_together else piece.count
    return tuple(found)


def differ_in_requires_only(alternatives: Alternatives) -> bool:
    """Whether alternatives are the same but for the facts of their nodes."""
    bare = {
        tuple(
            repr(msgspec.structs.replace(part, requires={}, flavor=None)) + repr(part.flavor)
            for part in parts
        )
        for parts in alternatives
    }
    return len(bare) == 1 and all(len(parts) == 1 for parts in alternatives)


def _pieces(part: Part) -> Iterator[Slice]:
    if part.nodes is None:
        yield Slice(part=part, count=part.slots or 1)
    elif part.slots <= 1:
        yield Slice(part=part, count=part.nodes, is_apart=part.nodes > 1, has_node=True)
    else:
        for _ in range(part.nodes):
            yield Slice(part=part, count=part.slots, is_together=True, has_node=True)
