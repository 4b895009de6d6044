"""Slurm as scenarios speak to it: the lab's cluster, with a registry of its own for each process."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from jobman.engines.slurm.engine import Slurm
from tests.conformance.scripted import Scripted, ScriptedSite

_NODES = {"1x1": "s1", "1x4": "s4", "1x4x4": "s4", "2x2": "s2 s3", "2x4": "s2 s3", "3x4": "s2 s3 s4"}
"""Which nodes there are of each size; whoever uses them takes their locks."""
_POOLS = {"2x2": "2x4"}
"""Partitions that do for others."""
_SITE = (
    "slurm: {facts: {hardware.gpu.available: gpu}, resources: {licence: license/matlab},"
    " queues: {interactive: main, batch: main}}\n"
)


@contextmanager
def open_slurm(folder: Path) -> Iterator[SlurmSite]:
    """The cluster is there: jobs leave word in a folder of this process."""
    yield SlurmSite(folder)


class SlurmSite(ScriptedSite):
    """The lab's Slurm, for one process of pytest."""

    def __init__(self, folder: Path) -> None:
        own = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "SLURM_CONF": os.environ["JOBMAN_LAB_SLURM_CONF"],
        }
        super().__init__(folder, Slurm({**os.environ, **own}), own)

    def bind(self, folder: Path) -> SlurmEngine:
        return SlurmEngine(self, folder)


class SlurmEngine(Scripted):
    """Slurm in the folder of one scenario."""

    name = "slurm"

    def __init__(self, site: SlurmSite, folder: Path) -> None:
        super().__init__(site, folder, _SITE)
        self._size = ""
        self._locked: set[str] = set()

    def _take(self, size: str) -> None:
        for node in _NODES[size].split():
            if node not in self._locked:
                lock = self._nodes.enter_context((Path(gettempdir()) / f"jobman-slurm-{node}.lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._locked.add(node)
        self._size = size

    def _settings_of_site(self) -> str:
        if not self._size:
            return _SITE
        pool = _POOLS.get(self._size, self._size)
        return _SITE.replace("{", f"{{partition: {pool}, ", 1).replace(": main", f": {pool}")
