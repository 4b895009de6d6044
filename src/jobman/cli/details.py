"""`jobman details`: one job, its tasks, and on request its replicas, attempts and document."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobman.cli.options import Job, JobName, Output, Utc, one_job
from jobman.cli.state import State, emit

if TYPE_CHECKING:
    from jobman.cli.tables import Cell, Column, Row
    from jobman.control.answers import Attempt, Details, Replica, Task

_SHOWN = ("succeeded", "failed", "cancelled", "skipped", "running", "waiting", "retried")
_GIVES = {
    "waiting": ("waiting", "queued", "resting"),
    "running": ("running", "starting", "stopping", "frozen"),
}


def details(
    context: typer.Context,
    job: Job = None,
    named: JobName = None,
    replicas: Annotated[bool, typer.Option("--replicas", help="List every replica, too.")] = False,
    attempts: Annotated[bool, typer.Option("--attempts", help="List every attempt, too.")] = False,
    document: Annotated[
        bool, typer.Option("--document", help="Print the document instead, as it was submitted.")
    ] = False,
    utc: Utc = False,
    output: Output = None,
) -> None:
    """Show a job: its tasks and how far each is, conditions, gates, and where it stands."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        found = client.details(one_job(job, named))
        tried = list(client.attempts(found.id)) if attempts else []
        parts = list(client.replicas(found.id)) if replicas else []
    if document:
        sys.stdout.write(found.document if found.document.endswith("\n") else found.document + "\n")
    elif form == "table":
        _print(found, parts, tried, utc=utc)
    elif replicas or attempts:
        import msgspec

        more = {"replicas": parts} if replicas else {}
        emit({**msgspec.to_builtins(found), **more, **({"attempts": tried} if attempts else {})}, form)
    else:
        emit(found, form)


def _print(job: Details, replicas: list[Replica], attempts: list[Attempt], *, utc: bool) -> None:
    from jobman.cli.tables import print_facts, print_table

    print_facts(facts_of(job, utc=utc))
    if job.tasks:
        sys.stdout.write("\n")
        print_table(*table_of(job.tasks))
    if job.results:
        sys.stdout.write("\n")
        _print_results(job.results)
    if replicas:
        sys.stdout.write("\n")
        _print_replicas(replicas, utc=utc)
    if attempts:
        sys.stdout.write("\n")
        _print_attempts(attempts, utc=utc)


def _print_results(results: dict[str, str]) -> None:
    from jobman.cli.tables import Column, print_table

    rows = [(replica, " ".join(result.split())) for replica, result in results.items()]
    print_table([Column("replica"), Column("result", folds=True)], rows)


def facts_of(job: Details, *, utc: bool) -> Iterator[tuple[str, str | Cell]]:
    """What is known of a job as a whole."""
    from jobman.cli.jobs import state_cell, time_of
    from jobman.cli.tables import Cell
    from jobman.cli.times import clock, when

    def at(moment: float | None) -> str:
        return (
            when(moment, utc=True)
            if utc
            else f"{when(moment, utc=False)} ({clock(moment)})"
            if moment
            else ""
        )

    yield "job", Cell(job.id, "bold")
    yield "name", job.name
    yield "owner", job.owner
    yield "state", state_cell(job)
    yield "reason", job.reason
    yield "exit code", "" if job.exit_code is None else str(job.exit_code)
    yield "submitted", at(job.submitted_at)
    yield "started", at(job.started_at)
    yield "ended", at(job.ended_at)
    yield "took", time_of(job)
    yield "flavor", job.flavor or ""
    yield "queue", job.queue or ""
    yield "account", job.account or ""
    yield "priority", str(job.priority) if job.priority else ""
    yield "folder", job.cwd
    yield "labels", _pairs(job.labels)
    yield "annotations", _pairs(job.annotations)
    yield (
        "gates",
        ", ".join(f"{gate} {'open' if is_open else 'closed'}" for gate, is_open in job.gates.items()),
    )
    yield "options", _pairs({key: value for key, value in job.options.items() if value})
    yield "conditions", ", ".join(condition.type for condition in job.conditions if condition.status)
    for condition in job.conditions:
        if condition.status and condition.message:
            yield f"  {condition.type}", condition.message


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())


