"""The states of a replica, and which change may follow which."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a replica stands. The last four are for good."""

    WAITING = "waiting"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    RESTING = "resting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


_ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.RESTING)
LEGAL: dict[State, frozenset[State]] = {
    State.WAITING: frozenset((State.QUEUED, State.CANCELLED, State.SKIPPED)),
    State.QUEUED: frozenset((State.STARTING, State.CANCELLED, State.WAITING, State.FAILED)),
    State.STARTING: frozenset((State.RUNNING, State.STOPPING, *_ENDS)),
    State.RUNNING: frozenset((State.STOPPING, State.SKIPPED, *_ENDS)),
    State.STOPPING: frozenset(_ENDS),
    State.RESTING: frozenset((State.WAITING, State.CANCELLED)),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
    State.SKIPPED: frozenset(),
}
"""A replica rests between a failure and its next attempt; one that is queued may have to let others pass, and
fails where it will never be given what it asks for.

A group whose tasks are all skipped is skipped itself.
"""

FINAL = frozenset(state for state, followers in LEGAL.items() if not followers)
LIVE = frozenset((State.STARTING, State.RUNNING, State.STOPPING))
OCCUPYING = LIVE | {State.QUEUED}


class IllegalChange(Exception):
    """A change that the table does not know: a fault in the conductor, never in a job."""

    def __init__(self, name: str, old: State, new: State) -> None:
        super().__init__(f"{name} cannot go from {old} to {new}")
