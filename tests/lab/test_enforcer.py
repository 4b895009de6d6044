"""Pods of the lab are held to the NetworkPolicies of their cluster."""

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from lab.enforcer import Announcement, Knowledge
from lab.network_policies import Address

PATIENCE = 30
PORT, OTHER_PORT = 4000, 4001
ECHO = f"nc -ll -p {PORT} -e cat & nc -ll -p {OTHER_PORT} -e cat & exec sleep 3600"


# -- what is known -------------------------------------------------------------------------------------------


def written(name: str, uid: str, address: str = "", phase: str = "Running") -> dict[str, Any]:
    return {
        "metadata": {"namespace": "red", "name": name, "uid": uid},
        "status": {"phase": phase, "podIPs": [{"ip": address}] if address else []},
    }


@pytest.fixture
def knowledge() -> Knowledge:
    made = Knowledge()
    for kind in ("pods", "namespaces", "policies"):
        made.everything(kind, [])
    made.news()
    return made


def addresses(knowledge: Knowledge) -> dict[str, list[str]]:
    return {pod.uid: list(map(str, pod.addresses)) for pod in knowledge.news().pods}


def announced(knowledge: Knowledge, uid: str, address: str) -> threading.Thread:
    announcement = Announcement("red", "a", uid, address)
    thread = threading.Thread(target=knowledge.announce, args=(announcement,))
    thread.start()
    return thread


def test_a_pod_may_start_when_rules_stand_for_its_address(knowledge: Knowledge):
    starting = announced(knowledge, "1", "10.0.0.1")
    knowledge.cover(knowledge.news())
    assert starting.is_alive()  # the cluster has not told of this pod yet
    knowledge.one("pods", written("a", "1"), False)
    cluster = knowledge.news()
    assert [pod.addresses for pod in cluster.pods] == [(Address("10.0.0.1"),)]
    knowledge.cover(cluster)
    starting.join(PATIENCE)
    assert not starting.is_alive()


def test_a_pod_of_whom_the_cluster_never_tells_does_not_start(knowledge: Knowledge):
    assert not knowledge.announce(Announcement("red", "a", "1", "10.0.0.1"), patience=0)


def test_an_address_goes_to_the_pod_that_was_announced_with_it(knowledge: Knowledge):
    knowledge.one("pods", written("old", "1", "10.0.0.1"), False)
    knowledge.one("pods", written("new", "2"), False)
    knowledge.announce(Announcement("red", "new", "2", "10.0.0.1"), patience=0)
    assert addresses(knowledge) == {"1": [], "2": ["10.0.0.1"]}


def test_an_announcement_ends_with_its_pod(knowledge: Knowledge):
    knowledge.one("pods", written("a", "1"), False)
    knowledge.announce(Announcement("red", "a", "1", "10.0.0.1"), patience=0)
    knowledge.one("pods", written("a", "1", "10.0.0.1", "Succeeded"), False)
    assert addresses(knowledge) == {"1": []}


def test_nothing_is_new_where_nothing_of_a_pod_that_matters_changed(knowledge: Knowledge):
    knowledge.one("pods", written("a", "1", "10.0.0.1"), False)
    knowledge.news()
    knowledge.one("pods", written("a", "1", "10.0.0.1") | {"spec": {"nodeName": "lab-1"}}, False)
    assert knowledge.quiet
    knowledge.one("pods", written("a", "1", "10.0.0.2"), False)
    assert not knowledge.quiet


# -- pods ----------------------------------------------------------------------------------------------------


