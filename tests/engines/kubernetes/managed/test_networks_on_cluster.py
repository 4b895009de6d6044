"""Walls and doors on real pods: who has no business in a job does not get in."""

import json

import pytest

from tests.engines.kubernetes.cluster import a_namespace, image, kubectl, on_a_real_cluster
from tests.engines.kubernetes.managed.standing import Standing, asking, new_id, until
from tests.engines.kubernetes.objects_of import task

pytestmark = [
    pytest.mark.slow,
    on_a_real_cluster,
    pytest.mark.lab("it counts on network policies being enforced"),
]
LISTEN = "[sh, -c, 'nc -ll -p 80 -e cat & nc -ll -p 90 -e cat & exec sleep 600']"
TWO = "{type: node, count: 2, with: [{type: memory, count: 16Mi}]}"


@pytest.fixture(scope="module")
def standing():
    with a_namespace() as name:
        yield Standing(name)


@pytest.fixture(scope="module")
def others(standing):
    """Two jobs: one of two copies on two nodes, and one that has nothing to do with it."""
    gang = standing.running(task(command=LISTEN, shape=TWO))
    stranger = standing.running(task(command=LISTEN))
    until(lambda: standing.reaches(gang, gang, copy=1))
    until(lambda: standing.reaches(stranger, stranger))
    return gang, stranger


def test_copies_of_a_job_know_and_reach_each_other_by_name(standing, others):
    gang, _ = others
    assert len({pod["spec"]["nodeName"] for pod in standing.pods(gang)}) == 2
    assert standing.reaches(gang, gang, copy=1)


def test_a_pod_of_another_job_cannot_connect(standing, others):
    gang, stranger = others
    assert not standing.reaches(stranger, gang)
    assert not standing.reaches(stranger, gang, copy=1)
    assert not standing.reaches(gang, stranger)


def test_connected_jobs_reach_each_other_until_one_of_them_ends(standing, others):
    _, stranger = others
    one, other = new_id(), new_id()
    host = standing.running(task(command=LISTEN), job=one, connected=(other,))
    guest = standing.running(task(command=LISTEN), job=other, connected=(one,))
    until(lambda: standing.reaches(guest, host) and standing.reaches(host, guest))
    assert not standing.reaches(stranger, host)
    standing.connect(host)
    standing.connect(guest)
    until(lambda: not standing.reaches(guest, host) and not standing.reaches(host, guest))


def test_a_job_that_runs_can_be_joined_by_relabelling(standing):
    host = standing.running(task(command=LISTEN))
    guest = standing.running(task(command=LISTEN))
    until(lambda: standing.reaches(host, host) and standing.reaches(guest, guest))
    assert not standing.reaches(guest, host)
    standing.connect(host, guest.job)
    standing.connect(guest, host.job)
    until(lambda: standing.reaches(guest, host) and standing.reaches(host, guest))


def test_an_exposed_port_is_reached_by_everybody_and_another_of_the_same_task_is_not(standing, others):
    _, stranger = others
    open_ = standing.running(task("ports: [{port: 80, expose: true}, 90]", command=LISTEN))
    until(lambda: standing.reaches(stranger, open_, 80))
    assert standing.reaches(open_, open_, 90)
    assert not standing.reaches(stranger, open_, 90)


def test_an_isolated_job_does_not_get_out_but_knows_names(standing, others):
    _, stranger = others
    shown = standing.running(task("ports: [{port: 80, expose: true}]", command=LISTEN))
    until(lambda: standing.reaches(stranger, shown))
    alone = standing.running(task(command=LISTEN, top="network: {isolated: true}"))
    until(lambda: standing.reaches(alone, alone))
    assert standing.says(
        alone, "nslookup", f"a-0-0.jobman-{shown.job}.{standing.namespace}.svc.cluster.local"
    )
    assert not standing.reaches(alone, shown)


def test_the_proxy_gets_in(standing, others):
    gang, _ = others
    proxy = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "proxy",
            "namespace": standing.namespace,
            "labels": {"app.kubernetes.io/name": "jobman"},
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": image(), "command": ["sleep", "600"]}],
        },
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(proxy))
    kubectl("wait", "-n", standing.namespace, "pod/proxy", "--for=condition=Ready", "--timeout=60s")
    host = f"a-0-0.jobman-{gang.job}"

    def gets_in():
        try:
            kubectl("exec", "-n", standing.namespace, "proxy", "--", *asking(host, 80))
        except AssertionError:
            return False
        return True

    until(gets_in)
