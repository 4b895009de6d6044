"""The settings of accounting: how long a slice is, and what an hour costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from yaml.nodes import Node

from jobman.spec.kinds import Duration, Names, Number
from jobman.spec.names import NAME
from jobman.spec.reading import BAD, Reading, child
from jobman.spec.records import Element, Key, Of

_SHORTEST, _LONGEST = 1.0, 86400.0
_PRICE = Number(0, 10**9, "a price")


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """How usage is charged."""

    slice: float = 60.0
    """Seconds; what is held is charged in stretches of this length."""
    price: float = 1.0
    """Units for an hour of a core, or of what goes with a core."""
    prices: dict[str, float] = {}
    """Units for an hour of one copy, by flavor."""


class WrittenAccounting(Element, frozen=True, kw_only=True):
    """The section as it is written."""

    noun = "`accounting`"
    habits = {"slices": "slice", "interval": "slice", "default_price": "price", "flavors": "prices"}
    slice: Annotated[float | None, Key(Duration(), "how long a slice is")] = None
    price: Annotated[float | None, Key(_PRICE, "units for an hour of a core")] = None
    prices: Annotated[
        dict[str, float], Key(Names(NAME, _PRICE, "a mapping of prices"), "units for an hour, by flavor")
    ] = {}


def _as_values(written: WrittenAccounting, node: Node, reading: Reading) -> Any:
    """Only what was given: the rest may come from another file."""
    if written.slice is not None and not _SHORTEST <= written.slice <= _LONGEST:
        place = child(node, "slice")
        reading.report("JS204", place, noun="a slice", value=f"{written.slice:g} s", range="from 1s to 1d")
        return BAD
    return dict(written.given)


ACCOUNTING = Of(WrittenAccounting, _as_values)
"""The kind of the section; its value is a mapping of what was given."""


def accounting_of(values: Mapping[str, Any]) -> Accounting:
    """The accounting of settings, from all their values."""
    return msgspec.convert(values.get("accounting", {}), Accounting)
