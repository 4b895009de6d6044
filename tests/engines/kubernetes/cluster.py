"""A real cluster for tests: its kubectl, and a namespace that nobody else uses."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import pytest

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.kubeconfig import load

T = TypeVar("T")

on_a_real_cluster = pytest.mark.component("kubernetes")


def kubeconfig() -> Path:
    return Path(os.environ["JOBMAN_LAB_KUBECONFIG"])


def image() -> str:
    return os.environ["JOBMAN_LAB_KUBE_IMAGE"]


def kubectl(*words: str, stdin: str | None = None, **environment: str) -> str:
    command = [os.environ["JOBMAN_LAB_KUBECTL"], *words]
    given = {**os.environ, "KUBECONFIG": str(kubeconfig()), **environment}
    done = subprocess.run(command, env=given, input=stdin, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def kubectl_json(*words: str, **environment: str) -> Any:
    return json.loads(kubectl(*words, "-o", "json", **environment))


def usable_nodes() -> list[str]:
    """The nodes that take any pod."""
    found = kubectl_json("get", "nodes")["items"]
    free = [each for each in found if not each["spec"].keys() & {"taints", "unschedulable"}]
    return [each["metadata"]["name"] for each in free]


def two_nodes() -> tuple[str, str]:
    """The first two of them; without two there is no such test."""
    found = usable_nodes()
    if len(found) < 2:
        pytest.skip("this cluster has no two nodes that take any pod")
    return found[0], found[1]


def shares_files() -> bool:
    """Whether the nodes find the files of this machine where it has them."""
    return "JOBMAN_LAB_SHARED_FILES" in os.environ


def need_shared_files() -> None:
    if not shares_files():
        pytest.skip("the nodes of this cluster do not share the files of this machine")


def need_job_sets() -> None:
    if not kubectl("api-resources", "--api-group=jobset.x-k8s.io", "-o", "name").strip():
        pytest.skip("this cluster has no JobSets")


@contextmanager
def a_namespace() -> Iterator[str]:
    """A new namespace with a right to make pods in it, deleted behind us without waiting."""
    name = f"test-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        kubectl("delete", "namespace", name, "--wait=false")


def talk(work: Callable[[Api], Awaitable[T]], access: Access | None = None) -> T:
    """Do something with an API that is closed afterwards."""

    async def scenario() -> T:
        async with Api(access or load(kubeconfig())) as api:
            return await work(api)

    return asyncio.run(asyncio.wait_for(scenario(), 120))


class Relay:
    """A way to the cluster that can be cut, and closed for a while."""

    def __init__(self, access: Access) -> None:
        parts = urlsplit(access.server)
        self._there = parts.hostname or "", parts.port or 443
        self._access = access
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self.passed = 0
        """How many connections were let in."""

    @property
    def access(self) -> Access:
        name = self._access.tls_server_name or self._there[0]
        server = f"https://127.0.0.1:{self._port}"
        return msgspec.structs.replace(self._access, server=server, tls_server_name=name)

    async def listen(self) -> None:
        """Let everybody in."""
        if self._server is not None and self._server.is_serving():
            return
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Cut everything, and let nobody in."""
        if self._server is not None:
            self._server.close()
        await self.cut()

    async def cut(self) -> None:
        """Break the connections there are."""
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.passed += 1
        there = await asyncio.open_connection(*self._there)
        self._open |= {writer, there[1]}
        await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


def a_job(name: str, namespace: str, script: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image(),
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
    }
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {"jobman.io/job": name}},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}, **spec},
    }


def a_config_map(name: str, namespace: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": {"key": "value"},
    }
