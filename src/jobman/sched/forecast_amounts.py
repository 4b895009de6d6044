"""Amounts of several kinds as one whole number, so that adding and comparing them is one operation."""

from __future__ import annotations

from collections.abc import Mapping

_WIDTH = 80
_SIGN = 1 << (_WIDTH - 1)
_PARTS = 1000
"""Of a unit: amounts are counted in thousandths."""
_MOST = _SIGN >> 2


class Amounts:
    """The kinds there are, a field of bits for each.

    What is free carries a mark on top of each field, and a field below zero borrows it. Something fits where
    all marks are left: `(free - need) & marks == marks`. What is free may be less than nothing.
    """

    def __init__(self, capacity: Mapping[str, float]) -> None:
        self._shifts = {kind: place * _WIDTH for place, kind in enumerate(sorted(capacity))}
        self.marks = sum(_SIGN << shift for shift in self._shifts.values())
        self.all = self.marks + self.packed(capacity)
        """Everything there is, as what is free is written."""

    def packed(self, amounts: Mapping[str, float]) -> int:
        """What is asked for; a kind that is not counted here is left out."""
        total = 0
        for kind, amount in amounts.items():
            shift = self._shifts.get(kind)
            if shift is not None:
                total += min(_parts(amount), _MOST) << shift
        return total


def _parts(amount: float) -> int:
    """Exact where the amount is whole, however large: what fits exactly must not fail by a rounding."""
    whole = int(amount)
    return whole * _PARTS if whole == amount else round(amount * _PARTS)
