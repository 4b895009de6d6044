"""What the author of a document sees of its job: states, counts, the order of things, output, attempts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from jobman.control.answers import Attempt, Condition, Details, Event, LogLine, Replica, Task

_ENDS = ("succeeded", "failed", "cancelled", "retrying")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is at one moment, or as it ended."""

    job: Details
    all_replicas: tuple[Replica, ...]
    all_attempts: tuple[Attempt, ...]
    events: tuple[Event, ...]
    log: tuple[LogLine, ...]

    @property
    def state(self) -> str:
        return self.job.state

    @property
    def exit_code(self) -> int | None:
        return self.job.exit_code

    @property
    def reason(self) -> str:
        return self.job.reason

    @property
    def counts(self) -> dict[str, int]:
        """Replicas of all tasks by state."""
        return {state: count for state, count in self.job.counts.items() if count}

    @property
    def conditions(self) -> dict[str, Condition]:
        return {condition.type: condition for condition in self.job.conditions}

    # -- tasks, replicas, attempts ----------------------------------------------------------------

    @property
    def tasks(self) -> dict[str, Task]:
        """Tasks and groups by name; what is in a group has its replica before it, as in `train.0/test`."""
        return {f"{task.scope}/{task.name}".lstrip("/"): task for task in self.job.tasks}

    @property
    def outcomes(self) -> dict[str, str | None]:
        """What became of each task and group."""
        return {name: task.outcome for name, task in self.tasks.items()}

    def counts_of(self, task: str) -> dict[str, int]:
        """The replicas of one task by state."""
        return {state: count for state, count in self.tasks[task].counts.items() if count}

    @property
    def replicas(self) -> dict[str, str]:
        """The state of every replica that ever did more than wait."""
        return {replica.key: replica.state for replica in self.all_replicas}

    def attempts(self, replica: str) -> list[Attempt]:
        """The attempts of one replica, the first one first."""
        found = [attempt for attempt in self.all_attempts if attempt.replica == replica]
        return sorted(found, key=lambda attempt: attempt.attempt)

    def exit_codes(self, replica: str) -> list[int | None]:
        """How the attempts of one replica ended."""
        return [attempt.exit_code for attempt in self.attempts(replica)]

    def reasons(self, replica: str) -> list[str]:
        """Why the attempts of one replica failed; empty for one that succeeded."""
        return [attempt.reason for attempt in self.attempts(replica)]

    def nodes(self, replica: str) -> list[str]:
        """The nodes of its last attempt."""
        return self.attempts(replica)[-1].nodes

    # -- order ------------------------------------------------------------------------------------

    @property
    def story(self) -> list[str]:
        """What happened, in order: `train.0 started`, or the kind alone for what happened to the job."""
        return [_moment(event) for event in self.events]

    def tells(self, *moments: str) -> bool:
        """Whether these moments came in this order, whatever came between them."""
        story = iter(self.story)
        return all(moment in story for moment in moments)

    def tells_once(self, moment: str) -> bool:
        return self.story.count(moment) == 1

    def says(self, moment: str) -> list[str]:
        """The words of every such event."""
        return [event.message for event in self.events if _moment(event) == moment]

    def starts(self, *tasks: str) -> list[str]:
        """The order in which replicas started, of all tasks or of some."""
        started = [event.replica for event in self.events if event.kind == "started" and event.replica]
        return [key for key in started if not tasks or _task(key) in tasks]

    def most_at_once(self, *tasks: str) -> int:
        """The largest number of replicas of these tasks that ran at the same time."""
        running: set[str] = set()
        most = 0
        for event in self.events:
            if event.replica is None or _task(event.replica) not in tasks:
                continue
            if event.kind == "started":
                running.add(event.replica)
            elif event.kind in _ENDS:
                running.discard(event.replica)
            most = max(most, len(running))
        return most

    # -- output -----------------------------------------------------------------------------------

    def lines(self, replica: str | None = None, **wanted: Any) -> list[str]:
        """Lines of output in the order of the log; of one replica, `attempt`, `copy`, `stream` or `node`."""
        return [
            line.text
            for line in self.log
            if line.stream != "note"
            and (replica is None or line.replica == replica)
            and all(getattr(line, name) == value for name, value in wanted.items())
        ]

    def values(self, replica: str | None = None, **wanted: Any) -> dict[str, str]:
        """Lines of the form `NAME=value`."""
        return dict(line.split("=", 1) for line in self.lines(replica, **wanted) if "=" in line)

    @property
    def notes(self) -> list[str]:
        """What jobman itself adds to the log."""
        return [line.text for line in self.log if line.stream == "note"]

    def __str__(self) -> str:
        rows = [f"{self.state}, exit code {self.exit_code}, {self.reason or 'no reason'}"]
        rows += [f"  {event.number:>5} {_moment(event)}: {event.message}" for event in self.events]
        rows += [f"  {attempt}" for attempt in self.all_attempts]
        rows += [
            f"  {line.replica}[{line.attempt}.{line.copy}] {line.stream}: {line.text}" for line in self.log
        ]
        return "\n".join(rows)

    __repr__ = __str__


def have_come(moments: Sequence[str], events: Iterable[Event]) -> bool:
    """Whether these moments have come in this order."""
    story = iter([_moment(event) for event in events])
    return all(moment in story for moment in moments)


def _moment(event: Event) -> str:
    return f"{event.replica} {event.kind}" if event.replica else event.kind


def _task(key: str) -> str:
    """The name of a replica's task, with the group's replica before it."""
    return key.rpartition(".")[0]
