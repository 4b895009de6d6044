"""What the store keeps, one record per row. Plain values: moments are seconds since 1970."""

from __future__ import annotations

from typing import Any

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


class Changes(msgspec.Struct, kw_only=True):
    """What one transaction writes. A record replaces the one with the same key; events are added."""

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
    deleted: set[str] = set()
    """Jobs to be forgotten with all that belongs to them."""


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
