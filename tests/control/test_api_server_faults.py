"""A service on a cluster whose API server dies, or has forgotten what was watched.

Whatever was under way: every job ends as it should, no copy is started twice, nothing is left on the cluster.
The service has the rights of an installation, and no others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.engines.kubernetes.installation.site import Site
from tests.control.cluster_service import ClusterService, running, until
from tests.control.faulty_cluster import SETTINGS, FaultyCluster, History, Way, a_faulty_cluster, a_way
from tests.engines.kubernetes.cluster import kubectl, on_a_real_cluster
from tests.engines.kubernetes.installed import a_site, as_the_server

pytestmark = [on_a_real_cluster, pytest.mark.slow, pytest.mark.lab]

AWAY = 30.0
"""Seconds without an API server."""
NODES = 4
SINGLE = "{type: slot, count: 1, with: [{type: core, count: 1}]}"
GANG = "{type: slot, count: 3, with: [{type: core, count: 1}]}"
WHOLE_NODES = "{type: node, count: 4}"
SHAPES = {SINGLE: 1, GANG: 3, WHOLE_NODES: 4}


@pytest.fixture(scope="module")
def made_cluster() -> Iterator[FaultyCluster]:
    with a_faulty_cluster(NODES) as made:
        yield made


@pytest.fixture
def cluster(made_cluster: FaultyCluster, monkeypatch: pytest.MonkeyPatch) -> FaultyCluster:
    """The cluster that is meant by all that is asked of one."""
    monkeypatch.setenv("JOBMAN_LAB_KUBECONFIG", str(made_cluster.kubeconfig))
    return made_cluster


@pytest.fixture
def site(cluster: FaultyCluster) -> Iterator[Site]:
    del cluster
    with a_site() as made:
        yield made


@pytest.fixture
def way(site: Site, tmp_path: Path) -> Iterator[Way]:
    with a_way(as_the_server(site, tmp_path / "kubeconfig")) as made:
        yield made


@pytest.fixture
def history(cluster: FaultyCluster, site: Site) -> History:
    return History(cluster.etcd, site.jobs_namespace)


@pytest.fixture
def service(site: Site, tmp_path: Path, way: Way) -> Iterator[ClusterService]:
    """One that goes its own way to the cluster."""
    with running(ClusterService(tmp_path, site.jobs_namespace, settings=SETTINGS, access=way.access)) as made:
        yield made


@pytest.fixture
def direct_service(site: Site, tmp_path: Path) -> Iterator[ClusterService]:
    access = as_the_server(site, tmp_path / "kubeconfig")
    with running(ClusterService(tmp_path, site.jobs_namespace, settings=SETTINGS, access=access)) as made:
        yield made


def work(shape: str, seconds: int) -> str:
    """A job whose simulated pods run for so many seconds, or are taken away."""
    return f"""
version: 1
tasks:
- name: work
  image: localhost/none:1
  command: [sleep, "{seconds}"]
  grace: 1s
  attributes: {{environment: {{LAB_SECONDS: "{seconds}"}}}}
  resources: {shape}
