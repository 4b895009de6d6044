"""The Slurms of the lab that come up on demand: one at a time of each, and gone when the test is."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

import pytest

from lab.components import FOLDER, MISSING

_PATIENCE = 300


@contextmanager
def slurm_variant(name: str) -> Iterator[Path]:
    """A new one, empty: its SLURM_CONF. Whoever wants it as well waits, so no test keeps it for long."""
    with (Path(gettempdir()) / f"jobman-slurm-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lab_slurm(name, "down")
        try:
            told = dict(line.split("=", 1) for line in _up(name).splitlines())
            yield Path(told["JOBMAN_LAB_SLURM_CONF"])
        finally:
            lab_slurm(name, "down")


def lab_slurm(name: str, *words: str) -> str:
    """A command of lab/slurm to one of them, such as `ctld stop` to the one named faults."""
    done = _ask(name, *words)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def _up(name: str) -> str:
    done = _ask(name, "up")
    if done.returncode == MISSING and (reason := done.stdout.strip()).startswith("not installed"):
        pytest.skip(reason)
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    return done.stdout


def _ask(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JOBMAN_LAB_SLURM": name}
    command = [str(FOLDER / "slurm"), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_PATIENCE)
