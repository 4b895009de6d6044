"""Odd names of jobs, folders and files, on a real Slurm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client.batch import BatchClient
from jobman.control.answers import Submission
from jobman.engines.slurm.engine import Slurm, user
from tests.conformance.handle import JobHandle
from tests.engines.scripts.running import ONE

pytestmark = [pytest.mark.component("slurm"), pytest.mark.slow]
PATIENCE = 90.0
ODD = (
    "a|b",
    "it's",
    'say "x"',
    "per%cent",
    "$HOME",
    "two words",
    "other:ab:c|None",
    "ü→",
    "line\nline",
    "#x",
)
FOLDERS = ("two words", "it's", 'a"b', "per%cent %j", "$HOME", "back\\slash", "ü→", "#x", "a'b c\"d")


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "SLURM_CONF": os.environ["JOBMAN_LAB_SLURM_CONF"]}


def slurm(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.fixture
def strangers(environment: dict[str, str], tmp_path: Path) -> Iterator[list[str]]:
    """Jobs of this user that jobman did not submit."""
    script = tmp_path / "script.sh"
    script.write_text("#!/bin/bash\ntrue\n")
    ids = [
        slurm(
            environment,
            "sbatch",
            "--parsable",
            "--hold",
            f"--job-name={name}",
            f"--comment={name}",
            str(script),
        )
        for name in ODD
    ]
    yield ids
    slurm(environment, "scancel", *ids)


def test_jobs_with_odd_names_and_comments_do_not_disturb(
    environment: dict[str, str], strangers: list[str]
) -> None:
    manager = Slurm(environment)
    assert not {native.id for native in manager.queue()} & set(strangers)
    assert sum(row.yours_waiting for row in manager.queues()) >= len(ODD)
    assert manager.nodes()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_job_runs_in_a_folder_with_an_odd_name(
    environment: dict[str, str], tmp_path: Path, name: str
) -> None:
    # In the name of a file a backslash tells Slurm that there is no pattern in it.
    work, root = tmp_path / name, tmp_path / f"jobs {name.replace(chr(92), '')}"
    work.mkdir()
    client = BatchClient(Slurm(environment), root=root, database=tmp_path / "batch.sqlite", owner=user())
    submission = Submission(
        document=f"version: 1\nname: odd\ntasks:\n- {{name: a, command: [pwd], {ONE}}}\n",
        cwd=str(work),
        environment=environment,
    )
    (job,) = client.submit(submission).jobs
    handle = JobHandle(client, job.id, patience=PATIENCE, pause=0.2)
    try:
        outcome = handle.wait()
        assert (outcome.state, outcome.lines()) == ("succeeded", [str(work)])
    finally:
        handle.end()
    (output,) = (root / job.id).glob("slurm-*.out")
    assert output.name == f"slurm-{next(iter(handle.details().options['native'].values()))}.out"
    assert "chdir" not in output.read_text()


@pytest.mark.parametrize("name", ["a|b", 'it\'s "odd"', "two words"])
def test_a_job_is_followed_whatever_the_document_calls_it(
    environment: dict[str, str], tmp_path: Path, name: str
) -> None:
    client = BatchClient(Slurm(environment), root=tmp_path, database=tmp_path / "batch.sqlite", owner=user())
    flags = [f"--job-name={name}", f"--comment={name}"]
    document = (
        "version: 1\nname: odd\ntasks:\n- {name: a, command: [sleep, '3'],"
        f" attributes: {{flags: {{slurm: {json.dumps(flags)}}}}}, {ONE}}}\n"
    )
    (job,) = client.submit(Submission(document=document, cwd=str(tmp_path), environment=environment)).jobs
    handle = JobHandle(client, job.id, patience=PATIENCE, pause=0.2)
    try:
        assert handle.wait().state == "succeeded"
    finally:
        handle.end()
