"""Telling what happened: events in words, from the changes of a conductor and the acts of people."""

from __future__ import annotations

from jobman.control.books import Change
from jobman.control.conductor import SERVICE_ENDS
from jobman.control.live import LiveJob
from jobman.control.runs import Replica
from jobman.control.states import State
from jobman.control.store.records import AttemptRecord
from jobman.engines import endings

KINDS: dict[State, str] = {
    State.RUNNING: "started",
    State.STOPPING: "stopping",
    State.RESTING: "retrying",
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
    State.SKIPPED: "skipped",
}
"""States whose beginning is an event; the others are steps on the way there."""


def words_for(change: Change, replica: Replica | None, job: LiveJob) -> str:
    """What a change of state means, in words."""
    attempt = job.attempts.get(change.replica)
    match change.new:
        case State.RUNNING:
            return f"runs on {_nodes(job, change.replica)}{_again(change)}"
        case State.STOPPING:
            return why_stopping(replica)
        case State.RESTING:
            return f"{_end_of(change, attempt)}; it is tried again{when_again(replica)}"
        case State.FAILED:
            return _end_of(change, attempt)
        case State.SUCCEEDED if change.reason:
            return f"{_end_of(change, attempt)}; a rule ignores it"
        case State.SKIPPED:
            return "what it waits for will not happen"
    return ""


def _end_of(change: Change, attempt: AttemptRecord | None) -> str:
    return how_it_ended(change.reason, change.exit_code, attempt)


def how_it_ended(reason: str, exit_code: int | None, attempt: AttemptRecord | None) -> str:
    """The end of an attempt that did not succeed."""
    if attempt is None:
        return endings.how_it_ended(reason, exit_code)
    return endings.how_it_ended(reason, exit_code, attempt.signal, attempt.message)


def why_stopping(replica: Replica | None) -> str:
    """Why a replica was asked to end."""
    why = replica.stopping_for if replica is not None else None
    return {
        "timeout": "its time is up",
        "unhealthy": "its check failed",
        "suspended": "the job is held",
        "preempted": "it has to make room",
        SERVICE_ENDS: "the tasks it served are over",
    }.get(why or "", "it is no longer wanted")


def when_again(replica: Replica | None) -> str:
    """In how many seconds a replica is tried again, where that is not at once."""
    if replica is None or replica.due is None or replica.due - replica.since < 0.5:
        return ""
    return f" in {replica.due - replica.since:.0f} s"


def _again(change: Change) -> str:
    return f" (attempt {change.attempt})" if change.attempt > 1 else ""


def _nodes(job: LiveJob, key: str) -> str:
    known = job.allocations.get(key) or job.allocations.get(key.rpartition("/")[0])
    nodes = list(dict.fromkeys(held.node for held in known[1].held)) if known is not None else []
    if not nodes:
        return "this machine"
    return ", ".join(nodes[:4]) + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")


def job_reason(job: LiveJob) -> str:
    """Why a finished job came to its end, in words."""
    conductor = job.conductor
    if conductor.outcome is State.CANCELLED:
        return "cancelled"
    if conductor.outcome is not State.FAILED or conductor.failure is None:
        return ""
    key, failure = conductor.failure
    if not key:
        return failure.reason
    return f"{key}: {how_it_ended(failure.reason, failure.exit_code, job.attempts.get(key))}"
