"""What the server may do in a cluster: the verbs it uses, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from jobman.engines.kubernetes.installation.site import KEEPER, LABELS, SERVER, Site, Tasks
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
_SCALERS = ("create", "patch", "deletecollection")
WITH_WORKERS = (
    Right("apps", "deployments", ("get", "list", "create", "patch", "delete"), "one for each image"),
    Right("apps", "deployments/scale", ("patch",), "none, one, and how many"),
    Right("autoscaling", "horizontalpodautoscalers", _SCALERS, "one for each image"),
    Right("keda.sh", "scaledobjects", _SCALERS, "the same for KEDA"),
    Right("", "pods", ("list", "patch"), "idle ones go first"),
    Right("", "configmaps", ("create", "patch"), "whose certificate agents trust"),
)
EVERYWHERE_WITH_WORKERS = (
    Right(
        "apiregistration.k8s.io",
        "apiservices",
        ("get", "patch"),
        "who serves metrics, and by which certificate",
        ("v1beta1.external.metrics.k8s.io",),
    ),
)


def account(site: Site, name: str = SERVER, labels: Mapping[str, str] = LABELS) -> Written:
    """As whom the server speaks to the cluster; its token goes only to pods that ask for it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": site.namespace, "labels": dict(labels)},
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


def rights_with_workers(site: Site, tasks: Tasks, labels: Mapping[str, str]) -> list[tuple[str, Written]]:
    """Those of whoever keeps workers of short tasks."""
    places = (
        ("the registration of the metrics", "", f"{site.cluster_name}-tasks", EVERYWHERE_WITH_WORKERS),
        ("what is done where workers run", tasks.namespace, KEEPER, WITH_WORKERS),
    )
    found = [
        (title, written)
        for title, namespace, name, granted in places
        for written in _grant(site, namespace, name, granted, KEEPER, labels)
    ]
    subject = {"kind": "ServiceAccount", "name": KEEPER, "namespace": site.namespace}
    reading = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": f"{site.cluster_name}-tasks",
            "namespace": "kube-system",
            "labels": dict(labels),
        },
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
        "subjects": [subject],
    }
    return [*found, ("whose certificate the API server shows to others", reading)]


def _grant(
    site: Site,
    namespace: str,
    name: str,
    granted: tuple[Right, ...],
    account: str = SERVER,
    labels: Mapping[str, str] = LABELS,
) -> list[Written]:
    kind = "Role" if namespace else "ClusterRole"
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **place, "labels": dict(labels)}
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
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": site.namespace}],
    }
    return [role, binding]


def _rule(right: Right) -> dict[str, Any]:
    rule: dict[str, Any] = {"apiGroups": [right.group], "resources": [right.resource]}
    if right.only:
        rule["resourceNames"] = list(right.only)
    return {**rule, "verbs": list(right.verbs)}
