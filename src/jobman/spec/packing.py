"""Packing: giving nodes to parts that need nodes of their own, and slots to the room that is left."""

from __future__ import annotations

from collections.abc import Mapping

Need = Mapping[str, int | float]


class Room:
    """Equal nodes with what is free in each; `free` None means all a node has, however much that is."""

    def __init__(self, count: int, free: Need | None, place: int = 0) -> None:
        self.count = count
        self.free = free
        self.place = place

    def holds(self, need: Need) -> int | None:
        """How often one of the nodes holds the need; None for as often as one likes."""
        if self.free is None:
            return None
        limits = [
            int(self.free[name] // amount) for name, amount in need.items() if name in self.free and amount
        ]
        return min(limits) if limits else None


def occupy(room: Room, count: int, need: Need | None, rooms: list[Room]) -> None:
    """Take nodes, as a whole or what is needed of each; the rest of them can still hold slots."""
    room.count -= count
    if need is not None and room.free is not None:
        rooms.append(Room(count, _without(room.free, need, 1), room.place))


def fill(need: Need, wanted: int, room: Room, rooms: list[Room]) -> int:
    """Put slots into equal nodes; returns how many found a place."""
    per_node = room.holds(need)
    if per_node is None or room.free is None:
        return wanted if room.count else 0
    taken = min(wanted, per_node * room.count)
    full, rest = divmod(taken, per_node) if per_node else (0, 0)
    room.count -= full + bool(rest)
    for count, slots in ((full, per_node), (int(bool(rest)), rest)):
        if count:
            rooms.append(Room(count, _without(room.free, need, slots), room.place))
    return taken


def _without(free: Need, need: Need, times: int) -> Need:
    return {name: amount - need.get(name, 0) * times for name, amount in free.items()}


def share(
    wanted: list[int], fitting: list[list[int]], counts: list[int]
) -> dict[tuple[int, int], int] | None:
    """How many nodes each part takes from each place, by augmenting paths; None where it cannot be."""
    taken: dict[tuple[int, int], int] = {}
    free = list(counts)

    def push(part: int, amount: int, seen: set[int]) -> int:
        """Find room for more nodes of a part, moving others out of the way."""
        for place in fitting[part]:
            if place in seen:
                continue
            seen.add(place)
            got = min(amount, free[place])
            if got:
                free[place] -= got
            else:
                got = move(place, amount, seen)
            if got:
                taken[part, place] = taken.get((part, place), 0) + got
                return got
        return 0

    def move(place: int, amount: int, seen: set[int]) -> int:
        for (other, where), held in list(taken.items()):
            if where == place and held and (moved := push(other, min(amount, held), seen)):
                taken[other, place] -= moved
                return moved
        return 0

    for part, need in enumerate(wanted):
        while need:
            got = push(part, need, set())
            if not got:
                return None
            need -= got
    return {key: held for key, held in taken.items() if held}
