"""What the server may do in a cluster: the verbs it uses, and nothing else."""

from __future__ import annotations

from typing import Any, NamedTuple

from jobman.engines.kubernetes.installation.site import LABELS, SERVER, Site
from jobman.engines.kubernetes.objects import Written

_RBAC = "rbac.authorization.k8s.io"


class Right(NamedTuple):
    """Some verbs on a resource, and what they are for."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    purpose: str
    only: tuple[str, ...] = ()
    """The names of the only objects that are meant."""


EVERYWHERE = (
    Right("", "nodes", ("list", "watch", "patch"), "to plan with; to cordon one for maintenance"),
    Right("", "pods", ("list", "watch"), "what others use of the nodes"),
    Right("node.k8s.io", "runtimeclasses", ("list", "watch"), "what a runtime costs"),
)
WITH_JOBS = (
    Right("batch", "jobs", ("get", "list", "watch", "create", "patch", "delete"), "one for each attempt"),
    Right("batch", "jobs/finalizers", ("update",), "pods are owned by it, and hold it up"),
    Right("", "pods", ("get", "create", "patch", "delete"), "one for each copy"),
    Right("", "pods/log", ("get",), "output is kept"),
    Right("", "pods/exec", ("get", "create"), "who connects to a job of theirs"),
    Right("", "pods/portforward", ("get", "create"), "who connects to a job of theirs"),
    # By the verb of the request, and by what it does: newer clusters ask for both.
    Right("", "events", ("list",), "why a pod does not start"),
    Right("", "configmaps", ("get", "create", "deletecollection"), "files of jobs"),
    Right("", "services", ("get", "list", "watch", "create", "deletecollection"), "names of copies"),
    Right(
        "networking.k8s.io",
        "networkpolicies",
        ("get", "list", "watch", "create", "patch", "deletecollection"),
        "walls around jobs",
    ),
    Right("resource.k8s.io", "resourceclaims", ("get", "create"), "devices"),
    Right("resource.k8s.io", "resourceclaimtemplates", ("get", "create"), "devices"),
)
AT_HOME = (
    Right("coordination.k8s.io", "leases", ("create",), "who leads"),
    Right("coordination.k8s.io", "leases", ("get", "patch"), "who leads", (SERVER,)),
    Right("discovery.k8s.io", "endpointslices", ("create",), "where the leader is"),
    Right("discovery.k8s.io", "endpointslices", ("patch",), "where the leader is", (f"{SERVER}-leader",)),
)


def account(site: Site) -> Written:
    """As whom the server speaks to the cluster; its token goes only to pods that ask for it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": SERVER, "namespace": site.namespace, "labels": dict(LABELS)},
        "automountServiceAccountToken": False,
    }


def rights(site: Site) -> list[tuple[str, Written]]:
    """Roles and bindings, each with what it is for."""
    places = (
        ("all nodes and pods are watched", "", site.cluster_name, EVERYWHERE),
        ("what the server does where jobs run", site.jobs_namespace, SERVER, WITH_JOBS),
        ("the Lease, and where the leader is found", site.namespace, SERVER, AT_HOME),
    )
    return [
        (title, written)
        for title, namespace, name, granted in places
        for written in _grant(site, namespace, name, granted)
    ]


def _grant(site: Site, namespace: str, name: str, granted: tuple[Right, ...]) -> list[Written]:
    kind = "Role" if namespace else "ClusterRole"
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **place, "labels": dict(LABELS)}
    role: Written = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": [_rule(right) for right in granted],
    }
    binding: Written = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": SERVER, "namespace": site.namespace}],
    }
    return [role, binding]


def _rule(right: Right) -> dict[str, Any]:
    rule: dict[str, Any] = {"apiGroups": [right.group], "resources": [right.resource]}
    if right.only:
        rule["resourceNames"] = list(right.only)
    return {**rule, "verbs": list(right.verbs)}
