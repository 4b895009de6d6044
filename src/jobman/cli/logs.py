"""`jobman logs`: the output of all copies of a job, merged in order of time, to the end or as it comes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobman.cli.options import Job, JobName, Output, Utc, a_moment, one_job
from jobman.cli.state import State, misused, say, typed

if TYPE_CHECKING:
    from jobman.cli.lines import Printer, Sink
    from jobman.control.answers import Details, LogLine


def logs(
    context: typer.Context,
    job: Job = None,
    named: JobName = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Wait for more, until the job is over.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, metavar="N", help="Only the last lines.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="10m|MOMENT", help="Only what was written since then.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only of this task.")] = None,
    replica: Annotated[
        str | None,
        typer.Option(
            "--replica",
            metavar="N",
            help="Only of this replica: a number, or a name like train.3; train.3/1 is one copy of it.",
        ),
    ] = None,
    node: Annotated[str | None, typer.Option("--node", metavar="NODE", help="Only of this node.")] = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, metavar="N", help="Only of this attempt.")
    ] = None,
    stdout: Annotated[bool, typer.Option("--stdout", help="Only standard output.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Only standard error.")] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="The time before each line.")] = False,
    no_prefix: Annotated[
        bool, typer.Option("--no-prefix", help="Lines as they are, without the copy they came from.")
    ] = False,
    utc: Utc = False,
    output: Output = None,
) -> None:
    """Print the output of a job's copies, merged in order of time."""
    from jobman.cli.calls import Calling
    from jobman.cli.lines import Streams

    state: State = context.obj
    form = state.format(output)
    if stdout and stderr:
        misused("either --stdout or --stderr; without both, all is printed", "--stdout")
    chosen: dict[str, Any] = {
        "tail": tail,
        "since": a_moment(since, "--since"),
        "task": task,
        "replica": replica,
        "node": node,
        "attempt": attempt,
        "stream": "stdout" if stdout else "stderr" if stderr else None,
    }
    with Calling(form) as client:
        found = client.details(one_job(job, named))
        lines = client.logs(found.id, follow=follow, **chosen)
        if form != "table":
            _emit(lines, form)
            return
        alone = no_prefix or is_one_copy(found, task, replica)
        printer = make_printer(Streams(flush=follow), found, alone=alone, timestamps=timestamps, utc=utc)
        if not print_lines(lines, printer) and (task or replica or node):
            say(
                "nothing of that is there", f"`{typed(f'details --replicas {found.id}')}` shows what there is"
            )


def is_one_copy(job: Details, task: str | None, replica: str | None) -> bool:
    """Whether everything that was asked for comes from one copy."""
    from jobman.cli.lines import copies_of, has_one_copy

    tasks = [one for one in job.tasks if one.kind == "task" and task in (None, one.name, one.unit)]
    if replica is not None and replica.rpartition("/")[2].isdecimal() and "/" in replica:
        return True
    if replica is not None and len(tasks) == 1:
        return copies_of(tasks[0]) == 1
    return has_one_copy(job) or (len(tasks) == 1 and tasks[0].replicas == copies_of(tasks[0]) == 1)


def make_printer(
    sink: Sink,
    job: Details,
    *,
    alone: bool,
    split: bool = False,
    timestamps: bool = False,
    utc: bool = False,
    title: str = "",
) -> Printer:
    """What prints the lines of a job: as they are, or behind the names of copies."""
    from jobman.cli.lines import Labels, Plain, Prefixed

    if alone and not timestamps:
        return Plain(sink, split=split)
    return Prefixed(
        sink, None if alone else Labels(job.tasks, title), split=split, timestamps=timestamps, utc=utc
    )


def print_lines(lines: Iterable[LogLine], printer: Printer) -> int:
    """Print lines as they come, also what is left of unfinished ones when there are no more; how many."""
    count = 0
    try:
        for line in lines:
            printer.write(line)
            count += 1
    finally:
        printer.finish()
    return count


def _emit(lines: Iterable[LogLine], form: str) -> None:
    from jobman.cli.events import emit_line

    for line in lines:
        emit_line(line, form)
