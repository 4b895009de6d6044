"""Short tasks in a cluster: the broker, whoever keeps workers for it, and how an HPA finds the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobman.engines.kubernetes.installation.rights import account, rights_with_workers
from jobman.engines.kubernetes.installation.server import HOME, USER
from jobman.engines.kubernetes.installation.site import DATABASE_KEY, KEEPER, Site, Tasks
from jobman.engines.kubernetes.objects import Written

BROKER = "jobman-broker"
METRICS = f"{KEEPER}-metrics"
BROKER_PORT, METRICS_PORT = 7080, 7081
SETTINGS_KEY, TOKEN_KEY = "settings.yaml", "token"
_NAME = {"app.kubernetes.io/name": "jobman"}
BROKER_LABELS = {**_NAME, "app.kubernetes.io/component": "task-broker"}
KEEPER_LABELS = {**_NAME, "app.kubernetes.io/component": "task-keeper"}
_TLS, _SETTINGS = "/etc/jobman/tls", "/etc/jobman/tasks"
_POLICY = "networking.k8s.io/v1"
_LOST = 30
"""Seconds after which what ran on a node that is not heard of is started on another."""


def address(site: Site) -> str:
    """Where the broker is found inside the cluster."""
    return f"https://{BROKER}.{site.namespace}.svc:{BROKER_PORT}"


def objects(site: Site, tasks: Tasks) -> Iterator[tuple[str, Written]]:
    """Each object with what it is for."""
    yield "where workers of short tasks run", _namespace(tasks)
    yield "nobody connects to a worker", _closed(tasks)
    yield "as whom workers are kept", account(site, KEEPER, KEEPER_LABELS)
    yield from rights_with_workers(site, tasks, KEEPER_LABELS)
    yield (
        "the port of the broker is open to whoever has a token",
        _open(BROKER, BROKER_LABELS, BROKER_PORT, site),
    )
    yield "the port of the metrics, to the API server", _open(METRICS, KEEPER_LABELS, METRICS_PORT, site)
    yield "where the broker is found", _service(BROKER, BROKER_LABELS, BROKER_PORT, BROKER_PORT, site)
    yield "where metrics are found", _service(METRICS, KEEPER_LABELS, 443, METRICS_PORT, site)
    yield "the broker; one at a time, since what it knows is in its memory", _broker(site, tasks)
    yield "who keeps workers, and tells an HPA of the work", _keeper(site, tasks)
    if not tasks.prometheus:
        # Where KEDA is, it serves this API: a cluster has one.
        yield "metrics of short tasks, for an HPA", _api_service(site)


# -- around them ---------------------------------------------------------------------------------------------


def _namespace(tasks: Tasks) -> Written:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": tasks.namespace, "labels": dict(_NAME)},
    }


def _closed(tasks: Tasks) -> Written:
    return {
        "apiVersion": _POLICY,
        "kind": "NetworkPolicy",
        "metadata": {
            "name": "jobman-default-deny",
            "namespace": tasks.namespace,
            "labels": dict(KEEPER_LABELS),
        },
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }


def _open(name: str, labels: dict[str, str], port: int, site: Site) -> Written:
    return {
        "apiVersion": _POLICY,
        "kind": "NetworkPolicy",
        "metadata": _metadata(name, labels, site),
        "spec": {
            "podSelector": {"matchLabels": dict(labels)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": port, "protocol": "TCP"}]}],
        },
    }


def _service(name: str, labels: dict[str, str], port: int, target: int, site: Site) -> Written:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(name, labels, site),
        "spec": {
            "type": "ClusterIP",
            "selector": dict(labels),
            "ports": [{"name": "https", "port": port, "targetPort": target, "protocol": "TCP"}],
        },
    }


def _api_service(site: Site) -> Written:
    # Whoever serves it writes down by which certificate: it is renewed without anybody's help.
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io", "labels": dict(KEEPER_LABELS)},
        "spec": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"name": METRICS, "namespace": site.namespace, "port": 443},
        },
    }


# -- the two of them -----------------------------------------------------------------------------------------


def _broker(site: Site, tasks: Tasks) -> Written:
    words = [
        "task",
        "broker",
        "--listen",
        f"0.0.0.0:{BROKER_PORT}",
        "--settings",
        f"{_SETTINGS}/{SETTINGS_KEY}",
    ]
    database = {"secretKeyRef": {"name": site.database_secret, "key": DATABASE_KEY}}
    container = _container(
        site,
        name="broker",
        words=[*words, "--tls-cert", f"{_TLS}/tls.crt", "--tls-key", f"{_TLS}/tls.key"],
        variables=[{"name": "JOBMAN_DATABASE", "valueFrom": database}],
        port=BROKER_PORT,
        memory=("256Mi", "4Gi"),
    )
    return _deployment(BROKER, BROKER_LABELS, site, tasks, container)


def _keeper(site: Site, tasks: Tasks) -> Written:
    words = ["task", "cluster", "--broker", address(site), "--agent-image", site.image]
    words += ["--namespace", tasks.namespace, "--token-secret", tasks.agent_secret]
    words += ["--settings", f"{_SETTINGS}/{SETTINGS_KEY}"]
    words += ["--metrics", f":{METRICS_PORT}", "--service", f"{site.namespace}/{METRICS}"]
    words += ["--tls-cert", f"{_TLS}/tls.crt", "--tls-key", f"{_TLS}/tls.key"]
    words += ["--ca-file", f"{_TLS}/ca.crt"]
    words += ["--prometheus", tasks.prometheus] if tasks.prometheus else []
    token = {"secretKeyRef": {"name": tasks.secret, "key": TOKEN_KEY}}
    container = _container(
        site,
        name="keeper",
        words=words,
        variables=[{"name": "JOBMAN_TOKEN", "valueFrom": token}],
        port=METRICS_PORT,
        memory=("128Mi", "512Mi"),
    )
    account = {"serviceAccountName": KEEPER, "automountServiceAccountToken": True}
    return _deployment(KEEPER, KEEPER_LABELS, site, tasks, container, account)


def _deployment(
    name: str,
    labels: dict[str, str],
    site: Site,
    tasks: Tasks,
    container: dict[str, Any],
    account: dict[str, Any] | None = None,
) -> Written:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(name, labels, site),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": dict(labels)},
            "template": {
                "metadata": {"labels": dict(labels)},
                "spec": {
                    **(account or {"automountServiceAccountToken": False}),
                    "enableServiceLinks": False,
                    # Nothing is kept in a pod, and one that still runs somewhere cannot write any more.
                    "tolerations": [
                        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _LOST}
                        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
                    ],
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "fsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                    "volumes": [
                        {"name": "tls", "secret": {"secretName": tasks.tls_secret}},
                        {"name": "settings", "secret": {"secretName": tasks.secret}},
                        {"name": "temporary", "emptyDir": {}},
                    ],
                },
            },
        },
    }


def _container(
    site: Site,
    *,
    name: str,
    words: list[str],
    variables: list[dict[str, Any]],
    port: int,
    memory: tuple[str, str],
) -> dict[str, Any]:
    alive = {"httpGet": {"path": "/healthz", "port": port, "scheme": "HTTPS"}}
    return {
        "name": name,
        "image": site.image,
        "imagePullPolicy": "IfNotPresent",
        "args": words,
        "env": [{"name": "HOME", "value": HOME}, *variables],
        "ports": [{"name": "https", "containerPort": port, "protocol": "TCP"}],
        "startupProbe": {**alive, "periodSeconds": 2, "failureThreshold": 60},
        "livenessProbe": {**alive, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6},
        "readinessProbe": {**alive, "periodSeconds": 5, "timeoutSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": memory[0]}, "limits": {"memory": memory[1]}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tls", "mountPath": _TLS, "readOnly": True},
            {"name": "settings", "mountPath": _SETTINGS, "readOnly": True},
            {"name": "temporary", "mountPath": "/tmp"},
        ],
    }


def _metadata(name: str, labels: dict[str, str], site: Site) -> dict[str, Any]:
    return {"name": name, "namespace": site.namespace, "labels": dict(labels)}
