"""`jobman why`: where a job stands, what blocks it, when it starts, and what would help."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import typer

from jobman.cli.estimates import expectation, is_now, latest, no_promise, place
from jobman.cli.options import Job, JobName, Output, one_job
from jobman.cli.state import State, aimed, emit

if TYPE_CHECKING:
    from jobman.cli.tables import Cell
    from jobman.control.answers import Estimate, Revision, Why

_MOST_TOLD = 5
"""Blockers behind the first that are told one by one."""


def why(context: typer.Context, job: Job = None, named: JobName = None, output: Output = None) -> None:
    """Say why a job is where it is, when it starts, and what would help."""
    from jobman.cli.calls import Calling
    from jobman.cli.colours import wanted
    from jobman.cli.tables import width_of

    state: State = context.obj
    form = state.format(output)
    reference = one_job(job, named)
    with Calling(form) as client:
        answer = client.why(reference)
    if form == "table":
        lines = render_why(answer, time.time(), width_of(sys.stdout), colour=wanted())
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        answer.suggestion = aimed(answer.suggestion)
        emit(answer, form)


def render_why(answer: Why, now: float, width: int | None, *, colour: bool = False) -> list[str]:
    """The lines of an explanation: what it comes to, then the parts of the priority, then what moved."""
    from jobman.cli.tables import render_facts

    lines = render_facts(_facts(answer, now), width, colour=colour)
    for table in (_factors(answer, width, colour), _revisions(answer, now, width, colour)):
        if table:
            lines += ["", *table]
    return lines


def _facts(answer: Why, now: float) -> list[tuple[str, str | Cell]]:
    from jobman.cli.colours import STATES
    from jobman.cli.tables import Cell

    where = f", {place(answer.position, answer.queue)}" if answer.position else ""
    summary = answer.summary.removeprefix("it waits: ")
    more = [blocker.message for blocker in answer.blockers if blocker.message != summary]
    return [
        ("job", Cell(answer.job, "bold")),
        ("state", Cell(answer.state + where, STATES.get(answer.state, ""))),
        ("because", summary),
        *(("and", message) for message in more[:_MOST_TOLD]),
        ("and", f"{len(more) - _MOST_TOLD} more; `-o json` lists them" if len(more) > _MOST_TOLD else ""),
        *(_outlook(answer.estimate, now) if answer.estimate is not None else ()),
        ("priority", "" if answer.priority is None else f"{answer.priority:,.1f}"),
        ("try", Cell(aimed(answer.suggestion), "cyan")),
    ]


def _outlook(estimate: Estimate, now: float) -> list[tuple[str, str | Cell]]:
    """The guarantee and the expectation."""
    from jobman.cli.tables import Cell
    from jobman.cli.times import length

    if is_now(estimate, now):
        return [("starts", Cell("now", "green"))]
    promise = Cell(no_promise(estimate), "yellow")
    if estimate.guaranteed_by is not None:
        left = length(estimate.guaranteed_by - now)
        promise = Cell(f"by {latest(estimate.guaranteed_by, now)} at the latest, in {left}")
    return [("starts", promise), ("expected", expectation(estimate, now))]


def _factors(answer: Why, width: int | None, colour: bool) -> list[str]:
    from jobman.cli.tables import Column, render

    columns = (
        Column("factor"),
        Column("value", right=True),
        Column("weight", right=True),
        Column("points", right=True),
    )
    rows = [
        (each.name, f"{each.raw:.3f}", f"{each.weight:,g}", f"{each.contribution:,.1f}")
        for each in answer.factors
    ]
    return render(columns, rows, width, colour=colour) if rows else []


def _revisions(answer: Why, now: float, width: int | None, colour: bool) -> list[str]:
    """The guarantees that moved, the newest first."""
    from jobman.cli.tables import Column, render
    from jobman.cli.times import ago

    columns = (
        Column("moved"),
        Column("replica", rank=1),
        Column("from"),
        Column("to"),
        Column("because", folds=True),
    )
    newest = sorted(answer.revisions, key=lambda each: -each.at)
    rows = [(ago(each.at, now), each.replica, *_move(each, now), each.cause) for each in newest]
    return render(columns, rows, width, colour=colour) if rows else []


def _move(revision: Revision, now: float) -> tuple[str, str]:
    before, after = (
        "no promise" if each is None else latest(each, now) for each in (revision.before, revision.after)
    )
    return before, after
