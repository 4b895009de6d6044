"""The tables of short tasks: batches as they were submitted, and a journal of what became of them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table

METADATA = MetaData()

# SQLite counts a key by itself only where it is an INTEGER; ours are counted by the broker.
_KEY = BigInteger().with_variant(Integer, "sqlite")

BATCHES = Table(
    "task_batches",
    METADATA,
    Column("id", _KEY, primary_key=True, autoincrement=False),
    Column("tenant", String, nullable=False),
    Column("key", String, nullable=False),
    Column("size", Integer, nullable=False),
    Column("volume", Integer, nullable=False),
    Column("at", Float, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("payloads", LargeBinary, nullable=False),
    Index("task_batches_by_key", "tenant", "key", unique=True),
)
"""`head` is what must be in memory of a batch, `payloads` what need not be."""

JOURNAL = Table(
    "task_journal",
    METADATA,
    Column("seq", _KEY, primary_key=True, autoincrement=False),
    Column("batch", _KEY, nullable=False),
    Column("kind", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("task_journal_by_batch", "batch", "seq"),
)
"""What became of tasks of a batch, in the order in which it was decided."""

HAPPENINGS = Table(
    "task_happenings",
    METADATA,
    Column("seq", _KEY, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)
"""What happened, for people; the oldest go."""

TYPES = Table(
    "task_types",
    METADATA,
    Column("type", String, primary_key=True),
    Column("versions", String, primary_key=True),
    Column("at", Float, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Who executes which versions of a type, as operators said; beside what the settings say."""

EPOCH = Table("task_epoch", METADATA, Column("only", Integer, primary_key=True), Column("epoch", _KEY))
"""Who may write: the broker that has counted it up last."""
