"""What there is on a cluster, without kubectl: tests look again and again, and it takes long to start."""

from __future__ import annotations

import functools
import http.client
import json
import ssl
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlsplit

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.kubeconfig import load
from jobman.engines.kubernetes.tls import tls_context
from tests.engines.kubernetes.cluster import kubeconfig, kubectl, kubectl_json

_KINDS = {
    "pods": ("api/v1", "pod"),
    "services": ("api/v1", "service"),
    "configmaps": ("api/v1", "configmap"),
    "secrets": ("api/v1", "secret"),
    "endpoints": ("api/v1", "endpoints"),
    "persistentvolumeclaims": ("api/v1", "persistentvolumeclaim"),
    "deployments": ("apis/apps/v1", "deployment.apps"),
    "jobs.batch": ("apis/batch/v1", "job.batch"),
    "networkpolicies": ("apis/networking.k8s.io/v1", "networkpolicy.networking.k8s.io"),
}
"""Where each is, and how kubectl names one of it."""
_SECONDS = 60.0
Items = list[dict[str, Any]]


def listed(kind: str, namespace: str, selector: str = "") -> Items:
    """All of a kind."""
    access, context = _way(str(kubeconfig()))
    if not access.login.token:  # somebody's own cluster, which wants more than that
        items: Items = kubectl_json("get", kind, "-n", namespace, "-l", selector)["items"]
        return items
    with closing(_line(access, context)) as line:
        return _all(line, access, kind, namespace, selector)


def names(kinds: str, namespace: str, selector: str = "") -> list[str]:
    """All of some kinds, as `kubectl get -o name` has them."""
    access, context = _way(str(kubeconfig()))
    if not access.login.token:
        return kubectl("get", kinds, "-n", namespace, "-l", selector, "-o", "name").split()
    with closing(_line(access, context)) as line:
        return [
            f"{_KINDS[kind][1]}/{each['metadata']['name']}"
            for kind in kinds.split(",")
            for each in _all(line, access, kind, namespace, selector)
        ]


@functools.cache
def _way(path: str) -> tuple[Access, ssl.SSLContext]:
    del path  # another cluster has another file
    access = load(kubeconfig())
    return access, tls_context(access, None)


def _line(access: Access, context: ssl.SSLContext) -> http.client.HTTPSConnection:
    address = urlsplit(access.server)
    return http.client.HTTPSConnection(
        address.hostname or "", address.port, context=context, timeout=_SECONDS
    )


def _all(
    line: http.client.HTTPSConnection, access: Access, kind: str, namespace: str, selector: str
) -> Items:
    plural = kind.partition(".")[0]
    path = f"/{_KINDS[kind][0]}/namespaces/{namespace}/{plural}?labelSelector={quote(selector)}"
    line.request("GET", path, headers={"authorization": f"Bearer {access.login.token}"})
    answer = line.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    items: Items = json.loads(body)["items"]
    return items
