"""`jobman list` and `wait`: jobs at a glance, and waiting for them to end."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from jobman.cli.options import JobName, Jobs, Output, Utc, a_length, a_moment, many_jobs
from jobman.cli.state import ExitCode, State, emit, misused, say

if TYPE_CHECKING:
    from jobman.cli.tables import Cell
    from jobman.client import Client
    from jobman.control.answers import Job

_STATES = ("waiting", "running", "succeeded", "failed", "cancelled")
_WATCH_SECONDS = 2.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


# -- list ---------------------------------------------------------------------------------------------------


def list_jobs(
    context: typer.Context,
    all_users: Annotated[bool, typer.Option("--all-users", help="Jobs of everybody you may see.")] = False,
    states: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help=f"Only these: {', '.join(_STATES)}.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="GLOB", help="Only names like this, such as 'sweep*'.")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("-l", "--label", metavar="KEY=VALUE", help="Only jobs with this label."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="2h|MOMENT", help="Only jobs submitted since then.")
    ] = None,
    most: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=1000, metavar="N", help="At most so many.")
    ] = 50,
    watch: Annotated[bool, typer.Option("--watch", help="Show the list anew every two seconds.")] = False,
    utc: Utc = False,
    output: Output = None,
) -> None:
    """List jobs, the newest first: yours, or everybody's."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    wanted: dict[str, Any] = {
        "mine": None if all_users else True,
        "state": _checked_states(states),
        "name": name,
        "label": _checked_labels(labels),
        "since": a_moment(since, "--since"),
        "limit": most,
    }
    with Calling(form) as client:
        if watch and form == "table":
            _watch(client, wanted, all_users=all_users, utc=utc)
        page = client.jobs_page(**wanted)
    if form != "table":
        emit(page, form)
        return
    _print_jobs(page.items, all_users=all_users, utc=utc)
    if page.cursor is not None:
        say(f"there are more than {most}; show them with -n, or fewer with --state, --name or --since")


def _checked_states(states: list[str] | None) -> list[str] | None:
    found = [word for text in states or () for word in text.split(",")]
    for word in found:
        if word not in _STATES:
            misused(f"'{word}' is not one of {', '.join(_STATES)}", "--state")
    return found or None


def _checked_labels(labels: list[str] | None) -> list[str] | None:
    for text in labels or ():
        if "=" not in text:
            misused(f"'{text}' is not KEY=VALUE", "-l")
    return labels


def _watch(client: Client, wanted: dict[str, Any], *, all_users: bool, utc: bool) -> NoReturn:
    """Show the list until Ctrl-C; on a terminal each takes the place of the one before."""
    clear = "\x1b[H\x1b[2J\x1b[3J" if sys.stdout.isatty() else ""
    while True:
        page = client.jobs_page(**wanted)
        sys.stdout.write(clear)
        _print_jobs(page.items, all_users=all_users, utc=utc)
        sys.stdout.flush()
        time.sleep(_WATCH_SECONDS)


def _print_jobs(jobs: list[Job], *, all_users: bool, utc: bool) -> None:
    from jobman.cli.tables import Column, print_table
    from jobman.cli.times import when

    if not jobs:
        say("there are no such jobs")
        return
    columns = (
        Column("id"),
        Column("name", least=20),
        Column("owner", rank=2),
        Column("state"),
        Column("done", rank=1, right=True),
        Column("submitted", rank=3),
        Column("took", rank=4, right=True),
        Column("starts", rank=3),
        Column("flavor", rank=6),
        Column("queue", rank=7),
        Column("why", rank=5, folds=True),
    )
    is_one_queue = len({job.queue for job in jobs}) == 1  # then it tells nothing
    rows = [
        (
            job.id,
            job.name,
            job.owner if all_users else "",
            state_cell(job),
            progress_of(job.counts),
            when(job.submitted_at, utc=utc),
            time_of(job),
            start_of(job, utc=utc),
            job.flavor or "",
            "" if is_one_queue else job.queue or "",
            "" if job.reason == job.state else job.reason,
        )
        for job in jobs
    ]
    print_table(columns, rows)


def state_cell(job: Job) -> Cell:
    """The state of a job in its colour; one that is held says so."""
    from jobman.cli.colours import STATES
    from jobman.cli.tables import Cell

    held = job.held and job.ended_at is None
    word = "held" if held and job.state == "waiting" else f"{job.state}, held" if held else job.state
    return Cell(word, STATES.get("held" if held else job.state, ""))


def progress_of(counts: dict[str, int]) -> str:
    """`3/8`: replicas that have succeeded, of all."""
    total = sum(count for state, count in counts.items() if state not in ("retried", "frozen"))
    return f"{counts.get('succeeded', 0):,}/{total:,}" if total else ""


def start_of(job: Job, *, utc: bool) -> str:
    """By when a job that waits starts, where that was said."""
    from jobman.cli.estimates import is_now, latest
    from jobman.cli.times import clock

    estimate = job.estimate
    if estimate is None or job.state != "waiting":
        return ""
    if is_now(estimate, time.time()):
        return "now"
    if estimate.guaranteed_by is None:
        return "no promise"
    by = clock(estimate.guaranteed_by, utc=True) if utc else latest(estimate.guaranteed_by, time.time())
    return f"by {by}"


def time_of(job: Job) -> str:
    """How long a job took, or has taken so far."""
    from jobman.cli.times import length

    if job.started_at is None:
        return ""
    return length((job.ended_at or time.time()) - job.started_at)


# -- wait ---------------------------------------------------------------------------------------------------


def wait(
    context: typer.Context,
    jobs: Jobs = None,
    named: JobName = None,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="30m", help="Give up after so long, with exit code 1.")
    ] = None,
    output: Output = None,
) -> None:
    """Wait for jobs to end; the exit code is the job's own, of several the worst."""
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    seconds = None if timeout is None else a_length(timeout, "--timeout")
    with Calling(form) as client:
        found = _await_all(client, many_jobs(jobs, named), seconds)
    if form == "table":
        _print_jobs(found, all_users=False, utc=False)
    else:
        emit(found[0] if len(found) == 1 else found, form)
    late = [job for job in found if job.ended_at is None]
    if late:
        say(f"gave up waiting for {', '.join(job.name for job in late)}")
    raise typer.Exit(max((exit_code_of(job) for job in found), default=0))


def _await_all(client: Client, references: list[str], seconds: float | None) -> list[Job]:
    """The jobs when they are over, or as they are when there is no more time."""
    end = None if seconds is None else time.monotonic() + seconds
    # A name means its newest job: which one, is settled before the waiting begins.
    jobs = [client.details(reference).id for reference in references]
    return [client.wait(job) if end is None else _await(client, job, end) for job in jobs]


def _await(client: Client, reference: str, end: float) -> Job:
    """A job when it is over, looked for from time to time: news of it may not come before the end."""
    pause = _FIRST_PAUSE
    while True:
        job = client.details(reference)
        left = end - time.monotonic()
        if job.ended_at is not None or left <= 0:
            return job
        time.sleep(min(pause, left))
        pause = min(1.5 * pause, _LONGEST_PAUSE)


def exit_code_of(job: Job) -> int:
    """What a command that stands for a job tells the shell: the job's own code, or 1 where it has none."""
    if job.state == "succeeded":
        return ExitCode.DONE
    return job.exit_code or ExitCode.FAILED
