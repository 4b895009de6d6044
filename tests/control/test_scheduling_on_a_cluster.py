"""The scheduler on a real node: reservations, maintenance, whole nodes, fair shares and the bill."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from jobman.control.administration import NewEntry
from jobman.control.answers import Details
from tests.control.cluster_service import ClusterService, a_cluster_service, until
from tests.engines.kubernetes.cluster import kubectl_json, on_a_real_cluster
from tests.engines.kubernetes.managed.frail import the_frail_node

pytestmark = [on_a_real_cluster, pytest.mark.slow]

SETTINGS = f"""\
kubernetes: {{nodes: {{jobman.io/lab: faults}}, tolerates: [jobman.io/lab]}}
scheduler: {{stop_margin: 1s}}
accounts:
- {{name: physics, users: [{getpass.getuser()}]}}
- {{name: poetry, users: [{getpass.getuser()}]}}
"""
NODE = "{type: node, count: 1}"
CORE = "{type: core, count: 1}"
LONG = "trap 'exit 0' TERM; while true; do sleep 0.1; done"


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with the_frail_node() as name:
        yield name


@pytest.fixture(scope="module")
def service(node: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterService]:
    """One that has a single node."""
    del node
    with a_cluster_service(tmp_path_factory.mktemp("service"), settings=SETTINGS) as made:
        yield made


def work(shape: str, script: str = "true", *, seconds: int = 60, top: str = "") -> str:
    return f"""\
version: 1
{top}
tasks:
- name: work
  resources: {shape}
  grace: 1s
  attributes: {{duration: {seconds}s}}
  command: [sh, -c, "{script}"]
"""


def pods_of(service: ClusterService, job: str) -> list[str]:
    return service.kubectl("get", "pods", "-l", f"jobman.io/job={job}", "-o", "name").split()


def until_told(service: ClusterService, job: str, words: str) -> None:
    """Until it is said why a job waits; and it does."""

    def told() -> bool:
        found[:] = [blocker.message for blocker in service.client.why(job).blockers]
        return any(words in message for message in found)

    found: list[str] = []
    with suppress(AssertionError):
        until(told, words, 20)
    assert told(), found
    assert pods_of(service, job) == []


def ended(service: ClusterService, job: str) -> Details:
    found = service.wait(job)
    assert found.state == "succeeded", found.reason
    return found


def is_cordoned(node: str) -> bool:
    return bool(kubectl_json("get", "node", node)["spec"].get("unschedulable"))


def test_a_whole_node_is_shared_with_nobody(service: ClusterService) -> None:
    whole = service.submit(work(NODE, LONG))
    service.until_running(whole)
    small = service.submit(work(CORE))
    until_told(service, small, "core")
    service.client.cancel(whole)
    stopped = service.wait(whole)
    started = ended(service, small).started_at
    assert stopped.ended_at is not None
    assert started is not None
    assert started >= stopped.ended_at


def test_a_reserved_node_is_for_who_asks_for_the_reservation(service: ClusterService, node: str) -> None:
    service.client.add_calendar(
        NewEntry(kind="reservation", name="course", start=datetime.now(UTC), duration=600, nodes=[node])
    )
    other = service.submit(work(CORE))
    until_told(service, other, "course")
    ended(service, service.submit(work(CORE), reservation="course"))
    assert pods_of(service, other) == []
    service.client.remove_calendar("course")
    ended(service, other)


def test_a_node_is_empty_and_cordoned_when_its_maintenance_begins(service: ClusterService, node: str) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=30)
    service.client.add_calendar(
        NewEntry(kind="maintenance", name="disks", start=begin, duration=600, nodes=[node])
    )
    long = service.submit(work(CORE, seconds=120))
    until_told(service, long, "disks")
    short = ended(service, service.submit(work(CORE, "sleep 1", seconds=5)))
    assert short.ended_at is not None
    assert short.ended_at < begin.timestamp()
    assert not is_cordoned(node)
    until(lambda: is_cordoned(node), "a cordon")
    assert time.time() >= begin.timestamp()
    assert service.kubectl("get", "pods", "-o", "name") == ""
    service.client.remove_calendar("disks")
    ended(service, long)
    until(lambda: not is_cordoned(node), "an open node")


def test_what_ran_is_on_the_bill_and_who_used_less_goes_first(service: ClusterService) -> None:
    had, began = sum(billed(service, "physics")), time.time()
    used = ended(service, service.submit(work(NODE, "sleep 5", top="account: physics")))
    line = until(lambda: sum(billed(service, "physics")) - had, "a bill")
    # Two cores, for five seconds at least, but for what a cluster tells of times in whole seconds.
    assert used.state == "succeeded"
    assert 4 <= line * 3600 / 2 <= time.time() - began
    assert billed(service, "poetry") == []
    # Shares are looked at from time to time, and at each start.
    service.stop()
    service.start()
    # Behind what has no limit nothing is promised, so that the order is by priority alone.
    endless = work(NODE, LONG, top="account: physics").replace("  attributes: {duration: 60s}\n", "")
    now = service.submit(endless)
    service.until_running(now)
    first = service.submit(work(NODE, top="account: physics"))
    second = service.submit(work(NODE, top="account: poetry"))

    def are_in_order() -> bool:
        return [service.client.why(job).position for job in (first, second)] == [2, 1]

    until(are_in_order, "that who used less is first", 20)
    service.client.cancel(now)
    started = [ended(service, job).started_at or 0.0 for job in (first, second)]
    assert started[1] < started[0]


def billed(service: ClusterService, account: str) -> list[float]:
    """The hours of cores of an account, if it has used any."""
    lines = service.client.usage(by="account").items
    return [line.core_hours for line in lines if line.account == account and line.core_hours]
