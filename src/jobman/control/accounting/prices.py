"""Prices: what an hour of an allocation costs.

Where its flavors have a price, an hour costs that for each copy. Otherwise it costs the usual price for each
core, or for whatever else it holds more of: who takes half of a node's memory takes half of its cores from
others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.sched.allocation import Allocation, Held, Slot
from jobman.sched.fairshare import dominant
from jobman.spec.shapes import Alternative, Part

Nodes = Mapping[str, ClusterNode]


class Prices(msgspec.Struct, frozen=True):
    """Units for an hour of a core, and for an hour of one copy of a flavor."""

    core: float = 1.0
    flavors: dict[str, float] = {}

    def an_hour(self, allocation: Allocation, parts: Alternative, nodes: Nodes) -> float:
        """What an allocation costs in an hour."""
        price, left, copies = 0.0, 0, 0
        slots = list(allocation.slots)
        for part in parts:
            mine, slots = slots[: part.copies], slots[part.copies :]
            copies += len(mine)
            known = None if part.flavor is None else self.flavors.get(part.flavor.name)
            if known is None:
                left += len(mine)
            else:
                price += known * _copies(part, mine, allocation, nodes)
        # Where only some parts have a price of their own, the rest is charged by its share of the copies.
        share = left / copies if copies else 1.0
        return price + (self.core * cores_of(allocation, nodes) * share if share else 0.0)

    def least_hour(self, parts: Alternative, nodes: Collection[ClusterNode]) -> float:
        """What an hour of an alternative costs at least, before it is known which nodes it gets."""
        price = 0.0
        for part in parts:
            known = None if part.flavor is None else self.flavors.get(part.flavor.name)
            if known is not None:
                price += known * part.copies
            else:
                pieces = part.nodes or 1
                price += self.core * pieces * min((_least_share(part, node) for node in nodes), default=0.0)
        return price


def cores_of(allocation: Allocation, nodes: Nodes) -> float:
    """How many cores are taken from others: on each node the largest share of anything it has."""
    return sum(_share(held, nodes.get(held.node)) for held in allocation.held)


def _share(held: Held, node: ClusterNode | None) -> float:
    cores = float(node.amounts.get("core", 0)) if node is not None else 0.0
    if node is None or not cores:
        return float(held.amounts.get("core", 1))
    if held.whole:
        return cores
    return _largest_share(held.amounts, node) * cores


def _least_share(part: Part, node: ClusterNode) -> float:
    """The cores that one node of a part takes from others, or all its slots where it names no nodes."""
    cores = float(node.amounts.get("core", 0))
    if not cores:
        return float(part.per_node.get("core", 1))
    return cores if part.is_whole else _largest_share(part.per_node, node) * cores


def _largest_share(amounts: Mapping[str, float], node: ClusterNode) -> float:
    shares = (amount / has for kind, amount in amounts.items() if (has := node.amounts.get(kind)))
    return max(shares, default=0.0)


def _copies(part: Part, slots: Sequence[Slot], allocation: Allocation, nodes: Nodes) -> float:
    """The copies of a part; of a node that is held as a whole, all for which there would be room."""
    whole = {held.node for held in allocation.held if held.whole}
    return sum(
        max(count, _room(part, nodes.get(name))) if name in whole else count
        for name, count in Counter(slot.node for slot in slots).items()
    )


def _room(part: Part, node: ClusterNode | None) -> int:
    has = node.amounts if node is not None else {}
    return min(
        (int(has[kind] // amount) for kind, amount in part.each.items() if amount and has.get(kind)),
        default=0,
    )


def amounts_of(allocation: Allocation) -> dict[str, float]:
    """What is held in all; `node` counts nodes."""
    amounts: dict[str, float] = {}
    for held in allocation.held:
        for kind, amount in held.amounts.items():
            amounts[kind] = amounts.get(kind, 0.0) + amount
    amounts["node"] = float(len(allocation.held))
    return amounts


def load_of(allocation: Allocation, cluster: Mapping[str, float]) -> float:
    """How many cores of the cluster count for fair shares: as many as it holds of whatever it has most of."""
    held = {kind: amount for kind, amount in amounts_of(allocation).items() if kind != "node"}
    return dominant(held, cluster) * cluster.get("core", 0.0)


def flavors_of(parts: Alternative) -> str:
    """The names of the flavors, as a shape would join them."""
    return "&".join(dict.fromkeys(part.flavor.name for part in parts if part.flavor is not None))
