"""`jobman queue` of somebody who may list some namespaces of a real cluster, and not the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.client.commanding import Answer, Jobman, command_with, config_for
from tests.engines.kubernetes.cluster import a_namespace, image, kubeconfig, kubectl, on_a_real_cluster

pytestmark = on_a_real_cluster
RBAC = "rbac.authorization.k8s.io"
COUNTED = {"pods": [""], "jobs": ["batch"]}


@pytest.fixture
def three() -> Iterator[list[str]]:
    """Namespaces with a pod each, that waits for a resource nobody has."""
    with ExitStack() as stack:
        names = [stack.enter_context(a_namespace()) for _ in range(3)]
        for name in names:
            make_a_pod(name, flavor=f"flavor-{names[0]}")
        yield names


def make_a_pod(namespace: str, flavor: str) -> None:
    container = {"name": "main", "image": image(), "resources": {"limits": {"example.com/none": 1}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "waits", "labels": {"jobman.io/flavor": flavor}},
        "spec": {"containers": [container]},
    }
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(pod))


def grant(user: str, namespace: str, **resources: list[str]) -> None:
    """Let a user list these in a namespace."""
    named = {"name": "sees", "namespace": namespace}
    make(role("Role", named, resources), binding("Role", named, user))


@contextmanager
def granted_everywhere(user: str, **resources: list[str]) -> Iterator[None]:
    """While a user may list these in the cluster as a whole."""
    named = {"name": f"sees-{user}"}
    make(role("ClusterRole", named, resources), binding("ClusterRole", named, user))
    try:
        yield
    finally:
        kubectl("delete", "clusterrolebinding,clusterrole", named["name"])


def role(kind: str, named: dict[str, str], resources: dict[str, list[str]]) -> dict[str, Any]:
    rules = [
        {"apiGroups": groups, "resources": [name], "verbs": ["list"]} for name, groups in resources.items()
    ]
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": named, "rules": rules}


def binding(kind: str, named: dict[str, str], user: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": named,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": named["name"]},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }


def make(*objects: dict[str, Any]) -> None:
    kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(objects))


def acting_as(user: str, namespace: str, tmp_path: Path, *others: str) -> Jobman:
    """Commands of a user in a namespace; contexts of the kubeconfig name others."""
    path = config_for(namespace, tmp_path, kubeconfig())
    data = yaml.safe_load(path.read_text())
    for each in data["users"]:
        each["user"]["as"] = user
    first = data["contexts"][0]["context"]
    data["contexts"] += [{"name": other, "context": {**first, "namespace": other}} for other in others]
    path.write_text(yaml.safe_dump(data))
    return command_with(path, tmp_path)


def waiting(answer: Answer, flavor: str) -> int:
    assert answer.code == 0, answer.err
    return sum(row["waiting"] for row in answer.data["items"] if row["flavor"] == flavor)


@pytest.mark.lab("it makes roles of the cluster as a whole")
def test_the_queue_is_that_of_all_namespaces_one_may_list(three: list[str], tmp_path: Path) -> None:
    user = f"two-of-{three[0]}"
    for namespace in three[:2]:
        grant(user, namespace, **COUNTED)
    jobman = acting_as(user, three[0], tmp_path)
    with granted_everywhere(user, namespaces=[""]):
        answer = jobman("queue", "-o", "json")
        assert waiting(answer, f"flavor-{three[0]}") == 2
        assert answer.data["sight"]["namespaces"] == sorted(three[:2])
        assert answer.data["sight"]["of"] > 2
        assert "counted in 2 of " in jobman("queue").err


def test_who_may_not_list_namespaces_sees_those_the_kubeconfig_names(
    three: list[str], tmp_path: Path
) -> None:
    user = f"hidden-{three[0]}"
    for namespace in three[:2]:
        grant(user, namespace, **COUNTED)
    jobman = acting_as(user, three[0], tmp_path)
    alone = jobman("queue", "-o", "json")
    assert waiting(alone, f"flavor-{three[0]}") == 1
    assert alone.data["sight"] == {"namespaces": three[:1], "of": None}
    told = jobman("queue").err
    assert told == f"jobman: counted in 1 namespace, {three[0]}: there may be others that you may not see\n"
    both = acting_as(user, three[0], tmp_path, *three[1:])("queue", "-o", "json")
    assert waiting(both, f"flavor-{three[0]}") == 2
    assert both.data["sight"] == {"namespaces": sorted(three[:2]), "of": None}


def test_ones_own_namespace_may_be_out_of_sight(three: list[str], tmp_path: Path) -> None:
    user = f"guest-{three[0]}"
    grant(user, three[1], **COUNTED)
    answer = acting_as(user, three[0], tmp_path, three[1])("queue", "-o", "json")
    assert waiting(answer, f"flavor-{three[0]}") == 1
    assert answer.data["sight"]["namespaces"] == [three[1]]


def test_who_sees_nothing_is_told_which_role_is_missing(three: list[str], tmp_path: Path) -> None:
    answer = acting_as(f"nobody-{three[0]}", three[0], tmp_path, *three[1:])("queue")
    assert (answer.code, answer.out) == (6, "")
    assert f"in the namespace {three[0]}" in answer.err
    assert "kind: Role" in answer.err


def test_who_sees_everything_is_told_nothing_of_namespaces(three: list[str], tmp_path: Path) -> None:
    jobman = command_with(config_for(three[0], tmp_path, kubeconfig()), tmp_path)
    answer = jobman("queue", "-o", "json")
    assert waiting(answer, f"flavor-{three[0]}") == 3
    assert "sight" not in answer.data
    assert jobman("queue").err == ""
