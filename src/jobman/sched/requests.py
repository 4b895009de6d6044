"""What asks for resources: a request, and what the planner says about it. Plain values."""

from __future__ import annotations

from math import inf

import msgspec

from jobman.sched.wishes import NO_WISHES, Wishes
from jobman.spec.shapes import Alternatives


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One gang that is placed whole or not at all: a replica of a task, or a group."""

    id: str
    """Unique among all that waits or runs."""
    alternatives: Alternatives
    wishes: Wishes = NO_WISHES
    overhead: dict[str, int] = {}
    """What each piece costs beside what its shape says, where its runtime has a price of its own."""
    limit: float = inf
    """Seconds for which it may hold what it gets, all grace included."""
    number: int = 0
    """The order of submission: it breaks every tie."""
    submitted: float = 0.0
    job: str = ""
    """Requests of one job count as one where jobs are counted."""
    name: str = ""
    flavor: str = ""
    user: str = ""
    account: str = ""
    queue: str = ""
    """Empty for the queue that is there for everything."""
    weight: float = 0.0
    """Of its priority class."""
    earliest: float = -inf
    latest: float = inf
    reservation: str = ""
    """The advance reservation it runs in."""
    together: tuple[str, ...] = ()
    """Requests that must run at the same time as this one; all are placed at once or none is."""


class Placed(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a gang goes: the alternative, and for each of its parts how many pieces go to which node."""

    alternative: int
    places: tuple[dict[str, int], ...]


class Start(msgspec.Struct, frozen=True, gc=False):
    """A request that starts now, and where."""

    id: str
    placed: Placed
    until: float
    """When its time will be over."""


class Revision(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A guarantee that was given, taken back or moved, and why; None for no guarantee."""

    id: str
    before: float | None
    after: float | None
    cause: str


class Promise(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is planned for a request that waits; without a start there is no guarantee."""

    guaranteed_by: float | None
    position: int = 0
    placed: Placed | None = None
    queue: str = ""


class Extension(msgspec.Struct, frozen=True):
    """The answer to one who wants to run longer: granted, or the most that could be."""

    granted: bool
    largest: float
