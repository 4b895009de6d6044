"""The queue of a cluster, from pods alone."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.names import label_value
from jobman.engines.kubernetes.needs import needs_of
from jobman.engines.kubernetes.objects import (
    Condition,
    Container,
    Job,
    JobSpec,
    JobStatus,
    Meta,
    Owner,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplate,
    Resources,
)
from jobman.engines.kubernetes.queueing import gpus_of, owned_by, queue
from tests.engines.kubernetes.recorded import NAMES, recorded


def container(restart_policy: str = "", **requests: str) -> Container:
    return Container(restart_policy=restart_policy, resources=Resources(requests=dict(requests)))


def pod(
    requests: Mapping[str, str | int | float] | None = None,
    *,
    node: str = "",
    flavor: str = "",
    owner: str = "",
) -> Pod:
    labels = {"jobman.io/flavor": flavor, "jobman.io/owner": owner}
    return Pod(
        metadata=Meta(labels={name: value for name, value in labels.items() if value}),
        spec=PodSpec(
            node_name=node, containers=[Container(resources=Resources(requests=dict(requests or {})))]
        ),
        status=PodStatus(phase="Running" if node else "Pending"),
    )


def test_pods_of_a_flavor_are_one_row_with_those_that_wait_and_run_and_are_yours():
    small = {"cpu": "1", "memory": "1Gi"}
    pods = [
        pod(small, flavor="small", node="n1", owner="ada"),
        pod(small, flavor="small", owner="bob"),
        pod(small, flavor="small", owner="ada"),
    ]
    (row,) = queue(pods, owned_by("ada"))
    assert (row.flavor, row.requests) == ("small", {"cpu": Fraction(1), "memory": Fraction(2**30)})
    assert (row.waiting, row.running, row.yours_waiting, row.yours_running) == (2, 1, 1, 1)


def test_the_same_amount_written_differently_is_the_same():
    (row,) = queue([pod({"cpu": "500m", "memory": "1Gi"}), pod({"cpu": 0.5, "memory": "1024Mi"})])
    assert row.waiting == 2


def test_a_flavor_that_means_two_things_has_two_rows():
    rows = queue([pod({"cpu": "1"}, flavor="small"), pod({"cpu": "2"}, flavor="small")])
    assert [row.requests["cpu"] for row in rows] == [1, 2]


def test_the_largest_group_comes_first():
    rows = queue([pod({"cpu": "1"}), pod({"cpu": "2"}), pod({"cpu": "2"}, node="n1")])
    assert [row.requests["cpu"] for row in rows] == [2, 1]


def test_an_owner_is_known_also_where_the_name_does_not_fit_into_a_label():
    mine = owned_by("ada@example.com")
    assert mine(pod(owner=label_value("ada@example.com")))
    assert not mine(pod(owner="ada"))


def test_what_is_over_or_belongs_to_a_node_does_not_queue():
    over = pod({"cpu": "1"}, node="n1")
    over.status.phase = "Succeeded"
    daemon = pod({"cpu": "1"}, node="n1")
    daemon.metadata.owner_references = [Owner(kind="DaemonSet", name="proxy")]
    assert queue([over, daemon]) == []


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("nvidia.com/gpu", "NVIDIA"),
        ("nvidia.com/gpu.shared", "NVIDIA"),
        ("nvidia.com/mig-1g.5gb", "MIG"),
        ("amd.com/gpu", "AMD"),
        ("amd.com/cpx_nps4", "AMD"),
        ("gpu.intel.com/i915", "Intel"),
        ("gpu.intel.com/xe", "Intel"),
        ("habana.ai/gaudi", "Intel"),
    ],
)
def test_gpus_are_told_apart_by_their_maker(name, maker):
    assert gpus_of({name: Fraction(2)}) == {maker: 2}


@pytest.mark.parametrize(
    "name", ["cpu", "nvidia.com/hostdev", "gpu.intel.com/millicores", "gpu.intel.com/i915_monitoring"]
)
def test_what_is_no_gpu_is_not_counted_as_one(name):
    assert gpus_of({name: Fraction(2)}) == {}


def test_gpus_of_several_makers_are_listed_apart():
    (row,) = queue([pod({"nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 3, "amd.com/gpu": 1, "cpu": 4})])
    assert row.gpus == {"MIG": 3, "NVIDIA": 2, "AMD": 1}


def test_a_pod_needs_what_its_containers_need_together_or_its_largest_step():
    spec = PodSpec(
        init_containers=[
            container(cpu="4", memory="1Gi"),
            container("Always", cpu="1"),
            container(cpu="2"),
        ],
        containers=[container(cpu="1", memory="2Gi"), container(cpu="1")],
        overhead={"cpu": "250m"},
    )
    # The first step alone asks for most cpu; the helper runs beside everything after it.
    assert needs_of(Pod(spec=spec)) == {"cpu": Fraction(17, 4), "memory": 2 * 2**30}


def test_a_limit_without_a_request_is_a_request():
    spec = PodSpec(containers=[Container(resources=Resources(limits={"nvidia.com/gpu": 1, "cpu": "2"}))])
    assert needs_of(Pod(spec=spec)) == {"nvidia.com/gpu": 1, "cpu": 2}


def test_a_real_cluster_is_counted_as_it_was():
    pods = [pod for name in NAMES for pod in recorded(name).pods]
    rows = queue(pods)
    active = [pod for pod in pods if pod.status.phase not in ("Succeeded", "Failed")]
    assert sum(row.waiting + row.running for row in rows) == len(active)
    (gpu,) = [row for row in rows if row.gpus]
    assert (gpu.gpus, gpu.waiting) == ({"NVIDIA": Fraction(1)}, 1)


def a_job(*, completions: int = 1, suspend: bool = False, owner: str = "ada", **status: Any) -> Job:
    container = Container(resources=Resources(requests={"cpu": "1"}))
    return Job(
        metadata=Meta(labels={"jobman.io/owner": owner, "jobman.io/flavor": "small"}),
        spec=JobSpec(
            completions=completions,
            parallelism=completions,
            suspend=suspend,
            template=PodTemplate(spec=PodSpec(containers=[container])),
        ),
        status=JobStatus(**status),
    )


def test_a_job_that_is_held_waits_although_it_has_no_pods():
    (row,) = queue(
        [], owned_by("ada"), [a_job(completions=3, suspend=True), a_job(owner="bob", suspend=True)]
    )
    assert (row.flavor, row.waiting, row.yours_waiting, row.running) == ("small", 4, 3, 0)


def test_what_a_quota_keeps_from_being_made_waits():
    running = pod({"cpu": "1"}, flavor="small", node="n1", owner="ada")
    (row,) = queue([running], owned_by("ada"), [a_job(completions=5, active=1, completed_indexes="0-1")])
    assert (row.waiting, row.running) == (2, 1)


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [Condition(type="Complete", status="True")]},
        {"conditions": [Condition(type="FailureTarget", status="True")]},
        {"conditions": [Condition(type="SuccessCriteriaMet", status="True")]},
    ],
)
def test_what_is_decided_waits_for_nothing(status):
    assert queue([], jobs=[a_job(completions=3, **status)]) == []


def test_a_job_that_was_cancelled_waits_for_nothing():
    job = a_job(suspend=True)
    job.metadata.annotations = {CANCELLED: "2026-01-31T12:00:00+00:00"}
    assert queue([], jobs=[job]) == []
