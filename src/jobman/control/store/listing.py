"""Listing jobs: a filter becomes a select that stays quick however many jobs there are.

Every condition is exact by itself. What makes it quick is where the search starts: from the newest job
backwards if many jobs fit, or from the few that one condition leaves, which an index names at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Select,
    UnaryExpression,
    and_,
    func,
    literal,
    select,
    union_all,
)
from sqlalchemy.sql.operators import custom_op

from jobman.control.store.columns import Words
from jobman.control.store.schema import jobs, labels
from jobman.control.store.views import JobFilter

_FEW = 500
"""So many candidates are looked through one by one."""

Where = ColumnElement[bool]


def matching(connection: Connection, wanted: JobFilter, below: int | None, limit: int) -> list[int]:
    """The numbers of the newest jobs that fit, below a number."""
    sql = _Spelling(connection.dialect)
    bounds: list[Where] = [] if below is None else [jobs.c.number < below]
    few = _few_candidates(connection, wanted)
    if few is not None:
        conditions = [jobs.c.number.in_(few), *bounds, *sql.all_of(wanted), *sql.states(wanted)]
        return list(connection.execute(_newest(conditions, limit)).scalars())
    if wanted.until is not None:
        bounds.append(jobs.c.number <= _last_submitted(wanted))
    conditions = [*bounds, *sql.all_of(wanted, indexed=True)]
    return list(connection.execute(_walk(conditions, sorted(wanted.states), limit)).scalars())


def fitting(connection: Connection, wanted: JobFilter, numbers: Sequence[int]) -> set[int]:
    """The numbers of those of some jobs that fit; no more of them than a statement can name."""
    sql = _Spelling(connection.dialect)
    conditions = [jobs.c.number.in_(numbers), *sql.all_of(wanted), *sql.states(wanted)]
    return set(connection.execute(select(jobs.c.number).where(*conditions)).scalars())


class _Spelling:
    """The conditions of a filter, as one dialect spells them."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._is_sqlite = dialect.name == "sqlite"

    def all_of(self, wanted: JobFilter, *, indexed: bool = False) -> list[Where]:
        """All that jobs must fit, but their states; `indexed` lets equal values lead the search."""
        found = [
            (jobs.c[name] if indexed else self._free(name)) == value
            for name in ("owner", "queue", "flavor")
            if (value := getattr(wanted, name)) is not None
        ]
        if wanted.name is not None:
            found.append(self._like(wanted.name, indexed))
        if wanted.since is not None or wanted.until is not None:
            found.append(_submitted(wanted, self._free("submitted_at")))
        if wanted.text:
            find = func.instr if self._is_sqlite else func.strpos
            found.append(find(jobs.c.search, literal(wanted.text.casefold(), Words())) > 0)
        for name, value in wanted.labels.items():
            found.append(_labelled(name, value).where(labels.c.job == jobs.c.number).exists())
        return found

    def states(self, wanted: JobFilter) -> list[Where]:
        """The states jobs must be in."""
        return [self._free("state").in_(sorted(wanted.states))] if wanted.states else []

    def _free(self, name: str) -> ColumnElement[Any]:
        return unindexed(jobs.c[name], self._dialect)

    def _like(self, pattern: str, indexed: bool) -> Where:
        if not re.search(r"[*?]", pattern):
            return (jobs.c.name if indexed else self._free("name")) == pattern
        if self._is_sqlite:
            glob = literal(pattern.replace("[", "[[]"), Words())
            return self._free("name").op("GLOB", is_comparison=True)(glob)
        escaped = re.sub(r"([\\%_])", r"\\\1", pattern)
        return jobs.c.name.like(escaped.replace("*", "%").replace("?", "_"), escape="\\")


def unindexed(column: Column[Any], dialect: Dialect) -> ColumnElement[Any]:
    """A column whose index is left alone: SQLite has no statistics and would be misled by it."""
    if dialect.name != "sqlite":
        return column
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)


def _newest(conditions: Sequence[Where], limit: int) -> Select[Any]:
    return select(jobs.c.number).where(*conditions).order_by(jobs.c.number.desc()).limit(limit)


def _walk(conditions: Sequence[Where], states: Sequence[str], limit: int) -> Select[Any]:
    """From the newest job backwards. Each state is walked apart: only then does its index give the order."""
    if len(states) < 2:
        return _newest([*conditions, *(jobs.c.state == state for state in states)], limit)
    walks = [_newest([*conditions, jobs.c.state == state], limit).subquery() for state in states]
    found = union_all(*(select(walk.c.number) for walk in walks)).subquery()
    return select(found.c.number).order_by(found.c.number.desc()).limit(limit)


def _few_candidates(connection: Connection, wanted: JobFilter) -> list[int] | None:
    """The numbers of the jobs that fit one of the conditions, if they are few."""
    for start in _starts(wanted):
        numbers = connection.execute(start.limit(_FEW + 1)).scalars().all()
        if len(numbers) <= _FEW:
            return list(numbers)
    return None


def _starts(wanted: JobFilter) -> list[Select[Any]]:
    """Selects of candidates that an index answers without a look at other jobs."""
    number = select(jobs.c.number)
    found = [_labelled(name, value) for name, value in wanted.labels.items()]
    if wanted.name is not None and (prefix := re.split(r"[*?]", wanted.name, maxsplit=1)[0]):
        found.append(number.where(starts_with(jobs.c.name, prefix)))
    if wanted.queue is not None:
        found.append(number.where(jobs.c.queue == wanted.queue))
    if wanted.since is not None or wanted.until is not None:
        found.append(number.where(_submitted(wanted, jobs.c.submitted_at)))
    if wanted.states and (found or wanted.text or wanted.name or wanted.flavor):
        owned = [] if wanted.owner is None else [jobs.c.owner == wanted.owner]
        found.append(number.where(*owned, jobs.c.state.in_(sorted(wanted.states))))
    return found


def _labelled(name: str, value: str | None) -> Select[Any]:
    having = select(labels.c.job).where(labels.c.name == name)
    return having if value is None else having.where(labels.c.value == value)


def _submitted(wanted: JobFilter, at: ColumnElement[Any]) -> Where:
    bounds = []
    if wanted.since is not None:
        bounds.append(at >= wanted.since)
    if wanted.until is not None:
        bounds.append(at < wanted.until)
    return and_(*bounds)


def _last_submitted(wanted: JobFilter) -> ColumnElement[int]:
    """The newest job of a time, so that a walk need not come past all that are newer."""
    return select(func.max(jobs.c.number)).where(_submitted(wanted, jobs.c.submitted_at)).scalar_subquery()


def starts_with(column: Column[str], prefix: str) -> Where:
    """That a text starts with a prefix, as a range that an index knows."""
    after = _after(prefix)
    return column >= prefix if after is None else and_(column >= prefix, column < after)


def _after(prefix: str) -> str | None:
    """The first text, by code point, behind all that start with a prefix."""
    for end in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[end]) + 1
        if code <= 0x10FFFF:
            return prefix[:end] + chr(0xE000 if 0xD800 <= code < 0xE000 else code)
    return None
