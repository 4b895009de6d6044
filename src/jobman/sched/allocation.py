"""What a placement gives: slots for the copies, and what is held on each node. Plain values."""

from __future__ import annotations

import msgspec

from jobman.spec.shapes import Amount


class Slot(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where one copy goes and what is its own; without `cores` it is not pinned."""

    node: str
    cores: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    amounts: dict[str, Amount] = {}


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything an allocation holds on one node; a node held as a whole takes nothing else in."""

    node: str
    cores: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    amounts: dict[str, Amount] = {}
    whole: bool = False


class Allocation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The alternative that was placed, the nodes in the order of their first slot, the slots in rank order.

    Ranks follow the parts as they are written, and within a part go node by node.
    """

    alternative: int
    held: tuple[Held, ...] = ()
    slots: tuple[Slot, ...] = ()
