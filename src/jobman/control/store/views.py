"""What is asked of the store and what it answers, besides records."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from jobman.control.store.records import (
    AllocationRecord,
    AttemptRecord,
    JobRecord,
    ReplicaRecord,
    TaskRecord,
)

T = TypeVar("T")


class JobFilter(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which jobs are meant: those that fit everything that is given."""

    owner: str | None = None
    states: frozenset[str] = frozenset()
    name: str | None = None
    """A pattern: `*` stands for any text, `?` for any one character."""
    labels: dict[str, str | None] = {}
    """Labels the jobs have, with this value or, for None, with any."""
    queue: str | None = None
    flavor: str | None = None
    since: float | None = None
    """Submitted then or later."""
    until: float | None = None
    """Submitted before then."""
    text: str | None = None
    """A part of the id, name, queue, flavor, account or of a label `name=value`, in any case."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some of what was asked for, and where to go on."""

    items: list[T]
    cursor: str | None = None
    """What to ask for the next page with; None where there is none."""


class Unfinished(msgspec.Struct, kw_only=True):
    """All that is needed to take up work after a restart, as of one moment."""

    jobs: list[JobRecord]
    """Those that are not over, with documents and plans, in the order of submission."""
    tasks: list[TaskRecord]
    replicas: list[ReplicaRecord]
    attempts: list[AttemptRecord]
    """Those that have not ended, of whatever job."""
    allocations: list[AllocationRecord]
    """Those that were not given back, of whatever job."""


class Numbers(msgspec.Struct, frozen=True):
    """The highest numbers that were ever given."""

    job: int
    event: int


class Holder(msgspec.Struct, frozen=True):
    """Which service has claimed the store, and how many have before it."""

    epoch: int
    owner: str
