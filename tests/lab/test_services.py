"""What pods of the lab's cluster need to be a service themselves, and the relay that leads them out of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lab.relay import relay
from tests.engines.kubernetes.cluster import a_namespace, kubectl

on_the_lab = [pytest.mark.slow, *(pytest.mark.component(name) for name in ("kubernetes", "services"))]


async def free_port() -> int:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0)


def test_both_directions_and_their_ends_are_passed_on():
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    async def scenario() -> bytes:
        server = await asyncio.start_server(shout, "127.0.0.1", 0)
        there, here = server.sockets[0].getsockname()[1], await free_port()
        passing = asyncio.create_task(relay([f"127.0.0.1:{here}=127.0.0.1:{there}"]))
        reader, writer = await connected(here)
        writer.write(b"word")
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        passing.cancel()
        server.close()
        return answer

    assert asyncio.run(asyncio.wait_for(scenario(), 20)) == b"WORD"


def test_where_nobody_is_the_connection_ends():
    async def scenario() -> bytes:
        here = await free_port()
        passing = asyncio.create_task(relay([f"127.0.0.1:{here}=127.0.0.1:1"]))
        reader, writer = await connected(here)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()
            passing.cancel()

    assert asyncio.run(asyncio.wait_for(scenario(), 20)) == b""


@pytest.fixture
def namespace() -> Iterator[str]:
    with a_namespace() as name:
        yield name


def told(namespace: str, container: dict[str, object]) -> str:
    """What a pod writes before it ends."""
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", **container}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "main"}, "spec": spec}
    kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(pod))
    kubectl("-n", namespace, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/main", "--timeout=60s")
    return kubectl("-n", namespace, "logs", "main")


def made() -> str:
    """The name of the image of this checkout."""
    command = [os.environ["JOBMAN_LAB_SERVICES"], "image"]
    given = {**os.environ, "JOBMAN_LAB_PYTHON": sys.executable}
    return subprocess.run(command, env=given, check=True, capture_output=True, text=True).stdout.strip()


ASK = """
import os, ssl, urllib.request
trust = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
for host in ("kubernetes.default.svc", os.environ["KUBERNETES_SERVICE_HOST"]):
    print(urllib.request.urlopen(f"https://{host}/version", context=trust, timeout=20).status)
"""


class TestOnTheLab:
    pytestmark = on_the_lab

    def test_a_pod_reaches_the_api_server_as_every_pod_does(self, namespace: str):
        assert told(namespace, {"image": made(), "command": ["python", "-c", ASK]}) == "200\n200\n"

    def test_the_image_has_the_checkout_and_is_made_once(self, namespace: str):
        name = made()
        assert made() == name
        command = [sys.executable, "-m", "jobman.cli.main", "--version"]
        ours = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert told(namespace, {"image": name, "args": ["--version"]}) == ours
