"""What engines have in common whose jobs are scripts of a manager."""

from __future__ import annotations

import os
import secrets
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent
from typing import Any

from jobman.client.batch import BatchClient
from jobman.control.answers import Submission
from jobman.engines.scripts.delegate import Delegate
from jobman.plan.model import Plan
from jobman.settings import settings_from_text
from tests.conformance.bound import Bound, settled
from tests.conformance.handle import JobHandle
from tests.conformance.local import processes
from tests.conformance.promises import keep_promise
from tests.conformance.site import TEXT

PATIENCE = 60.0
_PAUSE = 0.2
_AFTER = 20.0


class ScriptedSite:
    """A manager of the lab, with a registry of its own for one process of pytest."""

    def __init__(self, folder: Path, manager: Delegate, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        """What a submission brings along."""
        self.home = folder / "home"
        self.home.mkdir()
        self.client = BatchClient(
            manager, root=folder / "jobs", database=folder / "batch.sqlite", owner="root"
        )


class Scripted(Bound):
    """A manager, in the folder of one scenario."""

    name: str
    gpu_variable = "CUDA_VISIBLE_DEVICES"
    os_label = "os.name"
    beat = 1.0

    def __init__(self, site: ScriptedSite, folder: Path, usual: str) -> None:
        super().__init__(folder, settings_from_text(TEXT + _with_containers(usual), "settings.yaml"))
        self._site = site
        self._mark = secrets.token_hex(8)
        self._nodes = ExitStack()

    def alone(self) -> None:
        self._take("1x4")

    @abstractmethod
    def _take(self, size: str) -> None:
        """Have the nodes of this size to oneself."""

    @abstractmethod
    def _settings_of_site(self) -> str:
        """What the settings say of the manager, for the nodes that were taken."""

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
        own = {**self._site.environment, "HOME": str(self._site.home), "SCENARIO": self._mark}
        submission = Submission(
            document=dedent(document),
            file="scenario.yaml",
            settings=TEXT + _with_containers(self._settings_of_site()),
            cwd=str(self.folder),
            environment={**own, **(environment or {})},
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
            left = settled(lambda: processes(self._mark), seconds=_AFTER, pause=_PAUSE)
            return open_ends + ([f"a job left processes: {left}"] if left else [])


def _with_containers(section: str) -> str:
    """The settings of a manager whose nodes have podman, where the lab has it."""
    return section.replace("{", "{container: podman, ", 1) if "JOBMAN_LAB_PODMAN" in os.environ else section