"""


class Load:
    """Jobs of a service, and what each of them asked for."""

    def __init__(self, service: ClusterService, history: History) -> None:
        self._service = service
        self._history = history
        self._copies: dict[str, int] = {}
        self._before = service.objects()

    def submit(self, shape: str, seconds: int) -> str:
        job = self._service.submit(work(shape, seconds))
        self._copies[job] = SHAPES[shape]
        return job

    def run(self, shape: str, seconds: int) -> str:
        """A job whose pods run."""
        job = self.submit(shape, seconds)
        until(lambda: self._has_begun(job), f"that {job} runs")
        return job

    def _has_begun(self, job: str) -> bool:
        return self._service.client.details(job).started_at is not None

    def ends(self, **reasons: list[str]) -> None:
        """All jobs end well, in one attempt, or in those whose reasons are given."""
        for job, copies in self._copies.items():
            assert self._service.wait(job).state == "succeeded", self.told(job)
            attempts = list(self._service.client.attempts(job))
            assert [each.reason for each in attempts] == reasons.get(job, [""]), self.told(job)
            assert len(self._history.of(job)) == copies * len(attempts)
        self.leaves_nothing()

    def leaves_nothing(self) -> None:
        until(lambda: self._service.objects() == self._before, "that nothing is left")
        until(lambda: self._history.removed == self._history.made, "what etcd has to say")
        assert set(self._history.made.values()) == {1}

    def told(self, job: str) -> str:
        events = [f"{each.kind} {each.message} {each.data}" for each in self._service.client.events(job)]
        return "\n".join([job, *events])


def test_jobs_end_as_they_should_though_the_api_server_is_killed(
    cluster: FaultyCluster, direct_service: ClusterService, history: History
) -> None:
    service = direct_service
    load = Load(service, history)
    load.submit(SINGLE, 0)
    cancelled = service.submit(work(SINGLE, 600))
    service.until_running(cancelled)
    load.run(SINGLE, 10)
    load.run(GANG, 10)
    load.run(GANG, 32)
    load.submit(WHOLE_NODES, 1)
    for shape in (SINGLE, GANG) * 4:
        load.submit(shape, 2)
    cluster.stop()
    back = time.monotonic() + AWAY
    service.client.cancel(cancelled)
    while time.monotonic() < back:
        load.submit(SINGLE, 2)
        load.submit(GANG, 2)
        time.sleep(AWAY / 6)
    cluster.start()
    load.submit(SINGLE, 1)
    load.submit(GANG, 1)
    assert service.wait(cancelled).state == "cancelled"
    load.ends()
    assert "Traceback" not in service.said


def test_nothing_is_missed_when_the_cluster_has_forgotten_what_was_watched(
    cluster: FaultyCluster, service: ClusterService, history: History, way: Way
) -> None:
    load = Load(service, history)
    walled, deleted, torn = load.run(GANG, 25), load.run(GANG, 15), load.run(SINGLE, 15)
    ended = load.run(GANG, 5)
    for shape in (SINGLE, GANG) * 2:
        load.submit(shape, 1)
    version = json.loads(kubectl("get", "--raw", "/api/v1/pods?limit=1"))["metadata"]["resourceVersion"]
    with way.closed():
        load.submit(GANG, 1)
        namespace = ("-n", service.namespace)
        kubectl("delete", "pod", history.of(deleted)[1], *namespace, "--wait=false")
        tear_away(history.of(torn)[0], service.namespace)
        kubectl("delete", "service", f"jobman-{walled}", *namespace)
        kubectl("cordon", "kwok-0004")
        until(lambda: "Running" not in phases(service, ended), "an end that nobody sees")
        cluster.forget()
        assert is_forgotten(version)
    until(lambda: state_of(service, "kwok-0004") == "draining", "that the node is seen as it is")
    until(lambda: f"service/jobman-{walled}" in service.objects_of(walled), "what was deleted")
    kubectl("uncordon", "kwok-0004")
    load.ends(**{deleted: ["preempted", ""], torn: ["node-lost", ""]})
    assert "Traceback" not in service.said


def tear_away(pod: str, namespace: str) -> None:
    """Remove a pod at once, whoever holds it."""
    patch = '{"metadata": {"finalizers": null}}'
    kubectl("patch", "pod", pod, "-n", namespace, "--type=merge", "-p", patch)
    kubectl("delete", "pod", pod, "-n", namespace, "--grace-period=0", "--force")


def is_forgotten(version: str) -> bool:
    """Whether nobody can watch pods from a version on."""
    watch = f"/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion={version}"
    return "Expired" in kubectl("get", "--raw", watch)


def phases(service: ClusterService, job: str) -> str:
    words = ("-l", f"jobman.io/job={job}", "-o", "jsonpath={.items[*].status.phase}")
    return service.kubectl("get", "pods", *words)


def state_of(service: ClusterService, node: str) -> str:
    return next(each.state for each in service.client.nodes() if each.name == node)
