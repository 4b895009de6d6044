"""A cluster that a service schedules, as scenarios speak to it: a service for each process of pytest."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from jobman.control.answers import Submission
from jobman.plan.model import Plan
from tests.conformance import sizes
from tests.conformance.bound import kept, settled
from tests.conformance.handle import JobHandle
from tests.conformance.housing import need_what_is_used
from tests.conformance.in_pods import InPods
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
    """Services as they are needed; at their end nothing of their jobs may be left on the cluster."""
    with ExitStack() as services:
        yield ManagedSite(folder, services)


class ManagedSite:
    """A service for all usual nodes, and one for the nodes of each size, with a namespace each."""

    def __init__(self, folder: Path, services: ExitStack) -> None:
        self._folder = folder
        self._stack = services
        self._services: dict[str, ClusterService] = {}

    def service(self, size: str) -> ClusterService:
        if size not in self._services:
            self._services[size] = self._stack.enter_context(self._start(size))
        return self._services[size]

    @contextmanager
    def _start(self, size: str) -> Iterator[ClusterService]:
        folder = self._folder / (size or "usual")
        folder.mkdir()
        settings = TEXT + (sizes.settings(size) if size else "")
        with a_cluster_service(folder, settings=settings, program=_SERVER) as service:
            service.kubectl("create", "serviceaccount", getpass.getuser())
            yield service

    def bind(self, folder: Path) -> Managed:
        return Managed(self, folder)


class Managed(InPods):
    """A cluster with a service, in the folder of one scenario."""

    name = "kubernetes-managed"

    def __init__(self, site: ManagedSite, folder: Path) -> None:
        super().__init__(folder, SETTINGS)
        self._site = site
        self._service_of: dict[str, ClusterService] = {}

    def _submit(
        self, plan: Plan | None, document: str, *, virtual: str | None = None, **options: Any
    ) -> list[JobHandle]:
        if virtual is not None:
            self._take(virtual)
        need_what_is_used(document)
        submission = Submission(
            document=dedent(document), file="scenario.yaml", settings=TEXT, cwd=str(self._folder), **options
        )
        service = self._site.service(self._size)
        client = service.client
        if plan is None:
            submitted = client.submit(submission)
        else:
            submitted = keep_promise(self.name, plan, lambda: client.submit(submission))
        handles = [JobHandle(client, job.id, patience=PATIENCE, pause=_PAUSE) for job in submitted.jobs]
        self._jobs += handles
        self._service_of |= {job.id: service for job in handles}
        return handles

    def _keep(self, kind: str, name: str, entries: Mapping[str, str]) -> None:
        self._site.service(self._size).kubectl(
            "apply", "-f", "-", stdin=yaml.safe_dump(kept(kind, name, entries))
        )

    def _leave(self) -> list[str]:
        for job in self._jobs:
            job.end()
        open_ends = [f"{job.id} is over, but {found}" for job in self._jobs for found in job.unfinished()]
        left = settled(
            lambda: [found for job in self._jobs for found in self._service_of[job.id].objects_of(job.id)],
            seconds=_AFTER,
            pause=_PAUSE,
        )
        used = {service.url: service for service in self._service_of.values()}.values()
        held = [node.name for service in used for node in service.client.nodes() if node.jobs]
        found = [f"a job left objects: {left}"] if left else []
        return open_ends + found + ([f"a job holds nodes after its end: {held}"] if held else [])
