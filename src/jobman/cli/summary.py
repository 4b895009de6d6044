"""The end of `jobman run`: what became of each task, and of a failure where to look."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from jobman.cli.colours import clean, paint, wanted
from jobman.cli.details import outcome_cell, title_of
from jobman.cli.lines import BAR, has_one_copy, unit_of
from jobman.cli.state import typed
from jobman.cli.tables import Cell, Column, render, width_of
from jobman.cli.times import length

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobman.client import Client
    from jobman.control.answers import Attempt, Details, Replica, Task

_MOST_ATTEMPTS = 10_000
_MOST_FAILURES = 3
_LAST_LINES = 8
_MARKS = {"succeeded": ("✔", "bold green"), "failed": ("✘", "bold red"), "cancelled": ("■", "magenta")}


class Failed(NamedTuple):
    """A replica that failed, and the last it said."""

    replica: Replica
    words: list[str]
    message: str = ""


class Span(NamedTuple):
    """The attempts of a task: first start, last end, the longest, and how many were beyond the first."""

    start: float
    end: float
    longest: float = 0.0
    retried: int = 0

    def with_(self, attempt: Attempt, start: float, end: float) -> Span:
        longest = max(self.longest, end - start)
        return Span(min(self.start, start), max(self.end, end), longest, self.retried + (attempt.attempt > 1))


def summarise(client: Client, job: Details) -> list[str]:
    """The lines of the summary."""
    on = wanted(sys.stderr)
    failures = _failures(client, job) if job.state == "failed" else []
    lines = [_headline(job, on)]
    if not has_one_copy(job):
        lines = ["", *lines, *_table(job, _spans(client, job), on)]
    for failed in failures:
        lines += _tell_failure(job, failed, on)
    return lines


def _headline(job: Details, on: bool) -> str:
    mark, style = _MARKS.get(job.state, ("·", ""))
    took = length((job.ended_at or 0) - job.started_at) if job.started_at and job.ended_at else ""
    said = f"{job.state} in {took}" if took else job.state
    code = f" with exit code {job.exit_code}" if job.state == "failed" and job.exit_code else ""
    reason = f": {clean(job.reason)}" if job.reason and job.state != "succeeded" and not code else ""
    words = f"{paint(mark, style, on=on)} {paint(job.name, 'bold', on=on)} {paint(said, style, on=on)}"
    return f"{words}{code}{reason}  {paint(job.id, 'dim', on=on)}"


# -- the table ----------------------------------------------------------------------------------------------


def _table(job: Details, spans: dict[str, Span], on: bool) -> list[str]:
    columns = (
        Column("task", least=16),
        Column("outcome", rank=2),
        Column("replicas", rank=3, right=True),
        Column("succeeded", rank=1, right=True),
        Column("failed", rank=1, right=True),
        Column("retried", rank=5, right=True),
        Column("time", rank=4, right=True),
        Column("longest", rank=6, right=True),
    )
    rows = [_row(task, spans.get(task.unit)) for task in job.tasks]
    width = width_of(sys.stderr)
    return [f"  {line}" for line in render(columns, rows, None if width is None else width - 2, colour=on)]


def _row(task: Task, span: Span | None) -> tuple[str | Cell, ...]:
    retried = task.counts.get("retried") or (span.retried if span else 0)
    return (
        title_of(task),
        outcome_cell(task),
        f"{task.replicas:,}",
        _number(task.counts.get("succeeded", 0), "green"),
        _number(task.counts.get("failed", 0), "red"),
        _number(retried, "yellow"),
        length(span.end - span.start) if span else "",
        length(span.longest) if span and task.replicas > 1 else "",
    )


def _number(count: int, style: str) -> Cell:
    return Cell(f"{count:,}" if count else "", style)


def _spans(client: Client, job: Details) -> dict[str, Span]:
    """When each task ran; nothing for jobs so large that asking would take longer than the job."""
    attempts = list(islice(client.attempts(job.id), _MOST_ATTEMPTS))
    return spans_of(attempts) if len(attempts) < _MOST_ATTEMPTS else {}


def spans_of(attempts: Iterable[Attempt]) -> dict[str, Span]:
    """By unit, what its attempts amount to."""
    spans: dict[str, Span] = {}
    for attempt in attempts:
        start, end = attempt.started_at, attempt.ended_at
        if start is None or end is None:
            continue
        unit = unit_of(attempt.replica)
        spans[unit] = spans.get(unit, Span(start, end)).with_(attempt, start, end)
    return spans


# -- failures -----------------------------------------------------------------------------------------------


def _failures(client: Client, job: Details) -> list[Failed]:
    groups = {task.unit for task in job.tasks if task.kind == "group"}
    found = (each for each in client.replicas(job.id, state="failed") if each.unit not in groups)
    replicas = islice(found, _MOST_FAILURES)
    return [
        Failed(replica, _last_words(client, job.id, replica), _message(client, job.id, replica))
        for replica in replicas
    ]


def _message(client: Client, job: str, replica: Replica) -> str:
    """What was said of the end of its last attempt."""
    if replica.reason in ("", "exit"):
        return ""
    return next((each.message for each in [*client.attempts(job, replica=replica.key)][-1:]), "")


def _last_words(client: Client, job: str, replica: Replica) -> list[str]:
    lines = client.logs(job, replica=replica.key, stream="stderr", tail=_LAST_LINES)
    return [line.text for line in lines if line.stream != "note"]


def _tell_failure(job: Details, failed: Failed, on: bool) -> list[str]:
    replica = failed.replica
    tries = f", attempt {replica.attempt}" if replica.attempt > 1 else ""
    how = replica.reason
    if replica.exit_code is not None and replica.reason in ("", "exit"):
        how = f"exit code {replica.exit_code}"
    elif failed.message:
        how = f"{how}: {failed.message}"
    if job.reason.startswith(f"{replica.key}: "):
        how = job.reason.removeprefix(f"{replica.key}: ")
    bar = paint(BAR, "red", on=on)
    return [
        f"  {paint(replica.key, 'bold red', on=on)} failed ({clean(how)}{tries})"
        + ("; the last it wrote to stderr:" if failed.words else ""),
        *(f"    {bar} {clean(word)}" for word in failed.words),
        f"    all of it: {paint(typed(f'logs {job.id} --replica {replica.key}'), 'cyan', on=on)}",
    ]
