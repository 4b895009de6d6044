"""What is said of tasks that the manager does not know any more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from jobman.client.batch_answers import job_answer
from jobman.client.batch_submission import Submitting
from jobman.control.answers import Submission
from jobman.engines.scripts.folder import Folder
from jobman.engines.scripts.found import BatchJob, Native
from jobman.engines.scripts.registry import Registry
from jobman.engines.slurm.engine import Slurm
from tests.conformance.site import TEXT

DOCUMENT = """
version: 1
tasks:
- {name: first, command: ["true"]}
- {name: second, depends_on: first, command: ["true"]}
"""


class Made:
    """A job as its scripts and its manager would have it."""

    def __init__(self, folder: Path) -> None:
        jobs = folder / "jobs"
        submitting = Submitting(Slurm(), Registry(folder / "batch.sqlite", "slurm", jobs), jobs, "ada")
        submission = Submission(document=DOCUMENT, file="job.yaml", settings=TEXT, cwd=str(folder))
        plans, _, settings = submitting.read(submission)
        (one,) = submitting.prepare(submission, plans, settings, "key")
        self.folder = Folder(Path(one.job.folder))
        self.about = one.about
        self.folder.make(one.about, {})
        self.folder.mark("submitted")

    def first(self, *kinds: str) -> None:
        """What the script of the first task wrote."""
        lines = [f"{at}.0\t{kind}\tfirst.0\t1\t\t\tn1\t\n" for at, kind in enumerate(kinds, 1)]
        (self.folder.path / "log" / "first.0").write_text("".join(lines))

    def seen(self, natives: Sequence[tuple[str, str]] = ()) -> BatchJob:
        found = [
            Native(id="1", piece=piece, job=self.about.id, state=state)  # type: ignore[arg-type]
            for piece, state in natives
        ]
        return BatchJob(self.folder, self.about, found)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_a_task_that_is_forgotten_while_it_waits_has_failed(made: Made) -> None:
    made.first("started")
    job = made.seen([("first", "running")])
    assert {row.unit.name: row.outcome for row in job.rows} == {"first": None, "second": "failed"}
    made.first("started", "succeeded")
    answer = job_answer(made.seen([("first", "over")]))
    assert answer.state == "failed"
    assert answer.reason == "second.0: the manager knows nothing of it any more, and it never ran"


def test_a_task_whose_turn_could_not_come_was_skipped(made: Made) -> None:
    made.first("started", "failed")
    job = made.seen()
    assert {row.unit.name: row.outcome for row in job.rows} == {"first": "failed", "second": "skipped"}


def test_a_task_that_is_not_submitted_yet_waits(made: Made) -> None:
    made.folder.mark("submitted", there=False)
    assert job_answer(made.seen([("first", "held")])).state == "waiting"
