"""Jobs that are cancelled between the making of their pods and the start of a container, while followed."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import TooEarly
from jobman.engines.kubernetes.kubeconfig import load
from jobman.engines.kubernetes.managed.collecting import Collector
from tests.control.cluster_service import ClusterService, a_cluster_service, until
from tests.control.test_on_a_cluster import a_task
from tests.engines.kubernetes.cluster import kubeconfig, on_a_real_cluster, talk

pytestmark = [on_a_real_cluster, pytest.mark.slow]
STUCK = {
    "image": "image: localhost/nobody:1",
    "volume": "volumes: [{name: v, kind: config, config: nobody, to: /v}]",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterService]:
    with a_cluster_service(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture
def listeners() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def pods_of(service: ClusterService, job: str) -> list[str]:
    return service.kubectl("get", "pods", "-l", f"jobman.io/job={job}", "-o", "name").split()


def is_waiting(service: ClusterService, job: str) -> bool:
    """Whether its pod is on a node, and its container was not started."""
    path = "jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}"
    return bool(service.kubectl("get", "pods", "-l", f"jobman.io/job={job}", "-o", path))


def heard(service: ClusterService, job: str) -> list[str]:
    return [line.text for line in service.client.logs(job, follow=True)]


def complaints(service: ClusterService) -> list[str]:
    return [line for line in service.said.splitlines() if "Traceback" in line or "ERROR" in line]


@pytest.mark.parametrize("cause", STUCK)
def test_a_job_whose_container_does_not_come_is_cancelled_while_it_is_listened_to(
    service: ClusterService, listeners: ThreadPoolExecutor, cause: str
) -> None:
    before = service.everything()
    job = service.submit(a_task("echo never", keys=STUCK[cause]))
    listening = listeners.submit(heard, service, job)
    until(lambda: is_waiting(service, job), "a pod whose container waits")
    (pod,) = pods_of(service, job)
    with pytest.raises(TooEarly):
        talk(lambda api: read(api, pod.removeprefix("pod/"), service.namespace))
    assert not listening.done()
    service.client.cancel(job)
    assert service.wait(job).state == "cancelled"
    assert listening.result(60) == []
    until(lambda: service.everything() == before, "that nothing is left")
    assert complaints(service) == []


async def read(api: Api, pod: str, namespace: str) -> bytes:
    return b"".join([part async for part in api.logs(pod, namespace)])


def test_jobs_may_be_cancelled_at_any_moment_of_their_start(
    service: ClusterService, listeners: ThreadPoolExecutor
) -> None:
    before = service.everything()
    # Before there is a pod, before it runs, while it starts, and soon after.
    trials = [listeners.submit(cancelled_after, 0.1 * number, service) for number in range(16)]
    written = [trial.result(120) for trial in trials]
    assert all(lines in ([], ["here"]) for lines in written)
    until(lambda: service.everything() == before, "that nothing is left")
    assert complaints(service) == []


def cancelled_after(seconds: float, service: ClusterService) -> list[str]:
    """Cancel a job so long after its submission; returns what was heard of it."""
    job = service.submit(a_task("echo here; sleep 600"))
    cancelling = threading.Timer(seconds, service.client.cancel, [job])
    cancelling.start()
    lines = heard(service, job)
    cancelling.join()
    assert service.wait(job).state == "cancelled"
    return lines


def test_output_that_is_waited_for_ends_with_the_pod_that_never_wrote_any(
    service: ClusterService, tmp_path: Path
) -> None:
    """What collects output is started with the container, so here it is too early by intention."""
    container = {"name": "main", "image": "localhost/nobody:1"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "late"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    service.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    state = "jsonpath={.status.containerStatuses[*].state.waiting.reason}"
    until(lambda: service.kubectl("get", "pod", "late", "-o", state), "a container that waits")

    async def work(api: Api) -> tuple[str, str]:
        collector = Collector(api, "late", "main", tmp_path / "out")
        collector.prepare()
        await asyncio.wait_for(collector.complete(), 10)
        early = collector.lost
        following = asyncio.create_task(collector.follow())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(following), 1)
        await asyncio.to_thread(service.kubectl, "delete", "pod", "late")
        await asyncio.wait_for(following, 30)
        return early, collector.lost

    access = msgspec.structs.replace(load(kubeconfig()), namespace=service.namespace)
    assert talk(work, access) == ("", "its pod was gone before all of its output was read")
    assert (tmp_path / "out").read_bytes() == b""
