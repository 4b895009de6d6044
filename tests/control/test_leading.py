"""Two servers, one Lease of a real cluster and one PostgreSQL: one leads, and never does the other act."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client import Client
from jobman.control.answers import Submission
from tests.client.commanding import config_for
from tests.control.api.world import until
from tests.control.servers import PATIENCE, Turns
from tests.engines.kubernetes.cluster import a_namespace, kubeconfig, kubectl

pytestmark = [pytest.mark.slow, pytest.mark.component("kubernetes"), pytest.mark.component("postgres")]

GATED = """\
version: 1
gates: [data]
tasks:
- name: main
  command: [sh, -c, echo once >> %s]
  resources: {type: slot, count: 1, with: [{type: core, count: 1}]}
"""


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    with a_namespace() as name:
        yield name


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str, namespace: str) -> Iterator[Turns]:
    kubectl("delete", "lease", "jobman", "-n", namespace, "--ignore-not-found")
    # One that was given back is taken at once.
    written = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "jobman"},
        "spec": {"leaseDurationSeconds": 1},
    }
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(written))
    found = Turns(tmp_path, postgres_url, namespace, kubeconfig())
    yield found
    found.end()


def test_one_leads_and_the_other_is_alive_and_refers_to_it(pair):
    leader, other = pair.both()
    assert pair.lease["spec"]["holderIdentity"] == leader.identity
    until(lambda: pair.lease["metadata"].get("annotations", {}).get("jobman.io/epoch") == "1", PATIENCE)
    assert [server.ask("/healthz").status_code for server in (leader, other)] == [200, 200]
    for path in ("/readyz", "/v1/jobs", "/metrics", "/v1/health"):
        refused = other.ask(path)
        assert refused.status_code == 503
        assert refused.json()["code"] == "standby"
        assert refused.json()["message"] == f"Another server leads: {leader.identity}."


def test_when_the_leader_is_killed_the_other_goes_on_with_its_jobs(pair, tmp_path):
    leader, other = pair.both()
    token = leader.token
    with Client.connect(leader.url, token) as client:
        job = client.submit(Submission(document=GATED % (tmp_path / "made"))).jobs[0]
    leader.process.kill()
    until(other.is_ready, PATIENCE)
    with Client.connect(other.url, token) as client:
        client.open_gate(job.id, "data")
        assert until(lambda: client.details(job.id).state == "succeeded", PATIENCE)
    assert (tmp_path / "made").read_text() == "once\n"
    assert pair.lease["spec"]["holderIdentity"] == other.identity
    until(lambda: pair.lease["metadata"]["annotations"]["jobman.io/epoch"] == "2", PATIENCE)


def test_a_leader_that_was_frozen_for_too_long_does_nothing_any_more(pair, tmp_path):
    leader, other = pair.both()
    token = leader.token
    with Client.connect(leader.url, token) as client:
        job = client.submit(Submission(document=GATED % (tmp_path / "made"))).jobs[0]
    leader.process.send_signal(signal.SIGSTOP)
    until(other.is_ready, PATIENCE)
    with Client.connect(other.url, token) as client:
        client.open_gate(job.id, "data")
        leader.process.send_signal(signal.SIGCONT)
        assert leader.process.wait(PATIENCE) == 1, "so that it is started again"
        assert until(lambda: client.details(job.id).state == "succeeded", PATIENCE)
    assert (tmp_path / "made").read_text() == "once\n"
    assert "is lost" in leader.said
    assert pair.lease["spec"]["holderIdentity"] == other.identity


def test_a_leader_that_is_told_to_stop_hands_over_at_once(pair):
    leader, other = pair.both()
    leader.process.send_signal(signal.SIGTERM)
    assert leader.process.wait(PATIENCE) == 0
    assert "is given back" in leader.said
    until(other.is_ready, PATIENCE)
    assert pair.lease["spec"]["leaseTransitions"] == 2


def test_one_that_stands_by_can_be_told_to_stop(pair):
    leader, other = pair.both()
    other.process.send_signal(signal.SIGTERM)
    assert other.process.wait(PATIENCE) == 0
    assert leader.is_ready()
    assert pair.lease["spec"]["holderIdentity"] == leader.identity


def test_a_leader_whose_lease_somebody_takes_ends_at_once(pair):
    leader, _ = pair.both()
    patch = '{"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1}}'
    kubectl("patch", "lease", "jobman", "-n", pair.namespace, "--type=merge", "-p", patch)
    assert leader.process.wait(PATIENCE) == 1


def test_a_leader_whose_lease_is_deleted_makes_it_anew_and_leads_on(pair):
    leader, other = pair.both()
    kubectl("delete", "lease", "jobman", "-n", pair.namespace)
    until(lambda: kubectl("get", "lease", "jobman", "-n", pair.namespace, "--ignore-not-found"), PATIENCE)
    assert pair.lease["spec"]["holderIdentity"] == leader.identity
    assert leader.is_ready()
    assert not other.is_ready()


def test_who_may_not_have_the_lease_is_told_which_rights_are_missing(pair, tmp_path):
    ada = config_for(pair.namespace, tmp_path, kubeconfig(), user=f"ada-{pair.namespace}")
    server = pair.start(ada)
    assert server.process.wait(PATIENCE) == 6
    assert "leases" in server.said
    assert "kind: Role" in server.said
    assert "Traceback" not in server.said
