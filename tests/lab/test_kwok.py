"""Simulated nodes: pods that tolerate them run there as long as they say, and go when they are deleted."""

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.components import FOLDER

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.slow,
    pytest.mark.lab("it is about the lab itself"),
]
PATIENCE = 60
HELD = "jobman.io/held"


def lab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FOLDER / "kubernetes", *words],
        env={**os.environ, "JOBMAN_LAB_CLUSTER": "bench"},
        capture_output=True,
        text=True,
        timeout=120,
    )


class Cluster:
    """The second cluster of the lab, by the eyes of kubectl."""

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig

    def kubectl(self, *words: str, given: Any = None) -> str:
        return subprocess.run(
            [os.environ["JOBMAN_LAB_KUBECTL"], "--kubeconfig", self._kubeconfig, *words],
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def get(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-o", "json"))["items"]
        return found

    def phases(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.get("pods")}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Iterator[None]:
    """No other process of this run uses the cluster meanwhile."""
    with (tmp_path_factory.getbasetemp().parent / "kwok.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def cluster(alone) -> Iterator[Cluster]:
    del alone
    if not Path(os.environ["JOBMAN_LAB_KUBECTL"]).with_name("kwok").exists():
        pytest.skip("kwok is not built: lab/kubernetes kwok 1 does it")
    if lab("status").returncode == 0:
        pytest.skip("somebody measures something on the second cluster")
    made = lab("up")
    assert made.returncode == 0, made.stdout + made.stderr
    settings = dict(line.split("=", 1) for line in made.stdout.splitlines())
    try:
        yield Cluster(settings["JOBMAN_LAB_KUBECONFIG"])
    finally:
        lab("down")


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[list[dict[str, Any]]]:
    assert lab("kwok", "3").returncode == 0
    yield cluster.get("nodes")
    cluster.kubectl("delete", "pods", "--all")


def pod(name: str, seconds: int, **metadata: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "localhost/none:1",
        "env": [{"name": "LAB_SECONDS", "value": str(seconds)}],
    }
    spec = {
        "restartPolicy": "Never",
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
        "containers": [container],
        "automountServiceAccountToken": False,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


def test_nodes_are_as_many_as_were_asked_for_and_keep_others_away(cluster, nodes):
    assert [node["metadata"]["name"] for node in nodes] == ["kwok-0001", "kwok-0002", "kwok-0003"]
    assert all(node["metadata"]["labels"]["type"] == "kwok" for node in nodes)
    assert all("kwok.x-k8s.io/node" in [taint["key"] for taint in node["spec"]["taints"]] for node in nodes)
    assert lab("kwok", "1").returncode == 0
    assert len(cluster.get("nodes")) == 1
    assert lab("kwok", "0").returncode == 0
    assert cluster.get("nodes") == []


def test_a_pod_runs_for_as_long_as_it_says(cluster, nodes):
    del nodes
    cluster.kubectl("create", "-f", "-", given=pod("short", 0))
    cluster.kubectl("create", "-f", "-", given=pod("long", 3600))
    until(lambda: cluster.phases() == {"short": "Succeeded", "long": "Running"})
    assert cluster.kubectl("logs", "long") == ""


def test_a_deleted_pod_has_failed_and_waits_for_those_who_hold_it(cluster, nodes):
    del nodes
    cluster.kubectl("create", "-f", "-", given=pod("held", 3600, finalizers=[HELD]))
    until(lambda: cluster.phases() == {"held": "Running"})
    cluster.kubectl("delete", "pod", "held", "--wait=false")
    until(lambda: cluster.phases() == {"held": "Failed"})
    cluster.kubectl("patch", "pod", "held", "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
    until(lambda: cluster.phases() == {})


def test_what_is_no_number_of_nodes_is_refused():
    refused = lab("kwok", "many")
    assert refused.returncode == 2
    assert "usage:" in refused.stderr
