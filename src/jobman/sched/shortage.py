"""What is short for a part, in words: which resource, by how much, on which node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobman.plan.satisfy import Obstacle, Piece, mismatch
from jobman.plan.wording import format_amount
from jobman.sched.capacity import Capacity, Units, to_amount
from jobman.spec.shapes import SIZED_TYPES, Part

_SIZES = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


class Wanted(NamedTuple):
    """A part, what one piece of it needs, and whether it must have its nodes to itself."""

    part: Part
    piece: Piece
    units: Units
    alone: bool
    labels: dict[str, str]


class _Lack(NamedTuple):
    """Why one node cannot take a piece; of the node that comes nearest it is told."""

    nearness: tuple[int, bool, float]
    words: str


def shortage(
    wanted: Wanted, capacities: Sequence[Capacity], forgiven: Sequence[str], *, now: bool
) -> str | None:
    """Why the nodes have no room for a part taken by itself; None where they have."""
    if not capacities:
        return "there are no nodes"
    room = 0
    nearest: _Lack | None = None
    for capacity in capacities:
        lack = _lack(wanted, capacity, forgiven, now=now)
        if lack is None:
            room += _room(wanted, capacity)
        elif nearest is None or lack.nearness > nearest.nearness:
            nearest = lack
    if room >= wanted.piece.wanted:
        return None
    if not room and nearest is not None:
        return nearest.words
    noun = "nodes" if wanted.part.nodes is not None else "slots"
    count = f"{wanted.piece.wanted} {noun} are needed, and there is room for {room}"
    return f"{count}; {nearest.words}" if nearest is not None else count


def _room(wanted: Wanted, capacity: Capacity) -> int:
    if wanted.part.nodes is not None:
        return 1
    held = capacity.holds(wanted.units)
    return wanted.piece.wanted if held is None else held


def _lack(wanted: Wanted, capacity: Capacity, forgiven: Sequence[str], *, now: bool) -> _Lack | None:
    name = capacity.node.name
    if untrue := mismatch(capacity.node, wanted.part.requires, wanted.labels):
        return _Lack((0, False, 0), f"on {name} {Obstacle(*untrue, (name,)).words}")  # type: ignore[arg-type]
    short = {
        kind: (need, capacity.free.get(kind, 0))
        for kind, need in wanted.units.items()
        if capacity.free.get(kind, 0) < need and not (kind in forgiven and kind not in capacity.free)
    }
    if short:
        share = min(there / need for need, there in short.values())
        ever = all(capacity.total.get(kind, 0) >= need for kind, (need, _) in short.items())
        said = " and ".join(_short(kind, *both, now=now) for kind, both in short.items())
        return _Lack((1, ever, share), f"{name} has {said}")
    if capacity.whole or (wanted.alone and capacity.holders):
        return _Lack((2, True, 0), f"{name} is in use")
    return None


def _short(kind: str, need: int, there: int, *, now: bool) -> str:
    """`1 of 2 cores free (1 short)`."""
    plural = "" if kind in SIZED_TYPES or to_amount(kind, need) == 1 else "s"
    return (
        f"{_said(kind, there) if there else 'none'} of {_said(kind, need)} {kind}{plural}"
        f"{' free' if now else ''} ({_said(kind, need - there)} short)"
    )


def _said(kind: str, units: int) -> str:
    """Sizes to a tenth of their unit: nobody reads bytes."""
    if kind not in SIZED_TYPES:
        return format_amount(kind, to_amount(kind, units))
    unit, size = next(((unit, size) for unit, size in _SIZES if units >= size), ("", 1))
    return f"{units / size:.1f}".removesuffix(".0") + unit
