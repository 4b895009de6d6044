"""The first tables."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import TEXT

revision = "0001"
down_revision = None

NUMBER = BigInteger().with_variant(Integer(), "sqlite")
WORDS = Text().with_variant(TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    _create_jobs()
    _create_what_belongs_to_jobs()
    _create_the_rest()


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        _needed("number", NUMBER),
        _needed("id", WORDS),
        _needed("name", WORDS),
        _needed("owner", WORDS),
        _needed("state", WORDS),
        _needed("submitted_at", Double()),
        Column("queue", WORDS),
        Column("flavor", WORDS),
        _needed("search", WORDS),
        _needed("priority", NUMBER),
        Column("account", WORDS),
        _needed("held", Boolean()),
        _needed("reason", WORDS),
        Column("exit_code", Integer()),
        Column("started_at", Double()),
        Column("ended_at", Double()),
        _needed("counts", Text()),
        _needed("labels", Text()),
        _needed("digest", WORDS),
        _needed("cwd", WORDS),
        Column("environment", WORDS),
        _needed("options", Text()),
        _needed("conductor", Text()),
        PrimaryKeyConstraint("number", name="jobs_pkey"),
        UniqueConstraint("id", name="jobs_id_key"),
    )
    _index("jobs_of_owner", "jobs", "owner", "number")
    _index("jobs_of_owner_in_state", "jobs", "owner", "state", "number")
    _index("jobs_in_state", "jobs", "state", "number")
    _index("jobs_of_name", "jobs", "name", "number", "owner")
    _index("jobs_by_submission", "jobs", "submitted_at", "number")
    alive = "state NOT IN ('succeeded', 'failed', 'cancelled')"
    _index("jobs_alive", "jobs", "number", "state", where=alive)
    _index("jobs_of_queue", "jobs", "queue", "number", where="queue IS NOT NULL")


def _create_what_belongs_to_jobs() -> None:
    _child("documents", [], _needed("document", WORDS), _needed("plan", LargeBinary()))
    _child("labels", ["name"], _needed("name", WORDS), _needed("value", WORDS))
    _index("labels_by_value", "labels", "name", "value", "job")
    _child(
        "tasks",
        ["scope", "unit"],
        _needed("scope", WORDS),
        _needed("unit", WORDS),
        Column("verdict", WORDS),
        Column("outcome", WORDS),
        _needed("counts", Text()),
    )
    _child(
        "replicas",
        ["unit", "index", "key"],
        _needed("unit", WORDS),
        _needed("index", Integer()),
        _needed("key", WORDS),
        _needed("state", WORDS),
        _needed("attempt", Integer()),
        _needed("since", Double()),
        Column("exit_code", Integer()),
        _needed("reason", WORDS),
        _needed("life", Text()),
    )
    _child(
        "attempts",
        ["key", "attempt"],
        _needed("key", WORDS),
        _needed("attempt", Integer()),
        _needed("granted_at", Double()),
        Column("started_at", Double()),
        Column("ended_at", Double()),
        Column("exit_code", Integer()),
        Column("signal", Integer()),
        _needed("reason", WORDS),
        _needed("message", WORDS),
        _needed("cpu_seconds", Double()),
        _needed("max_rss", NUMBER),
        Column("result", WORDS),
        _needed("nodes", Text()),
    )
    _index("attempts_under_way", "attempts", "job", where="ended_at IS NULL")
    _child(
        "allocations",
        ["key", "attempt"],
        _needed("key", WORDS),
        _needed("attempt", Integer()),
        _needed("given_at", Double()),
        Column("returned_at", Double()),
        _needed("allocation", Text()),
    )
    _index("allocations_held", "allocations", "job", where="returned_at IS NULL")
    _child(
        "log_positions",
        ["key", "attempt", "copy", "stream"],
        _needed("key", WORDS),
        _needed("attempt", Integer()),
        _needed("copy", Integer()),
        _needed("stream", WORDS),
        _needed("path", WORDS),
        _needed("node", WORDS),
        _needed("start", NUMBER),
        _needed("size", NUMBER),
        _needed("ended", Boolean()),
    )
    op.create_table(
        "events",
        _needed("number", NUMBER),
        Column("job", NUMBER),
        _needed("at", Double()),
        _needed("kind", WORDS),
        Column("replica", WORDS),
        Column("attempt", Integer()),
        _needed("message", WORDS),
        _needed("data", Text()),
        PrimaryKeyConstraint("number", name="events_pkey"),
        _of_job("events"),
    )
    _index("events_of_job", "events", "job", "number")


def _create_the_rest() -> None:
    op.create_table(
        "submissions",
        _needed("owner", WORDS),
        _needed("key", WORDS),
        _needed("digest", WORDS),
        _needed("jobs", Text()),
        _needed("at", Double()),
        PrimaryKeyConstraint("owner", "key", name="submissions_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tokens",
        _needed("name", WORDS),
        _needed("user", WORDS),
        _needed("role", WORDS),
        _needed("hash", WORDS),
        _needed("created_at", Double()),
        Column("revoked_at", Double()),
        PrimaryKeyConstraint("name", name="tokens_pkey"),
        UniqueConstraint("hash", name="tokens_hash_key"),
    )
    op.create_table(
        "meta",
        _needed("name", WORDS),
        _needed("value", WORDS),
        PrimaryKeyConstraint("name", name="meta_pkey"),
    )


def _needed(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, autoincrement=False)


def _child(name: str, key: list[str], *columns: Column[Any]) -> None:
    op.create_table(
        name,
        _needed("job", NUMBER),
        *columns,
        PrimaryKeyConstraint("job", *key, name=f"{name}_pkey"),
        _of_job(name),
        sqlite_with_rowid=False,
    )


def _of_job(table: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["job"], ["jobs.number"], name=f"{table}_job_fkey", ondelete="CASCADE")


def _index(name: str, table: str, *columns: str, where: str | None = None) -> None:
    some: dict[str, Any] = (
        {} if where is None else {"sqlite_where": text(where), "postgresql_where": text(where)}
    )
    op.create_index(name, table, list(columns), **some)
