"""Flux as scenarios speak to it: the lab's instance, with a registry of its own for each process."""

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
from jobman.engines.flux.engine import Flux
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
_QUEUES = {"1x1": "1x1", "1x4": "1x4", "1x4x4": "1x4", "2x2": "2x4", "2x4": "2x4", "3x4": "3x4"}
"""The queue of the nodes of each size."""
_SITE = (
    "flux: {{queue: {0}, queues: {{interactive: {0}, batch: {0}}}, memory_per_core: 8Gi,"
    " priorities: {{low: 8, normal: 16, high: 24}},"
    " facts: {{hardware.gpu.available: gpu}}}}\n"
)


@contextmanager
def open_flux(folder: Path) -> Iterator[FluxSite]:
    """The instance is there: jobs leave word in a folder of this process."""
    yield FluxSite(folder)


class FluxSite:
    """The lab's Flux, for one process of pytest."""

    def __init__(self, folder: Path) -> None:
        tools = f"{Path(sys.executable).parent}:{os.environ['JOBMAN_LAB_FLUX_BIN']}"
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "FLUX_URI": os.environ["JOBMAN_LAB_FLUX_URI"],
            "FLUX_SHELL_RC_PATH": os.environ["JOBMAN_LAB_FLUX_SHELL_RC"],
            # Nodes of the lab have names that no network knows.
            "FLUX_URI_RESOLVE_LOCAL": "t",
        }
        self.home = folder / "home"
        self.home.mkdir()
        self.client = BatchClient(
            Flux({**os.environ, **self.environment}),
            root=folder / "jobs",
            database=folder / "batch.sqlite",
            owner="root",
        )

    def bind(self, folder: Path) -> FluxEngine:
        return FluxEngine(self, folder)


class FluxEngine(Bound):
    """Flux in the folder of one scenario."""

    name = "flux"
    gpu_variable = "CUDA_VISIBLE_DEVICES"
    os_label = "os.name"
    beat = 1.5

    def __init__(self, site: FluxSite, folder: Path) -> None:
        super().__init__(folder, settings_from_text(TEXT + _SITE.format("main"), "settings.yaml"))
        self._site = site
        self._mark = secrets.token_hex(8)
        self._queue = "main"
        self._nodes = ExitStack()
        # Its scheduler is a queue: whoever waits there for nodes of some size keeps everybody else waiting.
        self._turn = self._nodes.enter_context((Path(gettempdir()) / "jobman-flux.lock").open("w"))
        fcntl.flock(self._turn, fcntl.LOCK_SH)

    def alone(self) -> None:
        self._take("1x4")

    def _take(self, size: str) -> None:
        """Have the nodes of this size to oneself."""
        if _QUEUES[size] != self._queue:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            self._queue = _QUEUES[size]

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
        submission = Submission(
            document=dedent(document),
            file="scenario.yaml",
            settings=TEXT + _SITE.format(self._queue),
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
        return {**self._site.environment, "HOME": str(self._site.home), "SCENARIO": self._mark}

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
