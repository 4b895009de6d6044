"""What administrators say and everybody may hear: the calendar, and the states of queues and nodes.

Bodies of `/v1`, declared once for both ends, apart from those that every command needs.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

import msgspec

from jobman.control.answers import Body
from jobman.sched.calendar import Recurrence

CalendarKind = Literal["maintenance", "reservation"]
QueueStateName = Literal["open", "draining", "closed"]
NodeStateName = Literal["up", "draining"]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
Words = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\u0000]*$")]
Who = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._@-]{0,99}$")]


class NewEntry(Body, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A request for a window of maintenance or a reservation."""

    kind: CalendarKind
    name: Name
    start: datetime
    """By the clock of `zone` where it has no offset of its own."""
    zone: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """Such as Europe/Berlin; by default the offset of the start, or UTC."""
    duration: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    """Seconds. A window without it lasts until it is removed."""
    nodes: list[Words] = []
    """Names and ranges such as n[1-4]; without them, and without a count, all nodes."""
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """Of a reservation: so many nodes, whichever."""
    requires: dict[str, str] = {}
    """Facts of the nodes that are counted."""
    users: list[Who] = []
    """Of a reservation: who may use it; by default whoever makes it, unless accounts are named."""
    accounts: list[Name] = []
    repeats: Recurrence | None = None
    skips: list[date] = []
    """Days on which none begins."""
    reason: Words = ""


class CalendarEntry(Body, kw_only=True):
    """A window of maintenance or a reservation, and its next time."""

    kind: CalendarKind
    name: str
    start: str
    """When the first begins, by the clock of the zone."""
    zone: str
    duration: float | None
    nodes: list[str]
    count: int | None
    requires: dict[str, str]
    users: list[str]
    accounts: list[str]
    repeats: Recurrence | None
    skips: list[date]
    reason: str
    rhythm: str
    """How it comes again, in words."""
    next_start: float | None
    """Of the one that holds now, or else of the next; none where it is over for good."""
    next_end: float | None
    """None also where it has no end."""
    created_by: str
    created_at: float
    notes: list[str] = []
    """What whoever made it should know."""


class QueueInfo(Body, kw_only=True):
    """A queue: what it has, how it is served, and whether it is open."""

    name: str
    policy: str
    depth: int | None
    """How many of those who wait have a reservation of their own; null for all."""
    shortest_first: bool
    nodes: list[str]
    share: float | None
    borrow: list[str]
    factor: float
    state: QueueStateName
    reason: str = ""
    by: str = ""
    at: float | None = None
    """Since when it has a state that the settings do not give it."""


class NewQueueState(Body, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A request to open, drain or close a queue."""

    state: QueueStateName
    reason: Words = ""


class NewNodeState(Body, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A request to drain a node, or to use it again."""

    state: NodeStateName
    reason: Words = ""


class Standing(Body, kw_only=True):
    """The state that somebody gave to a queue or a node."""

    name: str
    state: str
    reason: str = ""
    by: str
    at: float
