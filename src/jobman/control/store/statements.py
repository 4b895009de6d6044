"""The statements that write, spelt once per dialect and run with plain rows: no other way is as quick."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Dialect, and_, bindparam, update
from sqlalchemy.dialects import postgresql, sqlite

from jobman.control.store import schema
from jobman.control.store.rows import COLUMNS, LIFE, TABLES, Row

Insert = postgresql.Insert | sqlite.Insert

ORDER = (
    "jobs",
    "documents",
    "labels",
    "lives",
    "tasks",
    "replicas",
    "attempts",
    "allocations",
    "logs",
    "events",
    "submissions",
)
"""Jobs come first, and what belongs to them after them."""

_PARAMETERS = {"sqlite": "qmark", "postgresql": "format"}


class Statement:
    """A statement for many rows of one kind."""

    def __init__(self, kind: str, statement: Any, dialect: Dialect, *, exact: bool = False) -> None:
        positional = type(dialect)(paramstyle=_PARAMETERS[dialect.name])  # type: ignore[call-arg]
        compiled = statement.compile(dialect=positional)
        self.sql = str(compiled)
        self.exact = exact
        """Whether each row must find its place: one that does not is a mistake of the caller."""
        columns = COLUMNS[kind]
        self._order = [columns.index(name.removeprefix("row_")) for name in compiled.positiontup]
        self._as_is = self._order == list(range(len(columns)))

    def parameters(self, rows: list[Row]) -> list[Row]:
        """The values of rows in the order of the statement."""
        if self._as_is:
            return rows
        return [tuple([row[place] for place in self._order]) for row in rows]


def statements(dialect: Dialect) -> dict[str, Statement]:
    """The statement of every kind of rows. Each may be run again with the same rows, to the same end."""
    return {
        **{kind: Statement(kind, _replace(kind, dialect), dialect) for kind in ORDER},
        "jobs": Statement("jobs", _add_jobs(dialect), dialect, exact=True),
        "documents": Statement("documents", _insert("documents", dialect).on_conflict_do_nothing(), dialect),
        "labels": Statement("labels", _insert("labels", dialect).on_conflict_do_nothing(), dialect),
        "lives": Statement("lives", _change_lives(), dialect, exact=True),
        "events": Statement("events", _add_events(dialect), dialect, exact=True),
    }


def _insert(kind: str, dialect: Dialect) -> Insert:
    make = sqlite.insert if dialect.name == "sqlite" else postgresql.insert
    return make(TABLES[kind]).values({name: bindparam(name) for name in COLUMNS[kind]})


def _replace(kind: str, dialect: Dialect) -> Insert:
    insert = _insert(kind, dialect)
    key = TABLES[kind].primary_key.columns.keys()
    values = {name: insert.excluded[name] for name in COLUMNS[kind] if name not in key}
    return insert.on_conflict_do_update(index_elements=key, set_=values)


def _add_jobs(dialect: Dialect) -> Insert:
    insert = _insert("jobs", dialect)
    return insert.on_conflict_do_update(
        index_elements=["number"],
        set_={name: insert.excluded[name] for name in LIFE},
        where=schema.jobs.c.id == insert.excluded.id,
    )


def _change_lives() -> Any:
    table = schema.jobs
    return (
        update(table)
        .where(and_(table.c.number == bindparam("row_number"), table.c.id == bindparam("row_id")))
        .values({name: bindparam(f"row_{name}") for name in LIFE})
    )


def _add_events(dialect: Dialect) -> Insert:
    insert = _insert("events", dialect)
    old, new = schema.events.c, insert.excluded
    return insert.on_conflict_do_update(
        index_elements=["number"],
        set_={"data": new.data},
        where=and_(old.job.is_not_distinct_from(new.job), old.at == new.at, old.kind == new.kind),
    )
