"""A cluster that a service schedules, as scenarios speak to it: a service for each process of pytest."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from jobman.control.answers import Submission
from jobman.plan.model import Plan
from tests.conformance.bound import Bound, kept, settled
from tests.conformance.handle import JobHandle
from tests.conformance.promises import keep_promise
from tests.conformance.site import SETTINGS, TEXT
from tests.control.cluster_service import ClusterService, a_cluster_service

PATIENCE = 90.0
_PAUSE = 0.1
_AFTER = 60.0
"""Seconds that objects have to be gone."""
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


class Managed(Bound):
    """A cluster with a service, in the folder of one scenario."""

    name = "kubernetes-managed"

    def __init__(self, service: ClusterService, folder: Path) -> None:
        super().__init__(folder, SETTINGS)
        self._service = service

    def _submit(
        self, plan: Plan | None, document: str, *, virtual: str | None = None, **options: Any
    ) -> list[JobHandle]:
        del virtual  # The nodes are what they are.
        submission = Submission(
            document=dedent(document), file="scenario.yaml", settings=TEXT, cwd=str(self.folder), **options
        )
        client = self._service.client
        if plan is None:
            submitted = client.submit(submission)
        else:
            submitted = keep_promise(self.name, plan, lambda: client.submit(submission))
        handles = [JobHandle(client, job.id, patience=PATIENCE, pause=_PAUSE) for job in submitted.jobs]
        self._jobs += handles
        return handles

    def secret(self, name: str, **entries: str) -> None:
        self._keep("Secret", name, entries)

    def config(self, name: str, **entries: str) -> None:
        self._keep("ConfigMap", name, entries)

    def _keep(self, kind: str, name: str, entries: Mapping[str, str]) -> None:
        self._service.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(kept(kind, name, entries)))

    def leave(self) -> list[str]:
        for job in self._jobs:
            job.end()
        open_ends = [f"{job.id} is over, but {found}" for job in self._jobs for found in job.unfinished()]
        left = settled(
            lambda: [found for job in self._jobs for found in self._service.objects_of(job.id)],
            seconds=_AFTER,
            pause=_PAUSE,
        )
        held = [node.name for node in self._service.client.nodes() if node.jobs]
        found = [f"a job left objects: {left}"] if left else []
        return open_ends + found + ([f"a job holds nodes after its end: {held}"] if held else [])