class Village:
    """A namespace with a pod `server` on the first node, `near` beside it and `far` on the other node."""

    def __init__(self) -> None:
        self.name = f"lab-{uuid4().hex[:8]}"
        self.kubectl("create", "namespace", self.name)

    def kubectl(self, *words: str, given: Any = None) -> str:
        done = subprocess.run(
            [os.environ["JOBMAN_LAB_KUBECTL"], "--namespace", self.name, *words],
            env={**os.environ, "KUBECONFIG": os.environ["JOBMAN_LAB_KUBECONFIG"]},
            input=json.dumps(given) if given else None,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def settle(self, name: str, node: str, command: str = ECHO, **labels: str) -> None:
        container = {
            "name": "main",
            "image": os.environ["JOBMAN_LAB_KUBE_IMAGE"],
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", command],
            "ports": [{"name": "echo", "containerPort": PORT}],
            "resources": {"requests": {"cpu": "10m"}},
        }
        spec = {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
        }
        about = {"name": name, "labels": {"who": name, **labels}}
        self.kubectl("delete", "pod", name, "--ignore-not-found")  # of a try before
        self.kubectl(
            "create",
            "-f",
            "-",
            given={"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec},
        )

    def wait(self, *names: str, until: str = "condition=Ready") -> None:
        pods = [f"pod/{name}" for name in names]
        self.kubectl("wait", f"--for={until}", f"--timeout={2 * PATIENCE}s", *pods)

    def address(self, name: str) -> str:
        return self.kubectl("get", "pod", name, "--output=jsonpath={.status.podIP}")

    def inside(self, name: str, command: str) -> str:
        return self.kubectl("exec", name, "--", "sh", "-c", command)

    def reaches(self, name: str, other: str, port: int = PORT) -> bool:
        command = f"nc -w 1 {self.address(other)} {port} </dev/null && echo yes || echo no"
        return "yes" in self.inside(name, command)

    def finds_names(self, name: str) -> bool:
        command = (
            "timeout 2 nslookup kubernetes.default.svc.cluster.local >/dev/null 2>&1 && echo yes || echo no"
        )
        return "yes" in self.inside(name, command)

    def rule(self, name: str, of: str, **spec: Any) -> None:
        """A policy for the pods that are called `of`."""
        selector = {"matchLabels": {"who": of}}
        self.kubectl(
            "apply",
            "-f",
            "-",
            given={
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": name},
                "spec": {"podSelector": selector, **spec},
            },
        )


@pytest.fixture(scope="module")
def settled_village() -> Iterator[Village]:
    made = Village()
    made.settle("server", "lab-1")
    made.settle("near", "lab-1")
    made.settle("far", "lab-2")
    made.wait("server", "near", "far")
    yield made
    made.kubectl("delete", "namespace", made.name, "--wait=false")


@pytest.fixture
def village(settled_village: Village) -> Iterator[Village]:
    yield settled_village
    settled_village.kubectl("delete", "networkpolicies", "--all")
    for name in ("near", "far"):
        settled_village.kubectl("label", "pod", name, f"who={name}", "--overwrite")
        assert eventually(partial(settled_village.reaches, name, "server"))


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def from_pods(**labels: str) -> list[dict[str, Any]]:
    return [{"podSelector": {"matchLabels": labels}}]


on_pods = [
    pytest.mark.slow,
    pytest.mark.component("kubernetes"),
    pytest.mark.lab("it is about the lab itself"),
]


class TestOnPods:
    pytestmark = on_pods

    def test_a_closed_pod_is_open_to_those_it_allows_on_either_node(self, village: Village):
        assert eventually(lambda: village.reaches("near", "server"))
        assert eventually(lambda: village.reaches("far", "server"))
        village.rule("closed", "server")
        assert eventually(lambda: not village.reaches("near", "server"))
        assert not village.reaches("far", "server")
        village.rule("open", "server", ingress=[{"from": from_pods(who="far")}])
        assert eventually(lambda: village.reaches("far", "server"))
        assert not village.reaches("near", "server")
        village.rule("open", "server", ingress=[{"from": from_pods(who="near")}])
        assert eventually(lambda: village.reaches("near", "server"))
        assert not village.reaches("far", "server")

    def test_a_pod_of_another_namespace_comes_in_by_name_only(self, village: Village):
        village.rule("closed", "near", ingress=[{"from": from_pods()}])
        assert village.reaches("far", "near")
        elsewhere = Village()
        try:
            elsewhere.settle("guest", "lab-2")
            elsewhere.wait("guest")
            address = village.address("near")
            knock = f"nc -w 1 {address} {PORT} </dev/null && echo yes || echo no"
            assert "no" in elsewhere.inside("guest", knock)
            peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": elsewhere.name}}}
            village.rule("open", "near", ingress=[{"from": [peer]}])
            assert eventually(lambda: "yes" in elsewhere.inside("guest", knock))
        finally:
            elsewhere.kubectl("delete", "namespace", elsewhere.name, "--wait=false")

    def test_a_label_opens_a_path_and_closes_it_again(self, village: Village):
        village.rule("friends", "server", ingress=[{"from": from_pods(friend="yes")}])
        assert eventually(lambda: not village.reaches("far", "server"))
        village.kubectl("label", "pod", "far", "friend=yes")
        assert eventually(lambda: village.reaches("far", "server"))
        village.kubectl("label", "pod", "far", "friend-")
        assert eventually(lambda: not village.reaches("far", "server"))

    def test_who_is_connected_stays_so_and_nobody_else_gets_in(self, village: Village):
        talk = "(echo one; until [ -e /tmp/go ]; do sleep 0.1; done; echo two; sleep 1)"
        address = village.address("server")
        village.inside(
            "near", f"rm -f /tmp/go; ({talk} | nc {address} {PORT} >/tmp/said) </dev/null >/dev/null 2>&1 &"
        )
        assert eventually(lambda: village.inside("near", "cat /tmp/said") == "one\n")
        village.rule("closed", "server")
        assert eventually(lambda: not village.reaches("near", "server"))
        village.inside("near", "touch /tmp/go")
        assert eventually(lambda: village.inside("near", "cat /tmp/said") == "one\ntwo\n")

    def test_who_may_not_leave_reaches_nobody_and_finds_no_names_until_allowed(self, village: Village):
        assert village.finds_names("far")
        village.rule("closed", "far", policyTypes=["Egress"])
        assert eventually(lambda: not village.reaches("far", "server"))
        assert not village.finds_names("far")
        assert village.reaches("near", "far")
        names = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
        }
        out = [{"to": [names], "ports": [{"port": 53, "protocol": "UDP"}]}]
        village.rule("names", "far", policyTypes=["Egress"], egress=out)
        assert eventually(lambda: village.finds_names("far"))
        assert not village.reaches("far", "server")
        village.rule("server", "far", policyTypes=["Egress"], egress=[{"to": from_pods(who="server")}])
        assert eventually(lambda: village.reaches("far", "server"))
        assert not village.reaches("far", "near")

    def test_the_address_that_a_pod_has_by_its_link_is_no_way_around_policies(self, village: Village):
        village.rule("closed", "server")
        found = re.search(r"fe80:[0-9a-f:]+", village.inside("server", "ip -6 addr show dev eth0"))
        assert found
        knock = f"nc -w 1 {found[0]}%eth0 {PORT} </dev/null && echo yes || echo no"
        assert "no" in village.inside("near", knock)

    @pytest.mark.parametrize("port", ["echo", PORT])
    def test_one_port_alone_is_open(self, village: Village, port: str | int):
        village.rule("one-port", "server", ingress=[{"ports": [{"port": port}]}])
        assert eventually(lambda: not village.reaches("far", "server", OTHER_PORT))
        assert village.reaches("far", "server")
        assert village.reaches("near", "server")
        assert not village.reaches("near", "server", OTHER_PORT)

    def test_a_new_pod_is_held_to_policies_from_its_first_moment(self, village: Village):
        village.rule("closed", "late", policyTypes=["Egress"])
        village.rule("open", "early", policyTypes=["Egress"], egress=[{"to": from_pods(who="server")}])
        village.rule("guests", "server", ingress=[{"from": from_pods(guest="yes")}])
        assert eventually(lambda: not village.reaches("near", "server"))
        knock = f"nc -w 2 {village.address('server')} {PORT} </dev/null 2>/dev/null && echo yes || echo no"
        for name, node in (("late", "lab-1"), ("early", "lab-2")):
            village.settle(name, node, knock, guest="yes")
        village.wait("late", "early", until="jsonpath={.status.phase}=Succeeded")
        said = {name: village.kubectl("logs", name).splitlines()[-1] for name in ("late", "early")}
        assert said == {"late": "no", "early": "yes"}
