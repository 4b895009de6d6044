"""A registry that is lost is made again: from the folders of jobs, and from what Slurm knows of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.client.batch import BatchClient
from jobman.control.answers import Submission
from tests.conformance.slurm import open_slurm

pytestmark = [pytest.mark.component("slurm"), pytest.mark.slow]
DOCUMENT = """
version: 1
name: lost
resources: {one: {type: slot, count: 1}}
tasks:
- {name: wait, command: [sleep, "600"], resources: one, replicas: 2}
"""


def test_a_job_that_only_slurm_knows_is_found_by_its_comment(tmp_path: Path) -> None:
    with open_slurm(tmp_path) as site:
        submission = Submission(document=DOCUMENT, cwd=str(tmp_path), environment=site.environment)
        (job,) = site.client.submit(submission).jobs
        stranger = BatchClient(
            site.client._manager, root=tmp_path / "elsewhere", database=tmp_path / "new.sqlite", owner="root"
        )
        try:
            assert not list(stranger.jobs())
            assert stranger.details(job.id).name == "lost"
            assert [each.id for each in stranger.jobs()] == [job.id]
        finally:
            stranger.delete(job.id, force=True)
