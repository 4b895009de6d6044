"""Slurm as scenarios speak to it: the lab's cluster, with a registry of its own for each process."""

from __future__ import annotations

import fcntl
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import gettempdir
from textwrap import dedent
from typing import Any

from jobman.client.batch import BatchClient
from jobman.control.answers import Submission
from jobman.engines.slurm.engine import Slurm
from jobman.plan.model import Plan
from jobman.settings import settings_from_text
from tests.conformance.bound import Bound, settled
from tests.conformance.handle import JobHandle
from tests.conformance.local import _processes
from tests.conformance.promises import keep_promise
from tests.conformance.site import TEXT

PATIENCE = 60.0
_PAUSE = 0.2
_AFTER = 20.0
_NODES = {"1x1": "s1", "1x4": "s4", "1x4x4": "s4", "2x2": "s2 s3", "2x4": "s2 s3", "3x4": "s2 s3 s4"}
"""Which nodes there are of each size; whoever uses them takes their locks."""
_POOLS = {"2x2": "2x4"}
"""Partitions that do for others."""
_SITE = "slurm: {facts: {hardware.gpu.available: gpu}, queues: {interactive: main, batch: main}}\n"


@contextmanager
def open_slurm(folder: Path) -> Iterator[SlurmSite]:
    """The cluster is there: jobs leave word in a folder of this process."""
    yield SlurmSite(folder)


class SlurmSite:
    """The lab's Slurm, for one process of pytest."""

    def __init__(self, folder: Path) -> None:
        self.environment = {**os.environ, "SLURM_CONF": os.environ["JOBMAN_LAB_SLURM_CONF"]}
        self.home = folder / "home"
        self.home.mkdir()
        self.client = BatchClient(
            Slurm(self.environment), root=folder / "jobs", database=folder / "batch.sqlite", owner="root"
        )

    def bind(self, folder: Path) -> SlurmEngine:
        return SlurmEngine(self, folder)


class SlurmEngine(Bound):
    """Slurm in the folder of one scenario."""

    name = "slurm"
    gpu_variable = "CUDA_VISIBLE_DEVICES"
    os_label = "os.name"
    beat = 1.0

    def __init__(self, site: SlurmSite, folder: Path) -> None:
        super().__init__(folder, settings_from_text(TEXT + _SITE, "settings.yaml"))
        self._site = site
        self._mark = secrets.token_hex(8)
        self._size = ""
        self._nodes = ExitStack()

    def alone(self) -> None:
        self._take("1x4")

    def _take(self, size: str) -> None:
        """Have the nodes of this size to oneself."""
        if size != self._size:
            for node in _NODES[size].split():
                lock = self._nodes.enter_context((Path(gettempdir()) / f"jobman-slurm-{node}.lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            self._size = size

    def _submit(
        self,
        plan: Plan | None,
        document: str,
        *,
        virtual: str | None = None,
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> list[JobHandle]:
        if virtual is not None:
            self._take(virtual)
        site = _SITE
        if self._size:
            pool = _POOLS.get(self._size, self._size)
            site = site.replace("{", f"{{partition: {pool}, ", 1).replace(": main", f": {pool}")
        submission = Submission(
            document=dedent(document),
            file="scenario.yaml",
            settings=TEXT + site,
            cwd=str(self.folder),
            environment={**self._environment(), **(environment or {})},
            **options,
        )
        client = self._site.client
        if plan is None:
            submitted = client.submit(submission)
        else:
            submitted = keep_promise(self.name, plan, lambda: client.submit(submission))
        handles = [JobHandle(client, job.id, patience=PATIENCE, pause=_PAUSE) for job in submitted.jobs]
        self._jobs += handles
        return handles

    def _environment(self) -> dict[str, str]:
        tools = Path(sys.executable).parent
        return {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(self._site.home),
            "LANG": "C.UTF-8",
            "SCENARIO": self._mark,
            "SLURM_CONF": self._site.environment["SLURM_CONF"],
        }

    def secret(self, name: str, **entries: str) -> None:
        self._keep("secrets", name, entries)

    def config(self, name: str, **entries: str) -> None:
        self._keep("configs", name, entries)

    def _keep(self, kind: str, name: str, entries: Mapping[str, str]) -> None:
        folder = self._site.home / ".jobman" / kind / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for key, value in entries.items():
            (folder / key).write_text(value)

    def leave(self) -> list[str]:
        with self._nodes:
            for job in self._jobs:
                job.end()
            open_ends = [f"{job.id} is over, but {found}" for job in self._jobs for found in job.unfinished()]
            left = settled(lambda: _processes(self._mark), seconds=_AFTER, pause=_PAUSE)
            return open_ends + ([f"a job left processes: {left}"] if left else [])
