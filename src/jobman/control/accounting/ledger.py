"""The ledger of one allocation: which slices it is charged in, and what is given back at its end.

Slices tile the time from when something was given to when it came back: each begins where the one before it
ended. Moments of our days are multiples of 2**-22 s and units are kept in multiples of 2**-20, so sums of
either are exact in whatever order a database adds them up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from jobman.control.accounting.units import units_of
from jobman.control.store.records import SliceRecord
from jobman.control.store.views import Charged

OUR_FAULT = frozenset(("launch-failed", "stage-failed", "node-lost", "preempted"))
"""Reasons that are not the task's own doing: what was charged for such an attempt is refunded."""

ENDED_EARLIER = "it had ended earlier"


class Metered(msgspec.Struct, kw_only=True, frozen=True):
    """An allocation that is charged: what it is for, whose it is, since when, and what an hour costs."""

    job: str
    key: str
    attempt: int
    start: float
    price: float
    """Units an hour, for all of it."""
    owner: str
    account: str
    flavor: str = ""
    queue: str = ""
    job_name: str = ""
    amounts: dict[str, float] = {}

    @property
    def address(self) -> tuple[str, str, int]:
        return self.job, self.key, self.attempt


class Ledger:
    """What has been charged for one allocation, and what is next."""

    __slots__ = ("_charged", "metered")

    def __init__(self, metered: Metered, charged: Charged | None = None) -> None:
        self.metered = metered
        self._charged = charged or Charged(upto=metered.start)

    @property
    def upto(self) -> float:
        """The moment up to which it is charged."""
        return self._charged.upto

    def advance(self, now: float, length: float) -> Iterator[SliceRecord]:
        """Charge the slices that are over by now."""
        while (end := self._charged.upto + length) <= now:
            yield self._use(end)

    def close(self, at: float, length: float, reason: str = "") -> Iterator[SliceRecord]:
        """Charge what is left until the end, the last slice a shorter one, and take back what was not due."""
        at = max(at, self.metered.start)
        yield from self.advance(at, length)
        if self._charged.upto < at:
            yield self._use(at)
        if reason in OUR_FAULT:
            yield from self._refund(self.metered.start, self._charged.units, reason)
        elif self._charged.upto > at:
            units = units_of(self.metered.price, self._charged.upto - at)
            yield from self._refund(at, units, ENDED_EARLIER)

    def _use(self, end: float) -> SliceRecord:
        known, metered = self._charged, self.metered
        # Rounded from the start on, so that the error never grows with the number of slices.
        before, after = (units_of(metered.price, moment - metered.start) for moment in (known.upto, end))
        self._charged = Charged(known.slices + 1, end, known.units + after - before)
        return self._record("use", known.slices, known.upto, after - before)

    def _refund(self, start: float, units: float, reason: str) -> Iterator[SliceRecord]:
        """Take back all since a moment. An allocation ends once, so it has one refund at most."""
        if start < self._charged.upto:
            self._charged = msgspec.structs.replace(self._charged, units=self._charged.units - units)
            yield self._record("refund", 0, start, -units, reason)

    def _record(
        self, kind: Literal["use", "refund"], number: int, start: float, units: float, reason: str = ""
    ) -> SliceRecord:
        metered, end = self.metered, self._charged.upto
        return SliceRecord(
            job=metered.job,
            key=metered.key,
            attempt=metered.attempt,
            number=number,
            kind=kind,
            start=start,
            end=end,
            seconds=end - start if kind == "use" else start - end,
            units=units,
            charged=self._charged.units,
            account=metered.account,
            owner=metered.owner,
            flavor=metered.flavor,
            queue=metered.queue,
            job_name=metered.job_name,
            amounts=metered.amounts,
            reason=reason,
        )
