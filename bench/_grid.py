"""Short tasks of ours, on a broker of their own: SQLite on disk, two workers made of a Python function."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench._task_peers import clock
from jobman.control.embedded import read_running, wait_until_gone
from jobman.tasks import Grid
from jobman.tasks.embedded import types_of
from jobman.tasks.local_types import LocalType

FEW, SOME, MANY = 10_000, 100_000, 1_000_000
ROUNDS = 3
_BATCH = 1000
_FIRST = 5000
"""Tasks that start the workers and are not counted."""
_WORKER = """
from jobman.tasks import serve

def nothing(payload: bytes) -> bytes:
    return payload

serve(nothing, batches={batches})
"""
_PAYLOAD = b"0"


class Ours:
    """A grid whose workers do nothing, with a call for each task or for many."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def run(self, tasks: int) -> None:
        """Submit so many, each with a payload of its own, and have all results."""
        payloads = (b"%d" % number for number in range(tasks))
        count = total = 0
        for result in self._grid.map("nothing", payloads, ordered=False):
            count, total = count + 1, total + int(result)
        if (count, total) != (tasks, tasks * (tasks - 1) // 2):
            raise RuntimeError(f"{tasks} tasks, and {count} results, not all of them right")

    def run_one(self) -> object:
        return self._grid.submit("nothing", _PAYLOAD).result()

    def warm(self) -> None:
        self.run(_FIRST)

    def rate(self, tasks: int) -> float:
        """Tasks a second, from the first submission to the last result: median of all rounds."""
        rounds = 1 if tasks >= MANY else ROUNDS
        return median(tasks / clock.seconds(lambda: self.run(tasks)) for _ in range(rounds))

    def queue(self, tasks: int) -> None:
        """Submit so many and leave them there."""
        for _ in range(0, tasks, _BATCH):
            self._grid.submit_many("nothing", [_PAYLOAD] * _BATCH)

    def memory(self) -> float:
        """Megabytes that the broker had at most."""
        return _peak(self.pid)

    @property
    def pid(self) -> int:
        assert self._grid.places is not None
        running = read_running(self._grid.places)
        assert running is not None
        return running.pid


@contextmanager
def ours(*, batches: bool) -> Iterator[Ours]:
    """With workers that take many tasks in one call, or with those that take one."""
    with _grid((sys.executable, "-c", _WORKER.format(batches=batches))) as grid:
        yield Ours(grid)


@contextmanager
def ours_waiting() -> Iterator[Ours]:
    """With workers that never come up, so that all tasks stay in the queue."""
    with _grid(("sleep", "infinity")) as grid:
        yield Ours(grid)


@contextmanager
def _grid(command: tuple[str, ...]) -> Iterator[Grid]:
    with tempfile.TemporaryDirectory(prefix="jobman-bench-") as folder:
        grid = Grid(state=folder)
        assert grid.places is not None
        types_of(grid.places).add(LocalType(type="nothing", command=command))
        try:
            yield grid
        finally:
            grid.close()
            if (running := read_running(grid.places)) is not None:
                os.kill(running.pid, signal.SIGTERM)
                wait_until_gone(grid.places)


def _peak(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6
