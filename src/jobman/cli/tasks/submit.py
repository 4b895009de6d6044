"""`jobman task submit`: tasks from a file of lines, in batches, and with `--wait` until all have ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from jobman.cli.state import misused
from jobman.cli.tasks.asking import Asking, asks
from jobman.cli.tasks.options import pairs_of, seconds_of


@asks
def submit(
    type_: Annotated[str, typer.Option("-t", "--type", metavar="TYPE", help="What kind of tasks they are.")],
    file: Annotated[
        str | None,
        typer.Option("-f", "--payload-file", metavar="FILE", help="A task for each line; - is stdin."),
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="TEXT", help="One task, and what it is given.")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", min=1, metavar="N", help="So many tasks, each given its number from 0."),
    ] = None,
    references: Annotated[
        bool,
        typer.Option("--references", help="The lines are places of payloads: file:/… or s3://…"),
    ] = False,
    version: Annotated[
        str | None, typer.Option("--version", metavar="VERSION", help="Of the type; without it the newest.")
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="For who chooses the image."),
    ] = None,
    mapper: Annotated[
        str, typer.Option("--mapper", metavar="NAME", help="Who chooses the image, of those the site has.")
    ] = "",
    estimate: Annotated[
        str | None, typer.Option("--estimate", metavar="TIME", help="How long one takes, such as 20ms.")
    ] = None,
    priority: Annotated[
        str, typer.Option("--priority", metavar="low|normal|high|N", help="Among your own tasks.")
    ] = "normal",
    deadline: Annotated[
        str | None,
        typer.Option("--deadline", metavar="TIME", help="What has not ended by then is given up."),
    ] = None,
    retries: Annotated[
        int, typer.Option("--retries", min=0, metavar="N", help="How often one that failed is tried again.")
    ] = 0,
    delay: Annotated[
        str | None,
        typer.Option("--retry-delay", metavar="TIME", help="Before that; twice as long every time."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="By which the batches are found again.")
    ] = "",
    key: Annotated[
        str,
        typer.Option("--key", metavar="KEY", help="The same command under one key submits nothing twice."),
    ] = "",
    chunk: Annotated[
        int | None, typer.Option("--chunk", min=1, metavar="N", help="Tasks of a batch; 10000.")
    ] = None,
    wait: Annotated[bool, typer.Option("-w", "--wait", help="Until all have ended.")] = False,
    print_results: Annotated[
        bool, typer.Option("--results", help="Wait, and print the results as they come.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No bar, and no words.")] = False,
    *,
    asking: Asking,
) -> None:
    """Submit tasks; prints the number of each batch, by which `task results` and `task cancel` know it."""
    from jobman.cli.tasks.handing import Handing, wrong_line
    from jobman.cli.tasks.payloads import WrongLine
    from jobman.tasks.model import Retries, Submission

    form = asking.form
    if sum(each is not None for each in (file, payload, count)) != 1:
        misused("one of them says what the tasks are given", "--payload-file, --payload, --count")
    if references and file is None:
        misused("it is said of the lines of a file", "--references")
    template = Submission(
        type=type_,
        version=version,
        parameters=pairs_of(parameters, "-p"),
        mapper=mapper,
        key=key,
        name=name or key,
        estimates=seconds_of(estimate, "--estimate"),
        priority=_priority(priority),
        deadline=seconds_of(deadline, "--deadline"),
        retries=Retries(limit=retries, delay=seconds_of(delay, "--retry-delay") or 0.0),
    )
    try:
        total, payloads = _payloads(file, payload, count, references=references)
    except WrongLine as error:
        wrong_line(error, form, "nothing was submitted")
    with asking as grid:
        handing = Handing(grid, template, form, by_reference=references, quiet=quiet)
        handing.hand_in(payloads, total, chunk)
        if wait or print_results:
            raise typer.Exit(handing.follow(asking.form_of_results if print_results else None))
        handing.tell()


def _priority(text: str) -> int:
    from jobman.tasks.options import PRIORITIES

    if text in PRIORITIES:
        return PRIORITIES[text]
    try:
        return int(text)
    except ValueError:
        misused(f"'{text}' is neither a number nor one of {', '.join(PRIORITIES)}", "--priority")


def _payloads(
    file: str | None, payload: str | None, count: int | None, *, references: bool
) -> tuple[int | None, Iterator[bytes]]:
    """How many there are, where that is known, and what they are."""
    if payload is not None:
        return 1, iter([payload.encode()])
    if count is not None:
        return count, (str(number).encode() for number in range(count))
    from jobman.cli.tasks.payloads import Lines

    assert file is not None
    lines = Lines(file, references=references)
    return lines.count(), iter(lines)
