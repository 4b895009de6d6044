"""A service on a cluster whose API server dies, or has forgotten what was watched, while real containers run.

Whatever was under way: every job ends as it should, no copy runs twice and no gang by half, nothing is left
on the cluster. The service has the rights of an installation, and no others.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from jobman.engines.kubernetes.installation.site import Site
from tests.control.cluster_service import ClusterService, running, until
from tests.control.faulty_cluster import SETTINGS, FaultyCluster, History, Way, a_faulty_cluster, a_way
from tests.control.ledger import Ledger, Work
from tests.engines.kubernetes.cluster import kubectl, on_a_real_cluster
from tests.engines.kubernetes.installed import a_site, as_the_server

# What was late is tried again; what ran twice is not.
late = pytest.mark.flaky(reruns=1, only_rerun=["did not come in", "Timeout"])
pytestmark = [
    on_a_real_cluster,
    pytest.mark.slow,
    pytest.mark.lab("it breaks the API server of a cluster that the lab makes for it"),
    late,
]

AWAY = 30.0
"""Seconds without an API server."""
KILLS = 5
SINGLE = Work("{type: slot, count: 1, with: [{type: core, count: 1}]}", copies=1)
GANG = Work("{type: slot, count: 3, with: [{type: core, count: 1}]}", copies=3)
WHOLE_NODES = Work("{type: node, count: 2}", copies=2)


@pytest.fixture(scope="module")
def made_cluster() -> Iterator[FaultyCluster]:
    with a_faulty_cluster() as made:
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


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path)


class Load:
    """Jobs of a service, and what each of them asked for."""

    def __init__(self, service: ClusterService, history: History, ledger: Ledger) -> None:
        self._service = service
        self._history = history
        self._ledger = ledger
        self._works: dict[str, Work] = {}
        self._cancelled: set[str] = set()
        self._before = service.objects()

    def submit(self, work: Work, *, seconds: int = 1, code: int = 0) -> str:
        work = work._replace(seconds=seconds, code=code)
        job = self._service.submit(self._ledger.document(work))
        self._works[job] = work
        return job

    def run(self, work: Work, *, seconds: int, code: int = 0) -> str:
        """A job whose containers run."""
        job = self.submit(work, seconds=seconds, code=code)
        until(lambda: self.has_begun(job), f"that {job} runs")
        return job

    def has_begun(self, job: str) -> bool:
        everybody = self._ledger.begun(job, 1).total() == self._works[job].copies
        return everybody and self._service.client.details(job).started_at is not None

    def cancel(self, job: str) -> None:
        """Cancel a job that runs, and so does not come to its end."""
        self._service.client.cancel(job)
        self._cancelled.add(job)

    def ends(self, interrupted: Mapping[str, str] = {}) -> None:
        """All jobs end as they should, in one attempt; those that were interrupted, for a reason, in two.

        Others may come before, of which nothing ever ran: the cluster may be too busy with itself.
        """
        for job in self._works:
            assert self._service.wait(job).state == self._wanted(job), self.told(job)
        # From here on nobody begins any more.
        self.leaves_nothing()
        for job, work in self._works.items():
            granted = list(self._service.client.attempts(job))
            attempts = [each for each in granted if self._ledger.begun(job, each.attempt)]
            reasons = [interrupted[job]] if job in interrupted else []
            assert [each.reason for each in attempts[:-1]] == reasons, self.told(job)
            self._ran(job, work, [each.attempt for each in attempts])
            assert len(self._history.of(job)) <= work.copies * len(granted), self.told(job)

    def _wanted(self, job: str) -> str:
        if job in self._cancelled:
            return "cancelled"
        return "failed" if self._works[job].code else "succeeded"

    def _ran(self, job: str, work: Work, attempts: list[int]) -> None:
        """Each copy once in each attempt, and all of them to their end in the last one alone."""
        once = dict.fromkeys(range(work.copies), 1)
        assert self._ledger.attempts(job) == attempts, self.told(job)
        assert all(self._ledger.begun(job, each) == once for each in attempts), self.told(job)
        whole = [each for each in attempts if self._ledger.ended(job, each) == once]
        assert whole == ([] if job in self._cancelled else attempts[-1:]), self.told(job)

    def leaves_nothing(self) -> None:
        until(lambda: self._service.objects() == self._before, "that nothing is left")
        until(lambda: self._history.removed == self._history.made, "what etcd has to say")
        assert set(self._history.made.values()) == {1}

    def told(self, job: str) -> str:
        events = [f"{each.kind} {each.message} {each.data}" for each in self._service.client.events(job)]
        return "\n".join([job, self._ledger.text(job), *events])


def test_jobs_end_as_they_should_though_the_api_server_is_killed(
    cluster: FaultyCluster, direct_service: ClusterService, history: History, ledger: Ledger
) -> None:
    service = direct_service
    load = Load(service, history, ledger)
    load.submit(SINGLE, seconds=0)
    cancelled = load.run(SINGLE, seconds=600)
    load.run(SINGLE, seconds=10)
    load.run(SINGLE, seconds=10, code=3)
    load.run(GANG, seconds=10)
    load.run(GANG, seconds=32)
    for work in (SINGLE, GANG) * 4:
        load.submit(work, seconds=2)
    load.submit(WHOLE_NODES)
    cluster.stop()
    back = time.monotonic() + AWAY
    load.cancel(cancelled)
    while time.monotonic() < back:
        load.submit(SINGLE, seconds=2)
        load.submit(GANG, seconds=2)
        time.sleep(AWAY / 6)
    cluster.start()
    load.submit(SINGLE)
    load.submit(GANG)
    load.ends()
    assert "Traceback" not in service.said


def test_jobs_end_as_they_should_however_often_the_api_server_is_killed(
    cluster: FaultyCluster, direct_service: ClusterService, history: History, ledger: Ledger
) -> None:
    load = Load(direct_service, history, ledger)
    dice = random.Random()
    for _ in range(KILLS):
        load.submit(SINGLE, seconds=dice.randrange(4))
        load.submit(GANG, seconds=dice.randrange(4))
        # Pods are about to be made, to start, to end or to be deleted.
        time.sleep(dice.uniform(0.0, 4.0))
        cluster.stop()
        cluster.start()
    load.ends()
    assert "Traceback" not in direct_service.said


def test_nothing_is_missed_when_the_cluster_has_forgotten_what_was_watched(
    cluster: FaultyCluster, service: ClusterService, history: History, way: Way, ledger: Ledger
) -> None:
    load = Load(service, history, ledger)
    walled, deleted = load.run(GANG, seconds=40), load.run(GANG, seconds=30)
    torn, ended = load.run(SINGLE, seconds=30), load.run(GANG, seconds=5)
    for work in (SINGLE, GANG) * 2:
        load.submit(work)
    version = json.loads(kubectl("get", "--raw", "/api/v1/pods?limit=1"))["metadata"]["resourceVersion"]
    with way.closed():
        load.submit(GANG)
        namespace = ("-n", service.namespace)
        kubectl("delete", "pod", history.of(deleted)[1], *namespace, "--wait=false")
        tear_away(history.of(torn)[0], service.namespace)
        kubectl("delete", "service", f"jobman-{walled}", *namespace)
        kubectl("cordon", cluster.nodes[-1])
        until(lambda: "Running" not in phases(service, ended), "an end that nobody sees")
        cluster.forget()
        assert is_forgotten(version)
    until(lambda: state_of(service, cluster.nodes[-1]) == "draining", "that the node is seen as it is")
    until(lambda: f"service/jobman-{walled}" in service.objects_of(walled), "what was deleted")
    kubectl("uncordon", cluster.nodes[-1])
    load.ends({deleted: "preempted", torn: "node-lost"})
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
