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
from jobman.spec.shapes import Alternative

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


class PastRun(msgspec.Struct, frozen=True):
    """How long a replica at the top level of a job held what it was given."""

    job: str
    name: str
    owner: str
    account: str | None
    flavor: str | None
    key: str
    seconds: float
    reason: str | None
    """Why its attempt failed; empty where it did not, None for a group, which has no attempt of its own."""
    ended_at: float
    limit: float | None = None
    """The time limit of its document, if it has one and the plan is not too large to look."""
    grace: float | None = None
    parts: Alternative = ()
    """What it asked for, in the alternative it liked best; nothing where the plan was not looked into."""

    @property
    def unit(self) -> str:
        """The unit it is a replica of."""
        return self.key.rpartition(".")[0]


class Charged(msgspec.Struct, frozen=True):
    """How far an allocation is charged: so many slices, up to a moment, and what they cost."""

    slices: int = 0
    upto: float = 0.0
    units: float = 0.0


class UsageFilter(msgspec.Struct, kw_only=True, frozen=True):
    """Which slices are meant: those that fit everything that is given, and end within the time."""

    accounts: tuple[str, ...] | None = None
    owner: str | None = None
    since: float | None = None
    until: float | None = None


class UsageSum(msgspec.Struct, kw_only=True):
    """What slices add up to. Of the first part only what they were grouped by is given."""

    account: str = ""
    owner: str = ""
    job_id: str = ""
    job_name: str = ""
    flavor: str = ""
    day: int = 0
    """Days since 1970, in UTC."""

    jobs: int = 0
    seconds: float = 0.0
    """Time that allocations were held, added up."""
    units: float = 0.0
    """What is left of the charge when refunds are taken off."""
    refunded: float = 0.0
    core_seconds: float = 0.0
    gpu_seconds: float = 0.0
    node_seconds: float = 0.0
