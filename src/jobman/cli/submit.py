"""`jobman submit`: documents or a command, given to the service; the declaration of its options.

The work is done by `submission`; a well-formed use takes a shorter way there, see `shortcut`.
"""

from __future__ import annotations

from typing import Annotated

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
from jobman.cli.state import State, misused, parse_parameters


def submit(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE… | -- CMD…", help="Documents (- is standard input), or a command."),
    ] = None,
    image: Image = None,
    flavor: Flavor = None,
    duration: Duration = None,
    queue: QueueName = None,
    account: Account = None,
    name: Name = None,
    parameters: Parameters = None,
    connect: Annotated[
        bool, typer.Option("-c", "--connect", help="Then follow the output, as `jobman logs -f` does.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and submit nothing.")
    ] = False,
    what_if: WhatIf = False,
    hold: Annotated[bool, typer.Option("--hold", help="Hold the job until `jobman release`.")] = False,
    virtual: Virtual = None,
    no_container: NoContainer = False,
    reservation: Reservation = None,
    keep_logs: KeepLogs = None,
    engine: Engine = "local",
    output: Output = None,
) -> None:
    """Submit documents or a command, and return at once: `ID  NAME` on stdout."""
    from jobman.cli.submission import Wishes
    from jobman.cli.submission import submit as send

    state: State = context.obj
    form = state.format(output)
    state.choose(engine)
    if connect and (dry_run or what_if or hold):
        misused("there is no output to follow with --dry-run, --what-if or --hold", "-c")
    wishes = Wishes(
        files=tuple(files or ()),
        command=trailing(context),
        image=image,
        flavor=flavor,
        duration=duration,
        queue=queue,
        account=account,
        name=name,
        parameters=parse_parameters(parameters, form),
        virtual=virtual,
        hold=hold,
        no_container=no_container,
        dry_run=dry_run,
        reservation=reservation,
        what_if=what_if,
        keep_logs=keep_logs,
    )
    answers = send(wishes, state, form)
    if connect:
        _follow([job.id for answer in answers for job in answer.jobs], form)


def _follow(jobs: list[str], form: str) -> None:
    from jobman.cli.calls import Calling
    from jobman.cli.lines import Streams, has_one_copy
    from jobman.cli.logs import make_printer, print_lines

    with Calling(form) as client:
        for reference in jobs:
            job = client.details(reference)
            printer = make_printer(Streams(flush=True), job, alone=has_one_copy(job))
            print_lines(client.logs(job.id, follow=True), printer)
