"""The managed engine on real pods: from an order to its end, and everything that comes in between."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobman.engines import base
from tests.client.webserver import Keys, Reply, Request, as_json, serving
from tests.engines.kubernetes.cluster import kubectl, on_a_real_cluster
from tests.engines.kubernetes.managed.ground import Ground, a_ground, eventually

pytestmark = [on_a_real_cluster, pytest.mark.slow]
for_all = pytest.mark.lab("it makes rules for the cluster as a whole")


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with a_ground(tmp_path) as made:
        yield made


def test_an_order_runs_and_is_over(ground: Ground) -> None:
    order = ground.shell("echo hello; exit 3")
    over = ground.run(order)
    running = ground.running(order)
    assert (over.reason, over.exit_code, over.signal, over.message) == ("exit", 3, None, "")
    assert over.started_at is not None
    assert over.started_at <= over.at
    assert ground.out(order) == "hello\n"
    assert [(each.path, each.node) for each in over.outputs] == [(running.outputs[0].path, ground.nodes[0])]
    assert over.outputs[0].size == len("hello\n")


def test_what_an_attempt_left_goes_when_its_end_is_written_down(ground: Ground) -> None:
    order = ground.shell("true", copies=2)
    assert ground.run(order).reason == ""
    left = ground.objects()
    assert len([each for each in left if each.startswith("pod/")]) == 2
    ground.settle(order)
    ground.finish(order)
    eventually(lambda: not ground.objects(), "an empty namespace")


def test_copies_of_a_gang_start_on_their_nodes_and_find_each_other(ground: Ground) -> None:
    other = "$(echo $JOBMAN_NODELIST | cut -d, -f$((2 - JOBMAN_RANK)))"
    script = f"until ping -c 1 -w 5 {other}; do sleep 0.2; done; hostname"
    order = ground.shell(script, copies=2)
    assert ground.run(order).reason == ""
    assert [pod["spec"]["nodeName"] for pod in ground.pods(order)] == list(ground.nodes)
    assert ground.out(order, 0).splitlines()[-1] == "work-0-0"
    assert ground.out(order, 1).splitlines()[-1] == "work-0-1"


def test_when_one_copy_fails_the_others_are_stopped(ground: Ground) -> None:
    order = ground.shell("test $JOBMAN_RANK = 1 && exit 7; sleep 600", copies=2, keys="grace: 1s")
    over = ground.run(order)
    assert (over.reason, over.exit_code) == ("exit", 7)
    assert over.message == f"copy 1 on {ground.nodes[1]}: ended with exit code 7"


def test_a_stopped_attempt_ends_within_its_grace(ground: Ground) -> None:
    order = ground.shell("trap '' TERM; while true; do sleep 1; done", keys="grace: 1s")
    ground.launch(order)
    ground.running(order)
    ground.stop(order)
    over = ground.over(order)
    assert (over.reason, over.exit_code) == ("signal", 137)


def test_an_attempt_has_no_more_time_than_it_was_given_and_may_be_given_more(ground: Ground) -> None:
    short = ground.shell("sleep 600", keys="attributes: {duration: 2s}\ngrace: 1s")
    longer = ground.shell("sleep 6; echo done", keys="attributes: {duration: 2s}\ngrace: 1s")
    ground.launch(short, longer)
    ground.wait(ground.engine.prolong(longer.address, 60))
    over = ground.over(short)
    assert (over.reason, over.message) == ("timeout", "ran longer than the 2 s it was given")
    assert ground.over(longer).reason == ""


def test_an_attempt_goes_on_in_another_engine(ground: Ground) -> None:
    order = ground.shell("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 1; done", copies=2)
    ground.launch(order)
    ground.running(order)
    eventually(lambda: "2" in ground.out(order), "some output")
    ground.reopen(order)
    assert ground.over(order).reason == ""
    for copy in range(2):
        assert ground.out(order, copy).split() == ["1", "2", "3", "4", "5", "6", "7", "8"]


def test_what_ended_while_nobody_looked_is_reported_and_removed_only_then(ground: Ground) -> None:
    order = ground.shell("echo late; exit 4")
    ground.launch(order)
    ground.running(order)
    ground.wait(ground.engine.close())
    eventually(lambda: ground.pods(order)[0]["status"]["phase"] == "Failed", "the end")
    ground.open(order)
    over = ground.over(order)
    assert (over.reason, over.exit_code, ground.out(order)) == ("exit", 4, "late\n")


def test_nothing_of_attempts_that_are_over_survives_a_restart(ground: Ground) -> None:
    order = ground.shell("sleep 600", copies=2)
    ground.launch(order)
    ground.running(order)
    ground.reopen()
    eventually(lambda: not ground.objects(), "an empty namespace")


def test_a_pod_that_somebody_deletes_has_not_succeeded_though_it_ends_well(ground: Ground) -> None:
    order = ground.shell("trap 'exit 0' TERM; while true; do sleep 0.1; done")
    ground.launch(order)
    ground.running(order)
    ground.kubectl("delete", "pod", *ground.pod_names(order), "--wait=false")
    over = ground.over(order)
    assert (over.reason, over.message) == ("preempted", "somebody else deleted its pod")


def test_an_image_that_cannot_be_is_told(ground: Ground) -> None:
    order = ground.shell("true", keys="image: localhost/Nobody:1")
    over = ground.run(order)
    assert over.reason == "launch-failed"
    assert "Nobody" in over.message
    assert over.started_at is None


def test_what_the_cluster_cannot_bind_is_undone(tmp_path: Path) -> None:
    with a_ground(tmp_path, bind=3.0) as ground:
        order = ground.shell("true", keys="attributes: {flags: {kubernetes: {nodeSelector: {no: such}}}}")
        over = ground.run(order)
        assert over.reason == "preempted"
        assert over.started_at is None
        assert "could not be started" in over.message
        assert not ground.heard(order, base.Running)


def test_no_copy_starts_where_the_node_of_another_is_gone(ground: Ground) -> None:
    order = ground.shell("true", copies=2, nodes=(ground.nodes[0], "nowhere"))
    over = ground.run(order)
    assert (over.reason, over.message) == ("preempted", "there is no node nowhere")
    assert over.started_at is None


# -- the cluster is away -----------------------------------------------------------------------------------


def test_an_attempt_that_ends_while_the_cluster_is_away_is_told_when_it_is_back(ground: Ground) -> None:
    order = ground.shell("for i in 1 2 3 4 5; do echo $i; sleep 1; done; exit 5")
    ground.launch(order)
    ground.running(order)
    ground.wait(ground.relay.close())
    eventually(lambda: ground.pods(order)[0]["status"]["phase"] == "Failed", "the end")
    assert not ground.heard(order, base.Over)
    ground.wait(ground.relay.listen())
    over = ground.over(order)
    assert (over.reason, over.exit_code) == ("exit", 5)
    assert ground.out(order).split() == ["1", "2", "3", "4", "5"]


def test_orders_wait_for_a_cluster_that_is_away(tmp_path: Path) -> None:
    with a_ground(tmp_path, bind=5.0) as ground:
        ground.wait(ground.relay.close())
        orders = [ground.shell("echo here", copies=2) for _ in range(2)]
        ground.launch(*orders)
        ground.stop(orders[1])
        time.sleep(7)  # More than the cluster has to bind them, were it there.
        ground.wait(ground.relay.listen())
        assert ground.over(orders[0]).reason == ""
        assert ground.out(orders[0], 1) == "here\n"
        assert ground.over(orders[1]).reason == "signal"


def test_connections_that_break_all_the_time_lose_nothing(ground: Ground) -> None:
    orders = [ground.shell("for i in $(seq 40); do echo $i; sleep 0.1; done") for _ in range(3)]
    ground.launch(*orders)
    until = time.monotonic() + 6
    while time.monotonic() < until:
        ground.wait(ground.relay.cut())
        time.sleep(0.3)
    for order in orders:
        assert ground.over(order).reason == ""
        assert ground.out(order).split() == [str(number) for number in range(1, 41)]
        assert len(ground.heard(order, base.Over)) == len(ground.heard(order, base.Running)) == 1


# -- others meddle -----------------------------------------------------------------------------------------


def test_a_job_that_somebody_deletes_is_tried_again_elsewhere(ground: Ground) -> None:
    order = ground.shell("sleep 600", copies=2, keys="grace: 1s")
    ground.launch(order)
    ground.running(order)
    ground.kubectl("delete", "jobs", "--all", "--wait=false")
    over = ground.over(order)
    assert over.reason == "preempted"
    assert "deleted its" in over.message


def test_a_service_that_somebody_deletes_is_made_again(ground: Ground) -> None:
    order = ground.shell("sleep 600", copies=2, keys="grace: 1s")
    ground.launch(order)
    ground.running(order)
    before = [each for each in ground.objects() if each.startswith(("service/", "networkpolicy"))]
    ground.kubectl("delete", "services,networkpolicies", "-l", f"jobman.io/job={order.job}")

    def mended() -> bool:
        found = [each for each in ground.objects() if each.startswith(("service/", "networkpolicy"))]
        return found == before

    assert len(before) == 2
    eventually(mended, "another Service")


def test_a_pod_that_is_taken_away_with_force_is_lost_and_never_made_again(ground: Ground) -> None:
    order = ground.shell("sleep 600", keys="grace: 1s")
    ground.launch(order)
    ground.running(order)
    (pod,) = ground.pod_names(order)
    ground.kubectl("patch", "pod", pod, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    ground.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    over = ground.over(order)
    assert over.reason in ("node-lost", "preempted")
    assert ground.pods(order) == []


def test_a_cluster_that_refuses_pods_is_quoted(ground: Ground) -> None:
    quota = (
        '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"none"},"spec":{"hard":{"pods":"1"}}}'
    )
    kubectl("create", "-n", ground.namespace, "-f", "-", stdin=quota)
    order = ground.shell("true", copies=2)
    over = ground.run(order)
    assert over.reason == "launch-failed"
    assert "exceeded quota: none" in over.message
    assert over.started_at is None


@for_all
@pytest.mark.parametrize("copies", [1, 2])
def test_what_the_clusters_own_rules_refuse_is_quoted(ground: Ground, copies: int) -> None:
    with a_rule(ground.namespace, "not in this house"):
        over = ground.run(ground.shell("true", copies=copies))
    assert over.reason == "launch-failed"
    assert "not in this house" in over.message
    assert over.started_at is None


@for_all
def test_what_a_webhook_refuses_is_quoted(ground: Ground, tmp_path: Path) -> None:
    keys_folder = tmp_path / "keys"
    keys_folder.mkdir()
    with a_webhook(ground.namespace, "come another day", Keys(keys_folder)):
        order = ground.shell("true", copies=2)
        over = ground.run(order)
        assert over.reason == "launch-failed"
        assert "come another day" in over.message
        assert over.started_at is None
        assert not ground.pods(order)


@contextmanager
def a_webhook(namespace: str, words: str, keys: Keys) -> Iterator[None]:
    """Somebody whom the cluster asks about each pod of a namespace, and who takes none."""

    def answer(request: Request) -> Reply:
        review = json.loads(request.body)
        status = {"message": words, "code": 403}
        response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        return as_json({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    with serving(answer, keys) as served:
        authority = base64.b64encode(keys.authority.read_bytes()).decode()
        hook = {
            "name": "pods.example.org",
            "clientConfig": {"url": f"{served.url}/pods", "caBundle": authority},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        written = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [hook],
        }
        kubectl("create", "-f", "-", stdin=json.dumps(written))
        try:
            eventually(lambda: words in refusal_of_a_pod(namespace), "a refusal")
            yield
        finally:
            kubectl("delete", "validatingwebhookconfiguration", namespace)


@contextmanager
def a_rule(namespace: str, words: str) -> Iterator[None]:
    """Something in the cluster that takes no pods in a namespace, as an admission webhook would."""
    api = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": words}],
        },
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {"policyName": namespace, "validationActions": ["Deny"], "matchResources": here},
    }
    both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [policy, binding]})
    kubectl("create", "-f", "-", stdin=both)
    try:
        # It takes a moment until it is obeyed.
        eventually(lambda: words in refusal_of_a_pod(namespace), "a refusal")
        yield
    finally:
        kubectl("delete", "-f", "-", stdin=both)


def refusal_of_a_pod(namespace: str) -> str:
    try:
        kubectl("run", "probe", "--image=none", "--restart=Never", "--dry-run=server", "-n", namespace)
    except AssertionError as refused:
        return str(refused)
    return ""
