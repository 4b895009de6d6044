"""The meter: charges everything that is held, all of it at the same ticks of the clock.

Slices of different allocations end at different moments, but they are charged together at the next tick: a
thousand running jobs cost one commit in a minute, not a thousand.
"""

from __future__ import annotations

from jobman.control.accounting.ledger import Ledger, Metered
from jobman.control.store.records import SliceRecord
from jobman.control.store.views import Charged

SLICE = 60.0
"""Seconds of a slice where the settings say nothing."""
_MOST = 20_000
"""So many slices are charged at once: after a long time away the rest follows right behind."""

_AT_ONCE = float("-inf")


class Meter:
    """All allocations that are being charged. Time is an argument; nothing here waits."""

    def __init__(self, length: float = SLICE) -> None:
        self.length = length
        self._ledgers: dict[tuple[str, str, int], Ledger] = {}
        self._tick = _AT_ONCE

    def __len__(self) -> int:
        return len(self._ledgers)

    def begin(self, metered: Metered) -> None:
        """Something was given. To be told twice is to be told once."""
        if not self._ledgers:
            self._tick = self._after(metered.start)
        self._ledgers.setdefault(metered.address, Ledger(metered))

    def resume(self, metered: Metered, charged: Charged | None) -> None:
        """Something was held already when the service started; what is missing is charged at once."""
        self._ledgers[metered.address] = Ledger(metered, charged)
        self._tick = _AT_ONCE

    def end(self, job: str, key: str, attempt: int, at: float, reason: str = "") -> list[SliceRecord]:
        """Something came back: what is left to be charged, and what is refunded. Nothing for the unknown."""
        ledger = self._ledgers.pop((job, key, attempt), None)
        return [] if ledger is None else list(ledger.close(at, self.length, reason))

    def forget(self, job: str) -> None:
        """A job never was: nothing of it is charged."""
        for address in [address for address in self._ledgers if address[0] == job]:
            del self._ledgers[address]

    def next_due(self, now: float) -> float | None:
        """When to ring; None while nothing is held."""
        if not self._ledgers:
            return None
        if self._tick - now > self.length:
            self._tick = self._after(now)  # the clock of the day was put back
        return max(self._tick, 0.0)

    def ring(self, now: float) -> list[SliceRecord]:
        """The slices that are over and not yet charged, if the tick has come."""
        if not self._ledgers or now < self._tick:
            return []
        found: list[SliceRecord] = []
        for ledger in self._ledgers.values():
            found.extend(ledger.advance(now, self.length))
            if len(found) >= _MOST:
                return found
        self._tick = self._after(now)
        return found

    def price(self, address: tuple[str, str, int]) -> float | None:
        """What an hour of an allocation costs; None for the unknown."""
        ledger = self._ledgers.get(address)
        return None if ledger is None else ledger.metered.price

    def jobs(self) -> list[str]:
        """The jobs for which something is held, each once."""
        return list(dict.fromkeys(job for job, _, _ in self._ledgers))

    def _after(self, moment: float) -> float:
        """The first tick after a moment: ticks are the same for all."""
        return (moment // self.length + 1) * self.length
