"""Statements: what was used in a time, line by line, for people and for spreadsheets."""

from __future__ import annotations

import csv
import io
from datetime import date
from typing import TYPE_CHECKING, Literal

import msgspec

from jobman.control.accounting.branches import Branch, branches
from jobman.control.answers import Body
from jobman.sched.accounts import AccountTree

if TYPE_CHECKING:
    from jobman.control.store.usage import UsageReads
    from jobman.control.store.views import UsageFilter, UsageSum

By = Literal["account", "user", "job", "flavor", "day"]
_HOUR = 3600.0
_DIGITS = 6
_MOST_ACCOUNTS = 1_000_000
_FIRST_DAY = date(1970, 1, 1).toordinal()


class UsageLine(Body, kw_only=True):
    """What was used by one account, user, job or flavor, or on one day; null where that is not told apart."""

    account: str | None = None
    parent: str | None = None
    """The account above it, by the settings as they are now; null at the top."""
    user: str | None = None
    job: str | None = None
    name: str | None = None
    """Of the job."""
    flavor: str | None = None
    day: str | None = None
    """In UTC."""
    jobs: int = 0
    hours: float = 0.0
    """For which something was held, each replica by itself."""
    core_hours: float = 0.0
    gpu_hours: float = 0.0
    node_hours: float = 0.0
    units: float = 0.0
    """What is charged; refunds are taken off."""
    refunded: float = 0.0
    below: float | None = None
    """Of an account: the units that are charged to the accounts below it."""
    in_all: float | None = None
    """Of an account: its own units and those below it."""


class Usage(Body, kw_only=True):
    """A statement."""

    by: By
    since: float | None = None
    until: float | None = None
    items: list[UsageLine] = []
    """The largest first; by day in their order. Of accounts each is followed by those below it."""
    total: UsageLine
    """Also of lines that were left out."""
    more: bool = False
    """Whether lines were left out, as there are more than were asked for."""


def statement(
    store: UsageReads, wanted: UsageFilter, by: By, limit: int, accounts: AccountTree | None = None
) -> Usage:
    """What fits, added up; `accounts` says who is below whom."""
    if by == "account":
        found = store.usage(wanted, by, _MOST_ACCOUNTS)
        lines = [_of_branch(one) for one in branches(found, accounts or AccountTree(), wanted.accounts)]
    else:
        lines = [_line(one, by) for one in store.usage(wanted, by, limit + 1)]
    return Usage(
        by=by,
        since=wanted.since,
        until=wanted.until,
        items=lines[:limit],
        total=_line(store.usage_in_all(wanted)),
        more=len(lines) > limit,
    )


_KEYS: dict[By, dict[str, str]] = {
    "account": {"account": "account"},
    "user": {"user": "owner"},
    "job": {"job": "job_id", "name": "job_name", "user": "owner", "account": "account"},
    "flavor": {"flavor": "flavor"},
    "day": {},
}
"""What a line is told apart by, and where that stands in a sum."""


def _line(one: UsageSum, by: By | None = None) -> UsageLine:
    keys = {} if by is None else {name: getattr(one, field) for name, field in _KEYS[by].items()}
    if by == "day":
        keys["day"] = date.fromordinal(_FIRST_DAY + one.day).isoformat()
    return UsageLine(
        **keys,
        jobs=one.jobs,
        hours=_hours(one.seconds),
        core_hours=_hours(one.core_seconds),
        gpu_hours=_hours(one.gpu_seconds),
        node_hours=_hours(one.node_seconds),
        units=round(one.units, _DIGITS),
        refunded=round(one.refunded, _DIGITS),
    )


def _of_branch(branch: Branch) -> UsageLine:
    return msgspec.structs.replace(
        _line(branch.own, "account"),
        parent=branch.parent,
        below=round(branch.below, _DIGITS),
        in_all=round(branch.own.units + branch.below, _DIGITS),
    )


def _hours(seconds: float) -> float:
    return round(seconds / _HOUR, _DIGITS)


_SUMS = ("jobs", "hours", "core_hours", "gpu_hours", "node_hours", "units", "refunded")
_TREE = ("parent", "below", "in_all")


def as_csv(usage: Usage) -> str:
    """A table with a head and without a total, which a spreadsheet makes for itself."""
    columns = [*(_KEYS[usage.by] or ("day",)), *_SUMS, *(_TREE if usage.by == "account" else ())]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([[_safe(getattr(line, column)) for column in columns] for line in usage.items])
    return text.getvalue()


def _safe(value: str | float | None) -> str | float | None:
    """A spreadsheet must not take the name of a job for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
