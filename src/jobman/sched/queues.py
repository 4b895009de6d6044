"""Queues: which nodes they have, who goes first, and how far ahead is planned."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class QueueState(StrEnum):
    """Whether a queue takes jobs in, and starts them."""

    OPEN = "open"
    DRAINING = "draining"
    """Takes nothing in; what waits is still started."""
    CLOSED = "closed"
    """Takes nothing in and starts nothing."""


class Weights(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What counts how much in the priority of a batch queue."""

    priority: float = 10_000.0
    """The named priority class, as the document gives it."""
    age: float = 1_000.0
    size: float = 0.0
    fair_share: float = 5_000.0
    queue: float = 1_000.0
    longest_age: float = 7 * 86400.0
    """Seconds of waiting after which age counts fully."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The most there may be at one time; None for no limit."""

    jobs: int | None = None
    """Running jobs."""
    waiting: int | None = None
    """Jobs that wait; more are refused at submission."""
    amounts: dict[str, float] = {}
    """Resources held at one time, by kind; `node` counts nodes."""
    longest: float | None = None
    """Seconds a job may ask for."""
    budget: float | None = None
    """Charged units that may be used in all (or since the budget's beginning)."""


NO_LIMITS = Limits()


class Queue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One queue. `interactive` keeps strict order; `batch` goes by priority, with backfill.

    `depth` is how many waiting requests have a reservation of their own: 0 is FCFS, 1 is EASY, None is all of
    them, which is conservative backfill.
    """

    name: str
    policy: str = "batch"
    """`batch` or `interactive`."""
    depth: int | None = None
    shortest_first: bool = False
    """Whether those who may pass are looked at in the order of their limits (SJBF)."""
    nodes: tuple[str, ...] = ()
    """Its own nodes; none for all that no other queue names."""
    share: float | None = None
    """The part of its nodes' resources that it may use at one time."""
    borrow: tuple[str, ...] = ()
    """Queues on whose nodes its jobs may run where they end before the next promise there."""
    factor: float = 1.0
    """Its own part in the priority, from 0 to 1; queues are served in the order of it, the highest first."""
    weights: Weights = Weights()
    limits: Limits = NO_LIMITS
    """Of the queue as a whole."""
    each_user: Limits = NO_LIMITS
    each_account: Limits = NO_LIMITS
    state: QueueState = QueueState.OPEN

    @property
    def is_interactive(self) -> bool:
        return self.policy == "interactive"


EVERYTHING = Queue(name="batch")
