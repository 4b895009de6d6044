"""What the journal keeps: batches as they were submitted, and what became of their tasks."""

from __future__ import annotations

import msgspec

ENDS, AGAIN, REVIVED, DROPPED, FETCHED = 1, 2, 3, 4, 5
"""Kinds of entries."""


class StoredBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as it was submitted."""

    id: int
    tenant: str
    key: str
    size: int
    """How many tasks it has."""
    volume: int
    """How many bytes all payloads are."""
    at: float
    head: bytes
    payloads: bytes = b""


class Entry(msgspec.Struct, frozen=True):
    """Something that became of tasks of a batch."""

    seq: int
    batch: int
    kind: int
    body: bytes
