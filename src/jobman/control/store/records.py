"""What the store keeps, one record per row. Plain values: moments are seconds since 1970."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import msgspec


class JobRecord(msgspec.Struct, kw_only=True):
    """A job. The first part never changes; the second follows its life."""

    id: str
    number: int
    """Counts the jobs of a store: the order of submission."""
    name: str
    owner: str
    submitted_at: float
    queue: str | None = None
    priority: int = 0
    """The weight of its class."""
    account: str | None = None
    flavor: str | None = None
    labels: dict[str, str] = {}
    document: str = ""
    """The JobSpec as it was written."""
    plan: bytes = b""
    """The JSON form of the plan; the store may keep it compressed."""
    digest: str = ""
    cwd: str = ""
    environment: str | None = None
    """The digest under which the environment of submission is kept, never in the store itself."""
    options: dict[str, Any] = {}
    """How it was submitted: virtual nodes, parameters, what it is a rerun of."""

    state: str = "waiting"
    """waiting, running, succeeded, failed or cancelled."""
    held: bool = False
    reason: str = ""
    """In words, why it is as it is."""
    exit_code: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    counts: dict[str, int] = {}
    """How many replicas of tasks are in each state, and how many were retried."""
    conductor: dict[str, Any] = {}
    """What the conductor knows of the job as a whole."""


class TaskRecord(msgspec.Struct, kw_only=True):
    """A unit in a scope: the run of a task or a group. `scope` is the key of the group's replica, if any."""

    job: str
    scope: str
    unit: str
    verdict: str | None = None
    outcome: str | None = None
    counts: dict[str, int] = {}


class ReplicaRecord(msgspec.Struct, kw_only=True):
    """A replica that has left the state `waiting` at least once; others have no record."""

    job: str
    key: str
    unit: str
    index: int
    state: str
    attempt: int = 0
    since: float = 0.0
    """When it took its state."""
    exit_code: int | None = None
    reason: str = ""
    life: dict[str, Any] = {}
    """What else the conductor must remember of it."""


class AttemptRecord(msgspec.Struct, kw_only=True):
    """One attempt of a task's replica."""

    job: str
    key: str
    attempt: int
    granted_at: float
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    cpu_seconds: float = 0.0
    max_rss: int = 0
    result: str | None = None
    nodes: tuple[str, ...] = ()


class AllocationRecord(msgspec.Struct, kw_only=True):
    """What a replica of a task or a group holds, until it is given back."""

    job: str
    key: str
    attempt: int
    given_at: float
    returned_at: float | None = None
    allocation: dict[str, Any] = {}


class EventRecord(msgspec.Struct, kw_only=True):
    """Something that happened. Events are only ever added."""

    number: int
    job: str
    at: float
    kind: str
    replica: str | None = None
    attempt: int | None = None
    message: str = ""
    data: dict[str, Any] = {}


class LogRecord(msgspec.Struct, kw_only=True):
    """Where the output of a copy is, and how far it had come when it was last looked at."""

    job: str
    key: str
    attempt: int
    copy: int
    stream: str
    path: str
    node: str = ""
    start: int = 0
    size: int = 0
    ended: bool = False
    removed_at: float | None = None
    """When it was decided that it is kept no longer; `path` is empty once its file is gone, too."""


class PromiseRecord(msgspec.Struct, kw_only=True):
    """What a replica that waits was told about its start."""

    job: str
    key: str
    guaranteed_by: float | None = None
    """By when it starts at the latest, if everybody keeps to their limits."""
    expected_at: float | None = None
    expected_p90: float | None = None
    """When it starts as far as anybody can tell, and by when with nine chances in ten."""
    first_expected_at: float | None = None
    position: int = 0
    planned: dict[str, Any] = {}
    """Where it is to go; the planner's own words."""
    given_at: float


class RevisionRecord(msgspec.Struct, kw_only=True):
    """A guarantee that moved, and why; None for no guarantee. Revisions are only ever added."""

    job: str
    number: int
    """Grows within the job."""
    key: str
    at: float
    before: float | None = None
    after: float | None = None
    cause: str


class CalendarRecord(msgspec.Struct, kw_only=True):
    """A window of maintenance or an advance reservation, as it was defined."""

    name: str
    kind: Literal["maintenance", "reservation"]
    definition: dict[str, Any] = {}
    chosen: dict[str, str] = {}
    """Where only a count of nodes is defined: those that the planner chose, for each of its times by name."""
    created_by: str
    created_at: float


