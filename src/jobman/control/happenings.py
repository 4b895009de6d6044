"""What the conductor is told, and what it asks for. Plain values; names of replicas are their keys."""

from __future__ import annotations

import msgspec

from jobman.control.causes import Failure


class Happening(msgspec.Struct, frozen=True, tag=True):
    """Something that happened to a job."""


class Tick(Happening, frozen=True, tag=True):
    """Time has passed."""


class Granted(Happening, frozen=True, tag=True):
    """A replica that asked for resources has been given them."""

    replica: str


class Started(Happening, frozen=True, tag=True):
    """An attempt runs."""

    replica: str
    attempt: int


class PassedStart(Happening, frozen=True, tag=True):
    """The `started` check of an attempt succeeded."""

    replica: str
    attempt: int


class BecameReady(Happening, frozen=True, tag=True):
    """The ready check of an attempt succeeded, or fails again."""

    replica: str
    attempt: int
    ready: bool = True


class BecameUnhealthy(Happening, frozen=True, tag=True):
    """The `alive` or `started` check of an attempt failed for good."""

    replica: str
    attempt: int


class Ended(Happening, frozen=True, tag=True):
    """An attempt is over; `failure` is None where it succeeded."""

    replica: str
    attempt: int
    failure: Failure | None = None
    in_time: bool = False
    """Whether it ended before its time was over, though nobody may have heard of it by then."""


class GateOpened(Happening, frozen=True, tag=True):
    name: str


class Held(Happening, frozen=True, tag=True):
    """Somebody holds the job: nothing new starts."""


class Released(Happening, frozen=True, tag=True):
    """Holds are lifted, also those the document asked for."""


class Displaced(Happening, frozen=True, tag=True):
    """A replica must leave its nodes, through no fault of its own: it asks again for others."""

    replica: str
    why: str = "suspended"


class TurnedAway(Happening, frozen=True, tag=True):
    """A replica that asked for resources will never be given them, and why: it fails without an attempt."""

    replica: str
    reason: str


class Cancelled(Happening, frozen=True, tag=True):
    """Somebody cancels the job."""


class Extended(Happening, frozen=True, tag=True):
    """Somebody gives more time to what runs: to one unit, or to everything."""

    seconds: float
    unit: str | None = None


class Request(msgspec.Struct, frozen=True, tag=True):
    """Something to be done. Each may be carried out again: its names say which attempt is meant."""


class Ask(Request, frozen=True, tag=True):
    """Find resources for a replica; for a group they are its allocation."""

    replica: str


class Withdraw(Request, frozen=True, tag=True):
    """A replica no longer wants the resources it asked for."""

    replica: str


class Launch(Request, frozen=True, tag=True):
    """Start an attempt of a task's replica on what it was given."""

    replica: str
    attempt: int


class Stop(Request, frozen=True, tag=True):
    """End an attempt in peace, and by force when its grace is over."""

    replica: str
    attempt: int
    why: str


class Freeze(Request, frozen=True, tag=True):
    """Let an attempt stand still where it is."""

    replica: str
    attempt: int


class Thaw(Request, frozen=True, tag=True):
    """Let a frozen attempt go on."""

    replica: str
    attempt: int


class Prolong(Request, frozen=True, tag=True):
    """Give an attempt so many seconds more than its document says, in all."""

    replica: str
    attempt: int
    seconds: float


class GiveBack(Request, frozen=True, tag=True):
    """The resources of a replica are free again."""

    replica: str
    reason: str = ""
    """Of a group: how that failed inside it which ended it. Attempts of tasks tell for themselves."""


class Finish(Request, frozen=True, tag=True):
    """The job is over."""

    outcome: str
