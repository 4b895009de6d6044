"""A cluster that a service schedules, as scenarios speak to it: a service for each process of pytest."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from jobman.api import loads
from jobman.control.answers import Submission
from jobman.plan.model import Plan
from tests.conformance.handle import JobHandle
from tests.conformance.outcome import Outcome
from tests.conformance.promises import keep_promise
from tests.conformance.site import SETTINGS, TEXT
from tests.control.cluster_service import ClusterService, a_cluster_service

PATIENCE = 90.0
_PAUSE = 0.1
_SERVER = ("-m", "tests.conformance.managed_server")


@contextmanager
def open_managed(folder: Path) -> Iterator[ManagedSite]:
    """Start a service; at its end nothing of its jobs may be left on the cluster."""
    with a_cluster_service(folder, settings=TEXT, program=_SERVER) as service:
        service.kubectl("create", "serviceaccount", getpass.getuser())
        yield ManagedSite(service)


class ManagedSite:
    """One service, and its namespace of the cluster."""

    def __init__(self, service: ClusterService) -> None:
        self.service = service

    def bind(self, folder: Path) -> Managed:
        return Managed(self.service, folder)


class Managed:
    """A cluster with a service, in the folder of one scenario."""

    name = "kubernetes-managed"

    def __init__(self, service: ClusterService, folder: Path) -> None:
        self.folder = folder
        self._service = service
        self._jobs: list[JobHandle] = []

    def submit(
        self,
        document: str,
        *,
        parameters: Mapping[str, object] | None = None,
        virtual: str | None = None,
        files: Mapping[str, str] | None = None,
        **options: Any,
    ) -> JobHandle:
        del virtual  # The nodes are what they are.
        for name, content in (files or {}).items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(content)
        given = {name: str(value) for name, value in (parameters or {}).items()}
        plan = loads(dedent(document), settings=SETTINGS, parameters=given).plan()
        (handle,) = self._submit(plan, document, parameters=given, **options)
        return handle

    def submit_all(self, document: str, **options: Any) -> list[JobHandle]:
        return self._submit(None, document, **options)

    def run(self, document: str, *, timeout: float | None = None, **options: Any) -> Outcome:
        return self.submit(document, **options).wait(timeout)

    def _submit(self, plan: Plan | None, document: str, **options: Any) -> list[JobHandle]:
        submission = Submission(
            document=dedent(document), file="scenario.yaml", settings=TEXT, cwd=str(self.folder), **options
        )
        client = self._service.client
        if plan is None:
            submitted = client.submit(submission)
        else:
            submitted = keep_promise(TABLE, plan, lambda: client.submit(submission))
        handles = [JobHandle(client, job.id, patience=PATIENCE, pause=_PAUSE) for job in submitted.jobs]
        self._jobs += handles
        return handles

    def secret(self, name: str, **entries: str) -> None:
        self._keep("Secret", name, entries)

    def config(self, name: str, **entries: str) -> None:
        self._keep("ConfigMap", name, entries)

    def _keep(self, kind: str, name: str, entries: Mapping[str, str]) -> None:
        field = "stringData" if kind == "Secret" else "data"
        written = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, field: dict(entries)}
        self._service.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(written))

    def leave(self) -> list[str]:
        for job in self._jobs:
            job.end()
        open_ends = [f"{job.id} is over, but {found}" for job in self._jobs for found in job.unfinished()]
        left = _settled(lambda: [found for job in self._jobs for found in self._service.objects_of(job.id)])
        held = [node.name for node in self._service.client.nodes() if node.jobs]
        found = [f"a job left objects: {left}"] if left else []
        return open_ends + found + ([f"a job holds nodes after its end: {held}"] if held else [])


TABLE = "kubernetes-managed"


def _settled(look: Callable[[], list[str]], seconds: float = 60.0) -> list[str]:
    """What is still there after a while."""
    deadline = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    return found
