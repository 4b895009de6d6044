"""A service whose jobs run on a real cluster: what a user and an administrator see of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobman.client import Refused
from jobman.control.answers import Node
from jobman.engines.kubernetes.managed.names import CONNECT
from tests.control.cluster_service import ClusterService, a_cluster_service, until
from tests.engines.kubernetes.cluster import image, kubectl, kubectl_json, on_a_real_cluster
from tests.engines.kubernetes.managed.frail import the_frail_node

pytestmark = [on_a_real_cluster, pytest.mark.slow]
behind_walls = pytest.mark.lab("it counts on network policies being enforced")
LARGE = 14 * 2**30


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterService]:
    with a_cluster_service(tmp_path_factory.mktemp("service")) as made:
        yield made


def a_task(script: str, *, shape: str = "{type: slot, count: 1}", keys: str = "") -> str:
    return f"""
version: 1
resources: {{each: {shape}}}
tasks:
- name: work
  resources: each
  grace: 1s
  {keys}
  command: [sh, -c, "{script}"]
"""


@pytest.mark.parametrize(
    ("script", "state"), [("echo well", "succeeded"), ("echo ill; exit 3", "failed")], ids=["well", "ill"]
)
def test_nothing_is_left_of_a_job_that_is_over_but_its_output(
    service: ClusterService, script: str, state: str
) -> None:
    before = service.everything()
    document = a_task(
        script, shape="{type: slot, count: 2}", keys="steps: [{name: write, path: a, content: b}]"
    )
    job = service.submit(document)
    assert service.wait(job).state == state
    until(lambda: service.everything() == before, "that nothing is left")
    assert set(service.lines(job)) == {script.split(";")[0].removeprefix("echo ")}


def test_nothing_is_left_of_a_job_that_is_cancelled(service: ClusterService) -> None:
    before = service.everything()
    job = service.submit(a_task("echo here; sleep 600", shape="{type: slot, count: 2}"))
    service.until_running(job)
    assert service.everything() != before
    service.client.cancel(job)
    assert service.wait(job).state == "cancelled"
    until(lambda: service.everything() == before, "that nothing is left")
    assert service.lines(job) == ["here", "here"]


def test_a_graph_runs_in_its_order(service: ClusterService) -> None:
    job = service.submit("""
version: 1
resources: {each: {type: slot, count: 1}}
tasks:
- {name: first, resources: each, command: [sh, -c, "echo first; exit 1"]}
- {name: mend, resources: each, depends_on: [{name: first, when: failure}], command: [echo, mended]}
- {name: last, resources: each, when: always, command: [echo, last]}
""")
    assert service.wait(job).state == "failed"
    assert service.lines(job) == ["first", "mended", "last"]


@pytest.mark.lab("it fills a node, whose memory it knows")
def test_what_others_use_of_a_node_is_shown_and_not_given_away(service: ClusterService) -> None:
    pod = f'{{"spec":{{"nodeName":"lab-1","containers":[{{"name":"it","image":"{image()}",'
    pod += '"command":["sleep","600"],"resources":{"requests":{"memory":"14Gi"}}}]}}'
    run = ("run", "other", f"--image={image()}", "--restart=Never", f"--overrides={pod}")
    service.kubectl(*run)

    def used() -> Node | None:
        if service.kubectl("get", "pod", "other", "-o", "jsonpath={.status.phase}") == "Failed":
            # Its node refused it, because of what others used there at that moment.
            service.kubectl("delete", "pod", "other", "--grace-period=0", "--force")
            service.kubectl(*run)
        return next((n for n in service.client.nodes() if n.foreign.get("memory", 0) >= LARGE), None)

    try:
        node = until(used, "what others use")
        assert node.name == "lab-1"
        job = service.submit(
            a_task("true", shape="{type: node, count: 2, with: [{type: memory, count: 14Gi}]}")
        )
        (blocker,) = until(lambda: service.client.why(job).blockers, "a reason")
        # Other tests may have pods there as well.
        assert re.fullmatch(r"work\.0: others use \d+[GM]i memory of lab-1", blocker.message)
        assert service.objects_of(job) == []
    finally:
        service.kubectl("delete", "pod", "other", "--grace-period=0", "--force")
    assert service.wait(job).state == "succeeded"


@behind_walls
def test_connected_jobs_reach_each_other_by_name_and_strangers_do_not(service: ClusterService) -> None:
    listen = "while true; do echo welcome | nc -l -p 7000; done"
    server = service.submit(a_task(listen, keys="ports: [{name: door, port: 7000}]"), name="server")
    service.until_running(server)
    host = f"work-0-0.jobman-{server}"
    call = f"for i in $(seq 10); do nc -w 2 {host} 7000 </dev/null && exit 0; sleep 1; done; exit 1"
    friend = service.submit(f"network: {{connect: [{server}]}}\n" + a_task(call).lstrip())
    assert service.wait(friend).state == "succeeded"
    stranger = service.submit(a_task(f"nc -w 2 {host} 7000 </dev/null || exit 9"))
    assert service.wait(stranger).exit_code == 9
    service.client.cancel(server)
    service.wait(server)


@behind_walls
@pytest.mark.parametrize("leaves", ["host", "guest"])
def test_a_connection_opens_both_ways_and_closes_when_either_ends(
    service: ClusterService, leaves: str
) -> None:
    document = a_task(
        "nc -ll -p 7000 -e cat & exec sleep 600", keys="ports: [{name: door, port: 7000}]"
    ).lstrip()
    host, stranger = service.submit(document), service.submit(document)
    service.until_running(host)
    guest = service.submit(f"network: {{connect: [{host}]}}\n{document}")
    service.until_running(guest)
    service.until_running(stranger)
    until(lambda: reaches(service, host, guest) and reaches(service, guest, host), "a way in and out")
    assert not reaches(service, stranger, host)
    assert not reaches(service, stranger, guest)
    gone, left = (host, guest) if leaves == "host" else (guest, host)
    assert partners_of(service, left) == [gone]
    service.client.cancel(gone)
    assert service.wait(gone).state == "cancelled"
    until(lambda: partners_of(service, left) == [], "that the way is shut")
    for job in (left, stranger):
        service.client.cancel(job)
        service.wait(job)


def pod_of(service: ClusterService, job: str) -> dict[str, Any]:
    (pod,) = kubectl_json("get", "pods", "-n", service.namespace, "-l", f"jobman.io/job={job}")["items"]
    found: dict[str, Any] = pod
    return found


def reaches(service: ClusterService, one: str, other: str) -> bool:
    """Whether the copy of a job gets through to that of another, which it knows by its name."""
    knock = f"nc -w 2 work-0-0.jobman-{other} 7000 </dev/null"
    pod = pod_of(service, one)["metadata"]["name"]
    try:
        kubectl("exec", "-n", service.namespace, pod, "--", "sh", "-c", knock)
    except AssertionError:
        return False
    return True


def partners_of(service: ClusterService, job: str) -> list[str]:
    """The jobs for which the walls around its pod are open."""
    labels = pod_of(service, job)["metadata"]["labels"]
    return [name.removeprefix(CONNECT) for name in labels if name.startswith(CONNECT)]


@pytest.mark.lab("it makes runtime classes, and fills nodes")
def test_what_a_runtime_costs_is_planned_with(service: ClusterService) -> None:
    """Copies of 16 MiB, of which a node takes one: the other memory is the runtime's."""
    costly, hopeless = (f"{service.namespace}-{each}" for each in ("costly", "hopeless"))
    shape = "{type: slot, count: 1, with: [{type: memory, count: 16Mi}]}"

    def submit(runtime: str) -> str:
        return service.submit(a_task("sleep 600", shape=shape, keys=f"runtime: {runtime}"))

    def is_refused() -> bool:
        try:
            service.client.cancel(submit(hopeless))
        except Refused as refused:
            return "costs" in str(refused)
        return False

    with a_runtime(costly, "14Gi"), a_runtime(hopeless, "900Gi"):
        until(is_refused, "that the service knows what they cost", 20)
        jobs = [submit(costly) for node in service.client.nodes() if node.state == "up"]
        for job in jobs:
            service.until_running(job)
        assert [pod_of(service, job)["spec"]["overhead"] for job in jobs] == [{"memory": "14Gi"}] * len(jobs)
        last = submit(costly)
        (blocker,) = until(lambda: service.client.why(last).blockers, "a reason")
        assert (blocker.kind, "memory" in blocker.message) == ("resources", True), blocker
        assert service.objects_of(last) == []
        for job in (*jobs, last):
            service.client.cancel(job)
            service.wait(job)


