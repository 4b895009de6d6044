"""What the scheduler keeps: promises, the calendar, states, what was charged, and when output was removed."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, Double, ForeignKeyConstraint, Integer, PrimaryKeyConstraint, Text
from sqlalchemy.dialects.postgresql import TEXT

revision = "0002"
down_revision = "0001"

NUMBER = BigInteger().with_variant(Integer(), "sqlite")
WORDS = Text().with_variant(TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables; of those that are there, one gets a column."""
    op.add_column("log_positions", Column("removed_at", Double()))
    _create_promises()
    _create_what_administrators_say()
    _create_what_is_charged()


def _create_promises() -> None:
    op.create_table(
        "promises",
        _needed("job", NUMBER),
        _needed("key", WORDS),
        Column("guaranteed_by", Double()),
        Column("expected_at", Double()),
        Column("expected_p90", Double()),
        Column("first_expected_at", Double()),
        _needed("position", Integer()),
        _needed("planned", Text()),
        _needed("given_at", Double()),
        PrimaryKeyConstraint("job", "key", name="promises_pkey"),
        _of_job("promises"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "revisions",
        _needed("job", NUMBER),
        _needed("number", NUMBER),
        _needed("key", WORDS),
        _needed("at", Double()),
        Column("before", Double()),
        Column("after", Double()),
        _needed("cause", WORDS),
        PrimaryKeyConstraint("job", "number", "key", name="revisions_pkey"),
        _of_job("revisions"),
        sqlite_with_rowid=False,
    )


def _create_what_administrators_say() -> None:
    op.create_table(
        "calendar",
        _needed("name", WORDS),
        _needed("kind", WORDS),
        _needed("definition", Text()),
        _needed("chosen", Text()),
        _needed("created_by", WORDS),
        _needed("created_at", Double()),
        PrimaryKeyConstraint("name", name="calendar_pkey"),
    )
    for name in ("queue_states", "node_states"):
        op.create_table(
            name,
            _needed("name", WORDS),
            _needed("state", WORDS),
            _needed("reason", WORDS),
            _needed("by", WORDS),
            _needed("at", Double()),
            PrimaryKeyConstraint("name", name=f"{name}_pkey"),
        )


def _create_what_is_charged() -> None:
    op.create_table(
        "slices",
        _needed("job", NUMBER),
        _needed("key", WORDS),
        _needed("attempt", Integer()),
        _needed("number", Integer()),
        _needed("kind", WORDS),
        _needed("start", Double()),
        _needed("end", Double()),
        _needed("seconds", Double()),
        _needed("units", Double()),
        _needed("charged", Double()),
        _needed("account", WORDS),
        _needed("owner", WORDS),
        _needed("flavor", WORDS),
        _needed("queue", WORDS),
        _needed("job_id", WORDS),
        _needed("job_name", WORDS),
        _needed("amounts", Text()),
        _needed("reason", WORDS),
        PrimaryKeyConstraint("job", "key", "attempt", "number", "kind", name="slices_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("slices_of_account", "slices", ["account", "end"])
    op.create_index("slices_of_owner", "slices", ["owner", "end"])
    op.create_index("slices_by_end", "slices", ["end"])
    op.create_table(
        "balances",
        _needed("account", WORDS),
        _needed("owner", WORDS),
        _needed("queue", WORDS),
        _needed("units", Double()),
        _needed("seconds", Double()),
        _needed("faded", Double()),
        _needed("at", Double()),
        PrimaryKeyConstraint("account", "owner", "queue", name="balances_pkey"),
        sqlite_with_rowid=False,
    )


def _needed(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, autoincrement=False)


def _of_job(table: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["job"], ["jobs.number"], name=f"{table}_job_fkey", ondelete="CASCADE")
