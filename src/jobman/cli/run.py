"""`jobman run`: submit, follow the output, and end as the job ends."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobman.cli.commands import trailing
from jobman.cli.options import (
    Account,
    Duration,
    Engine,
    Flavor,
    Image,
    KeepLogs,
    Name,
    NoContainer,
    Output,
    Parameters,
    QueueName,
    Reservation,
    Virtual,
    WhatIf,
)
from jobman.cli.state import INTERRUPTED, State, emit, misused, parse_parameters, say, typed

if TYPE_CHECKING:
    from jobman.cli.progress import View
    from jobman.cli.submission import Wishes
    from jobman.client import Client
    from jobman.client.direct_loop import Begun
    from jobman.control.answers import Details

_LOOK_SECONDS = 0.4


def run(
    context: typer.Context,
    file: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE | -- CMD…", help="A document (- is standard input), or a command."),
    ] = None,
    image: Image = None,
    flavor: Flavor = None,
    duration: Duration = None,
    queue: QueueName = None,
    account: Account = None,
    name: Name = None,
    parameters: Parameters = None,
    virtual: Virtual = None,
    no_container: NoContainer = False,
    reservation: Reservation = None,
    keep_logs: KeepLogs = None,
    what_if: WhatIf = False,
    engine: Engine = "local",
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="JOB", help="Go on with a job, and drive it where nobody does."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print the output of the job and nothing else.")
    ] = False,
    output: Output = None,
) -> None:
    """Run a document or a command, follow its output, and end with its exit code.

    What the job writes to stdout goes to stdout, the rest to stderr. Ctrl-C detaches: the job goes on. Where
    this command itself drives it, what runs goes on, and `--resume` goes on with the rest.
    """
    from jobman.cli.submission import Wishes, submit

    state: State = context.obj
    form = state.format(output)
    state.choose(engine)
    if resume is not None:
        if file or trailing(context) is not None:
            misused("it goes on with a job that is there; leave the document or command out", "--resume")
        raise typer.Exit(_go_on(resume, form, quiet=quiet))
    if len(file or ()) > 1:
        misused("one document is run at a time; a command stands behind --", "FILE")
    wishes = Wishes(
        files=tuple(file or ()),
        command=trailing(context),
        image=image,
        flavor=flavor,
        duration=duration,
        queue=queue,
        account=account,
        name=name,
        parameters=parse_parameters(parameters, form),
        virtual=virtual,
        no_container=no_container,
        reservation=reservation,
        what_if=what_if,
        keep_logs=keep_logs,
    )
    if what_if:
        submit(wishes, state, form)
        raise typer.Exit
    raise typer.Exit(run_and_follow(wishes, state, form, quiet=quiet))


def run_and_follow(wishes: Wishes, state: State, form: str, *, quiet: bool) -> int:
    """Submit what was wished for and stay with it; returns the exit code."""
    from jobman.cli.calls import Calling
    from jobman.cli.submission import foretell, requests, send, tell

    wanted = requests(wishes, state, form)
    with Calling(form) as client:
        submitted = send(client, wanted, driven=True)
        tell(*submitted)
        if not quiet:
            foretell(submitted, also_now=False)  # what starts at once is seen to
        jobs = [client.details(job.id) for answer in submitted for job in answer.jobs]
        return follow_jobs(client, jobs, form, quiet=quiet)


def _go_on(job: str, form: str, *, quiet: bool) -> int:
    """Follow a job that is there; where it is driven and nobody does it, drive it."""
    from jobman.cli.calls import Calling

    with Calling(form) as client:
        return follow_jobs(client, [client.details(job)], form, quiet=quiet)


def follow_jobs(client: Client, jobs: list[Details], form: str, *, quiet: bool) -> int:
    """Follow jobs to their end, and tell what became of them; returns the exit code."""
    from jobman.cli.jobs import exit_code_of
    from jobman.cli.progress import view_for
    from jobman.client import Unreachable

    driving: dict[str, Begun[Any]] = {}
    try:
        for job in jobs:
            if (begun := client.drive(job.id, waiting=_wait_for)) is not None:
                driving[job.id] = begun
        with view_for(jobs, quiet=quiet) as view:
            looks = None if quiet else _LOOK_SECONDS
            ended = _follow(client, jobs, view, looks, list(driving.values()), aside=form != "table")
        if form != "table":
            emit(ended[0] if len(ended) == 1 else ended, form)
        elif not quiet:
            _summarise(client, ended)
    except KeyboardInterrupt:
        _leave(jobs, driving)
        return INTERRUPTED
    except BrokenPipeError:
        _leave(jobs, driving)
        raise
    except Unreachable:
        if driving:
            _leave(jobs, driving)
        raise
    finally:
        for begun in driving.values():
            begun.stop()
    return max(exit_code_of(job) for job in ended)


def _follow(
    client: Client,
    jobs: list[Details],
    view: View,
    looks: float | None,
    driving: list[Begun[Any]],
    *,
    aside: bool,
) -> list[Details]:
    """Show everything that is new of jobs; returns them as they ended."""
    from jobman.cli.follower import follow
    from jobman.cli.lines import has_one_copy
    from jobman.cli.logs import make_printer

    sink = Aside(view) if aside else view
    several = len(jobs) > 1
    printers = {
        job.id: make_printer(
            sink, job, alone=not several and has_one_copy(job), split=True, title=job.name if several else ""
        )
        for job in jobs
    }
    ended = {}
    also = [begun.result for begun in driving]
    for news in follow(client, [job.id for job in jobs], looks=looks, also=also):
        if news.line is not None:
            printers[news.job].write(news.line)
        elif news.look is not None:
            view.show(news.look)
        if news.over and news.look is not None:
            printers[news.job].finish()
            ended[news.job] = news.look
        if not news.more:
            view.flush()
    return [ended[job.id] for job in jobs]


class Aside:
    """Puts all output to stderr, where stdout has to carry an answer in JSON or YAML."""

    def __init__(self, view: View) -> None:
        self._view = view

    def put(self, text: str, *, error: bool) -> None:
        del error
        self._view.put(text, error=True)


def _summarise(client: Client, ended: list[Details]) -> None:
    from jobman.cli.summary import summarise

    for job in ended:
        sys.stderr.write("\n".join(summarise(client, job)) + "\n")


def _wait_for(who: str) -> None:
    say(f"it was driven by {who}; waiting to hear whether that is still so")


def _leave(jobs: list[Details], driving: dict[str, Begun[Any]]) -> None:
    """Stop driving, and say how to go on."""
    for begun in driving.values():
        begun.stop()
    if not driving:
        _detach(jobs)
        return
    every = " ".join(driving)
    sys.stderr.write("\n")
    say(
        "detached; what runs goes on, and nothing new starts until somebody drives it",
        "\n".join(
            [
                *(f"{typed(f'run --resume {job}')}   go on with it" for job in driving),
                f"{typed(f'cancel {every}')}    end it",
            ]
        ),
    )


def _detach(jobs: list[Details]) -> None:
    names = " ".join(job.id for job in jobs)
    sys.stderr.write("\n")
    say(
        f"detached; {'the job goes' if len(jobs) == 1 else 'the jobs go'} on",
        "\n".join(
            [
                *(f"{typed(f'logs -f {job.id}')}   follow {job.name} again" for job in jobs),
                f"{typed(f'cancel {names}')}    end it",
            ]
        ),
    )
