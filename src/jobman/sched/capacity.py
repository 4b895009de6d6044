"""One node's capacity: amounts in whole units, and which cores and GPUs are free by their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from jobman.plan.nodes import ClusterNode
from jobman.sched.allocation import Held, Slot
from jobman.spec.shapes import Amount

_PER_CORE = 1000
"""Parts of cores are counted in thousandths, so that sums and differences are exact."""
Units = dict[str, int]


class PlacementError(ValueError):
    """Something was taken that is not free, or given back that was not taken."""


def to_units(kind: str, amount: Amount) -> int:
    """Rounded up where it is finer than a thousandth."""
    return ceil(round(amount * _PER_CORE, 6)) if kind == "core" else ceil(amount)


def to_amount(kind: str, units: int) -> Amount:
    if kind != "core":
        return units
    return units / _PER_CORE if units % _PER_CORE else units // _PER_CORE


def sum_units(each: Mapping[str, Amount], copies: int, beside: Mapping[str, Amount]) -> Units:
    """What so many copies need, and what stands beside them."""
    units = {kind: to_units(kind, amount) * copies for kind, amount in each.items()}
    for kind, amount in beside.items():
        units[kind] = units.get(kind, 0) + to_units(kind, amount)
    return units


class Capacity:
    """What a node has in all and what of it is free. Ids are kept as bits of a number."""

    def __init__(self, node: ClusterNode, total: Units, cores: int, gpus: int) -> None:
        self.node = node
        self.total = total
        self.all_cores = cores
        self.all_gpus = gpus
        self.free = dict(total)
        self.cores = cores
        self.gpus = gpus
        self.holders = 0
        self.whole = False
        self.foreign: Units = {}
        """What others use, of which nothing is known but that; it is not free, nor part of the whole."""

    @classmethod
    def of(cls, node: ClusterNode) -> Capacity:
        """A node of its own, with the ids from 0 on."""
        cores, gpus = (_first(node.amounts.get(kind, 0)) for kind in ("core", "gpu"))
        return cls(node, _units_of(node), cores, gpus)

    @classmethod
    def of_held(cls, node: ClusterNode, held: Held) -> Capacity:
        """What an allocation holds on a node, with the same ids."""
        total = {kind: to_units(kind, amount) for kind, amount in held.amounts.items()}
        return cls(node, total, _bits(held.cores), _bits(held.gpus))

    def emptied(self) -> Capacity:
        return Capacity(self.node, self.total, self.all_cores, self.all_gpus)

    def change(self, node: ClusterNode) -> None:
        """It has more or less than before, or something else is true of it; what is held stays held."""
        total = _units_of(node)
        for kind in total.keys() | self.total.keys():
            self.free[kind] = self.free.get(kind, 0) + total.get(kind, 0) - self.total.get(kind, 0)
        cores, gpus = (_first(node.amounts.get(kind, 0)) for kind in ("core", "gpu"))
        self.cores |= cores & ~self.all_cores
        self.gpus |= gpus & ~self.all_gpus
        self.all_cores |= cores
        self.all_gpus |= gpus
        self.node, self.total = node, total

    def set_foreign(self, amounts: Mapping[str, Amount]) -> None:
        """What others use from now on; where that was held, less than nothing is free."""
        wanted = {kind: to_units(kind, amount) for kind, amount in amounts.items() if kind in self.total}
        for kind in wanted.keys() | self.foreign.keys():
            self.free[kind] += self.foreign.get(kind, 0) - wanted.get(kind, 0)
        self.foreign = wanted

    @property
    def own(self) -> Units:
        """What others leave of it."""
        return {kind: max(0, units - self.foreign.get(kind, 0)) for kind, units in self.total.items()}

    def seat(
        self, each: Mapping[str, Amount], copies: int, beside: Mapping[str, Amount], *, whole: bool
    ) -> tuple[list[Slot], Held]:
        """Slots for so many copies and what is held for them. Changes nothing."""
        name = self.node.name
        own = dict(each)
        if whole:
            own.update(self._shares(copies, each.keys() | beside.keys()))
        cores, gpus = self.cores, self.gpus
        slots = []
        for _ in range(copies):
            mine, cores = _take(cores, _pinned(own))
            fast, gpus = _take(gpus, int(own.get("gpu", 0)))
            slots.append(Slot(name, mine, fast, own))
        if whole:
            return slots, self.everything()
        _, cores = _take(cores, _pinned(beside))
        _, gpus = _take(gpus, int(beside.get("gpu", 0)))
        return slots, Held(
            name, _numbers(self.cores ^ cores), _numbers(self.gpus ^ gpus), self._sum(each, copies, beside)
        )

    def holds(self, need: Units) -> int | None:
        """How often a need finds room; None for as often as one likes."""
        limits = [self.free[kind] // units for kind, units in need.items() if units and kind in self.free]
        return min(limits) if limits else None

    def everything(self) -> Held:
        amounts = {kind: to_amount(kind, units) for kind, units in self.own.items()}
        return Held(self.node.name, _numbers(self.all_cores), _numbers(self.all_gpus), amounts, True)

    def _shares(self, copies: int, named: set[str]) -> dict[str, Amount]:
        """Of a whole node, what the shape does not name is divided evenly among its copies."""
        shares: dict[str, Amount] = {}
        for kind, units in self.own.items():
            share = units // copies
            if kind == "core" and share > _PER_CORE:
                share -= share % _PER_CORE
            if share and kind not in named:
                shares[kind] = to_amount(kind, share)
        return shares

    def _sum(
        self, each: Mapping[str, Amount], copies: int, beside: Mapping[str, Amount]
    ) -> dict[str, Amount]:
        """What is held of the types the node is known to have."""
        units = sum_units(each, copies, beside)
        return {kind: to_amount(kind, count) for kind, count in units.items() if kind in self.total}

    def hold(self, held: Held) -> None:
        cores, gpus = _bits(held.cores), _bits(held.gpus)
        if self.whole or (held.whole and self.holders):
            raise PlacementError(f"{self.node.name} is held already")
        if cores & ~self.cores or gpus & ~self.gpus:
            raise PlacementError(f"cores or GPUs of {self.node.name} are held already")
        left = self._changed(held, -1)
        self.free.update(left)
        self.cores ^= cores
        self.gpus ^= gpus
        self.holders += 1
        self.whole = held.whole

    def release(self, held: Held) -> None:
        cores, gpus = _bits(held.cores), _bits(held.gpus)
        foreign = cores & ~self.all_cores or gpus & ~self.all_gpus
        if not self.holders or held.whole != self.whole or cores & self.cores or gpus & self.gpus or foreign:
            raise PlacementError(f"what is given back on {self.node.name} was not taken")
        self.free.update(self._changed(held, 1))
        self.cores |= cores
        self.gpus |= gpus
        self.holders -= 1
        self.whole = False

    def _changed(self, held: Held, sign: int) -> Units:
        found = {}
        for kind, amount in held.amounts.items():
            units = to_units(kind, amount)
            found[kind] = self.free.get(kind, 0) + sign * units
            most = self.total.get(kind, 0) - self.foreign.get(kind, 0)
            if found[kind] > most or (sign < 0 and units and found[kind] < 0):
                raise PlacementError(f"{kind} of {self.node.name} does not add up")
        return found


def merge(one: Held, other: Held) -> Held:
    """What two parts of one allocation hold on the same node."""
    units = sum_units(one.amounts, 1, other.amounts)
    return Held(
        one.node,
        tuple(sorted(one.cores + other.cores)),
        tuple(sorted(one.gpus + other.gpus)),
        {kind: to_amount(kind, count) for kind, count in units.items()},
    )


def _pinned(own: Mapping[str, Amount]) -> int:
    """How many cores of its own a copy gets: none where it asks for a part of one."""
    count = own.get("core", 0)
    return int(count) if count == int(count) else 0


def _take(free: int, count: int) -> tuple[tuple[int, ...], int]:
    """The lowest run of free ids that is long enough, else the lowest ids; none where there are too few."""
    if not count or free.bit_count() < count:
        return (), free
    chosen = _run(free, count) or _lowest(free, count)
    return _numbers(chosen), free ^ chosen


def _run(free: int, count: int) -> int:
    runs, length = free, 1
    while length < count and runs:
        step = min(length, count - length)
        runs &= runs >> step
        length += step
    return (runs & -runs) * ((1 << count) - 1)


def _lowest(free: int, count: int) -> int:
    rest = free
    for _ in range(count):
        rest &= rest - 1
    return free ^ rest


def _units_of(node: ClusterNode) -> Units:
    return {kind: to_units(kind, amount) for kind, amount in node.amounts.items()}


def _first(amount: Amount) -> int:
    return (1 << int(amount)) - 1


def _bits(ids: tuple[int, ...]) -> int:
    bits = 0
    for number in ids:
        bits |= 1 << number
    return bits


def _numbers(bits: int) -> tuple[int, ...]:
    found = []
    while bits:
        found.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return tuple(found)
