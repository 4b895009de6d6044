"""What all reading of the store goes through: connections, selects, and rows that become records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Column, ColumnElement, Connection, Select, Table, func, select

from jobman.control.store import schema
from jobman.control.store.database import Database
from jobman.control.store.listing import unindexed
from jobman.control.store.schema import jobs

_AT_ONCE = 500

T = TypeVar("T")
R = TypeVar("R", bound=msgspec.Struct)
Where = ColumnElement[bool]


class Reader:
    """Reads from a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _unindexed(self, column: Column[Any]) -> ColumnElement[Any]:
        return unindexed(column, self._database.dialect)

    def _all(self, record: type[R], query: Select[Any]) -> list[R]:
        with self._database.read() as connection:
            return records(record, connection, query)


def batched(items: Iterable[T]) -> Iterator[list[T]]:
    """Items, so many at a time as a statement can name."""
    rest = iter(items)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def records(record: type[R], connection: Connection, query: Select[Any]) -> list[R]:
    """The rows of a query, each as a record with the columns as its fields."""
    result = connection.execute(query)
    names = list(result.keys())
    return [record(**dict(zip(names, row, strict=True))) for row in result]


def _id_of(table: Table) -> ColumnElement[str]:
    id = select(jobs.c.id).where(jobs.c.number == table.c.job).scalar_subquery()
    return func.coalesce(id, "") if table is schema.events else id


def select_from(table: Table) -> Select[Any]:
    """What belongs to jobs, with the id of each."""
    return select(_id_of(table).label("job"), *(column for column in table.c if column.name != "job"))


def ordered(table: Table) -> Select[Any]:
    """The same in the order of its key."""
    return select_from(table).order_by(*table.primary_key.columns)


def of_job(table: Table, job: str) -> Where:
    """That a row belongs to a job."""
    return table.c.job == select(jobs.c.number).where(jobs.c.id == job).scalar_subquery()
