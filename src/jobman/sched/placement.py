"""Placing shapes on nodes: which nodes, which of their cores and GPUs, in which rank order.

```
 alternatives ──▶ the first with room ──▶ nodes of their own ──▶ slots in what is left ──▶ allocation
                                                  ▲                        ▲
                         wishes narrow or order the nodes: labels, near, apart, spread, exclusive
```

Nodes are taken in the order they were given, so that small jobs fill up nodes that are in use. A site's own
levels around nodes (racks in a shape) are not looked at: an engine that places here refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import FORGIVEN, Piece, mismatch, piece_of
from jobman.sched.allocation import Allocation, Held, Slot
from jobman.sched.balance import Balance
from jobman.sched.capacity import Capacity, PlacementError, Units, merge, sum_units, to_amount
from jobman.sched.openings import Column, Need, Openings
from jobman.sched.shortage import Wanted, shortage
from jobman.sched.wishes import NO_WISHES, Evenly, Neighbours, Wishes, domain, wishes_for
from jobman.spec.packing import share
from jobman.spec.shapes import Alternative, Alternatives, Amount, Part

__all__ = [
    "NO_WISHES",
    "Allocation",
    "Evenly",
    "Held",
    "Neighbours",
    "PlacementError",
    "Pool",
    "Slot",
    "Wishes",
    "wishes_for",
]

_OPEN, _EMPTY = "is open", "is empty"
_ENDLESS = 1 << 80
_MOST_ELIGIBLE = 64
_FORGIVEN_INSIDE = (FORGIVEN, "core", "memory", "storage")
"""A group that says nothing of these holds none, and yet its tasks may ask for them: `misfit` lets them."""

Places = dict[int, int]
"""How many pieces go to which position, in order."""


class Pool:
    """The free capacity of nodes. The same calls in the same order give the same allocations."""

    def __init__(self, nodes: Iterable[ClusterNode]) -> None:
        self._start([Capacity.of(node) for node in nodes], (FORGIVEN,), inside=False)

    @classmethod
    def within(cls, allocation: Allocation, nodes: Iterable[ClusterNode]) -> Pool:
        """What a group's allocation holds, for placing its tasks inside it: same nodes, cores and GPUs.

        A whole node in here is all that the group holds of it, and nobody else is there to be kept away.
        """
        wanted = {held.node for held in allocation.held}
        known = {node.name: node for node in nodes if node.name in wanted}
        if missing := wanted - known.keys():
            raise PlacementError(f"{', '.join(sorted(missing))}: no such node")
        pool = cls(())
        capacities = [Capacity.of_held(known[held.node], held) for held in allocation.held]
        pool._start(capacities, _FORGIVEN_INSIDE, inside=True)
        return pool

    def _start(self, capacities: list[Capacity], forgiven: tuple[str, ...], *, inside: bool) -> None:
        self._capacities = capacities
        self._forgiven = forgiven
        self._inside = inside
        self._positions = {each.node.name: number for number, each in enumerate(capacities)}
        if len(self._positions) < len(capacities):
            raise PlacementError("two nodes have the same name")
        self._known = {each.node.name: each.node for each in capacities}
        self._openings = Openings(len(capacities))
        self._openings.add(_OPEN, [int(not each.whole) for each in capacities])
        self._openings.add(_EMPTY, [int(not each.holders) for each in capacities])
        self._eligible: dict[tuple[object, ...], Column] = {}
        self._unused: Pool | None = None

    # -- nodes that come and change --------------------------------------------------------------------------

    def add(self, node: ClusterNode) -> None:
        """One more node, behind all others."""
        self._renewed([*self._capacities, Capacity.of(node)])

    def change(self, node: ClusterNode) -> None:
        """A node has more or less than before, or something else is true of it."""
        self._capacities[self._at(node.name)].change(node)
        self._renewed(self._capacities)

    def _renewed(self, capacities: list[Capacity]) -> None:
        self._start(capacities, self._forgiven, inside=self._inside)

    def set_foreign(self, name: str, amounts: Mapping[str, Amount]) -> None:
        """What others use of a node: it is not given away. What could ever be had does not depend on it."""
        position = self._at(name)
        capacity = self._capacities[position]
        capacity.set_foreign(amounts)
        for kind, units in capacity.free.items():
            self._openings.put(kind, position, units)

    # -- what a caller asks ---------------------------------------------------------------------------------

    def place(self, alternatives: Alternatives, wishes: Wishes = NO_WISHES) -> Allocation | None:
        """Take the first alternative that there is room for now; None where there is none."""
        for number, parts in enumerate(alternatives):
            found = self._place(parts, wishes)
            if found is not None:
                return Allocation(number, *found)
        return None

    def settle(
        self, number: int, parts: Alternative, places: Sequence[Mapping[str, int]], wishes: Wishes = NO_WISHES
    ) -> Allocation:
        """Take an alternative exactly where somebody has planned it: for each part, pieces by node."""
        arrangement = _Arrangement(len(parts))
        try:
            for at, (part, where) in enumerate(zip(parts, places, strict=True)):
                search = self._search(part, wishes, None)
                self._seat(search, {self._at(name): count for name, count in where.items()}, at, arrangement)
        except PlacementError:
            self._release(arrangement.pieces)
            raise
        return Allocation(number, *self._settle(arrangement, exclusive=wishes.exclusive and not self._inside))

    def could_ever(self, alternatives: Alternatives, wishes: Wishes = NO_WISHES) -> bool:
        """Whether there would be room if nothing else ran; where other copies are now does not count."""
        return any(self._empty.fits_now(parts, wishes.lasting) for parts in alternatives)

    def fits_now(self, parts: Alternative, wishes: Wishes = NO_WISHES) -> bool:
        found = self._place(parts, wishes)
        if found is not None:
            self._release(found[0])
        return found is not None

    def take(self, allocation: Allocation) -> None:
        """Take what an allocation says, all of it or nothing; for bringing a pool back to where it was."""
        taken: list[Held] = []
        try:
            for held in allocation.held:
                self._hold(self._position(held), held)
                taken.append(held)
        except PlacementError:
            self._release(taken)
            raise

    def give_back(self, allocation: Allocation) -> None:
        """Free what an allocation holds, all of it or nothing."""
        given: list[Held] = []
        try:
            for held in allocation.held:
                self._position(held)
                self._release((held,))
                given.append(held)
        except PlacementError:
            for held in given:
                self._hold(self._positions[held.node], held)
            raise

    def free(self) -> dict[str, dict[str, Amount]]:
        """What is free now, by node."""
        return {each.node.name: _amounts(each.free) for each in self._capacities}

    @property
    def capacity(self) -> dict[str, dict[str, Amount]]:
        """What there is in all, by node."""
        return {each.node.name: _amounts(each.total) for each in self._capacities}

    def why_not(self, alternatives: Alternatives, wishes: Wishes = NO_WISHES) -> str:
        """Why there is no room, in words: what is short, by how much and where; and whether for ever."""
        reasons = [self._why_not(parts, wishes) for parts in alternatives]
        if len(reasons) == 1:
            return reasons[0]
        return "; ".join(f"alternative {number}: {words}" for number, words in enumerate(reasons, 1))

    # -- placing --------------------------------------------------------------------------------------------

    def _place(self, parts: Alternative, wishes: Wishes) -> tuple[tuple[Held, ...], tuple[Slot, ...]] | None:
        """Find room for all parts at once and take it."""
        for ground in self._grounds(wishes):
            arrangement = self._arrange(parts, wishes, ground)
            if arrangement is None and _mixed(parts):
                arrangement = self._arrange(parts, wishes, self._tightest_first(parts, ground), fussy=True)
            if arrangement is not None:
                exclusive = wishes.exclusive and not self._inside
                return self._settle(arrangement, exclusive=exclusive)
        return None

    def _arrange(
        self, parts: Alternative, wishes: Wishes, ground: Sequence[int] | None, *, fussy: bool = False
    ) -> _Arrangement | None:
        """Nodes of their own first, then slots in what is left; `fussy` parts choose first."""
        searches = [self._search(part, wishes, ground) for part in parts]
        balance = Balance(wishes, self._known)
        arrangement = _Arrangement(len(parts))
        own = [number for number, part in enumerate(parts) if part.nodes is not None]
        shares = self._nodes_of_their_own([searches[number] for number in own], balance)
        if shares is None:
            return None
        for number, places in zip(own, shares, strict=True):
            self._seat(searches[number], places, number, arrangement)
        rest = [number for number, part in enumerate(parts) if part.nodes is None]
        if fussy:
            rest.sort(key=lambda number: sum(1 for _ in self._candidates(searches[number])))
        for number in rest:
            chosen = self._choose(searches[number], balance)
            if chosen is None:
                self._release(arrangement.pieces)
                return None
            self._seat(searches[number], chosen, number, arrangement)
        return arrangement

    def _nodes_of_their_own(self, searches: list[_Search], balance: Balance) -> list[Places] | None:
        if len(searches) > 1 and not balance.matters:
            return self._shared_out(searches)
        found: list[Places] = []
        taken: set[int] = set()
        for search in searches:
            chosen = self._choose(search, balance, taken)
            if chosen is None:
                return None
            found.append(chosen)
            taken.update(chosen)
        return found

    def _shared_out(self, searches: list[_Search]) -> list[Places] | None:
        """Several parts compete for nodes: nodes that suit the same parts are equal in this."""
        suits: dict[int, int] = {}
        for number, search in enumerate(searches):
            for position in self._candidates(search):
                suits[position] = suits.get(position, 0) | 1 << number
        kinds: dict[int, list[int]] = {}
        for position in self._in_order(suits, searches[0].ground):
            kinds.setdefault(suits[position], []).append(position)
        fitting = [
            [place for place, kind in enumerate(kinds) if kind >> number & 1]
            for number in range(len(searches))
        ]
        wanted = [search.piece.wanted for search in searches]
        shares = share(wanted, fitting, [len(positions) for positions in kinds.values()])
        if shares is None:
            return None
        left = [iter(positions) for positions in kinds.values()]
        found: list[Places] = [{} for _ in searches]
        for (number, place), count in sorted(shares.items()):
            found[number].update((next(left[place]), 1) for _ in range(count))
        return [dict.fromkeys(self._in_order(places, searches[0].ground), 1) for places in found]

    def _in_order(self, positions: Iterable[int], ground: Sequence[int] | None) -> list[int]:
        if ground is None:
            return sorted(positions)
        rank = {position: number for number, position in enumerate(ground)}
        return sorted(positions, key=rank.__getitem__)

    def _choose(self, search: _Search, balance: Balance, taken: Iterable[int] = ()) -> Places | None:
        """The first places with enough room between them, or those that keep the balance."""
        if balance.matters:
            return self._balanced(search, balance, taken)
        found: Places = {}
        left = search.piece.wanted
        for position in self._candidates(search):
            if position not in taken:
                found[position] = min(left, self._room(search, position))
                left -= found[position]
                if not left:
                    return found
        return None

    def _balanced(self, search: _Search, balance: Balance, taken: Iterable[int]) -> Places | None:
        rooms = {
            position: (self._capacities[position].node, self._room(search, position))
            for position in self._candidates(search)
            if position not in taken
        }
        positions = search.ground if search.ground is not None else range(len(self._capacities))
        nodes = [self._capacities[position].node for position in positions]
        suited = [node for node in nodes if mismatch(node, search.part.requires, search.labels) is None]
        return balance.divide(rooms, search.piece.wanted, search.piece.copies, suited)

    def _room(self, search: _Search, position: int) -> int:
        if search.part.nodes is not None:
            return 1
        held = self._capacities[position].holds(search.units)
        return search.piece.wanted if held is None else held

    def _seat(self, search: _Search, places: Places, number: int, arrangement: _Arrangement) -> None:
        part = search.part
        for position, count in places.items():
            slots, held = self._capacities[position].seat(
                part.each, count * search.piece.copies, part.beside, whole=part.is_whole
            )
            self._hold(position, held)
            arrangement.pieces.append(held)
            arrangement.slots[number].extend(slots)

    def _settle(
        self, arrangement: _Arrangement, *, exclusive: bool
    ) -> tuple[tuple[Held, ...], tuple[Slot, ...]]:
        """One holding for each node, in the order of the slots; exclusive ones grow to the whole node."""
        slots = tuple(slot for part in arrangement.slots for slot in part)
        holdings: dict[str, Held] = {slot.node: Held(slot.node) for slot in slots}
        for held in arrangement.pieces:
            holdings[held.node] = held if held.whole else merge(holdings[held.node], held)
        if exclusive:
            holdings = {name: self._capacities[self._positions[name]].everything() for name in holdings}
        settled = tuple(holdings.values())
        if exclusive or len(settled) < len(arrangement.pieces):
            self._release(arrangement.pieces)
            for held in settled:
                self._hold(self._positions[held.node], held)
        return settled, slots

    # -- finding nodes --------------------------------------------------------------------------------------

    def _search(self, part: Part, wishes: Wishes, ground: Sequence[int] | None) -> _Search:
        piece = piece_of(part)
        units = sum_units(part.each, piece.copies, part.beside)
        need = [(self._openings[_EMPTY if part.is_whole else _OPEN], 1)]
        need.extend((self._column(kind), least) for kind, least in units.items())
        if part.requires or wishes.labels:
            need.append((self._suited(part.requires, wishes.labels), 1))
        return _Search(part, piece, units, need, ground, wishes.labels)

    def _candidates(self, search: _Search) -> Iterator[int]:
        """The positions that have room for one piece, in order."""
        if search.ground is not None:
            yield from (at for at in search.ground if self._openings.fits(search.need, at))
            return
        position = self._openings.first(search.need)
        while position is not None:
            yield position
            position = self._openings.first(search.need, position + 1)

    def _column(self, kind: str) -> Column:
        if kind in self._openings:
            return self._openings[kind]
        missing = _ENDLESS if kind in self._forgiven else 0
        return self._openings.add(kind, [each.free.get(kind, missing) for each in self._capacities])

    def _suited(self, requires: dict[str, str], labels: dict[str, str]) -> Column:
        """Nodes by what is true of them, looked at once for each set of facts and labels."""
        key = (*sorted(requires.items()), "", *sorted(labels.items()))
        if key not in self._eligible:
            if len(self._eligible) >= _MOST_ELIGIBLE:
                self._eligible.clear()
            suited = [int(mismatch(each.node, requires, labels) is None) for each in self._capacities]
            self._eligible[key] = Openings(len(suited)).add("", suited)
        return self._eligible[key]

    def _tightest_first(self, parts: Alternative, ground: Sequence[int] | None) -> list[int]:
        """Nodes with the least of what is asked for, so that others keep theirs."""
        kinds = sorted({kind for part in parts for kind in part.per_node})
        positions = range(len(self._capacities)) if ground is None else ground
        return sorted(positions, key=lambda at: [self._capacities[at].free.get(kind, 0) for kind in kinds])

    def _grounds(self, wishes: Wishes) -> Iterator[Sequence[int] | None]:
        """The nodes to try, in order of preference, one choice after the other; None for all as they are."""
        exclusive = wishes.exclusive and not self._inside
        if not exclusive and wishes.near is None and (wishes.apart is None or not wishes.apart.nodes):
            yield None
            return
        ground = [at for at, each in enumerate(self._capacities) if not (exclusive and each.holders)]
        ground = self._related(ground, wishes.apart, welcome=False)
        ground = self._related(ground, wishes.near, welcome=True)
        near = wishes.near
        if near is not None and near.own:
            yield from self._one_domain_each(ground, near.by)
        if near is None or not near.own or not near.required:
            yield ground

    def _related(self, ground: list[int], to: Neighbours | None, *, welcome: bool) -> list[int]:
        """Nodes in (or out of) the domains of the others; where it is a wish only, the rest comes after."""
        if to is None or not to.nodes:
            return ground
        theirs = {domain(self._known[name], to.by) for name in to.nodes if name in self._known} - {None}
        good: list[int] = []
        bad: list[int] = []
        for at in ground:
            is_there = domain(self._capacities[at].node, to.by) in theirs
            (good if is_there is welcome else bad).append(at)
        return good if to.required else good + bad

    def _one_domain_each(self, ground: list[int], level: str) -> Iterator[list[int]]:
        domains: dict[str, list[int]] = {}
        for at in ground:
            place = domain(self._capacities[at].node, level)
            if place is not None:
                domains.setdefault(place, []).append(at)
        yield from domains.values()

    # -- holding --------------------------------------------------------------------------------------------

    def _position(self, held: Held) -> int:
        return self._at(held.node)

    def _at(self, name: str) -> int:
        try:
            return self._positions[name]
        except KeyError:
            raise PlacementError(f"{name}: no such node") from None

    def _hold(self, position: int, held: Held) -> None:
        self._capacities[position].hold(held)
        self._changed(position, held)

    def _release(self, holdings: Iterable[Held]) -> None:
        for held in holdings:
            position = self._positions[held.node]
            self._capacities[position].release(held)
            self._changed(position, held)

    def _changed(self, position: int, held: Held) -> None:
        capacity = self._capacities[position]
        for kind in held.amounts:
            self._openings.put(kind, position, capacity.free[kind])
        self._openings.put(_OPEN, position, int(not capacity.whole))
        self._openings.put(_EMPTY, position, int(not capacity.holders))

    # -- saying why -----------------------------------------------------------------------------------------

    @property
    def _empty(self) -> Pool:
        """The same nodes with nothing on them."""
        if self._unused is None:
            self._unused = Pool(())
            capacities = [each.emptied() for each in self._capacities]
            self._unused._start(capacities, self._forgiven, inside=self._inside)
        return self._unused

    def _why_not(self, parts: Alternative, wishes: Wishes) -> str:
        if not self._empty.fits_now(parts, wishes.lasting):
            words = self._empty._what_is_short(parts, wishes.lasting, now=False)
            return f"never, even when everything is free: {words}"
        if self.fits_now(parts, wishes):
            return "there is room now"
        return f"not now: {self._what_is_short(parts, wishes, now=True)}"

    def _what_is_short(self, parts: Alternative, wishes: Wishes, *, now: bool) -> str:
        exclusive = wishes.exclusive and not self._inside
        for part in parts:
            piece = piece_of(part)
            units = sum_units(part.each, piece.copies, part.beside)
            wanted = Wanted(part, piece, units, part.is_whole or exclusive, wishes.labels)
            if words := shortage(wanted, self._capacities, self._forgiven, now=now):
                return words
        for wish in ("near", "apart", "spread"):
            others = _without(wishes, wish)
            if others != wishes and self.fits_now(parts, others):
                return f"`placement.{wish}` leaves too little room"
        return "the parts compete for the same nodes"


class _Search(NamedTuple):
    """A part in the terms of a pool: what one piece of it needs, and where to look."""

    part: Part
    piece: Piece
    units: Units
    need: Need
    ground: Sequence[int] | None
    labels: dict[str, str]


class _Arrangement:
    """What was taken for the parts of an alternative so far."""

    def __init__(self, parts: int) -> None:
        self.pieces: list[Held] = []
        self.slots: list[list[Slot]] = [[] for _ in range(parts)]


def _mixed(parts: Alternative) -> bool:
    """Whether what one part takes decides about the room of another."""
    return len(parts) > 1 and any(part.nodes is None for part in parts)


def _amounts(units: Units) -> dict[str, Amount]:
    return {kind: to_amount(kind, count) for kind, count in units.items()}


def _without(wishes: Wishes, name: str) -> Wishes:
    return Wishes(
        wishes.labels,
        wishes.exclusive,
        None if name == "near" else wishes.near,
        None if name == "apart" else wishes.apart,
        None if name == "spread" else wishes.spread,
    )
