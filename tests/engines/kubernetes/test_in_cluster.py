"""A service account of a real cluster: with the files that a pod has of it, and in a pod itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from jobman.engines.kubernetes import kubeconfig as kubeconfigs
from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import Forbidden, Unreachable
from jobman.engines.kubernetes.in_cluster import in_cluster
from jobman.engines.kubernetes.kinds import CONFIG_MAPS
from jobman.engines.kubernetes.roles import direct_needs, role_yaml
from tests.engines.kubernetes.cluster import (
    a_config_map,
    a_namespace,
    image,
    kubeconfig,
    kubectl,
    kubectl_json,
    on_a_real_cluster,
    talk,
)
from tests.engines.kubernetes.test_tls import Keys

pytestmark = on_a_real_cluster
ACCOUNT = "worker"


@pytest.fixture
def namespace() -> Iterator[str]:
    """One with a service account that may do what jobs need."""
    with a_namespace() as name:
        kubectl("create", "serviceaccount", ACCOUNT, "-n", name)
        user = f"system:serviceaccount:{name}:{ACCOUNT}"
        kubectl("apply", "-f", "-", stdin=role_yaml(direct_needs(name, user)))
        yield name


# -- its files -----------------------------------------------------------------------------------------------


@pytest.fixture
def inside(namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Access:
    """What is found with the surroundings of a pod: its files, its variables, and no kubeconfig."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text(kubectl("create", "token", ACCOUNT, "-n", namespace).strip())
    authority = kubectl_json("get", "configmap", "kube-root-ca.crt", "-n", namespace)
    (folder / "ca.crt").write_text(authority["data"]["ca.crt"])
    (folder / "namespace").write_text(namespace)
    server = urlsplit(kubeconfigs.load(kubeconfig()).server)
    monkeypatch.setattr(kubeconfigs, "in_cluster", partial(in_cluster, folder=folder))
    environment = {
        "HOME": str(tmp_path),
        "KUBERNETES_SERVICE_HOST": server.hostname or "",
        "KUBERNETES_SERVICE_PORT": str(server.port or 443),
    }
    return kubeconfigs.load(environment=environment)


def test_with_the_files_of_a_pod_one_is_its_service_account(inside: Access, namespace: str) -> None:
    async def work(api: Api) -> tuple[str, list[str]]:
        await api.create(a_config_map("made-inside", namespace))
        return await api.whoami(), [each.metadata.name for each in (await api.list(CONFIG_MAPS)).items]

    who, found = talk(work, inside)
    assert who == f"system:serviceaccount:{namespace}:{ACCOUNT}"
    assert sorted(found) == ["kube-root-ca.crt", "made-inside"]


def test_elsewhere_a_service_account_is_told_what_it_lacks(inside: Access, namespace: str) -> None:
    with pytest.raises(Forbidden) as raised:
        talk(lambda api: api.list(CONFIG_MAPS, "kube-system"), inside)
    assert f"system:serviceaccount:{namespace}:{ACCOUNT}" in raised.value.message
    assert f"name: {ACCOUNT}" in raised.value.role


def test_a_server_that_the_files_do_not_vouch_for_is_not_trusted(inside: Access, tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    keys.authority("stranger")
    Path(inside.authority.file).write_text(Path(keys.file("stranger.crt")).read_text())
    with pytest.raises(Unreachable, match="certificate"):
        talk(lambda api: api.list(CONFIG_MAPS), inside)


# -- a pod ---------------------------------------------------------------------------------------------------


def in_a_pod(namespace: str, *command: str) -> str:
    """What a command of this checkout prints in a pod, which has our interpreter from its node."""
    checkout = str(Path(__file__).parents[3])
    mounts = {"/lib": "/usr/lib", "/usr/lib": "/usr/lib", "/lib64": "/usr/lib64"}
    mounts |= {path: path for path in (sys.base_prefix, checkout)}
    volumes = [
        {"name": f"v{number}", "hostPath": {"path": path}} for number, path in enumerate(mounts.values())
    ]
    container: dict[str, Any] = {
        "name": "main",
        "image": image(),
        "command": [sys.executable, *command],
        "env": [{"name": "HOME", "value": "/tmp"}, {"name": "PYTHONPATH", "value": f"{checkout}/src"}],
        "volumeMounts": [
            {"name": f"v{number}", "mountPath": path, "readOnly": True} for number, path in enumerate(mounts)
        ],
    }
    spec = {
        "serviceAccountName": ACCOUNT,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": volumes,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "inside"}, "spec": spec}
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(pod))
    kubectl(
        "wait",
        "-n",
        namespace,
        "pod/inside",
        "--for=jsonpath={.status.containerStatuses[0].state.terminated}",
        "--timeout=90s",
    )
    return kubectl("logs", "-n", namespace, "inside")


@pytest.mark.lab("its nodes have the interpreter of the tests")
@pytest.mark.slow
def test_a_command_in_a_pod_speaks_to_its_cluster_with_nothing_set_up(namespace: str) -> None:
    printed = in_a_pod(namespace, "-m", "jobman", "-e", "kubernetes", "queue", "-o", "json")
    answer = json.loads(printed)
    assert answer["sight"] == {"namespaces": [namespace], "of": None}
    assert sum(row["running"] for row in answer["items"]) == 1
