"""An installation of tests: all of it but the Deployment, in namespaces of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.installation.bundle import objects
from jobman.engines.kubernetes.installation.site import Site
from tests.engines.kubernetes.cluster import kubeconfig, kubectl, talk


@contextmanager
def a_site() -> Iterator[Site]:
    """What is installed, deleted behind us without waiting."""
    name = f"test-{secrets.token_hex(4)}"
    site = Site(namespace=name, jobs_namespace=f"{name}-jobs", replicas=1)

    async def apply(api: Api) -> None:
        for item in objects(site):
            if item.written["kind"] != "Deployment":
                await api.apply_patch(item.written)

    try:
        talk(apply)
        yield site
    finally:
        let_go(site.jobs_namespace)
        for kind, names in {
            "clusterrolebinding": [site.cluster_name],
            "clusterrole": [site.cluster_name],
            "namespace": [site.namespace, site.jobs_namespace],
        }.items():
            kubectl("delete", kind, *names, "--wait=false", "--ignore-not-found")


def let_go(namespace: str) -> None:
    """Take off what a server that was killed cannot take off any more, and what would keep the namespace."""
    left = kubectl("get", "jobs,pods", "-n", namespace, "-o", "name").split()
    for name in left:
        patch = '{"metadata": {"finalizers": null}}'
        with suppress(AssertionError):  # gone meanwhile
            kubectl("patch", name, "-n", namespace, "--type=merge", "-p", patch)


def as_the_server(site: Site, path: Path) -> Path:
    """A kubeconfig with nothing but the account of the server."""
    config = yaml.safe_load(kubeconfig().read_text())
    token = kubectl("create", "token", "jobman", "-n", site.namespace, "--duration=1h").strip()
    (user,) = config["users"]
    user["user"] = {"token": token}
    path.write_text(yaml.safe_dump(config))
    return path
