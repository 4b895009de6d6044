"""The tables, the same on SQLite and PostgreSQL.

What belongs to a job refers to the job's number, not to its id: numbers grow, so that what is new lies
together at the end of a table, and writing costs the same with a hundred thousand jobs as with none.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, MetaData, Table, text

from jobman.control.store.columns import Json, Number, Packed, Words

REVISION = "0002"
"""The newest of `migrations/versions`; named here because looking there would cost an import of alembic."""

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
    }
)


def _job(**options: Any) -> Column[Any]:
    return Column("job", Number, ForeignKey("jobs.number", ondelete="CASCADE"), **options)


def _child(name: str, *columns: Column[Any] | Index) -> Table:
    """A table of what belongs to jobs, kept in the order of its key."""
    return Table(
        name, metadata, _job(primary_key=True, autoincrement=False), *columns, sqlite_with_rowid=False
    )


# Narrow columns first: a walk over many jobs reads no further than it must.
jobs = Table(
    "jobs",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("id", Words, nullable=False, unique=True),
    Column("name", Words, nullable=False),
    Column("owner", Words, nullable=False),
    Column("state", Words, nullable=False),
    Column("submitted_at", Double, nullable=False),
    Column("queue", Words),
    Column("flavor", Words),
    Column("search", Words, nullable=False),
    Column("priority", Number, nullable=False),
    Column("account", Words),
    Column("held", Boolean, nullable=False),
    Column("reason", Words, nullable=False),
    Column("exit_code", Integer),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("counts", Json(dict[str, int]), nullable=False),
    Column("labels", Json(dict[str, str]), nullable=False),
    Column("digest", Words, nullable=False),
    Column("cwd", Words, nullable=False),
    Column("environment", Words),
    Column("options", Json(dict[str, Any]), nullable=False),
    Column("conductor", Json(dict[str, Any]), nullable=False),
)
Index("jobs_of_owner", jobs.c.owner, jobs.c.number)
Index("jobs_of_owner_in_state", jobs.c.owner, jobs.c.state, jobs.c.number)
Index("jobs_in_state", jobs.c.state, jobs.c.number)
Index("jobs_of_name", jobs.c.name, jobs.c.number, jobs.c.owner)
Index("jobs_by_submission", jobs.c.submitted_at, jobs.c.number)
# Spelt out, as an index of some rows serves only those who ask in the same words.
ALIVE = text("state NOT IN ('succeeded', 'failed', 'cancelled')")
"""That a job is not over."""
Index("jobs_alive", jobs.c.number, jobs.c.state, sqlite_where=ALIVE, postgresql_where=ALIVE)
_queued = jobs.c.queue.is_not(None)
Index(
    "jobs_of_queue", jobs.c.queue, jobs.c.number, sqlite_where=_queued, postgresql_where=_queued
)  # most stores have no queues

documents = _child(
    "documents", Column("document", Words, nullable=False), Column("plan", Packed, nullable=False)
)

labels = _child(
    "labels",
    Column("name", Words, primary_key=True),
    Column("value", Words, nullable=False),
)
Index("labels_by_value", labels.c.name, labels.c.value, labels.c.job)

tasks = _child(
    "tasks",
    Column("scope", Words, primary_key=True),
    Column("unit", Words, primary_key=True),
    Column("verdict", Words),
    Column("outcome", Words),
    Column("counts", Json(dict[str, int]), nullable=False),
)

# The key alone tells replicas apart; unit and index stand before it so that they are listed in their order.
replicas = _child(
    "replicas",
    Column("unit", Words, primary_key=True),
    Column("index", Integer, primary_key=True, autoincrement=False),
    Column("key", Words, primary_key=True),
    Column("state", Words, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("exit_code", Integer),
    Column("reason", Words, nullable=False),
    Column("life", Json(dict[str, Any]), nullable=False),
)

attempts = _child(
    "attempts",
    Column("key", Words, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("granted_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("reason", Words, nullable=False),
    Column("message", Words, nullable=False),
    Column("cpu_seconds", Double, nullable=False),
    Column("max_rss", Number, nullable=False),
    Column("result", Words),
    Column("nodes", Json(tuple[str, ...]), nullable=False),
)
_under_way = attempts.c.ended_at.is_(None)
Index("attempts_under_way", attempts.c.job, sqlite_where=_under_way, postgresql_where=_under_way)

allocations = _child(
    "allocations",
    Column("key", Words, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("given_at", Double, nullable=False),
    Column("returned_at", Double),
    Column("allocation", Json(dict[str, Any]), nullable=False),
)
_held = allocations.c.returned_at.is_(None)
Index("allocations_held", allocations.c.job, sqlite_where=_held, postgresql_where=_held)

log_positions = _child(
    "log_positions",
    Column("key", Words, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("copy", Integer, primary_key=True, autoincrement=False),
    Column("stream", Words, primary_key=True),
    Column("path", Words, nullable=False),
    Column("node", Words, nullable=False),
    Column("start", Number, nullable=False),
    Column("size", Number, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("removed_at", Double),
)

events = Table(
    "events",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    _job(),
    Column("at", Double, nullable=False),
    Column("kind", Words, nullable=False),
    Column("replica", Words),
    Column("attempt", Integer),
    Column("message", Words, nullable=False),
    Column("data", Json(dict[str, Any]), nullable=False),
)
Index("events_of_job", events.c.job, events.c.number)

promises = _child(
    "promises",
    Column("key", Words, primary_key=True),
    Column("guaranteed_by", Double),
    Column("expected_at", Double),
    Column("expected_p90", Double),
    Column("first_expected_at", Double),
    Column("position", Integer, nullable=False),
    Column("planned", Json(dict[str, Any]), nullable=False),
    Column("given_at", Double, nullable=False),
)

revisions = _child(
    "revisions",
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("key", Words, primary_key=True),
    Column("at", Double, nullable=False),
    Column("before", Double),
    Column("after", Double),
    Column("cause", Words, nullable=False),
)

calendar = Table(
    "calendar",
    metadata,
    Column("name", Words, primary_key=True),
    Column("kind", Words, nullable=False),
    Column("definition", Json(dict[str, Any]), nullable=False),
    Column("chosen", Json(dict[str, str]), nullable=False),
    Column("created_by", Words, nullable=False),
    Column("created_at", Double, nullable=False),
)


def _states(name: str) -> Table:
    """A table of what administrators said of things that have names."""
    return Table(
        name,
        metadata,
        Column("name", Words, primary_key=True),
        Column("state", Words, nullable=False),
        Column("reason", Words, nullable=False),
        Column("by", Words, nullable=False),
        Column("at", Double, nullable=False),
    )


queue_states = _states("queue_states")
node_states = _states("node_states")

# What was charged outlives its job: numbers of jobs are never given twice, so none is needed to refer to.
slices = Table(
    "slices",
    metadata,
    Column("job", Number, primary_key=True, autoincrement=False),
    Column("key", Words, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", Words, primary_key=True),
    Column("start", Double, nullable=False),
    Column("end", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("units", Double, nullable=False),
    Column("charged", Double, nullable=False),
    Column("account", Words, nullable=False),
    Column("owner", Words, nullable=False),
    Column("flavor", Words, nullable=False),
    Column("queue", Words, nullable=False),
    Column("job_id", Words, nullable=False),
    Column("job_name", Words, nullable=False),
    Column("amounts", Json(dict[str, float]), nullable=False),
    Column("reason", Words, nullable=False),
    sqlite_with_rowid=False,
)
Index("slices_of_account", slices.c.account, slices.c.end)
Index("slices_of_owner", slices.c.owner, slices.c.end)
Index("slices_by_end", slices.c.end)

balances = Table(
    "balances",
    metadata,
    Column("account", Words, primary_key=True),
    Column("owner", Words, primary_key=True),
    Column("queue", Words, primary_key=True),
    Column("units", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("faded", Double, nullable=False),
    Column("at", Double, nullable=False),
    sqlite_with_rowid=False,
)

submissions = Table(
    "submissions",
    metadata,
    Column("owner", Words, primary_key=True),
    Column("key", Words, primary_key=True),
    Column("digest", Words, nullable=False),
    Column("jobs", Json(tuple[str, ...]), nullable=False),
    Column("at", Double, nullable=False),
    sqlite_with_rowid=False,
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", Words, primary_key=True),
    Column("user", Words, nullable=False),
    Column("role", Words, nullable=False),
    Column("hash", Words, nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
    Column("revoked_at", Double),
)

meta = Table(
    "meta", metadata, Column("name", Words, primary_key=True), Column("value", Words, nullable=False)
)
