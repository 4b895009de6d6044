"""Reading what was charged: the slices themselves, what of open allocations is charged already, and sums."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Double, Integer, Select, case, cast, func, select
from sqlalchemy.dialects.postgresql import JSON

from jobman.control.store.reader import Reader, Where, records
from jobman.control.store.records import BalanceRecord, SliceRecord
from jobman.control.store.schema import allocations, balances, jobs, slices
from jobman.control.store.views import Charged, UsageFilter, UsageSum

DAY = 86400
_COUNTED = ("core", "gpu", "node")
"""Amounts that statements add up."""

_GROUPS: dict[str, tuple[str, ...]] = {
    "account": ("account",),
    "user": ("owner",),
    "flavor": ("flavor",),
    "job": ("job_id", "job_name", "owner", "account"),
}
"""The columns that a line of a statement stands for; days are made of moments."""


class UsageReads(Reader):
    """What can be asked about usage."""

    def slices(self, job: str) -> list[SliceRecord]:
        """All that was charged for a job and refunded, in order; of one that is deleted it takes a while."""
        number = select(jobs.c.number).where(jobs.c.id == job).scalar_subquery()
        with self._database.read() as connection:
            known = connection.execute(select(number)).scalar()
            mine = slices.c.job_id == job if known is None else slices.c.job == known
            return records(SliceRecord, connection, _slices().where(mine).order_by(*slices.primary_key))

    def charged(self) -> dict[tuple[str, str, int], Charged]:
        """Of everything that is held now, how far it is charged, by job, replica and attempt."""
        held = allocations.c
        job = select(jobs.c.id).where(jobs.c.number == held.job).scalar_subquery()
        known = [_newest(slices.c[name]) for name in ("number", "end", "charged")]
        query = select(job, held.key, held.attempt, *known).where(held.returned_at.is_(None))
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return {
            (job, key, attempt): Charged(number + 1, upto, units)
            for job, key, attempt, number, upto, units in rows
            if number is not None
        }

    def balances(self) -> list[BalanceRecord]:
        """What everybody has used in all, by account, owner and queue."""
        return self._all(BalanceRecord, select(balances).order_by(*balances.primary_key))

    def usage(self, wanted: UsageFilter, by: str, limit: int = 1_000) -> list[UsageSum]:
        """The sums of a time, the largest first; by day in their order. A slice counts where it ends."""
        keys = self._keys(by)
        units = func.sum(slices.c.units).desc()
        query = select(*keys, *self._sums()).where(*_fits(wanted)).group_by(*keys).limit(limit)
        return self._all(UsageSum, query.order_by(*(keys if by == "day" else (units, *keys))))

    def usage_in_all(self, wanted: UsageFilter) -> UsageSum:
        """The sum over everything that fits."""
        return self._all(UsageSum, select(*self._sums()).where(*_fits(wanted)))[0]

    def _keys(self, by: str) -> list[ColumnElement[Any]]:
        if by != "day":
            return [slices.c[name].label(name) for name in _GROUPS[by]]
        days = slices.c.end / DAY
        # SQLite may have no floor, and where PostgreSQL casts it rounds.
        return [cast(days if self._database.is_sqlite else func.floor(days), Integer).label("day")]

    def _sums(self) -> list[ColumnElement[Any]]:
        return [
            func.count(slices.c.job.distinct()).label("jobs"),
            func.coalesce(func.sum(slices.c.seconds), 0.0).label("seconds"),
            func.coalesce(func.sum(slices.c.units), 0.0).label("units"),
            func.coalesce(func.sum(case((slices.c.kind == "refund", -slices.c.units), else_=0.0)), 0.0).label(
                "refunded"
            ),
            *(self._amount_seconds(kind).label(f"{kind}_seconds") for kind in _COUNTED),
        ]

    def _amount_seconds(self, kind: str) -> ColumnElement[float]:
        if self._database.is_sqlite:
            amount: ColumnElement[Any] = func.json_extract(slices.c.amounts, f"$.{kind}", type_=Double)
        else:
            amount = cast(func.json_extract_path_text(cast(slices.c.amounts, JSON), kind), Double)
        return func.coalesce(func.sum(amount * slices.c.seconds), 0.0)


def _newest(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """A value of the last slice of an allocation: what runs for months has many, and one is looked at."""
    same = (slices.c[name] == allocations.c[name] for name in ("job", "key", "attempt"))
    used = select(column).where(*same, slices.c.kind == "use").correlate(allocations)
    return used.order_by(slices.c.number.desc()).limit(1).scalar_subquery()


def _slices() -> Select[Any]:
    fields = [column for column in slices.c if column.name not in ("job", "job_id")]
    return select(slices.c.job_id.label("job"), *fields)


def _fits(wanted: UsageFilter) -> list[Where]:
    found: list[Where] = []
    if wanted.accounts is not None:
        found.append(slices.c.account.in_(wanted.accounts))
    if wanted.owner is not None:
        found.append(slices.c.owner == wanted.owner)
    if wanted.since is not None:
        found.append(slices.c.end >= wanted.since)
    if wanted.until is not None:
        found.append(slices.c.end < wanted.until)
    return found
