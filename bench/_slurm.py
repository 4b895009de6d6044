"""The lab's Slurm as a peer: how fast it takes `true` jobs, how fast it ends them, how soon one starts.

Every job is submitted by an `sbatch` of its own, from a script file and without an output file: no shell has
a faster way. Nothing is measured before the cluster is empty. Where there is no Slurm, the answer is None.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from uuid import uuid4

from lab.components import discover, state

JOBS = 200
ROUNDS = 15
MOST_SECONDS = 300
PAUSE = 0.005

_TRUE = "#!/bin/sh\ntrue\n"
_CLOCK = '#!/bin/bash\necho "$EPOCHREALTIME" >"$1"\n'


def reason() -> str:
    """Why there is no Slurm to measure; nothing when there is one."""
    return state(discover()["slurm"]).reason


class Jobs:
    """Jobs of one measurement, told from all others by their name."""

    def __init__(self, conf: Path, folder: Path, script: str) -> None:
        self.folder = folder
        self._environment = {**os.environ, "SLURM_CONF": str(conf)}
        self._ended = _ended(conf)
        self._before = self._ended.stat().st_size
        self._name = f"bench-{uuid4().hex}"
        self._script = folder / "script"
        self._script.write_text(script)

    def submit(self, *arguments: str) -> None:
        options = ["--parsable", "--output=/dev/null", f"--job-name={self._name}"]
        self._run("sbatch", *options, str(self._script), *arguments)

    def submit_many(self, number: int, threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda _: self.submit(), range(number)))

    def finished(self) -> int:
        """How many Slurm has written down as ended, each well."""
        with self._ended.open() as file:
            file.seek(self._before)
            lines = file.read().splitlines()
        ours = [line for line in lines if f" Name={self._name} " in line]
        if bad := [line for line in ours if " JobState=COMPLETED " not in line]:
            raise RuntimeError(f"not every job ran to its end: {bad[0]}")
        return len(ours)

    def await_ends(self, name: str, number: int) -> None:
        """Until Slurm has written down so many ends of jobs of this name, or of a task of it."""
        words = (f" Name={name} ", f" Name={name}/")

        def ended() -> int:
            with self._ended.open() as file:
                file.seek(self._before)
                return sum(any(word in line for word in words) for line in file)

        _until(lambda: ended() >= number, "the end of all jobs", pause=0.05)

    def await_empty_cluster(self) -> None:
        _until(lambda: not self._run("squeue", "--noheader"), "an empty cluster", pause=0.1)

    def _run(self, *command: str) -> str:
        answer = subprocess.run(
            command,
            env=self._environment,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return answer.stdout


def submit_rate(jobs: int = JOBS, threads: int = 1) -> float | None:
    """Jobs a second that Slurm acknowledges, to so many callers at once."""
    with _jobs(_TRUE) as ours:
        if ours is None:
            return None
        start = time.perf_counter()
        ours.submit_many(jobs, threads)
        return jobs / (time.perf_counter() - start)


def finish_rate(jobs: int = JOBS, threads: int = 8) -> float | None:
    """Jobs a second, from the first call of sbatch to the end of the last job."""
    with _jobs(_TRUE) as ours:
        if ours is None:
            return None
        start = time.perf_counter()
        ours.submit_many(jobs, threads)
        _until(lambda: ours.finished() == jobs, "the end of all jobs")
        return jobs / (time.perf_counter() - start)


def start_seconds(rounds: int = ROUNDS) -> float | None:
    """Median from just before the call of sbatch to the first line of the job, one job at a time."""
    with _jobs(_CLOCK) as ours:
        if ours is None:
            return None
        return median(_start(ours, number) for number in range(1, rounds + 1))


def _start(jobs: Jobs, number: int) -> float:
    # The scheduler looks once a second; the golden ratio spreads the calls evenly over that second.
    time.sleep(1 + number * 0.618 % 1)
    started = jobs.folder / f"started-{number}"
    before = time.time()
    jobs.submit(str(started))
    _until(lambda: jobs.finished() == number, "the end of the job")
    return float(started.read_text()) - before


@contextmanager
def _jobs(script: str) -> Iterator[Jobs | None]:
    here = state(discover()["slurm"])
    if not here.ready:
        yield None
        return
    with TemporaryDirectory() as folder:
        jobs = Jobs(Path(here.environment["JOBMAN_LAB_SLURM_CONF"]), Path(folder), script)
        jobs.await_empty_cluster()
        yield jobs
        jobs.await_empty_cluster()


def _ended(conf: Path) -> Path:
    """Where the controller writes down what has ended; reading it costs the controller nothing."""
    settings = dict(line.split("=", 1) for line in conf.read_text().splitlines() if "=" in line)
    return Path(settings["JobCompLoc"])


def _until(condition: Callable[[], bool], what: str, pause: float = PAUSE) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Slurm did not reach {what} in {MOST_SECONDS} s")
        time.sleep(pause)
