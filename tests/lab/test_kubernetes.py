"""The cluster of the lab: real pods on both nodes, whose output can be read and which find each other."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.control.faulty_cluster import no_faulty_cluster, on_the_lab

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.slow,
    pytest.mark.lab("it is about the lab itself"),
]
PATIENCE = 60


class Namespace:
    """A namespace of its own, by the eyes of kubectl."""

    def __init__(self, name: str) -> None:
        self.name = name

    def kubectl(self, *words: str, given: str | None = None) -> str:
        return subprocess.run(
            [os.environ["JOBMAN_LAB_KUBECTL"], "--namespace", self.name, *words],
            env={**os.environ, "KUBECONFIG": os.environ["JOBMAN_LAB_KUBECONFIG"]},
            input=given,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def create(self, *objects: dict[str, Any]) -> None:
        for each in objects:
            self.kubectl("create", "-f", "-", given=json.dumps(each))

    def get(self, *words: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", *words, "-o", "json"))["items"]
        return found


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace(f"lab-{uuid4().hex[:8]}")
    made.kubectl("create", "namespace", made.name)
    yield made
    made.kubectl("delete", "namespace", made.name, "--wait=false")


def job(name: str, command: str, copies: int) -> dict[str, Any]:
    """An indexed Job whose copies are spread over the nodes."""
    container = {
        "name": "main",
        "image": os.environ["JOBMAN_LAB_KUBE_IMAGE"],
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", command],
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    pod = {
        "restartPolicy": "Never",
        "subdomain": name,
        "containers": [container],
        "topologySpreadConstraints": [spread],
        "terminationGracePeriodSeconds": 0,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": copies,
            "parallelism": copies,
            "completionMode": "Indexed",
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


def pods_at_their_end(namespace: Namespace) -> list[dict[str, Any]]:
    """All pods, when none of them goes on any more."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        pods = namespace.get("pods")
        if pods and all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in pods):
            return pods
        time.sleep(0.2)
    raise AssertionError(namespace.kubectl("describe", "pods"))


def test_both_nodes_run_pods_and_keep_their_output(namespace: Namespace) -> None:
    namespace.create(job("hello", "echo copy $JOB_COMPLETION_INDEX", 2))
    pods = pods_at_their_end(namespace)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"lab-1", "lab-2"}
    said = namespace.kubectl("logs", "--selector", "app=hello").splitlines()
    assert sorted(said) == ["copy 0", "copy 1"]


def test_copies_find_each_other_by_name(namespace: Namespace) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "pair"},
        "spec": {"clusterIP": "None", "selector": {"app": "pair"}, "publishNotReadyAddresses": True},
    }
    ask = "until nc -w 1 pair-$((1 - JOB_COMPLETION_INDEX)).pair 4000 2>/dev/null; do sleep 0.2; done"
    tell = "(echo I am copy $JOB_COMPLETION_INDEX | nc -l -p 4000) &"
    namespace.create(service, job("pair", f"{tell} {ask}; wait", 2))
    assert [pod["status"]["phase"] for pod in pods_at_their_end(namespace)] == ["Succeeded"] * 2
    said = namespace.kubectl("logs", "--selector", "app=pair").splitlines()
    assert sorted(said) == ["I am copy 0", "I am copy 1"]


@pytest.mark.parametrize(
    ("pool", "cores"), [("1x1", ["1"]), ("1x4", ["4"]), ("2x4", ["4", "4"]), ("3x4", ["4", "4", "4"])]
)
def test_nodes_of_a_size_offer_that_many_cores(namespace: Namespace, pool: str, cores: list[str]) -> None:
    nodes = namespace.get("nodes", "--selector", f"jobman.io/{pool}=pool")
    assert [node["status"]["allocatable"]["cpu"] for node in nodes] == cores
    assert [[taint["key"] for taint in node["spec"]["taints"]] for node in nodes] == [
        ["jobman.io/sized"] for _ in nodes
    ]
    named = dict(each.split(":") for each in os.environ["JOBMAN_LAB_SIZED_NODES"].split())
    assert named[pool].split(",") == [node["metadata"]["name"] for node in nodes]


def test_nothing_lands_on_a_node_of_a_size_that_does_not_ask_for_it(namespace: Namespace) -> None:
    greedy = job("greedy", "true", 1)
    (container,) = greedy["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "3"}}
    namespace.create(greedy)
    deadline = time.monotonic() + PATIENCE
    while "FailedScheduling" not in namespace.kubectl("get", "events"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert all("nodeName" not in pod["spec"] for pod in namespace.get("pods"))


def test_other_servers_may_answer_for_a_part_of_its_api(namespace: Namespace) -> None:
    group = f"{namespace.name}.jobman.io"
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"name": "nobody", "namespace": namespace.name},
    }
    kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
    namespace.create({**kind, "metadata": {"name": f"v1.{group}"}, "spec": spec})
    try:
        look = ("get", "apiservice", f"v1.{group}", "-o", "jsonpath={.status.conditions[*].reason}")
        until = time.monotonic() + PATIENCE
        while "ServiceNotFound" not in namespace.kubectl(*look):
            assert time.monotonic() < until, "nobody looks for the other server"
            time.sleep(0.2)
    finally:
        namespace.kubectl("delete", "apiservice", f"v1.{group}")


def test_the_networks_of_its_pods_go_with_a_cluster() -> None:
    """Each would answer for an address that a pod of the next cluster is given."""
    bridge, link = "jm-lab-8", f"t{uuid4().hex[:8]}"
    space = f"test-{link}"
    with no_faulty_cluster():
        ip("link", "add", bridge, "type", "bridge", check=False)
        ip("netns", "add", space)
        try:
            ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", link, "master", bridge)
            on_the_lab("down")
            assert space not in ip("netns", "list")
            assert link not in ip("link", "show")
        finally:
            ip("netns", "delete", space, check=False)


def ip(*words: str, check: bool = True) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check).stdout
