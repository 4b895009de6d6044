"""Namespaces and their walls: who reaches the server, and who reaches jobs where nothing else is said."""

from __future__ import annotations

from jobman.engines.kubernetes.installation.site import LABELS, PORT, SERVER, Site
from jobman.engines.kubernetes.objects import Written

_POLICY = "networking.k8s.io/v1"
_SECURITY = "pod-security.kubernetes.io"


def namespaces(site: Site) -> list[tuple[str, Written]]:
    """One for the server, where nothing else may run with more rights; one for jobs."""
    safe = {f"{_SECURITY}/enforce": "restricted", f"{_SECURITY}/warn": "restricted"}
    return [
        ("where the server is", _namespace(site.namespace, safe)),
        (
            "where jobs run: neither the server's account nor its Secrets",
            _namespace(site.jobs_namespace),
        ),
    ]


def _namespace(name: str, labels: dict[str, str] | None = None) -> Written:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "jobman", **(labels or {})}},
    }


def policies(site: Site) -> list[tuple[str, Written]]:
    """Only the port of the server is open. Jobs are closed, until the server opens what each needs."""
    return [
        (
            "the port of the server is open to everybody, who then needs a token; nothing else is",
            {
                "apiVersion": _POLICY,
                "kind": "NetworkPolicy",
                "metadata": {"name": SERVER, "namespace": site.namespace, "labels": dict(LABELS)},
                "spec": {
                    "podSelector": {},
                    "policyTypes": ["Ingress"],
                    "ingress": [{"ports": [{"port": PORT, "protocol": "TCP"}]}],
                },
            },
        ),
        (
            "nobody connects to a job; the server opens each to itself and to those it is connected with",
            {
                "apiVersion": _POLICY,
                "kind": "NetworkPolicy",
                "metadata": {
                    "name": f"{SERVER}-default-deny",
                    "namespace": site.jobs_namespace,
                    "labels": dict(LABELS),
                },
                "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
            },
        ),
    ]
