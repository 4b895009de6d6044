"""Blocks: nodes that are kept free for a time, for maintenance or for those who reserved them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Literal

import msgspec

BlockKind = Literal["maintenance", "reservation"]


class Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One occurrence of a maintenance window or of an advance reservation.

    Which nodes it takes is said in one of three ways: `nodes` by name; `count` so many that have the facts of
    `requires`, chosen by whoever plans; neither of them, every node there is.
    """

    name: str
    """`DEFINITION/DATE`, unique among all blocks; what maintenance cuts off of it is `DEFINITION/DATE+1`."""
    start: float
    end: float
    """The first moment that is free again; infinity where no end is known."""
    nodes: tuple[str, ...] = ()
    kind: BlockKind
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    """Of a reservation: who may use it, by name or by account. A window of maintenance is for nobody."""
    count: int | None = None
    requires: dict[str, str] = {}

    @property
    def definition(self) -> str:
        """The name of what it is an occurrence of."""
        return self.name.partition("/")[0]

    @property
    def takes_all(self) -> bool:
        """Whether it is about every node there is."""
        return not self.nodes and self.count is None

    @property
    def is_open_ended(self) -> bool:
        """Whether nobody knows when it ends."""
        return self.end == float("inf")

    def covers(self, node: str) -> bool:
        """Whether it names this node, or all; of nodes that are only counted it does not know."""
        return self.takes_all or node in self.nodes

    def holds_at(self, moment: float) -> bool:
        """Whether its nodes are taken at a moment."""
        return self.start <= moment < self.end

    def meets(self, start: float, end: float) -> bool:
        """Whether it has a moment in common with a span of time."""
        return self.start < end and start < self.end

    def admits(self, reservation: str, user: str, account: str = "") -> bool:
        """Whether somebody who asks for a reservation by name may run in this block."""
        names = (self.definition, self.name, self.name.partition("+")[0])
        if self.kind != "reservation" or reservation not in names:
            return False
        return user in self.users or (bool(account) and account in self.accounts)


def on_nodes(block: Block, known: Iterable[str]) -> tuple[str, ...]:
    """The nodes it takes by name, of those there are; none of those that are only counted."""
    return tuple(node for node in known if block.covers(node))


def clash(first: Block, second: Block) -> bool:
    """Whether two blocks want the same node at the same time; nodes that are only counted may be others."""
    if not first.meets(second.start, second.end):
        return False
    if first.takes_all or second.takes_all:
        return True
    return not set(first.nodes).isdisjoint(second.nodes)


def give_way(block: Block, windows: Iterable[Block], known: Iterable[str]) -> list[Block]:
    """What maintenance leaves of a reservation: pieces in the order of time, each with nodes it still has.

    `known` are all nodes there are. The first piece keeps the name of the block, the others add a number.
    """
    met = [window for window in windows if window.meets(block.start, block.end)]
    edges = {block.start, block.end, *(edge for window in met for edge in (window.start, window.end))}
    moments = sorted(edge for edge in edges if block.start <= edge <= block.end)
    wanted = block.nodes or tuple(known)
    pieces: list[Block] = []
    for start, end in pairwise(moments):
        left = tuple(node for node in wanted if not any(w.holds_at(start) and w.covers(node) for w in met))
        nodes = left if block.count is None else ()
        if pieces and left and pieces[-1].end == start and pieces[-1].nodes == nodes:
            pieces[-1] = msgspec.structs.replace(pieces[-1], end=end)
        elif left:
            name = f"{block.name}+{len(pieces)}" if pieces else block.name
            pieces.append(msgspec.structs.replace(block, name=name, start=start, end=end, nodes=nodes))
    return pieces


def difference(before: Mapping[str, Block], after: Iterable[Block]) -> tuple[list[str], list[Block]]:
    """From the blocks that are known to those that are wanted: names that go, and blocks that come."""
    wanted = {block.name: block for block in after}
    gone = [name for name, block in before.items() if wanted.get(name) != block]
    return gone, [block for name, block in wanted.items() if before.get(name) != block]
