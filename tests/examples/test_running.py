"""Every example runs on a laptop with two cores, or is refused there with the reason."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.examples.laptop import Laptop
from tests.examples.seen import lines_of
from tests.examples.test_examples import EXAMPLES, FILES

pytestmark = pytest.mark.slow
_COMMANDS = re.compile(r"^\$ jobman run (.*)$", re.MULTILINE)


class Run(NamedTuple):
    """How an example is run, and what a user sees."""

    file: str
    with_: str = ""
    """Options before the file; `{folder}` is the one it is run in."""
    out: tuple[str, ...] = ()
    """Lines of stdout; which copy comes first is not said."""
    err: tuple[str, ...] = ()
    """Lines that are found on stderr."""
    code: int = 0
    files: tuple[str, ...] = ()
    """What is left in the folder of submission."""

    def __str__(self) -> str:
        return f"{self.with_} {self.file}".strip()


def refused(file: str, *err: str, with_: str = "") -> Run:
    """An example that cannot be run here, and why."""
    return Run(file, with_, err=err, code=4)


PLACED = (
    "store.0 │ store on NODE",
    "reader.0 │ reader on NODE",
    *(f"spare.{number} │ spare on NODE" for number in range(3)),
    *(f"survey.{number} │ survey on NODE" for number in range(6)),
)
QUICK = [
    Run("hello", out=("hello, world",), err=("✔ hello succeeded in T ID",)),
    Run("replicas", out=tuple(f"count.{number} │ replica {number} of 8" for number in range(8))),
    Run(
        "matrix",
        out=(
            "integrate.0 │ left rule, 10 steps: 0.285000",
            "integrate.1 │ left rule, 100 steps: 0.328350",
            "integrate.2 │ left rule, 1000 steps: 0.332833",
            "integrate.3 │ midpoint rule, 10 steps: 0.332500",
            "integrate.4 │ midpoint rule, 100 steps: 0.333325",
            "integrate.5 │ midpoint rule, 1000 steps: 0.333333",
            "done.0 │ the sweep is complete",
        ),
    ),
    Run(
        "dependencies",
        out=("watcher.0 │ the chain has begun", "log.0 │ compute is over, well or not"),
        err=("rescue skipped 1", "cleanup succeeded 1 1 T"),
    ),
    Run(
        "group",
        out=("analysis.0/summary.0 │ copy 0 of 2", "analysis.0/summary.0 │ copy 1 of 2"),
        files=("analysis",),
    ),
    Run("staging", out=("find-user.0 │ user 0 is root",), files=("staged",)),
    Run("requires", out=("anywhere.0 │ a node with a GPU, or one without", "kernel.0 │ Linux")),
    Run("alternatives", out=("cores 2, devices none",)),
    Run("alternatives", "--virtual 1x1x1", out=("cores 1, devices 0",)),
    Run(
        "retries",
        out=(
            "flaky.0 │ fine",
            *(f"survey.{number} │ replica {number} answered" for number in (0, 1, 3, 4, 5)),
        ),
        err=("flaky succeeded 1 1 1 T", "survey succeeded 6 6 T T"),
    ),
    Run("success", out=("search.0 │ found by 0",), err=("✔ success succeeded in T ID",)),
    Run("container", "--no-container", out=("add.0 │ 55",), files=("numbers.txt",)),
    refused(
        "container",
        "jobman: the local engine cannot do what is asked: image (make, add): JOBMAN_CONTAINER_RUNTIME names "
        "no-runtime, which was not found: install podman, docker or apptainer, or leave the image out with "
        "--no-container",
    ),
    refused(
        "storage",
        "jobman: the local engine cannot do what is asked: "
        "volumes.claim (collect): needs a cluster that provides storage; use `host` or `scratch` here; "
        "volumes.csi (collect): needs a cluster that provides storage; use `host` or `scratch` here; "
        "volumes.nfs (collect): jobman mounts no servers; mount it yourself and use `host`; "
        "volumes.image (collect): the files of an image cannot be mounted alone; "
        "run the task in that `image`",
    ),
]
SLOW = [
    Run(
        "parameters",
        out=tuple(f"greet.{n}/{copy} │ good morning from 2 ranks" for n in range(3) for copy in range(2)),
    ),
    Run(
        "heterogeneous",
        "--virtual 1x4",
        out=(
            "play.0/0 │ director: rank 0 of 4 with 1 core",
            *(f"play.0/{rank} │ crowd: rank {rank} of 4 with 1 core" for rank in (1, 2, 3)),
        ),
    ),
    Run(
        "mpi",
        out=(
            "solve.0/0 │ rank 0 of 2 on node 0 of 1: 1.570796827",
            "solve.0/1 │ rank 1 of 2 on node 0 of 1: 1.570795827",
        ),
    ),
    Run(
        "mpi",
        "--virtual 4x2 --set nodes=4",
        out=tuple(
            f"solve.0/{rank} │ rank {rank} of 8 on node {rank // 2} of 4: {part:.9f}"
            for rank, part in enumerate(0.392699957 - rank * 0.00000025 for rank in range(8))
        ),
    ),
    Run(
        "volumes",
        "--set place={folder}",
        out=("with a token, and level 3",),
    ),
    Run("placement", out=PLACED, err=("survey succeeded 6 6 T T",)),
    Run("placement", "--virtual 3x2", out=PLACED, err=("survey succeeded 6 6 T T",)),
    Run(
        "service",
        out=tuple(f"counting.0/client.{number} │ visit number {number + 1}" for number in range(4)),
        err=("counting.0/database (service) succeeded 1 1 T",),
        files=("database.py",),
    ),
    Run("lifecycle", err=("✔ lifecycle succeeded in T ID",), files=("lifecycle",)),
    Run(
        "machine-learning",
        "--virtual 1x4",
        out=("campaign.0/choose.0 │ 0.02 with depth 2 and rate 0.01",),
        err=("campaign.0/train.0/fit succeeded 6 6 T T",),
        files=("runs",),
    ),
    Run(
        "showcase",
        out=(
            "publish.0/reader.0 │ darts-0 3.14288",
            "publish.0/reader.0 │ darts-1 3.1372",
            "publish.0/reader.0 │ darts-2 3.1449",
            "publish.0/reader.0 │ darts-3 3.13782",
            "publish.0/reader.0 │ fraction 3.142857",
            "publish.0/reader.0 │ leibniz-100 3.131593",
            "publish.0/reader.0 │ leibniz-10000 3.141493",
            "publish.0/reader.0 │ wallis-100 3.133709",
            "publish.0/reader.0 │ wallis-10000 3.141514",
        ),
        err=("flaky succeeded 1 1 1 T", "publish.0/page (service) succeeded 1 1 T"),
    ),
]
RUNS = [*QUICK, *SLOW]


@pytest.fixture(autouse=True)
def what_volumes_needs(laptop: Laptop) -> None:
    laptop.keep("secrets", "portal", {"token": "s3cret"})
    laptop.keep("configs", "defaults", {"level": "3"})


def test_every_example_is_run():
    assert {run.file for run in RUNS} == {path.stem for path in FILES}


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_an_example_does_what_it_shows(run: Run, laptop: Laptop, tmp_path: Path):
    options = shlex.split(run.with_.format(folder=tmp_path))
    answer = laptop.jobman("run", *options, str(EXAMPLES / f"{run.file}.yaml"), cwd=tmp_path)
    assert (answer.code, sorted(lines_of(answer.out))) == (run.code, sorted(run.out)), answer.err
    assert set(run.err) <= set(lines_of(answer.err))
    assert {path.name for path in tmp_path.iterdir()} == set(run.files)


def test_the_page_of_the_examples_says_how_they_are_run():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    shown = {command.replace(".yaml", "") for command in _COMMANDS.findall(page)}
    assert shown == {str(run) for run in RUNS if run.with_ and "{folder}" not in run.with_}
