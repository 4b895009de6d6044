"""What is said of tasks: by those who submit them, by agents that have executed them, and in the journal."""

from __future__ import annotations

import msgspec


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a task that failed is tried again, and after how long."""

    limit: int = 0
    delay: float = 0.0
    factor: float = 2.0

    def pause(self, failures: int) -> float:
        """Seconds before the next attempt of one that has failed so often."""
        return self.delay * self.factor ** (failures - 1)


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that are submitted together."""

    type: str
    payloads: list[bytes] = []
    references: list[str] = []
    """In place of payloads: where each of them is, as its worker understands it; nobody else reads it."""
    version: str | None = None
    parameters: dict[str, str] = {}
    mapper: str = ""
    """Who chooses the image, by a name that the site knows; the table of types where nobody is named."""
    key: str = ""
    """What is submitted twice under one key is there once."""
    name: str = ""
    estimates: float | list[float] | None = None
    sizes: float | list[float] | None = None
    """What the duration of each depends on, or of all, where it is known."""
    priority: int = 0
    deadline: float | None = None
    """Seconds from now."""
    retries: Retries = Retries()

    @property
    def size(self) -> int:
        return len(self.references or self.payloads)


class Acceptance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is answered to a submission."""

    batch: int
    size: int
    ends: list[msgspec.Raw] = []
    """What became of a task that has ended meanwhile, as `Ends`; for those who ask for it."""
    place: int = 0
    """Up to which all is written then."""


def of_each(column: float | list[float] | None, index: int) -> float | None:
    """What a column says of one task; one number stands for all."""
    return column[index] if isinstance(column, list) else column


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """All of a batch but its payloads, as the journal keeps it."""

    type: str
    version: str | None
    image: str
    estimates: float | list[float]
    size: int
    name: str = ""
    parameters: dict[str, str] = {}
    mapper: str = ""
    resources: dict[str, str] = {}
    """Of a worker of the image, and its environment, as the mapper said."""
    environment: dict[str, str] = {}
    sizes: float | list[float] | None = None
    priority: int = 0
    ends_at: float | None = None
    """The deadline, on the clock of the wall."""
    retries: Retries = Retries()
    is_hinted: bool = True
    """Whether its author said how long the tasks take."""
    by_reference: bool = False
    """Whether what is kept as payloads are the places of them."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What became of tasks of a batch at an agent; the columns belong together."""

    batch: int
    indexes: list[int]
    status: int
    seconds: list[float]
    results: list[bytes] = []
    """One for each, or none at all."""
    attempts: dict[int, int] = {}
    """Which attempt it was, of those that were given out more than once."""
    reasons: dict[int, str] = {}
    """Why, of those that did not complete, by index."""


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """The end of tasks, as the journal keeps it and as it is told to whoever waits."""

    indexes: list[int]
    status: int
    attempts: dict[int, int] = {}
    """Of those that were given out more than once."""
    seconds: list[float] = []
    results: list[bytes] = []
    reason: str = ""
    """Of all of them."""
    reasons: dict[int, str] = {}
    """Of single ones, by index."""
    deaths: int = 0
    """Workers that each of them took with it."""


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent wants, and what it has already."""

    image: str
    seconds: float
    """Of work. With none it only says that it is there, and hears what is cancelled."""
    most: int = 10_000
    wait: float = 0.0
    slots: int = 1
    have: dict[int, list[int]] | None = None
    """By batch, all it has; said to a broker that may not know it."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of a batch for an agent."""

    epoch: int
    batch: int
    low: int
    payloads: list[bytes]
    attempts: dict[int, int] = {}
    deadline: float | None = None
    """Seconds that are left."""
    seconds: float = 0.0
    """How long each is thought to take."""
    by_reference: bool = False


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is to do."""

    work: list[Work] = []
    cancel: list[tuple[int, int]] = []
    """Batch and index of what it has and nobody wants any more."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What became of tasks, and from where to ask on."""

    place: int
    ends: list[tuple[int, Ends]] = []


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why something was not done."""

    code: str
    message: str
    advice: str = ""


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that failed, or took a worker with them, and are tried again: so often they did so far."""

    failures: dict[int, int] = {}
    deaths: dict[int, int] = {}
    seconds: float = 0.0
    """That the attempts took which came to nothing."""


class HPCTask(msgspec.Struct, frozen=True, kw_only=True):
    """A single task, as it was submitted."""

    id: str
    name: str
    type: str
    version: str | None
    parameters: dict[str, str]
    payload: bytes
    """Or the place of it, where it was handed over by reference."""
    mapper: str


class HPCTaskRunnable(msgspec.Struct, frozen=True, kw_only=True):
    """A task and the image that its mapper chose, where it stands and how long it is thought to take."""

    task: HPCTask
    image: str
    estimate: float
    status: str
    attempt: int
    agent: str = ""
    """Who has it, if anybody does."""


class Some(msgspec.Struct, frozen=True):
    """Tasks of a batch that somebody decided about."""

    indexes: list[int]