def table_of(tasks: list[Task]) -> tuple[list[Column], list[Row]]:
    """The tasks of a job with how many replicas of each are where, for a table."""
    from jobman.cli.tables import Cell, Column

    columns = [
        Column("task", least=16),
        Column("outcome", rank=1),
        Column("replicas", rank=2, right=True),
        *(Column(state, rank=3 + number, right=True) for number, state in enumerate(_SHOWN)),
        Column("after", rank=12, folds=True),
    ]
    rows: list[Row] = [
        (
            title_of(task),
            outcome_cell(task),
            f"{task.replicas:,}",
            *(Cell(f"{count:,}" if count else "", _style(state)) for state, count in _counted(task).items()),
            ", ".join(task.depends_on),
        )
        for task in tasks
    ]
    return columns, rows


def title_of(task: Task) -> str:
    """A task with the group around it, and what kind it is."""
    kind = " (group)" if task.kind == "group" else " (service)" if task.service else ""
    return (f"{task.scope}/{task.name}" if task.scope else task.unit) + kind


def outcome_cell(task: Task) -> Cell:
    """What became of a task, or what it does."""
    from jobman.cli.tables import Cell

    counts = _counted(task)
    word = task.outcome or ("running" if counts["running"] else "waiting")
    return Cell(word, _style(word))


def _counted(task: Task) -> dict[str, int]:
    return {state: sum(task.counts.get(each, 0) for each in _GIVES.get(state, (state,))) for state in _SHOWN}


def _style(state: str) -> str:
    from jobman.cli.colours import STATES

    return STATES.get(state, "yellow" if state == "retried" else "")


def _print_replicas(replicas: list[Replica], *, utc: bool) -> None:
    from jobman.cli.tables import Cell, Column, print_table
    from jobman.cli.times import when

    columns = (
        Column("replica"),
        Column("state"),
        Column("attempt", rank=1, right=True),
        Column("since", rank=3),
        Column("exit code", rank=2, right=True),
        Column("reason", rank=4, folds=True),
    )
    rows = [
        (
            replica.key,
            Cell(replica.state, _style(replica.state)),
            str(replica.attempt or ""),
            when(replica.since or None, utc=utc),
            "" if replica.exit_code is None else str(replica.exit_code),
            replica.reason,
        )
        for replica in replicas
    ]
    print_table(columns, rows)


def _print_attempts(attempts: list[Attempt], *, utc: bool) -> None:
    from jobman.cli.amounts import size
    from jobman.cli.tables import Cell, Column, print_table
    from jobman.cli.times import length, when

    columns = (
        Column("attempt of"),
        Column("number", right=True),
        Column("end"),
        Column("started", rank=3),
        Column("took", rank=1, right=True),
        Column("cpu", rank=5, right=True),
        Column("memory", rank=4, right=True),
        Column("nodes", rank=2),
        Column("message", rank=6, folds=True),
    )
    rows = []
    for attempt in attempts:
        end, style = end_of(attempt)
        rows.append(
            (
                attempt.replica,
                str(attempt.attempt),
                Cell(end, style),
                when(attempt.started_at, utc=utc),
                ""
                if attempt.started_at is None
                else length((attempt.ended_at or time.time()) - attempt.started_at),
                length(attempt.cpu_seconds) if attempt.cpu_seconds else "",
                size(attempt.max_rss),
                ", ".join(attempt.nodes),
                attempt.message,
            )
        )
    print_table(columns, rows)


def end_of(attempt: Attempt) -> tuple[str, str]:
    """How an attempt ended, in words and in a colour."""
    if attempt.ended_at is None:
        return "running", _style("running")
    if attempt.reason not in ("", "exit", "signal"):
        return attempt.reason, "red"
    if attempt.signal:
        return f"signal {attempt.signal}", "red"
    if attempt.exit_code:
        return f"exit code {attempt.exit_code}", "red"
    return (attempt.reason, "red") if attempt.reason else ("succeeded", "green")
