"""Killing a service at every step by which it starts and ends attempts on a cluster.

Whatever is killed and whenever: no gang starts by half, no copy runs twice, nothing is left on the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jobman.client import Unreachable
from tests.control.cluster_service import ClusterService, a_cluster_service, until
from tests.engines.kubernetes.cluster import need_shared_files, on_a_real_cluster

pytestmark = [on_a_real_cluster, pytest.mark.slow]

GANG = """
version: 1
resources: {{each: {{type: node, count: 2, with: [{{type: memory, count: 16Mi}}]}}}}
tasks:
- name: work
  resources: each
  volumes: [{{name: ledger, kind: host, path: {folder}, to: /ledger}}]
  steps: [{{name: write, path: note, content: "a note"}}]
  command: [sh, -c, "echo $JOBMAN_ATTEMPT.$JOBMAN_RANK >> /ledger/ran; sleep 1; cat note"]
"""
STEPS = [
    "director.before-acts",
    "release.before-job",
    "release.after-job",
    "release.after-support",
    "release.after-pod",
    "release.after-pod=kill@2",
    "release.all-seen",
    "release.after-gate",
    "release.after-gate=kill@2",
    "release.before-running",
    "release.before-over",
    "director.after-commit=kill@3",
    "clean.after-pod",
    "clean.before-job",
]


SINGLE = """
version: 1
tasks:
- name: work
  resources: {{type: slot, count: 1, with: [{{type: memory, count: 16Mi}}]}}
  volumes: [{{name: ledger, kind: host, path: {folder}, to: /ledger}}]
  steps: [{{name: write, path: note, content: "a note"}}]
  command: [sh, -c, "echo $JOBMAN_ATTEMPT.$JOBMAN_RANK >> /ledger/ran; sleep 1; cat note"]
"""
STEPS_OF_ONE = ["release.after-support", "release.after-pod", "release.before-running", "release.before-over"]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ClusterService]:
    need_shared_files()
    with a_cluster_service(tmp_path) as made:
        yield made


@pytest.mark.parametrize("step", STEPS)
def test_a_gang_runs_once_and_leaves_nothing_wherever_the_service_is_killed(
    service: ClusterService, tmp_path: Path, step: str
) -> None:
    assert ran_over_a_kill(service, tmp_path, GANG, step) == {"1.0": 1, "1.1": 1}


@pytest.mark.parametrize("step", STEPS_OF_ONE)
def test_a_pod_that_is_alone_runs_once_and_leaves_nothing_wherever_the_service_is_killed(
    service: ClusterService, tmp_path: Path, step: str
) -> None:
    assert ran_over_a_kill(service, tmp_path, SINGLE, step) == {"1.0": 1}


def ran_over_a_kill(service: ClusterService, tmp_path: Path, document: str, step: str) -> Counter[str]:
    """Which copies ran how often, where the service is killed at a step and started again."""
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    before = service.everything()
    service.stop()
    service.start(step if "=" in step else f"{step}=kill@1")
    with suppress(Unreachable):
        service.submit(document.format(folder=ledger), key="once")
    service.wait_for_death()
    service.start()
    job = service.submit(document.format(folder=ledger), key="once")
    found = service.wait(job)
    assert (found.state, found.exit_code) == ("succeeded", 0)
    ran = Counter((ledger / "ran").read_text().split())
    assert service.lines(job) == ["a note"] * ran.total()
    until(lambda: service.everything() == before, "that nothing is left")
    return ran
