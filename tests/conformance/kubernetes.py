"""A cluster without a service, as scenarios speak to it: a namespace of its own for each process of pytest.

Every pod is housed as an ordinary machine would; the documents stay as they are written.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from jobman.client import Refused
from jobman.client.direct import DirectClient
from jobman.client.direct_loop import Begun
from jobman.control.answers import FINAL_STATES, Submission
from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.kinds import (
    CONFIG_MAPS,
    JOB_SETS,
    JOBS,
    NETWORK_POLICIES,
    PODS,
    SERVICES,
    Kind,
)
from jobman.engines.kubernetes.objects import Written
from jobman.plan.model import Plan
from jobman.settings import settings_from_text
from tests.client.commanding import config_for
from tests.conformance import sizes
from tests.conformance.bound import kept, settled
from tests.conformance.handle import JobHandle
from tests.conformance.housing import housed_pod, need_what_is_used
from tests.conformance.in_pods import InPods
from tests.conformance.outcome import Outcome
from tests.conformance.promises import keep_promise
from tests.conformance.site import TEXT
from tests.engines.kubernetes.cluster import (
    a_namespace,
    image,
    kubeconfig,
    kubectl,
)

PATIENCE = 150.0
"""Seconds: a Job waits ten before it tries a pod again, and twice as long each time."""
_PAUSE = 0.4
_AFTER = 60.0
"""Seconds that objects have to be gone."""
_KINDS: tuple[Kind[Any], ...] = (JOB_SETS, JOBS, PODS, SERVICES, CONFIG_MAPS, NETWORK_POLICIES)


@contextmanager
def open_direct(folder: Path) -> Iterator[DirectSite]:
    """Take a namespace; at the end it goes with all that is in it."""
    with a_namespace() as namespace:
        kubectl("create", "serviceaccount", getpass.getuser(), "-n", namespace)
        site = DirectSite(namespace, config_for(namespace, folder, kubeconfig()))
        try:
            yield site
        finally:
            site.client.close()


class DirectSite:
    """One namespace of the cluster."""

    def __init__(self, namespace: str, config: Path) -> None:
        self.namespace = namespace
        self.folder = Path("/")
        """That of the scenario that is run now."""
        self.size = ""
        """That of the nodes which it has to itself; empty for the usual ones."""
        self.text = f"{TEXT}default_image: {image()}\n"
        self.settings = settings_from_text(self.text, "settings.yaml")
        self.client = DirectClient(str(config), api=partial(Housed, house=self._house))

    def _house(self, spec: Written) -> Written:
        pod = housed_pod(spec, self.folder)
        return sizes.on_nodes(pod, self.size) if self.size else pod

    def bind(self, folder: Path) -> ClusterEngine:
        self.folder, self.size = folder, ""
        return ClusterEngine(self, folder)

    def objects(self, job: str) -> list[str]:
        """What there is of a job."""
        return self.client._loop.run(self._objects(f"jobman.io/job={job}"))

    async def _objects(self, labels: str) -> list[str]:
        listed = [(kind, await self.api.list(kind, labels=labels)) for kind in _KINDS]
        return [f"{kind.plural}/{each.metadata.name}" for kind, found in listed for each in found.items]

    @property
    def api(self) -> Api:
        return self.client._direct.api


class ClusterHandle(JobHandle):
    """A job of a cluster, which is asked as seldom as can be."""

    def wait(self, timeout: float | None = None) -> Outcome:
        try:
            self._client.wait(self.id, self._patience if timeout is None else timeout)
        except TimeoutError:
            raise AssertionError(f"it does not end: {self.why()}\n{self.look()}") from None
        return self.look()


class Housed(Api):
    """Gives every pod what an ordinary machine has."""

    def __init__(self, access: Access, *, house: Callable[[Written], Written]) -> None:
        super().__init__(access)
        self._house = house

    async def _post(self, kind: Kind[Any], written: Written, namespace: str | None, **options: Any) -> bytes:
        at_home = written
        if written["kind"] == "Job":
            at_home = housed(written, self._house)
        elif written["kind"] == "JobSet":
            at_home = housed_set(written, self._house)
        return await super()._post(kind, at_home, namespace, **options)


def housed(job: Written, house: Callable[[Written], Written]) -> Written:
    """A Job whose pods find the folder of submission and the programs of this machine."""
    spec = job["spec"]
    pod = house(spec["template"]["spec"])
    return {**job, "spec": {**spec, "template": {**spec["template"], "spec": pod}}}


def housed_set(jobs: Written, house: Callable[[Written], Written]) -> Written:
    """The same for all Jobs that a JobSet makes."""
    spec = jobs["spec"]
    members = [{**each, "template": housed(each["template"], house)} for each in spec["replicatedJobs"]]
    return {**jobs, "spec": {**spec, "replicatedJobs": members}}


class ClusterEngine(InPods):
    """A cluster without a service, in the folder of one scenario."""

    name = "kubernetes-direct"

    def __init__(self, site: DirectSite, folder: Path) -> None:
        super().__init__(folder, site.settings)
        self._site = site
        self._drivers: list[Begun[Any]] = []
        """Of graphs, which go on only while somebody drives them, as `jobman run` does."""

    def _take(self, size: str) -> None:
        super()._take(size)
        self._site.size = size

    def _submit(
        self, plan: Plan | None, document: str, *, virtual: str | None = None, **options: Any
    ) -> list[JobHandle]:
        if virtual is not None:
            self._take(virtual)
        need_what_is_used(document)
        submission = Submission(
            document=dedent(document),
            file="scenario.yaml",
            settings=self._site.text,
            cwd=str(self._folder),
            **options,
        )
        client = self._site.client
        if plan is None:
            submitted = client.submit(submission, driven=True)
        else:
            submitted = keep_promise("kubernetes", plan, lambda: client.submit(submission, driven=True))
        handles: list[JobHandle] = [
            ClusterHandle(client, job.id, patience=PATIENCE, pause=_PAUSE) for job in submitted.jobs
        ]
        self._jobs += handles
        self._drivers += [begun for job in handles if (begun := client.drive(job.id)) is not None]
        return handles

    def _keep(self, kind: str, name: str, entries: Mapping[str, str]) -> None:
        written = yaml.safe_dump(kept(kind, name, entries))
        kubectl("apply", "-n", self._site.namespace, "-f", "-", stdin=written)

    def _leave(self) -> list[str]:
        over = [job for job in self._jobs if job.details().state in FINAL_STATES]
        open_ends = [f"{job.id} is over, but {found}" for job in over for found in job.unfinished()]
        for job in self._jobs:
            with suppress(Refused):
                self._site.client.delete(job.id, force=True)
        for driver in self._drivers:
            driver.stop()
        left = settled(
            lambda: [found for job in self._jobs for found in self._site.objects(job.id)],
            seconds=_AFTER,
            pause=_PAUSE,
        )
        return open_ends + ([f"a job left objects: {left}"] if left else [])
