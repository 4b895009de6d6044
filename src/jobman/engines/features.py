"""How an engine realises each feature of the catalogue, and who asked for what it cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from jobman.engines.base import Refused
from jobman.plan.features import CATALOGUE, users
from jobman.plan.model import Plan


class Support(msgspec.Struct, frozen=True):
    """How a feature is had: by the engine's own means, by other means to the same end, or not at all."""

    how: Literal["native", "emulated", "refused"]
    note: str = ""


SupportTable = Mapping[str, Support]


def native(note: str = "") -> Support:
    return Support("native", note)


def emulated(note: str) -> Support:
    return Support("emulated", note)


def refused(note: str) -> Support:
    """The note says why and what to do instead."""
    return Support("refused", note)


def in_order(table: SupportTable) -> dict[str, Support]:
    """A table in the order of the catalogue."""
    return {feature.id: table[feature.id] for feature in CATALOGUE}


def refusals(plan: Plan, table: SupportTable) -> list[Refused]:
    """What a plan uses and an engine refuses, and by which units; without units it is the document's."""
    found = []
    for feature in plan.features:
        support = table[feature]
        if support.how == "refused":
            found.append(Refused(feature, tuple(unit.id for unit in users(plan, feature)), support.note))
    return found
