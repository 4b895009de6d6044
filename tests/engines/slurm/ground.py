"""A Slurm that may be broken, and jobs on it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest

from jobman.client.batch import BatchClient
from jobman.control.answers import Submission
from jobman.engines.slurm.engine import Slurm, user
from tests.conformance.handle import JobHandle
from tests.conformance.site import TEXT
from tests.slurm_lab import lab_slurm, slurm_variant

PATIENCE = 90.0
_PAUSE = 0.2
Found = TypeVar("Found")
on_a_real_slurm = [pytest.mark.component("slurm"), pytest.mark.slow]


class Ground:
    """One Slurm of the lab, for one test."""

    def __init__(self, variant: str, conf: Path, folder: Path) -> None:
        self.variant = variant
        self.folder = folder
        self.key = folder.name
        self.environment = {**os.environ, "SLURM_CONF": str(conf)}
        self.jobs: list[JobHandle] = []
        self.client = self.new_client()

    def new_client(self) -> BatchClient:
        """As another process of the same user would have it."""
        root, database = self.folder / "jobs", self.folder / "batch.sqlite"
        return BatchClient(Slurm(self.environment), root=root, database=database, owner=user())

    def beside(self, name: str) -> Ground:
        """The same Slurm for somebody else, with a folder of their own."""
        folder = self.folder / name
        folder.mkdir()
        return Ground(self.variant, Path(self.environment["SLURM_CONF"]), folder)

    def said(self) -> str:
        """What the list says of the only job, up to a colon."""
        (job,) = self.client.jobs()
        return job.reason.partition(":")[0]

    def forget_finished(self) -> None:
        """As after some minutes, in which Slurm remembers what is over."""
        conf = Path(self.environment["SLURM_CONF"])
        conf.write_text(f"{conf.read_text()}MinJobAge=2\n")
        self.slurm("scontrol", "reconfigure")
        eventually(lambda: not self.natives(), "that Slurm forgets what is over")

    def submission(self, document: str, **options: Any) -> Submission:
        return Submission(
            document=f"version: 1\ntasks:\n{dedent(document)}",
            file="fault.yaml",
            cwd=str(self.folder),
            environment=self.environment,
            **{"settings": TEXT, **options},
        )

    def submit(self, document: str, key: str | None = None, **options: Any) -> JobHandle:
        (job,) = self.client.submit(self.submission(document, **options), key=key).jobs
        return self.handle(job.id)

    def handle(self, job: str) -> JobHandle:
        found = JobHandle(self.client, job, patience=PATIENCE, pause=_PAUSE)
        self.jobs.append(found)
        return found

    def lab(self, *words: str) -> None:
        """Break something, or mend it."""
        lab_slurm(self.variant, *words)

    def slurm(self, *words: str) -> str:
        """A command of Slurm, by hand."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def natives(self, *states: str) -> list[str]:
        """The names of all jobs that Slurm has in these states, else of all it remembers."""
        wanted = f"--states={','.join(states) or 'all'}"
        return sorted(self.slurm("squeue", "--noheader", wanted, "--format=%j").splitlines())

    def id_of(self, job: JobHandle, piece: str) -> str:
        native: dict[str, str] = job.details().options["native"]
        return native[piece]

    def save(self) -> None:
        """Have the controller write down what it knows: it does so late, and forgets the rest when killed."""
        mark = f"mark-{time.monotonic_ns()}"
        job = self.slurm("sbatch", "--parsable", "--hold", f"--job-name={mark}", "--wrap=true")
        file = Path(self.environment["SLURM_CONF"]).parent / "state" / "job_state"
        eventually(lambda: mark.encode() in file.read_bytes(), "that all is written down")
        self.slurm("scancel", job)

    def ran(self) -> list[str]:
        """What tasks wrote into the ledger, in the order in which they did."""
        place = self.folder / "ledger"
        return place.read_text().splitlines() if place.exists() else []

    def let_go(self, name: str = "go") -> None:
        (self.folder / name).touch()

    def end(self) -> None:
        for job in self.jobs:
            job.end()


@contextmanager
def a_slurm(variant: str, folder: Path) -> Iterator[Ground]:
    """A new and empty one."""
    with slurm_variant(variant) as conf:
        yield Ground(variant, conf, folder)


def eventually(look: Callable[[], Found | None], what: str) -> Found:
    """What a look finds, as soon as it does."""
    until = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < until, f"{what} did not come in {PATIENCE:.0f} s"
        time.sleep(_PAUSE)
    return found


def wrapped(ground: Ground, command: str, script: str) -> None:
    """Put a program before one of Slurm's on the PATH; `$real` is the true one."""
    folder = ground.folder / "bin"
    folder.mkdir(exist_ok=True)
    real = subprocess.run(["which", command], capture_output=True, text=True, check=True).stdout.strip()
    place = folder / command
    place.write_text(f"#!/bin/bash\nreal={real} here={ground.folder}\n{dedent(script)}")
    place.chmod(0o755)
    ground.environment["PATH"] = f"{folder}:{os.environ['PATH']}"


def python(ground: Ground, *words: str, **variables: str) -> subprocess.Popen[bytes]:
    """Another process of jobman, which may be killed."""
    return subprocess.Popen(
        [sys.executable, "-m", *words], env={**ground.environment, **variables}, cwd=Path(__file__).parents[3]
    )
