"""What the service is asked and what it answers: the bodies of `/v1`, declared once for both ends."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")

JobState = Literal["waiting", "running", "succeeded", "failed", "cancelled"]
ReplicaState = Literal[
    "waiting",
    "queued",
    "starting",
    "running",
    "frozen",
    "stopping",
    "resting",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",
]
Role = Literal["admin", "user"]
FINAL_STATES = ("succeeded", "failed", "cancelled")


class Body(msgspec.Struct, omit_defaults=False):
    """A JSON object. Every body says `kw_only` for itself: msgspec does not pass it on."""


class Submission(Body, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A request to run a document: every job in it is submitted, or none."""

    document: str = ""
    plan: str | None = None
    """The JSON form of a plan, in place of a document."""
    file: str = "-"
    """The name messages use for it."""
    parameters: dict[str, str] = {}
    settings: str | None = None
    """A text of settings to use instead of the service's own."""
    settings_file: str | None = None
    name: str | None = None
    """Replaces the name of the document."""
    cwd: str | None = None
    environment: dict[str, str] | None = None
    """The environment of submission; only a service of the same user takes it."""
    virtual: str | None = None
    """Emulated nodes for these jobs alone, such as 4x4."""
    hold: bool = False
    no_container: bool = False
    """Run tasks that name an image without a container."""
    reservation: str | None = None
    """The advance reservation in which its jobs run."""
    dry_run: bool = False
    """Answer what would happen, and submit nothing."""
    what_if: bool = False
    """Answer when its jobs would start, and submit nothing."""
    rerun_of: str | None = None
    """A job to run once more; the document is then that job's own."""
    failed_only: bool = False
    """Of a rerun: what succeeded before counts as done."""
    keep_logs: str | None = None
    """On a cluster without a service: where the output of copies is kept. A service keeps it by itself."""


class Problem(Body, omit_defaults=True, kw_only=True):
    """One thing that is wrong, as `jobman check` tells it."""

    code: str
    message: str
    advice: str = ""
    place: dict[str, Any] | None = None


class Failure(Body, omit_defaults=True, kw_only=True):
    """An answer that is not what was asked for. `code` is stable; `exit` is the command line's exit code."""

    code: str
    message: str
    advice: str = ""
    exit: int = 1
    problems: list[dict[str, Any]] = []
    largest: float | None = None
    """Where more time would delay somebody (`would-delay`): the most that would be granted, in seconds."""
    request: str = ""


class Estimate(Body, kw_only=True):
    """When something that waits will start."""

    job: str = ""
    replica: str = ""
    starts_now: bool = False
    guaranteed_by: float | None = None
    """At the latest, if everybody keeps to their limits; null where nothing can be promised."""
    unpromised: str = ""
    """Why nothing can be promised, where that is so; in words without a full stop."""
    expected_at: float | None = None
    expected_p90: float | None = None
    """As far as anybody can tell, and with nine chances in ten by then."""
    position: int | None = None
    """Its place in the queue, from 1."""
    queue: str = ""
    suggestion: str = ""
    """What would make it start sooner, found by trying; only where it was asked what would be if."""


class Job(Body, kw_only=True):
    """A job at a glance."""

    id: str
    name: str
    owner: str
    state: JobState
    held: bool = False
    reason: str = ""
    queue: str | None = None
    account: str | None = None
    flavor: str | None = None
    labels: dict[str, str] = {}
    priority: int = 0
    submitted_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    counts: dict[str, int] = {}
    """Replicas of tasks by state; `retried` counts attempts beyond the first."""
    estimate: Estimate | None = None
    """Of a job that waits, in lists: what it was promised."""
    ends_by: float | None = None
    """Of a job that runs, in lists: when the last of what runs now reaches its limit."""


class Condition(Body, kw_only=True):
    """One typed statement about a job, as Kubernetes has them."""

    type: str
    """Submitted, Held, GatesClosed, Started, Suspended, PartiallyFailed, Complete, Failed, Cancelled,
    OutputRemoved."""
    status: bool
    since: float
    message: str = ""


class Task(Body, kw_only=True):
    """A task or group of a job, in one scope."""

    unit: str
    scope: str = ""
    name: str
    kind: Literal["task", "group"] = "task"
    service: bool = False
    replicas: int = 1
    copies: int = 1
    """Copies of its command that one replica runs, by the first alternative."""
    outcome: str | None = None
    counts: dict[str, int] = {}
    depends_on: list[str] = []
    line: int = 0


class Details(Job, kw_only=True):
    """A job with its tasks, conditions and document."""

    tasks: list[Task] = []
    conditions: list[Condition] = []
    document: str = ""
    digest: str = ""
    cwd: str = ""
    annotations: dict[str, str] = {}
    managed_by: str | None = None
    belongs_to: str | None = None
    """The `owner` of the document, such as a workflow."""
    gates: dict[str, bool] = {}
    """Gates of the job, and whether each is open."""
    options: dict[str, Any] = {}
    results: dict[str, str] = {}
    """What replicas left in their `result_file`, of a thousand attempts at most."""


class Attempt(Body, kw_only=True):
    """One attempt of a replica."""

    replica: str
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
    nodes: list[str] = []


