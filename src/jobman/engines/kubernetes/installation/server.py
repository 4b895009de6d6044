"""The server itself: its Deployment, and what it needs around it."""

from __future__ import annotations

from typing import Any

from jobman.engines.kubernetes.installation.site import DATABASE_KEY, LABELS, PORT, SERVER, Site
from jobman.engines.kubernetes.managed.advertising import PORT_NAME
from jobman.engines.kubernetes.objects import Written
from jobman.version import __version__

USER = 10001
HOME = "/home/jobman"
_DATA = "/var/lib/jobman"
_TLS = "/etc/jobman/tls"
_APART = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
_SETTINGS = f"{SERVER}-settings"
_OUTPUT = f"{SERVER}-output"


def deployment(site: Site) -> Written:
    """Servers of which one leads; each on a node of its own, where there are enough."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(SERVER, site),
        "spec": {
            "replicas": site.replicas,
            "selector": {"matchLabels": dict(LABELS)},
            # A new server stands by before an old one ends: the lead is handed over.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {**LABELS, "app.kubernetes.io/version": __version__}},
                "spec": _pod(site),
            },
        },
    }


def _pod(site: Site) -> dict[str, Any]:
    return {
        "serviceAccountName": SERVER,
        "automountServiceAccountToken": True,
        # The variables of a Service named jobman would look like those of the command line.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [_spread(key) for key in _APART],
        "containers": [_container(site)],
        "volumes": _volumes(site),
    }


def _spread(key: str) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(LABELS)},
    }


def _container(site: Site) -> dict[str, Any]:
    alive = _probe(site)
    return {
        "name": "server",
        "image": site.image,
        "imagePullPolicy": "IfNotPresent",
        "args": _arguments(site),
        "env": [
            {"name": "HOME", "value": HOME},
            _from_pod("POD_IP", "status.podIP"),
            _from_pod("POD_NAMESPACE", "metadata.namespace"),
            {
                "name": "JOBMAN_DATABASE",
                "valueFrom": {"secretKeyRef": {"name": site.database_secret, "key": DATABASE_KEY}},
            },
        ],
        "ports": [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
        "startupProbe": {**alive, "periodSeconds": 2, "failureThreshold": 60},
        # Taking up very many jobs may keep it busy for a while.
        "livenessProbe": {**alive, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6},
        # Also a server that stands by is ready, to lead: requests find the leader by another way.
        "readinessProbe": {**alive, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            "limits": {"memory": "4Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": _mounts(site),
    }


def _arguments(site: Site) -> list[str]:
    words = ["server", "--listen", f":{PORT}", "--engine", "kubernetes", "--namespace", site.jobs_namespace]
    words += ["--lease", f"{site.namespace}/{SERVER}", "--advertise", SERVER, "--state", f"{_DATA}/state"]
    if site.tls_secret is None:
        return [*words, "--insecure"]
    return [*words, "--tls-cert", f"{_TLS}/tls.crt", "--tls-key", f"{_TLS}/tls.key"]


def _probe(site: Site) -> dict[str, Any]:
    scheme = "HTTP" if site.tls_secret is None else "HTTPS"
    return {"httpGet": {"path": "/healthz", "port": PORT_NAME, "scheme": scheme}}


def _from_pod(name: str, path: str) -> dict[str, Any]:
    # With its version, as the cluster fills it in: who applies it in another way changes nothing then.
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _mounts(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": "data", "mountPath": _DATA},
        {"name": "settings", "mountPath": f"{HOME}/.jobman", "readOnly": True},
        {"name": "temporary", "mountPath": "/tmp"},
    ]
    if site.tls_secret is not None:
        found.append({"name": "tls", "mountPath": _TLS, "readOnly": True})
    return found


def _volumes(site: Site) -> list[dict[str, Any]]:
    data = {"emptyDir": {}} if site.storage is None else {"persistentVolumeClaim": {"claimName": _OUTPUT}}
    found: list[dict[str, Any]] = [
        {"name": "data", **data},
        {"name": "settings", "configMap": {"name": _SETTINGS}},
        {"name": "temporary", "emptyDir": {}},
    ]
    if site.tls_secret is not None:
        found.append({"name": "tls", "secret": {"secretName": site.tls_secret}})
    return found


def settings(site: Site) -> Written:
    """The settings of the server; it reads them again when they change."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(_SETTINGS, site),
        "data": {"settings.yaml": site.settings or f"kubernetes:\n  namespace: {site.jobs_namespace}\n"},
    }


def storage(site: Site) -> Written | None:
    """What jobs wrote, for whichever server leads; so a kind that several nodes can mount."""
    if site.storage is None:
        return None
    kind = {"storageClassName": site.storage.kind} if site.storage.kind else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(_OUTPUT, site),
        "spec": {
            "accessModes": ["ReadWriteMany"],
            **kind,
            "resources": {"requests": {"storage": site.storage.size}},
        },
    }


def service(site: Site) -> Written:
    """One name for all servers. It selects none: the one that leads writes itself down as its endpoint."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(SERVER, site),
        "spec": {
            "type": "ClusterIP",
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    }


def budget(site: Site) -> Written:
    """Whoever drains nodes takes one server at a time; a broken one is in nobody's way."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(SERVER, site),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": dict(LABELS)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _metadata(name: str, site: Site) -> dict[str, Any]:
    return {"name": name, "namespace": site.namespace, "labels": dict(LABELS)}
