"""The statements that write, spelt once per dialect and run with plain rows: no other way is as quick."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Dialect, and_, bindparam, delete, update
from sqlalchemy.dialects import postgresql, sqlite

from jobman.control.store import schema
from jobman.control.store.rows import COLUMNS, KINDS, LIFE, TABLES, Row

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
    "promises",
    "revisions",
    "slices",
    "balances",
    "calendar",
    "queue_states",
    "node_states",
)
"""Jobs come first, and what belongs to them after them."""

ONCE = ("documents", "labels", "revisions", "slices")
"""Kinds whose rows never change: the first one counts."""

REMOVABLE = ("promises", "calendar", "queue_states", "node_states")
"""Kinds whose rows may be taken away one by one; others go with their job."""

_KEPT = {"allocations": ("given_at",)}
"""Values that stay as they were first written: since when something is held does not change."""

_PARAMETERS = {"sqlite": "qmark", "postgresql": "format"}
_spelt: dict[str, dict[str, Statement]] = {}


class Statement:
    """A statement for many rows of one kind."""

    def __init__(
        self, columns: tuple[str, ...], statement: Any, dialect: Dialect, *, exact: bool = False
    ) -> None:
        positional = type(dialect)(paramstyle=_PARAMETERS[dialect.name])  # type: ignore[call-arg]
        compiled = statement.compile(dialect=positional)
        self.sql = str(compiled)
        self.exact = exact
        """Whether each row must find its place: one that does not is a mistake of the caller."""
        self._order = [columns.index(name.removeprefix("row_")) for name in compiled.positiontup]
        self._as_is = self._order == list(range(len(columns)))

    def parameters(self, rows: list[Row]) -> list[Row]:
        """The values of rows in the order of the statement."""
        if self._as_is:
            return rows
        return [tuple([row[place] for place in self._order]) for row in rows]


def statements(dialect: Dialect) -> dict[str, Statement]:
    """The statement of every kind of rows. Each may be run again with the same rows, to the same end."""
    if dialect.name not in _spelt:
        _spelt[dialect.name] = _spell(dialect)
    return _spelt[dialect.name]


def _spell(dialect: Dialect) -> dict[str, Statement]:
    exact = {"jobs": _add_jobs(dialect), "lives": _change_lives(), "events": _add_events(dialect)}
    found = {kind: _replace(kind, dialect) for kind in ORDER if kind not in (*exact, *ONCE)}
    found |= {kind: _insert(kind, dialect).on_conflict_do_nothing() for kind in ONCE}
    return {
        kind: Statement(COLUMNS[kind], statement, dialect, exact=kind in exact)
        for kind, statement in (found | exact).items()
    }


def removals(dialect: Dialect) -> dict[str, Statement]:
    """The statements that take rows away, by what tells them apart."""
    return {kind: Statement(KINDS[kind], _remove(kind, KINDS[kind]), dialect) for kind in REMOVABLE}


def _insert(kind: str, dialect: Dialect) -> Insert:
    make = sqlite.insert if dialect.name == "sqlite" else postgresql.insert
    return make(TABLES[kind]).values({name: bindparam(name) for name in COLUMNS[kind]})


def _replace(kind: str, dialect: Dialect) -> Insert:
    insert = _insert(kind, dialect)
    key = TABLES[kind].primary_key.columns.keys()
    kept = (*key, *_KEPT.get(kind, ()))
    values = {name: insert.excluded[name] for name in COLUMNS[kind] if name not in kept}
    return insert.on_conflict_do_update(index_elements=key, set_=values)


def _remove(kind: str, key: tuple[str, ...]) -> Any:
    table = TABLES[kind]
    return delete(table).where(and_(*(table.c[name] == bindparam(name) for name in key)))


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