class Replica(Body, kw_only=True):
    """A replica of a task or group."""

    key: str
    unit: str
    index: int
    state: ReplicaState
    attempt: int = 0
    since: float = 0.0
    exit_code: int | None = None
    reason: str = ""


class Event(Body, kw_only=True):
    """Something that happened."""

    number: int
    job: str
    at: float
    kind: str
    replica: str | None = None
    attempt: int | None = None
    message: str = ""
    data: dict[str, Any] = {}


class LogLine(Body, omit_defaults=True, kw_only=True):
    """A line of output of a copy; `partial` where it goes on in the next."""

    at: float
    replica: str
    attempt: int
    copy: int
    node: str = ""
    stream: Literal["stdout", "stderr", "note"]
    text: str
    partial: bool = False
    end: int = 0
    """The offset behind it in its file: a line that comes again after a break is known by it."""


BlockerKind = Literal[
    "dependency",
    "gate",
    "hold",
    "start",
    "parallelism",
    "turn",
    "retry",
    "order",
    "resources",
    "limit",
    "reservation",
    "maintenance",
    "priority",
    "queue",
    "node",
    "never",
]
"""What a job waits for: others of it, somebody's act, its time, or nodes (the last eight)."""


class Blocker(Body, kw_only=True):
    """One thing a job or replica waits for."""

    kind: BlockerKind
    replica: str = ""
    message: str


class Factor(Body, kw_only=True):
    """One part of a priority."""

    name: str
    raw: float
    weight: float
    contribution: float


class Revision(Body, kw_only=True):
    """A guarantee that moved."""

    at: float
    replica: str
    before: float | None
    after: float | None
    cause: str


class Why(Body, kw_only=True):
    """Why a job is where it is, in words."""

    job: str
    state: JobState
    summary: str
    position: int | None = None
    """Its place in the queue, from 1."""
    queue: str = ""
    blockers: list[Blocker] = []
    estimate: Estimate | None = None
    """Of the first of its replicas that waits for nodes."""
    priority: float | None = None
    factors: list[Factor] = []
    revisions: list[Revision] = []
    """The last ones, newest first."""
    suggestion: str = ""


class Node(Body, kw_only=True):
    """A node and how much of it is in use."""

    name: str
    state: str = "up"
    reason: str = ""
    """Why it is not up, and who says so."""
    amounts: dict[str, float] = {}
    used: dict[str, float] = {}
    foreign: dict[str, float] = {}
    """What of that others than the service use, or what is missing of the node."""
    facts: dict[str, str] = {}
    labels: dict[str, str] = {}
    jobs: list[str] = []


class QueueRow(Body, kw_only=True):
    """The jobs of one flavor: how many wait and run, how many are yours, what each asks for."""

    flavor: str | None
    resources: dict[str, float]
    waiting: int
    running: int
    yours_waiting: int = 0
    yours_running: int = 0
    next_start: str = ""
    """When the next of this flavor can start, in words."""


class Status(Body, kw_only=True):
    """The service itself."""

    version: str
    pid: int
    mode: Literal["embedded", "shared"]
    since: float
    database: str
    folder: str = ""
    socket: str = ""
    listen: str = ""
    jobs: dict[str, int] = {}
    engine: str = "local"
    healthy: bool = True
    trouble: str = ""
    """In words, what keeps it from working as it should (a full disk)."""
    notes: list[str] = []
    """What whoever runs it should know, such as settings that count when it starts again."""


class Submitted(Body, kw_only=True):
    """The answer to a submission."""

    jobs: list[Job]
    warnings: list[dict[str, Any]] = []
    replayed: bool = False
    """Whether an earlier request with this idempotency key had submitted them."""
    estimates: list[Estimate] = []
    """When the first replica of each job starts, where that could be said at once."""
    notes: list[str] = []


class Page(Body, Generic[T], kw_only=True):
    """One page of a list; ask again with `cursor` for the next."""

    items: list[T]
    cursor: str | None = None


class Listing(Body, Generic[T], kw_only=True):
    """A list that is short enough to be given at once."""

    items: list[T]


class Copy(Body, kw_only=True):
    """A running copy of a replica, as `connect` needs it."""

    replica: str
    attempt: int
    copy: int
    node: str = ""
    pid: int | None = None
    cwd: str = ""
    container: str | None = None


class Extension(Body, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A request for more time, for the whole job or one task of it."""

    seconds: Annotated[float, msgspec.Meta(gt=0, le=1e9)]
    task: str | None = None


class Deleted(Body, kw_only=True):
    """How many jobs were deleted."""

    deleted: int


class Health(Body, kw_only=True):
    """Whether the service answers, and of which version it is."""

    status: Literal["ok", "degraded"]
    version: str


class NewToken(Body, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A request for a token."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$")]
    user: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._@-]{0,99}$")]
    role: Role = "user"


class Token(Body, kw_only=True):
    """Who may speak to a shared service; the token itself is not known any more."""

    name: str
    user: str
    role: Role
    created_at: float
    revoked_at: float | None = None


class TokenMade(Token, kw_only=True):
    """A new token: the only answer that contains it."""

    token: str
