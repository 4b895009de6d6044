"""Where KEDA's kinds are, workers are left to it: the object that it reads is one that the API server takes.

KEDA itself is not run here: who reads the object, and scales by it, is not what these tests show.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from jobman.tasks.pods import name_of
from jobman.tasks.scaling import Limits
from tests.engines.kubernetes.cluster import a_namespace, kubectl, kubectl_json
from tests.tasks.cluster_world import Site, the_metrics_api, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.lab("it makes a kind of objects"),
    *(pytest.mark.component(name) for name in ("kubernetes", "services")),
]
NAME = "scaledobjects.keda.sh"
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_TRIGGER = {
    "type": "object",
    "required": ["type", "metadata"],
    "properties": {
        "type": _TEXT,
        "metadata": {"type": "object", "additionalProperties": _TEXT},
    },
}
SPEC = {
    "type": "object",
    "required": ["scaleTargetRef", "triggers"],
    "properties": {
        "scaleTargetRef": {"type": "object", "required": ["name"], "properties": {"name": _TEXT}},
        "minReplicaCount": _NUMBER,
        "maxReplicaCount": _NUMBER,
        "pollingInterval": _NUMBER,
        "cooldownPeriod": _NUMBER,
        "triggers": {"type": "array", "items": _TRIGGER},
    },
}


def definition() -> dict[str, Any]:
    """Of KEDA's kind as far as jobman writes it; types and what is required are as KEDA has them."""
    schema = {"type": "object", "properties": {"spec": SPEC}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "scaledobjects", "singular": "scaledobject", "kind": "ScaledObject"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": "keda.sh", "scope": "Namespaced", "names": names, "versions": [version]},
    }


@contextmanager
def kedas_kind() -> Iterator[None]:
    with the_metrics_api():
        kubectl("apply", "-f", "-", stdin=json.dumps(definition()))
        try:
            kubectl("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=60s")
            yield
        finally:
            kubectl("delete", "crd", NAME, "--ignore-not-found")


def test_keda_gets_an_object_for_each_image_and_loses_it_where_it_is_not_asked(tmp_path):
    async def scenario(site: Site) -> None:
        async with site.broker():
            async with site.keeper(prometheus="http://prometheus:9090"):
                (found,) = await until(lambda: scaled_objects(namespace))
            (deployment,) = await site.deployments()
            assert found["spec"]["scaleTargetRef"] == {"name": deployment["metadata"]["name"]}
            assert found["metadata"]["name"] == name_of(site.image)
            assert found["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]
            asked = [each["metadata"]["query"] for each in found["spec"]["triggers"]]
            assert asked == [
                f'sum({metric}{{image="{site.image}"}})'
                for metric in ("jobman_workable_seconds", "jobman_slots_busy")
            ]
            async with site.keeper():
                await until(lambda: are_gone(namespace))

    with a_namespace() as namespace:
        site = Site(namespace, tmp_path, Limits(least=1, most=1))
        with kedas_kind():
            asyncio.run(asyncio.wait_for(scenario(site), 540))


async def scaled_objects(namespace: str) -> list[dict[str, Any]]:
    found = await asyncio.to_thread(kubectl_json, "get", NAME, "-n", namespace)
    items: list[dict[str, Any]] = found["items"]
    return items


async def are_gone(namespace: str) -> bool:
    return not await scaled_objects(namespace)