class StateRecord(msgspec.Struct, kw_only=True):
    """The state that an administrator has given to a queue or a node."""

    name: str
    state: str
    reason: str = ""
    by: str
    at: float


class SliceRecord(msgspec.Struct, kw_only=True, frozen=True):
    """A stretch of time in which an allocation was held, and what it cost. Never changed, never deleted.

    A refund takes back what was charged: its seconds and units are below zero.
    """

    job: str
    key: str
    attempt: int
    number: int
    kind: Literal["use", "refund"] = "use"
    start: float
    end: float
    seconds: float
    units: float
    charged: float = 0.0
    """Units that were charged for the allocation so far, these among them."""
    account: str
    owner: str
    flavor: str = ""
    queue: str = ""
    job_name: str = ""
    amounts: dict[str, float] = {}
    """What was held, in all; `node` counts nodes."""
    reason: str = ""
    """Of a refund: why."""

    @property
    def job_id(self) -> str:
        """The job once more: in the store its number alone would mean nothing when it is deleted."""
        return self.job


class BalanceRecord(msgspec.Struct, kw_only=True):
    """The sum of all slices of an owner in an account and a queue."""

    account: str
    owner: str
    queue: str = ""
    units: float = 0.0
    seconds: float = 0.0
    faded: float = 0.0
    """Units that count less the older they are, as of `at`: what fair shares go by."""
    at: float = 0.0


class Changes(msgspec.Struct, kw_only=True):
    """What one transaction writes. A record replaces the one with the same key; None takes it away.

    Events, revisions and slices are added; to add one of these again changes nothing.
    """

    jobs: dict[str, JobRecord] = {}
    """New jobs, and those whose first part is as it was: only the second is written again."""
    new_jobs: set[str] = set()
    tasks: dict[tuple[str, str, str], TaskRecord] = {}
    replicas: dict[tuple[str, str], ReplicaRecord] = {}
    attempts: dict[tuple[str, str, int], AttemptRecord] = {}
    allocations: dict[tuple[str, str, int], AllocationRecord] = {}
    logs: dict[tuple[str, str, int, int, str], LogRecord] = {}
    events: list[EventRecord] = []
    submissions: list[SubmissionRecord] = []
    promises: dict[tuple[str, str], PromiseRecord | None] = {}
    """By job and replica."""
    revisions: list[RevisionRecord] = []
    slices: list[SliceRecord] = []
    balances: dict[tuple[str, str, str], BalanceRecord] = {}
    """By account, owner and queue."""
    calendar: dict[str, CalendarRecord | None] = {}
    queue_states: dict[str, StateRecord | None] = {}
    node_states: dict[str, StateRecord | None] = {}
    deleted: set[str] = set()
    """Jobs to be forgotten with all that belongs to them; only what was charged for them stays."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not any(getattr(self, name) for name in self.__struct_fields__)

    def take_back(self, jobs: Collection[str]) -> list[EventRecord]:
        """Leave out all that is about these jobs; returns their events."""
        for table in (self.tasks, self.replicas, self.attempts, self.allocations, self.logs, self.promises):
            for key in [key for key in table if key[0] in jobs]:
                del table[key]  # type: ignore[arg-type]
        self.jobs = {id: job for id, job in self.jobs.items() if id not in jobs}
        self.new_jobs -= set(jobs)
        self.submissions = [one for one in self.submissions if not set(jobs).intersection(one.jobs)]
        self.revisions = [one for one in self.revisions if one.job not in jobs]
        self.slices = [one for one in self.slices if one.job not in jobs]
        dropped = [event for event in self.events if event.job in jobs]
        self.events = [event for event in self.events if event.job not in jobs]
        return dropped


class SubmissionRecord(msgspec.Struct, kw_only=True):
    """An answered request to submit, by its idempotency key."""

    owner: str
    key: str
    digest: str
    """Of the request: the same key with another request is a mistake."""
    jobs: tuple[str, ...]
    at: float


class TokenRecord(msgspec.Struct, kw_only=True):
    """Who may speak to a shared service. Only a hash of the token is kept."""

    name: str
    user: str
    role: str
    hash: str
    created_at: float
    revoked_at: float | None = None