@contextmanager
def a_runtime(name: str, memory: str) -> Iterator[None]:
    """A class whose pods need so much memory more."""
    written = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "runc",
        "overhead": {"podFixed": {"memory": memory}},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(written))
    try:
        yield
    finally:
        kubectl("delete", "runtimeclass", name)


def test_more_time_can_be_given_to_what_runs(service: ClusterService) -> None:
    job = service.submit(a_task("sleep 32; echo done", keys="attributes: {duration: 30s}"))
    service.until_running(job)
    service.client.extend(job, 60)
    assert service.wait(job).state == "succeeded"


def test_what_the_cluster_does_not_have_is_refused_with_numbers(service: ClusterService) -> None:
    with pytest.raises(Refused, match="can never start here"):
        service.submit(a_task("true", shape="{type: node, count: 50}"))
    with pytest.raises(Refused, match=r"suspend\.freeze"):
        service.submit(a_task("true", keys="suspend: freeze"))


def test_why_says_which_image_does_not_come(service: ClusterService) -> None:
    job = service.submit(a_task("true", keys="image: localhost/nobody:1"))
    (blocker,) = until(lambda: service.client.why(job).blockers, "a reason")
    assert (blocker.kind, blocker.replica) == ("start", "work.0")
    assert blocker.message.startswith("work.0: localhost/nobody:1: ")
    service.client.cancel(job)
    assert service.wait(job).state == "cancelled"


# -- a pool of its own -------------------------------------------------------------------------------------

FRAIL = "kubernetes: {nodes: {jobman.io/lab: faults}, tolerates: [jobman.io/lab]}\n"


def test_a_pool_is_planned_with_and_a_drained_node_of_it_is_cordoned(tmp_path: Path) -> None:
    with the_frail_node() as name, a_cluster_service(tmp_path, settings=FRAIL) as service:
        assert [node.name for node in service.client.nodes()] == [name]
        job = service.submit(a_task("echo in the pool"))
        assert service.wait(job).state == "succeeded"
        service.client.set_node_state(name, "draining", "new cables")
        until(lambda: is_cordoned(name), "a cordon")
        waiting = service.submit(a_task("echo after that"))
        words = " ".join(blocker.message for blocker in service.client.why(waiting).blockers)
        assert f"{name} is draining" in words
        service.client.set_node_state(name, "up")
        assert service.wait(waiting).state == "succeeded"
        until(lambda: not is_cordoned(name), "an open node")


def is_cordoned(node: str) -> bool:
    return bool(kubectl_json("get", "node", node)["spec"].get("unschedulable"))
