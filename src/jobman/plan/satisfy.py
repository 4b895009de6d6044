"""Which nodes could take a unit, and what rules the others out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.spec.quantities import format_size
from jobman.spec.shapes import Amount, Part

_SIZED = ("memory", "storage")
_FORGIVEN = "socket"
"""A node that does not say how many sockets it has is not ruled out by them."""


class Obstacle(msgspec.Struct, frozen=True):
    """Why some nodes are ruled out: a fact, a label or a resource."""

    kind: Literal["fact", "label", "resource"]
    key: str
    wanted: str
    found: str
    nodes: tuple[str, ...]

    @property
    def words(self) -> str:
        if self.kind == "resource":
            return f"{self.key}: {self.wanted} needed, {self.found or 'none'} there"
        return (
            f"{self.key} is {self.found}, not {self.wanted}"
            if self.found
            else f"{self.key} is not known ({self.wanted} is required)"
        )


class PartMatch(msgspec.Struct, frozen=True):
    """One part of an alternative against the nodes."""

    wanted: str
    nodes: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    enough: bool


class AlternativeMatch(msgspec.Struct, frozen=True):
    parts: tuple[PartMatch, ...]
    satisfied: bool


class Match(msgspec.Struct, frozen=True):
    """A unit against the nodes; `chosen` is the first alternative that can be had."""

    unit: str
    kind: str
    alternatives: tuple[AlternativeMatch, ...]
    chosen: int | None

    @property
    def satisfied(self) -> bool:
        return self.chosen is not None


def satisfy(plan: Plan, nodes: Sequence[ClusterNode]) -> list[Match]:
    """Every unit that needs nodes, in the order of the plan."""
    return [_match(unit, nodes) for unit in plan.units if unit.alternatives]


def _match(unit: Unit, nodes: Sequence[ClusterNode]) -> Match:
    labels = unit.policies.placement.labels if unit.policies.placement else {}
    alternatives = tuple(_alternative(parts, nodes, labels) for parts in unit.alternatives)
    chosen = next((number for number, found in enumerate(alternatives) if found.satisfied), None)
    return Match(unit.id, unit.kind, alternatives, chosen)


def _alternative(
    parts: tuple[Part, ...], nodes: Sequence[ClusterNode], labels: dict[str, str]
) -> AlternativeMatch:
    matches = [_part(part, nodes, labels) for part in parts]
    demands = [
        (part.nodes or 0, set(match.nodes)) for part, match in zip(parts, matches, strict=True) if part.nodes
    ]
    together = all(match.enough for match in matches) and _distinct(demands)
    return AlternativeMatch(tuple(matches), together)


def _distinct(demands: list[tuple[int, set[str]]]) -> bool:
    """Whether parts can have nodes of their own: any choice of them needs no more nodes than it can use."""
    if len(demands) > 12:
        demands = sorted(demands, key=lambda d: len(d[1]))[:12]
    for choice in range(1, 1 << len(demands)):
        chosen = [demand for number, demand in enumerate(demands) if choice >> number & 1]
        if sum(count for count, _ in chosen) > len(set().union(*(names for _, names in chosen))):
            return False
    return True


def _part(part: Part, nodes: Sequence[ClusterNode], labels: dict[str, str]) -> PartMatch:
    need = part.per_node if part.nodes is not None else part.each
    fitting: list[ClusterNode] = []
    obstacles: dict[tuple[str, str, str, str], list[str]] = {}
    for node in nodes:
        found = _obstacle(node, part, need, labels)
        if found is None:
            fitting.append(node)
        else:
            obstacles.setdefault(found, []).append(node.name)
    return PartMatch(
        describe_part(part),
        tuple(node.name for node in fitting),
        tuple(Obstacle(*key, tuple(names)) for key, names in obstacles.items()),  # type: ignore[arg-type]
        _room(part, fitting),
    )


def _room(part: Part, nodes: list[ClusterNode]) -> bool:
    if part.nodes is not None:
        return len(nodes) >= part.nodes
    return sum(_times(part.each, node.amounts) for node in nodes) >= (part.slots or 1)


def _times(need: dict[str, Amount], has: dict[str, Amount]) -> int:
    """How many slots a node holds; without a need it holds as many as are asked for."""
    limits = [int(has[name] // amount) for name, amount in need.items() if amount and name in has]
    return min(limits) if limits else 10**9


def _obstacle(
    node: ClusterNode, part: Part, need: dict[str, Amount], labels: dict[str, str]
) -> tuple[str, str, str, str] | None:
    for key, wanted in part.requires.items():
        if node.facts.get(key, node.labels.get(key)) != wanted:
            return "fact", key, wanted, node.facts.get(key, "")
    for key, wanted in labels.items():
        if node.labels.get(key) != wanted:
            return "label", key, wanted, node.labels.get(key, "")
    for key, amount in need.items():
        if key == _FORGIVEN and key not in node.amounts:
            continue
        if node.amounts.get(key, 0) < amount:
            found = node.amounts.get(key)
            return "resource", key, format_amount(key, amount), format_amount(key, found) if found else ""
    return None


def format_amount(key: str, amount: Amount) -> str:
    return format_size(amount) if key in _SIZED else f"{amount:g}"


def describe_amounts(amounts: dict[str, Amount]) -> str:
    """`4 cores, 1 gpu, 2Gi memory`."""
    return ", ".join(
        f"{format_amount(key, amount)} {key}{'' if amount == 1 or key in _SIZED else 's'}"
        for key, amount in amounts.items()
    )


def describe_part(part: Part) -> str:
    """`4 nodes, each 2 slots of 4 core`, as a person would say it."""
    held = describe_amounts(part.each)
    if part.slots:
        held = f"{part.slots} slot{'s' if part.slots > 1 else ''}" + (f" of {held}" if held else "")
    if part.beside:
        held += f" and {describe_amounts(part.beside)}"
    if part.nodes is None:
        return held or "room for one copy"
    count = f"{part.nodes} node{'s' if part.nodes > 1 else ''}"
    within = "".join(f" in {n} {name}" for name, n in part.within)
    whole = " (whole)" if part.is_whole else ""
    return f"{count}{within}{whole}" + (f", each {held}" if held else "")
