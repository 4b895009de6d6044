"""Which nodes could take a unit, and what rules the others out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.plan.wording import describe_part, format_amount
from jobman.spec.packing import Room, fill, occupy, share
from jobman.spec.shapes import Amount, Part

FORGIVEN = "socket"
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
    """One part of an alternative against the nodes; `room` is how many of its nodes or slots there are."""

    wanted: str
    nodes: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    room: int
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
    kinds = _kinds(nodes)
    return [_match(unit, kinds) for unit in plan.units if unit.alternatives]


class _Nodes(NamedTuple):
    """Equal nodes, by one of them."""

    like: ClusterNode
    names: list[str]


def _kinds(nodes: Sequence[ClusterNode]) -> list[_Nodes]:
    """Nodes that differ in their names only are looked at once."""
    kinds: dict[bytes, _Nodes] = {}
    for node in nodes:
        key = msgspec.json.encode((node.amounts, node.facts, node.labels), order="deterministic")
        kinds.setdefault(key, _Nodes(node, [])).names.append(node.name)
    return list(kinds.values())


def _match(unit: Unit, kinds: list[_Nodes]) -> Match:
    labels = unit.policies.placement.labels if unit.policies.placement else {}
    alternatives = tuple(_alternative(parts, kinds, labels) for parts in unit.alternatives)
    chosen = next((number for number, found in enumerate(alternatives) if found.satisfied), None)
    return Match(unit.id, unit.kind, alternatives, chosen)


def _alternative(parts: tuple[Part, ...], kinds: list[_Nodes], labels: dict[str, str]) -> AlternativeMatch:
    obstacles = [[_obstacle(kind.like, part, labels) for kind in kinds] for part in parts]
    matches = [_part(part, kinds, found) for part, found in zip(parts, obstacles, strict=True)]
    together = all(match.enough for match in matches) and _together(parts, kinds, obstacles)
    return AlternativeMatch(tuple(matches), together)


_Found = tuple[str, str, str, str] | None


def _part(part: Part, kinds: list[_Nodes], found: list[_Found]) -> PartMatch:
    fitting = [kind for kind, obstacle in zip(kinds, found, strict=True) if obstacle is None]
    ruled_out: dict[tuple[str, str, str, str], list[str]] = {}
    for kind, obstacle in zip(kinds, found, strict=True):
        if obstacle is not None:
            ruled_out.setdefault(obstacle, []).extend(kind.names)
    room = sum(len(kind.names) * _per_node(part, kind.like.amounts) for kind in fitting)
    return PartMatch(
        describe_part(part),
        tuple(name for kind in fitting for name in kind.names),
        tuple(Obstacle(*key, tuple(names)) for key, names in ruled_out.items()),  # type: ignore[arg-type]
        room,
        room >= piece_of(part).wanted,
    )


class Piece(NamedTuple):
    """What of a part goes to one node: what it needs there, how often it is wanted, and its copies."""

    need: dict[str, Amount]
    wanted: int
    copies: int


def piece_of(part: Part) -> Piece:
    """A node with its slots, or a slot; slots that share something beside them go to one node together."""
    if part.nodes is not None:
        return Piece(part.per_node, part.nodes, part.slots or 1)
    if part.beside:
        return Piece(part.per_node, 1, part.slots or 1)
    return Piece(part.each, part.slots or 1, 1)


def _per_node(part: Part, has: dict[str, Amount]) -> int:
    """How many of its nodes or slots a node holds; without a need it holds as many as are asked for."""
    if part.nodes is not None:
        return 1
    need, wanted, _ = piece_of(part)
    held = Room(1, has).holds(need)
    return wanted if held is None else held


def _together(parts: tuple[Part, ...], kinds: list[_Nodes], obstacles: list[list[_Found]]) -> bool:
    """Whether all parts can be had at once: nodes of their own first, then slots in what is left."""
    fitting = [[number for number, found in enumerate(row) if found is None] for row in obstacles]
    whole = [number for number, part in enumerate(parts) if part.nodes is not None]
    counts = [len(kind.names) for kind in kinds]
    shares = share([parts[n].nodes or 0 for n in whole], [fitting[n] for n in whole], counts)
    if shares is None:
        return False
    rooms = [Room(len(kind.names), kind.like.amounts, place) for place, kind in enumerate(kinds)]
    for (position, place), taken in shares.items():
        part = parts[whole[position]]
        occupy(rooms[place], taken, None if part.is_whole else part.per_node, rooms)
    return all(
        _has_room(part, set(fitting[number]), rooms)
        for number, part in enumerate(parts)
        if part.nodes is None
    )


def _has_room(part: Part, places: set[int], rooms: list[Room]) -> bool:
    """Put the slots of a part into the rooms it may use."""
    need, left, _ = piece_of(part)
    for room in list(rooms):
        if room.place in places:
            left -= fill(need, left, room, rooms)
    return not left


def mismatch(node: ClusterNode, requires: dict[str, str], labels: dict[str, str]) -> _Found:
    """The first fact or label that rules a node out: its kind, its key, what is wanted and what is found."""
    for key, wanted in requires.items():
        found = node.facts.get(key, node.labels.get(key, ""))
        if found != wanted:
            return "fact", key, wanted, found
    for key, wanted in labels.items():
        if node.labels.get(key) != wanted:
            return "label", key, wanted, node.labels.get(key, "")
    return None


def _obstacle(node: ClusterNode, part: Part, labels: dict[str, str]) -> _Found:
    if untrue := mismatch(node, part.requires, labels):
        return untrue
    for key, amount in piece_of(part).need.items():
        if key == FORGIVEN and key not in node.amounts:
            continue
        if node.amounts.get(key, 0) < amount:
            there = node.amounts.get(key)
            return "resource", key, format_amount(key, amount), format_amount(key, there) if there else ""
    return None
