"""Dividing copies over a topology level: evenly, or with no two in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from jobman.plan.nodes import ClusterNode
from jobman.sched.wishes import Wishes, domain


class Balance:
    """How many copies each place has, while the pieces of an allocation are put down one by one.

    A piece is what goes to a node at once: a slot, or all the slots that a shape has on one node.
    """

    def __init__(self, wishes: Wishes, nodes: Mapping[str, ClusterNode]) -> None:
        self.spread = wishes.spread
        self.apart = wishes.apart if wishes.apart is not None and wishes.apart.own else None
        self.copies: Counter[str | None] = Counter()
        self.pieces: Counter[str | None] = Counter()
        if self.spread is not None:
            known = (nodes[name] for name in self.spread.placed if name in nodes)
            self.copies.update(domain(node, self.spread.by) for node in known)

    @property
    def matters(self) -> bool:
        return self.spread is not None or self.apart is not None

    def divide(
        self,
        rooms: Mapping[int, tuple[ClusterNode, int]],
        wanted: int,
        size: int,
        all_: Iterable[ClusterNode],
    ) -> dict[int, int] | None:
        """How many pieces of `size` copies go to each position; None where they cannot all be put down.

        `rooms` has the nodes in order of preference with how many pieces each can take; `all_` are the nodes
        over which the copies should be even, also those without room.
        """
        domains = self._domains(all_)
        taken = dict.fromkeys(rooms, 0)
        for _ in range(wanted):
            least = min((self.copies[place] for place in domains), default=0)
            open_ = [at for at, (_, room) in rooms.items() if taken[at] < room]
            best = min(
                (at for at in open_ if self._allowed(rooms[at][0], size, least)),
                key=lambda at: self._load(rooms[at][0]),
                default=None,
            )
            if best is None:
                return None
            taken[best] += 1
            self._add(rooms[best][0], size)
        return {at: count for at, count in taken.items() if count}

    def _domains(self, nodes: Iterable[ClusterNode]) -> set[str | None]:
        if self.spread is None:
            return set()
        return {domain(node, self.spread.by) for node in nodes} - {None}

    def _allowed(self, node: ClusterNode, size: int, least: int) -> bool:
        if self.apart is not None and self.apart.required:
            place = domain(node, self.apart.by)
            if place is not None and self.pieces[place]:
                return False
        if self.spread is None or not self.spread.required:
            return True
        place = domain(node, self.spread.by)
        most = max(self.spread.skew, size)
        return place is not None and self.copies[place] + size - least <= most

    def _load(self, node: ClusterNode) -> tuple[int, bool, int]:
        """What makes a node less welcome; of equals, the first is taken."""
        apart = self.pieces[domain(node, self.apart.by)] if self.apart is not None else 0
        if self.spread is None:
            return apart, False, 0
        place = domain(node, self.spread.by)
        return apart, place is None, self.copies[place]

    def _add(self, node: ClusterNode, size: int) -> None:
        if self.apart is not None:
            self.pieces[domain(node, self.apart.by)] += 1
        if self.spread is not None:
            self.copies[domain(node, self.spread.by)] += size
