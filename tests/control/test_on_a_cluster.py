"""A service whose jobs run on a real cluster: what a user and an administrator see of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client import Refused
from tests.control.cluster_service import ClusterService, a_cluster_service, until
from tests.engines.kubernetes.cluster import image, kubectl_json, on_a_real_cluster

pytestmark = [on_a_real_cluster, pytest.mark.slow]
THREE_GIB = 3 * 2**30


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
    before = service.objects()
    document = a_task(
        script, shape="{type: slot, count: 2}", keys="steps: [{name: write, path: a, content: b}]"
    )
    job = service.submit(document)
    assert service.wait(job).state == state
    until(lambda: service.objects() == before, "that nothing is left")
    assert set(service.lines(job)) == {script.split(";")[0].removeprefix("echo ")}


def test_nothing_is_left_of_a_job_that_is_cancelled(service: ClusterService) -> None:
    before = service.objects()
    job = service.submit(a_task("echo here; sleep 600", shape="{type: slot, count: 2}"))
    service.until_running(job)
    assert service.objects() != before
    service.client.cancel(job)
    assert service.wait(job).state == "cancelled"
    until(lambda: service.objects() == before, "that nothing is left")
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


def test_what_others_use_of_a_node_is_shown_and_not_given_away(service: ClusterService) -> None:
    pod = f'{{"spec":{{"nodeName":"lab-1","containers":[{{"name":"it","image":"{image()}",'
    pod += '"command":["sleep","600"],"resources":{"requests":{"memory":"3Gi"}}}]}}'
    service.kubectl("run", "other", f"--image={image()}", "--restart=Never", f"--overrides={pod}")
    try:
        node = until(
            lambda: next(
                (n for n in service.client.nodes() if n.foreign.get("memory", 0) >= 3 * 2**30), None
            ),
            "what others use",
        )
        assert node.name == "lab-1"
    finally:
        service.kubectl("delete", "pod", "other", "--grace-period=0", "--force")


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
    with a_cluster_service(tmp_path, settings=FRAIL) as service:
        assert [node.name for node in service.client.nodes()] == ["lab-3"]
        job = service.submit(a_task("echo in the pool"))
        assert service.wait(job).state == "succeeded"
        service.client.set_node_state("lab-3", "draining", "new cables")
        until(lambda: is_cordoned("lab-3"), "a cordon")
        waiting = service.submit(a_task("echo after that"))
        words = " ".join(blocker.message for blocker in service.client.why(waiting).blockers)
        assert "lab-3 is draining" in words
        service.client.set_node_state("lab-3", "up")
        assert service.wait(waiting).state == "succeeded"
        until(lambda: not is_cordoned("lab-3"), "an open node")


def is_cordoned(node: str) -> bool:
    return bool(kubectl_json("get", "node", node)["spec"].get("unschedulable"))
