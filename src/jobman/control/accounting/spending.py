"""Spending: what everybody has used in all, and what of it is not yet forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from math import expm1, log

from jobman.control.store.records import BalanceRecord, SliceRecord
from jobman.sched.accounts import AccountTree

HALF_LIFE = 7 * 86400.0
"""Seconds after which usage counts half for fair shares."""

_LN2 = log(2)

Payer = tuple[str, str]
"""An account, and a user who charges it."""


class Spending:
    """The sums of all slices. What is used below an account counts for it, too."""

    def __init__(
        self,
        accounts: AccountTree,
        balances: Iterable[BalanceRecord] = (),
        *,
        half_life: float = HALF_LIFE,
    ) -> None:
        self.half_life = half_life
        self._balances = {_key(one): one for one in balances}
        self.group(accounts)

    def group(self, accounts: AccountTree) -> None:
        """Add up anew, for accounts that may stand below others than before."""
        self._accounts = accounts
        self._used: dict[Payer, float] = {}
        for balance in self._balances.values():
            self._count(balance)

    def add(self, slices: Iterable[SliceRecord]) -> dict[tuple[str, str, str], BalanceRecord]:
        """Take slices into account; the balances that changed."""
        changed: dict[tuple[str, str, str], BalanceRecord] = {}
        for one in slices:
            before = self._balances.get(_key(one))
            self._balances[_key(one)] = changed[_key(one)] = self._charged(before, one)
            self._count(one)
        return changed

    def used(self, account: str, owner: str = "") -> float:
        """Units that an account and all below it have used; with an owner, only what that one has."""
        return self._used.get((account, owner), 0.0)

    def faded(self, now: float) -> dict[Payer, float]:
        """Core hours that count for fair shares: the less, the longer ago."""
        found: dict[Payer, float] = {}
        for one in self._balances.values():
            payer = one.account, one.owner
            found[payer] = found.get(payer, 0.0) + one.faded * self._fading(now - one.at)
        return found

    def _charged(self, before: BalanceRecord | None, one: SliceRecord) -> BalanceRecord:
        known = before or BalanceRecord(account=one.account, owner=one.owner, queue=one.queue)
        at = max(known.at, one.end)
        # Use fades from the moment it happens, and a refund takes back what has faded so: to the last bit.
        left = self._left(one.end - one.start) * self._fading(at - one.end)
        faded = known.faded * self._fading(at - known.at) + _core_hours(one) * left
        return BalanceRecord(
            account=one.account,
            owner=one.owner,
            queue=one.queue,
            units=known.units + one.units,
            seconds=known.seconds + one.seconds,
            faded=max(0.0, faded),
            at=at,
        )

    def _fading(self, seconds: float) -> float:
        return float(0.5 ** (max(0.0, seconds) / self.half_life))

    def _left(self, seconds: float) -> float:
        """What is left of use that went on for so long, right at its end."""
        periods = seconds / self.half_life
        return -expm1(-periods * _LN2) / (periods * _LN2) if periods > 0 else 1.0

    def _count(self, one: BalanceRecord | SliceRecord) -> None:
        for above in self._accounts.path(one.account):
            for payer in ((above, ""), (above, one.owner)):
                self._used[payer] = self._used.get(payer, 0.0) + one.units


def _core_hours(one: SliceRecord) -> float:
    """What counts for fair shares, whatever it costs; of slices that do not say, what they cost."""
    load = one.amounts.get("load")
    return one.units if load is None else load * one.seconds / 3600.0


def _key(one: BalanceRecord | SliceRecord) -> tuple[str, str, str]:
    return one.account, one.owner, one.queue
