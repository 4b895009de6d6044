"""`jobman rerun`: a job once more, with the document and the options it had."""

from __future__ import annotations

from typing import Annotated

import typer

from jobman.cli.options import Job, JobName, Output, one_job
from jobman.cli.state import State, emit


def rerun(
    context: typer.Context,
    job: Job = None,
    named: JobName = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only what did not succeed; the rest counts as done.")
    ] = False,
    output: Output = None,
) -> None:
    """Submit a job again as it was: its document, parameters and folder."""
    from jobman.cli.calls import Calling
    from jobman.cli.submission import announce, environment, tell
    from jobman.control.answers import Submission

    state: State = context.obj
    form = state.format(output)
    wanted = Submission(rerun_of=one_job(job, named), failed_only=failed, environment=environment())
    with Calling(form) as client:
        answer = client.submit(wanted)
    tell(answer)
    if form == "table":
        announce([answer])
    else:
        emit(answer, form)
