"""Flavors on a real cluster: what a pod gets of one, and the queue of them, everybody's and yours."""

from __future__ import annotations

import json
from typing import Any

from tests.client.commanding import Jobman, submitted, until
from tests.engines.kubernetes.cluster import (
    a_namespace,
    image,
    kubectl,
    kubectl_json,
    on_a_real_cluster,
)

pytestmark = on_a_real_cluster


def rows(jobman: Jobman, flavor: str) -> list[dict[str, Any]]:
    return [row for row in jobman("queue", "-o", "json").data["items"] if row["flavor"] == flavor]


def test_a_command_runs_with_what_its_flavor_means(jobman: Jobman, namespace: str) -> None:
    job = submitted(jobman, "-i", image(), "-r", "no-gpu", "--", "ls", "-al", "/")
    assert any(line.endswith(" bin") for line in jobman("logs", "-f", job).out.splitlines())
    assert jobman("wait", job).code == 0
    (pod,) = kubectl_json("get", "pods", "-n", namespace)["items"]
    assert pod["metadata"]["labels"]["jobman.io/flavor"] == "no-gpu"
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1G"}
    (shown,) = [one for one in jobman("resources-flavors", "-o", "json").data if one["name"] == "no-gpu"]
    assert shown["amounts"] == {"core": 1, "memory": 10**9}


def make(namespace: str, flavor: str, gpus: dict[str, int]) -> None:
    """A pod of somebody that asks for GPUs."""
    container = {"name": "main", "image": image(), "resources": {"limits": gpus}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "pod-",
            "labels": {"jobman.io/flavor": flavor, "jobman.io/owner": "somebody"},
        },
        "spec": {"containers": [container]},
    }
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(pod))


def test_the_queue_counts_what_is_yours_and_what_is_in_other_namespaces(
    jobman: Jobman, namespace: str
) -> None:
    flavor = f"flavor-{namespace}"
    with a_namespace() as elsewhere:
        make(elsewhere, flavor, {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 2})
        make(elsewhere, flavor, {"amd.com/gpu": 1, "gpu.intel.com/i915": 1})
        until(lambda: len(rows(jobman, flavor)) == 2)
        asked = [row["resources"] for row in rows(jobman, flavor)]
        found = {frozenset(kind for kind in each if kind.startswith("gpu")) for each in asked}
        assert found == {
            frozenset(("gpu", "gpu.NVIDIA", "gpu.MIG")),
            frozenset(("gpu", "gpu.AMD", "gpu.Intel")),
        }
        assert sorted(each["gpu"] for each in asked) == [2, 3]
        assert [(row["waiting"], row["yours_waiting"]) for row in rows(jobman, flavor)] == [(1, 0), (1, 0)]
        assert "3 gpus (2 MIG, 1 NVIDIA)" in " ".join(jobman("queue").out.split())
