"""The story of a driven job: what happened to its replicas, in the words of a service's events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobman.control.books import Change
from jobman.control.runs import Replica
from jobman.control.states import State
from jobman.control.telling import KINDS, when_again, why_stopping
from jobman.engines.endings import how_it_ended
from jobman.engines.kubernetes.course import Moment

MOST_TOLD = 10_000
_FEW = 4


def told(
    change: Change, replica: Replica | None, now: float, nodes: Sequence[str], words: str
) -> Iterator[Moment]:
    """What a change of state is, if it is an event; `words` say how its attempt failed."""
    kind = KINDS.get(change.new)
    if kind is None:
        return
    ended = how_it_ended(change.reason, change.exit_code, None, words)
    message = {
        State.RUNNING: _where(nodes, change),
        State.STOPPING: why_stopping(replica),
        State.RESTING: f"{ended}; it is tried again{when_again(replica)}",
        State.FAILED: ended,
        State.SUCCEEDED: f"{ended}; a rule ignores it" if change.reason else "",
        State.SKIPPED: "what it waits for will not happen",
    }.get(change.new, "")
    yield Moment(now, kind, change.replica, change.attempt, message)


def _where(nodes: Sequence[str], change: Change) -> str:
    more = f" and {len(nodes) - _FEW} more" if len(nodes) > _FEW else ""
    again = f"(attempt {change.attempt})" if change.attempt > 1 else ""
    return " ".join(filter(None, (f"on {', '.join(nodes[:_FEW])}{more}" if nodes else "", again)))
