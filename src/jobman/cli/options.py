"""Options and arguments that several commands have, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

Output = Annotated[
    str | None, typer.Option("-o", "--output", metavar="table|json|yaml", help="Form of the answer.")
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Give a parameter of the document.")
]
Job = Annotated[str | None, typer.Argument(metavar="JOB", help="Its id, a unique start of it, or a name.")]
Jobs = Annotated[
    list[str] | None, typer.Argument(metavar="JOB…", help="Their ids, unique starts of them, or names.")
]
JobName = Annotated[
    list[str] | None, typer.Option("-j", "--job-name", metavar="JOB", help="The same as the argument JOB.")
]
Utc = Annotated[bool, typer.Option("--utc", help="Moments in UTC instead of words.")]

Image = Annotated[
    str | None, typer.Option("-i", "--image", metavar="IMAGE", help="The container image of a command.")
]
Flavor = Annotated[
    str | None,
    typer.Option("-r", "--resources", metavar="FLAVOR", help="Of a command: a flavor's name, file or JSON."),
]
Duration = Annotated[
    str | None,
    typer.Option("--duration", metavar="TIME", help="Of a command: its time limit, such as 30m or 2h."),
]
QueueName = Annotated[
    str | None, typer.Option("--queue", metavar="QUEUE", help="Of a command: the queue it waits in.")
]
Account = Annotated[
    str | None,
    typer.Option("--account", metavar="ACCOUNT", help="Of a command: the account it is charged to."),
]
Name = Annotated[str | None, typer.Option("-j", "--job-name", metavar="NAME", help="The name of the job.")]
Virtual = Annotated[
    str | None,
    typer.Option(
        "--virtual", metavar="NODESxCORES", help="Emulated nodes for this job, such as 4x4 or 2x8x1."
    ),
]
NoContainer = Annotated[
    bool, typer.Option("--no-container", help="Run tasks that name an image without a container.")
]
Reservation = Annotated[
    str | None,
    typer.Option("--reservation", metavar="NAME", help="Run on nodes that were reserved under this name."),
]
KeepLogs = Annotated[
    str | None,
    typer.Option(
        "--keep-logs",
        metavar="PATH | claim:NAME[/PATH] | s3://BUCKET[/PATH]",
        help="On a cluster without a service: keep the output on a volume or in a store.",
    ),
]
WhatIf = Annotated[
    bool, typer.Option("--what-if", help="Say when it would start and what would help, and submit nothing.")
]
Engine = Annotated[str, typer.Option("-e", "--engine", metavar="ENGINE", help="Where the job runs.")]


def one_job(job: str | None, named: list[str] | None) -> str:
    """The one job that a command is about."""
    found = many_jobs([job] if job else None, named)
    if len(found) > 1:
        raise typer.BadParameter("this command takes one job", param_hint="JOB")
    return found[0]


def many_jobs(jobs: list[str] | None, named: list[str] | None) -> list[str]:
    """The jobs that a command is about, each once."""
    found = list(dict.fromkeys([*(jobs or ()), *(named or ())]))
    if not found:
        raise typer.BadParameter("which job? `jobman list` shows yours", param_hint="JOB")
    return found


def job_and_more(words: list[str] | None, named: list[str] | None, option: str) -> tuple[str, list[str]]:
    """A job and the words behind it; with `-j` all the words are those behind it."""
    job, *rest = [*(named or ()), *(words or ())] or [""]
    if not rest:
        raise typer.BadParameter("both are needed", param_hint=option)
    return job, rest


def a_length(text: str, option: str) -> float:
    """Seconds of `30m`."""
    from jobman.cli.times import parse_length

    seconds = parse_length(text)
    if not seconds:
        raise typer.BadParameter(
            f"'{text}' is no length of time such as 90s, 30m, 2h or 1h30m", param_hint=option
        )
    return seconds


def a_moment(text: str | None, option: str) -> float | None:
    """A moment of `10m` ago or `2026-03-01T14:00`."""
    from jobman.cli.times import parse_moment

    if text is None:
        return None
    moment = parse_moment(text)
    if moment is None:
        raise typer.BadParameter(
            f"'{text}' is neither a length of time such as 10m nor a moment such as 2026-03-01T14:00",
            param_hint=option,
        )
    return moment
