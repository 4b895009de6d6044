"""What is rendered and submitted by hand, on a real Slurm, comes out as what jobman submits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jobman.cli.app import app
from jobman.engines.slurm.queue import FORMAT, read_queue
from tests.engines.scripts.running import ONE

pytestmark = [pytest.mark.component("slurm"), pytest.mark.slow]
EXAMPLES = Path(__file__).parents[3] / "examples"
PATIENCE = 90.0
SAME = (
    "hello",
    "dependencies",
    "replicas",
    "matrix",
    "group",
    "staging",
    "success",
    "retries",
    "lifecycle",
    "parameters",
)
LUCKY = ("collect",)
"""Tasks that are done when some copies are: how many others have ended by then is a matter of luck."""
HEAD = "version: 1\nname: job\ntasks:\n"


class Desk:
    """A person at a machine from which Slurm can be reached."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def jobman(self, *words: object, code: int | None = 0) -> str:
        result = CliRunner().invoke(app, ["-e", "slurm", *map(str, words)], prog_name="jobman")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert code is None or result.exit_code == code, result.output
        return result.stdout

    def data(self, *words: object) -> Any:
        return json.loads(self.jobman(*words, "-o", "json", code=None))

    def write(self, tasks: str, name: str = "job.yaml", head: str = HEAD) -> Path:
        (self.folder / name).write_text(f"{head}{tasks}\n")
        return self.folder / name

    def submit_by_hand(self, place: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([place / "submit.sh"], capture_output=True, text=True, timeout=60, cwd="/")

    def rendered(self, document: Path, *words: object) -> tuple[Path, str]:
        """The folder with the scripts of a document, and the id of the job."""
        place = self.folder / f"rendered-{document.stem}"
        self.jobman("render", document, "--to", place, *words)
        return place, json.loads((place / "about.json").read_text())["id"]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("SLURM_CONF", os.environ["JOBMAN_LAB_SLURM_CONF"])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JOBMAN_STATE", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    found = Desk(work)
    yield found
    for job in found.data("list")["items"]:
        if job["state"] in ("waiting", "running"):
            found.jobman("delete", "--force", job["id"])


def came_out(desk: Desk, job: str) -> dict[str, Any]:
    """What is the same of a job whenever and wherever it runs."""
    desk.jobman("wait", job, code=None)
    details = desk.data("details", job)
    tasks = [
        (each["scope"], each["name"], each["outcome"], each["counts"] if each["name"] not in LUCKY else None)
        for each in details["tasks"]
    ]
    lines = sorted((line["replica"], line["text"]) for line in logs(desk, job))
    return {"state": details["state"], "exit_code": details.get("exit_code"), "tasks": tasks, "lines": lines}


def logs(desk: Desk, job: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in desk.jobman("logs", job, "-o", "json").splitlines()]


@pytest.mark.parametrize("name", SAME)
def test_an_example_comes_out_as_if_jobman_had_submitted_it(desk: Desk, name: str) -> None:
    shutil.copytree(EXAMPLES, desk.folder, dirs_exist_ok=True)
    place, job = desk.rendered(desk.folder / f"{name}.yaml")
    done = desk.submit_by_hand(place)
    assert (done.returncode, done.stderr) == (0, "")
    by_hand = came_out(desk, job)
    submitted = desk.data("submit", desk.folder / f"{name}.yaml")["jobs"][0]["id"]
    assert came_out(desk, submitted) == by_hand
    assert by_hand["state"] == "succeeded"


def test_a_job_is_submitted_once(desk: Desk) -> None:
    place, job = desk.rendered(desk.write(f"- {{name: a, command: [echo, hello], {ONE}}}"))
    assert desk.submit_by_hand(place).returncode == 0
    again = desk.submit_by_hand(place)
    assert (again.returncode, again.stdout) == (1, "")
    assert "it was submitted before" in again.stderr
    assert came_out(desk, job)["lines"] == [("a.0", "hello")]


def test_the_same_document_is_rendered_the_same(desk: Desk) -> None:
    document = desk.write(f"- {{name: a, command: [echo, hello], {ONE}}}")
    assert desk.jobman("render", document) == desk.jobman("render", document)


def test_what_slurm_refuses_leaves_nothing_behind(desk: Desk) -> None:
    tasks = (
        f"- {{name: a, command: ['true'], {ONE}}}\n- {{name: b, command: ['true'], depends_on: a,"
        f" attributes: {{flags: {{slurm: [--partition=nowhere]}}}}, {ONE}}}"
    )
    place, job = desk.rendered(desk.write(tasks))
    done = desk.submit_by_hand(place)
    assert done.returncode != 0
    assert "nothing is submitted" in done.stderr
    assert not list((desk.folder.parent / "home" / ".jobman" / "jobs" / "slurm").iterdir())
    asked = ["squeue", "--noheader", "--states=PENDING,RUNNING", f"--format={FORMAT}"]
    queue = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True).stdout
    assert job not in {native.job for native in read_queue(queue)}


def test_what_is_held_waits_for_its_release(desk: Desk) -> None:
    tasks = (
        f"- {{name: a, command: [echo, one], {ONE}}}\n- {{name: b, command: [echo, two], hold: true, {ONE}}}"
    )
    place, job = desk.rendered(desk.write(tasks))
    assert desk.submit_by_hand(place).returncode == 0
    until(lambda: "one" in str(logs(desk, job)))
    assert "two" not in str(logs(desk, job))
    desk.jobman("release", job)
    assert came_out(desk, job)["lines"] == [("a.0", "one"), ("b.0", "two")]


def test_several_jobs_lie_in_folders_of_their_own(desk: Desk) -> None:
    one = f"{HEAD}- {{name: a, command: [echo, same], {ONE}}}\n"
    document = desk.write("", head=f"{one}---\n{one}")
    desk.jobman("render", document, "--to", desk.folder / "out")
    places = sorted((desk.folder / "out").iterdir())
    assert len(places) == 2
    for place in places:
        assert desk.submit_by_hand(place).returncode == 0
        assert came_out(desk, place.name.rpartition("-")[2])["lines"] == [("a.0", "same")]


def test_satisfy_asks_the_live_cluster(desk: Desk) -> None:
    tasks = (
        "- {name: fast, command: a, resources: {type: node, count: 2, with: [{type: core, count: 8}]},"
        " requires: {disk: ssd}}\n"
        "- {name: gpu, command: a, resources: {type: node, count: 1, with: [{type: gpu, count: 4}]}}\n"
    )
    fast, gpu = desk.data("satisfy", desk.write(tasks))
    assert fast["alternatives"][0]["parts"][0]["nodes"] == ["n1", "n2", "n3", "n4"]
    assert gpu["alternatives"][0]["parts"][0]["nodes"] == ["n7", "n8"]
    keys = {obstacle["key"] for obstacle in gpu["alternatives"][0]["parts"][0]["obstacles"]}
    assert keys == {"gpu", "queue"}
    huge = desk.write("- {name: huge, command: a, resources: {type: node, count: 9}}")
    assert "8 of 12 nodes qualify, with room for 8" in desk.jobman("satisfy", huge, code=4)


def until(look: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < end
        time.sleep(0.2)
