"""What people do to jobs: cancel, delete, hold, release, extend, and opening gates."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobman.cli.options import JobName, Jobs, Output, a_length, job_and_more, many_jobs
from jobman.cli.state import State, emit, misused, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.client import Client
    from jobman.control.answers import Failure

"""How the service words the largest time that it would grant."""
gate = typer.Typer(add_completion=False, no_args_is_help=True, help="Open the gates that a job waits for.")


def cancel(context: typer.Context, jobs: Jobs = None, named: JobName = None, output: Output = None) -> None:
    """Cancel jobs: what runs is stopped with its grace, `when: always` tasks still run."""
    _act(context, many_jobs(jobs, named), output, "cancelled", lambda client, job: client.cancel(job))


def hold(context: typer.Context, jobs: Jobs = None, named: JobName = None, output: Output = None) -> None:
    """Hold jobs: nothing new of them starts, and what may be suspended is."""
    _act(context, many_jobs(jobs, named), output, "held", lambda client, job: client.hold(job))


def release(context: typer.Context, jobs: Jobs = None, named: JobName = None, output: Output = None) -> None:
    """Release jobs that are held, by you or by their document."""
    _act(context, many_jobs(jobs, named), output, "released", lambda client, job: client.release(job))


def delete(
    context: typer.Context,
    jobs: Jobs = None,
    named: JobName = None,
    everything: Annotated[bool, typer.Option("--all", help="All your jobs that are over.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Cancel first what is not over.")] = False,
    output: Output = None,
) -> None:
    """Delete jobs that are over, with their output and all that is known of them."""
    if not everything:
        wanted = many_jobs(jobs, named)
        _act(context, wanted, output, "deleted", lambda client, job: client.delete(job, force=force))
        return
    if jobs or named:
        misused("either --all or the jobs", "--all")
    from jobman.cli.calls import Calling

    state: State = context.obj
    form = state.format(output)
    with Calling(form) as client:
        count = _delete_live(client) if force else 0
        count += client.delete_all()
    if form == "table":
        sys.stdout.write(f"deleted {count:,} job{'' if count == 1 else 's'}\n")
    else:
        emit({"deleted": count}, form)


def _delete_live(client: Client) -> int:
    """Cancel and delete what is not over."""
    live = [job.id for job in client.jobs(mine=True, state=["waiting", "running"])]
    for job in live:
        client.delete(job, force=True)
    return len(live)


def extend(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="JOB +30m", help="The job, and how much more time.")
    ] = None,
    named: JobName = None,
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only for this task.")] = None,
    output: Output = None,
) -> None:
    """Give a job more time: its limits, and those of its tasks, move by so much."""
    job, rest = job_and_more(words, named, "JOB +30m")
    if len(rest) > 1:
        misused("one length of time is enough", "JOB +30m")
    more = rest[0].removeprefix("+")
    seconds = a_length(more, "JOB +30m")

    def act(client: Client, one: str) -> Any:
        from jobman.client import Refused

        try:
            return client.extend(one, seconds, task)
        except Refused as error:
            _offer(error.failure)
            raise

    _act(context, [job], output, f"has {more} more", act)


def _offer(failure: Failure) -> None:
    """Of a refusal because others would have to wait: say how much can be had, as a command to paste."""
    if failure.largest is not None and failure.largest >= 1:
        from jobman.cli.times import length

        failure.message += f"; {length(int(failure.largest))} more can be granted"
        failure.advice = failure.advice.removesuffix(" would be granted")


@gate.command("open")
def open_gate(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="JOB GATE…", help="The job, and its gates.")
    ] = None,
    named: JobName = None,
    output: Output = None,
) -> None:
    """Open gates of a job; it is considered for scheduling when all are open."""
    job, gates = job_and_more(words, named, "JOB GATE…")

    def act(client: Client, one: str) -> Any:
        return [client.open_gate(one, name) for name in gates][-1]

    _act(context, [job], output, f"has opened {', '.join(gates)}", act)


@gate.callback()
def _gate() -> None:
    """Open the gates that a job waits for."""


def _act(
    context: typer.Context, jobs: list[str], output: str | None, done: str, act: Callable[[Client, str], Any]
) -> None:
    """Do something to each job; one that refuses does not keep it from the others."""
    from jobman.cli.calls import Calling
    from jobman.client import Refused

    state: State = context.obj
    form = state.format(output)
    found, worst = [], 0
    with Calling(form) as client:
        for job in jobs:
            try:
                found.append(act(client, job))
            except Refused as error:
                if len(jobs) == 1:
                    raise
                say(error.failure.message, error.failure.advice)
                worst = max(worst, error.failure.exit)
    if form == "table":
        sys.stdout.writelines(f"{job.id}  {job.name}  {done}\n" for job in found)
    elif len(jobs) == 1:
        emit(found[0], form)
    else:
        emit(found, form)
    if worst:
        raise typer.Exit(worst)
