"""Where the copies may go beyond what their shape says: a placement, with the nodes it speaks of."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.spec.placement import Placement, Relation


class Neighbours(msgspec.Struct, frozen=True, omit_defaults=True):
    """Copies to be near to or apart from: their nodes, and whether copies of the same task are meant.

    Where there are no such copies yet, there is nothing to be near to.
    """

    nodes: tuple[str, ...] = ()
    by: str = "node"
    required: bool = True
    own: bool = False


class Evenly(msgspec.Struct, frozen=True, omit_defaults=True):
    """Copies are divided over a topology level; `placed` has the node of each copy that is there already.

    What a shape keeps on one node cannot be divided: the difference may be as large as that.
    """

    by: str
    skew: int = 1
    required: bool = True
    placed: tuple[str, ...] = ()


class Wishes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a placement asks for. `exclusive` nodes are held as a whole, and must be empty before."""

    labels: dict[str, str] = {}
    exclusive: bool = False
    near: Neighbours | None = None
    apart: Neighbours | None = None
    spread: Evenly | None = None

    @property
    def lasting(self) -> Wishes:
        """The wishes without what is so only now: where other copies are."""
        return msgspec.structs.replace(
            self,
            near=_without_nodes(self.near),
            apart=_without_nodes(self.apart),
            spread=msgspec.structs.replace(self.spread, placed=()) if self.spread else None,
        )


NO_WISHES = Wishes()


def wishes_for(placement: Placement | None, unit: str, where: Mapping[str, Collection[str]]) -> Wishes:
    """The wishes of a unit; `where` has, by unit, the node of each copy that holds resources now."""
    if placement is None:
        return NO_WISHES
    return Wishes(
        placement.labels,
        placement.exclusive,
        _neighbours(placement.near, unit, where),
        _neighbours(placement.apart, unit, where),
        None
        if placement.spread is None
        else Evenly(
            placement.spread.by, placement.spread.skew, placement.spread.required, tuple(where.get(unit, ()))
        ),
    )


def _neighbours(
    relation: Relation | None, unit: str, where: Mapping[str, Collection[str]]
) -> Neighbours | None:
    if relation is None:
        return None
    tasks = relation.tasks or (unit,)
    nodes = dict.fromkeys(node for task in tasks for node in where.get(task, ()))
    return Neighbours(tuple(nodes), relation.by, relation.required, unit in tasks)


def _without_nodes(neighbours: Neighbours | None) -> Neighbours | None:
    if neighbours is None or not neighbours.own:
        return None
    return msgspec.structs.replace(neighbours, nodes=())


def domain(node: ClusterNode, level: str) -> str | None:
    """Where a node is on a topology level: its own name, or what a fact or a label of that name says."""
    if level == "node":
        return node.name
    return node.facts.get(level, node.labels.get(level))
