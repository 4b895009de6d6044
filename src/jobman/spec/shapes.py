"""Shapes in normal form: parts that add up, fit into each other and can be counted. Plain values only."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import msgspec

from jobman.spec.packing import Need, Room, fill, occupy, share
from jobman.spec.quantities import format_size

MAX_AMOUNT = 2**62
SIZED_TYPES = ("memory", "storage")
Amount = int | float
_ASKED_FOR_OR_ABSENT = frozenset(("core", "memory", "storage", "socket"))
"""Types a parent that does not mention them may still have."""


class Flavor(msgspec.Struct, frozen=True, omit_defaults=True):
    """The flavor a part came from, with its requests and limits as the site wrote them."""

    name: str
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Equal nodes, or equal slots wherever there is room.

    `each` is what one slot holds, or one node where no slot was asked for; `beside` is what a node holds
    beside its slots; `within` are a site's own levels around the nodes, the outermost first.
    """

    nodes: int | None = None
    slots: int = 0
    each: dict[str, Amount] = {}
    beside: dict[str, Amount] = {}
    exclusive: bool = False
    within: tuple[tuple[str, int], ...] = ()
    requires: dict[str, str] = {}
    flavor: Flavor | None = None

    @property
    def copies(self) -> int:
        """One per slot; without a slot, one per node."""
        return (self.nodes or 1) * (self.slots or 1)

    @property
    def per_node(self) -> dict[str, Amount]:
        """What one node must hold; of a part without nodes, what all of it needs."""
        held = {name: amount * (self.slots or 1) for name, amount in self.each.items()}
        for name, amount in self.beside.items():
            held[name] = held.get(name, 0) + amount
        return held

    @property
    def is_whole(self) -> bool:
        """Whether it takes nodes as a whole: asked for, or nothing was said of what is in them."""
        return self.nodes is not None and (self.exclusive or not self.per_node)


Alternative = tuple[Part, ...]
Alternatives = tuple[Alternative, ...]


class Totals(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an alternative adds up to."""

    nodes: int
    copies: int
    amounts: dict[str, Amount] = {}


def totals(parts: Alternative) -> Totals:
    """Nodes, copies and amounts of an alternative."""
    amounts: dict[str, Amount] = {}
    for part in parts:
        for name, amount in part.per_node.items():
            amounts[name] = amounts.get(name, 0) + amount * (part.nodes or 1)
    return Totals(sum(part.nodes or 0 for part in parts), sum(part.copies for part in parts), amounts)


def copies(parts: Alternative) -> int:
    return sum(part.copies for part in parts)


def add(alternatives: Iterable[Alternative]) -> Alternative:
    """The sum: equal parts are joined, others stand side by side."""
    joined: dict[tuple[object, ...], Part] = {}
    for parts in alternatives:
        for part in parts:
            key = _kin(part) if part.nodes is not None or not part.beside else (len(joined),)
            known = joined.get(key)
            joined[key] = part if known is None else _joined(known, part)
    return tuple(joined.values())


def _kin(part: Part) -> tuple[object, ...]:
    """What two parts must share to be joined by adding their counts."""
    counted = part.slots if part.nodes is not None else None
    return (
        None if part.nodes is None else part.nodes // levels(part.within) if part.within else True,
        counted,
        _frozen(part.each),
        _frozen(part.beside),
        part.exclusive,
        tuple(name for name, _ in part.within),
        tuple(count for _, count in part.within[1:]),
        _frozen(part.requires),
        part.flavor.name if part.flavor else None,
    )


def _joined(one: Part, other: Part) -> Part:
    if one.nodes is None or other.nodes is None:
        return msgspec.structs.replace(one, slots=(one.slots or 1) + (other.slots or 1))
    within = one.within
    if within:
        # Two times two racks are four racks: the outermost level grows.
        (name, count), *rest = within
        within = ((name, count + other.within[0][1]), *rest)
    return msgspec.structs.replace(one, nodes=one.nodes + other.nodes, within=within)


def _frozen(mapping: dict[str, Amount] | dict[str, str]) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(mapping.items()))


def misfit(child: Alternative, parent: Alternative) -> str | None:
    """Why a child does not fit into its parent, in words; None where it does."""
    nodes = [part for part in parent if part.nodes is not None]
    rooms = [Room(part.nodes or 0, None if part.is_whole else part.per_node) for part in nodes]
    if reason := _take_nodes([part for part in child if part.nodes is not None], rooms):
        return reason
    rooms += [Room(1, part.per_node) for part in parent if part.nodes is None]
    reasons = (_take_slots(part, rooms) for part in child if part.nodes is None)
    return next(filter(None, reasons), None)


def _take_nodes(parts: list[Part], rooms: list[Room]) -> str | None:
    """Give every part nodes of its own, or say what is missing."""
    fitting = []
    for part in parts:
        need = {} if part.is_whole and not part.each else part.per_node
        lacks = [_lacking(need, room.free) for room in rooms]
        places = [number for number, lack in enumerate(lacks) if not lack]
        available = sum(rooms[number].count for number in places)
        if available < (part.nodes or 0):
            nothing = next(filter(None, lacks), "") if not available else ""
            return nothing or f"it needs {_count(part.nodes or 0, 'node')}, and there {_are(available)}"
        fitting.append(places)
    shares = share([part.nodes or 0 for part in parts], fitting, [room.count for room in rooms])
    if shares is None:
        return "its parts need the same nodes"
    for (number, position), taken in shares.items():
        part = parts[number]
        occupy(rooms[position], taken, None if part.is_whole else part.per_node, rooms)
    return None


def _take_slots(part: Part, rooms: list[Room]) -> str | None:
    if not rooms:
        return "there are no nodes to take it from"
    wanted = left = part.slots or 1
    lack = ""
    for room in list(rooms):
        if missing := _lacking(part.each, room.free):
            lack = missing
        else:
            left -= fill(part.each, left, room, rooms)
    if not left:
        return None
    if lack and left == wanted:
        return lack
    return f"it needs {_count(wanted, 'slot')}, and there is room for {wanted - left}"


def _lacking(need: dict[str, Amount], room: Need | None) -> str:
    if room is None:
        return ""
    for name, amount in need.items():
        if name not in room:
            if name not in _ASKED_FOR_OR_ABSENT:
                return f"it needs {_count(amount, name)} on a node, and there is none"
        elif room[name] < amount:
            return f"it needs {_count(amount, name)} on a node, and there {_are(room[name], name)}"
    return ""


def _count(amount: float, name: str) -> str:
    if name in SIZED_TYPES:
        return f"{format_size(amount)} of {name}"
    return f"{amount:g} {name}{'' if amount == 1 else 's'}"


def _are(amount: float, name: str = "") -> str:
    if not amount:
        return "are none"
    if name in SIZED_TYPES:
        return f"is {format_size(amount)}"
    return "is 1" if amount == 1 else f"are {amount:g}"


def levels(within: tuple[tuple[str, int], ...]) -> int:
    return prod(count for _, count in within)
