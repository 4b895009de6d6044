"""Into pods of a real cluster: commands with their input, output and exit codes, terminals, and ports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest

from jobman.engines.entering import Entry, Passage
from jobman.engines.kubernetes.access import Access, Login
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import ApiError, Forbidden, NotFound, Unreachable
from jobman.engines.kubernetes.kubeconfig import load
from jobman.engines.kubernetes.streams import container_of, enter_pod, pod_of
from tests.engines.kubernetes.cluster import (
    Relay,
    a_namespace,
    image,
    kubeconfig,
    kubectl,
    on_a_real_cluster,
    talk,
)
from tests.engines.kubernetes.test_tls import proxying

SERVING = "mkdir /tmp/www; echo hello >/tmp/www/index.html; httpd -p 8080 -h /tmp/www; sleep 600"


class Seen(NamedTuple):
    """What came out of a pod."""

    out: bytes
    err: bytes
    code: int | None
    trouble: str


def test_a_pod_is_told_of_in_one_word() -> None:
    assert pod_of(container_of("lab", "box")) == ("lab", "box")


@pytest.fixture(scope="module")
def box() -> Iterator[str]:
    """The namespace of a pod with a web server."""
    with a_namespace() as namespace:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "box"},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "main",
                        "image": image(),
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["sh", "-c", SERVING],
                        "resources": {"requests": {"cpu": "10m"}},
                    }
                ],
            },
        }
        kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(pod))
        kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/box", "--timeout=60s")
        yield namespace


async def everything(passage: Passage) -> Seen:
    heard = {"stdout": b"", "stderr": b""}
    while (piece := await passage.read()) is not None:
        heard[piece.stream] += piece.data
    await passage.close()
    return Seen(heard["stdout"], heard["stderr"], passage.exit_code, passage.trouble)


async def write_for_ever(passage: Passage) -> None:
    while True:
        await passage.write(b"still there?")


def run(namespace: str, *command: str, given: bytes | None = None, **more: Any) -> Seen:
    """Run a command in the pod, with this input."""

    async def act(api: Api) -> Seen:
        passage = await enter_pod(api, namespace, "box", Entry(command=command, **more))
        if given is None:
            return await everything(passage)

        async def feed() -> None:
            await passage.write(given)
            await passage.end_input()

        seen, _ = await asyncio.gather(everything(passage), feed())
        return seen

    return talk(act)


def on_a_cluster(test: Any) -> Any:
    return pytest.mark.slow(on_a_real_cluster(test))


@on_a_cluster
def test_output_errors_and_the_exit_code_come_back(box: str) -> None:
    seen = run(box, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert seen == Seen(b"out\n", b"err\n", 3, "")


@on_a_cluster
def test_what_is_put_in_arrives_byte_by_byte_and_its_end_too(box: str) -> None:
    everything_there_is = bytes(range(256)) * 4096
    assert run(box, "cat", given=everything_there_is) == Seen(everything_there_is, b"", 0, "")


@on_a_cluster
def test_a_program_that_is_not_there_is_told_in_few_words(box: str) -> None:
    seen = run(box, "no-such-program")
    assert (seen.code, seen.out) == (None, b"")
    assert seen.trouble.startswith('exec: "no-such-program": ')


@on_a_cluster
def test_a_terminal_has_the_size_of_ours_and_changes_with_it(box: str) -> None:
    until = "until stty size | grep '^{}$'; do sleep 0.1; done"  # it comes a moment after the start
    script = f"{until.format('33 99')} 2>/dev/null; {until.format('40 120')}; tty"

    async def act(api: Api) -> Seen:
        entry = Entry(command=("sh", "-c", script), terminal=True, rows=33, columns=99)
        passage = await enter_pod(api, box, "box", entry)
        first = await passage.read()
        assert first is not None
        await passage.resize(40, 120)
        seen = await everything(passage)
        return seen._replace(out=first.data + seen.out)

    seen = talk(act)
    assert (seen.code, seen.err) == (0, b"")
    assert b"33 99\r\n40 120\r\n/dev/pts/" in seen.out


@on_a_cluster
def test_ctrl_c_stops_what_runs_in_the_terminal(box: str) -> None:
    async def act(api: Api) -> Seen:
        entry = Entry(command=("sh", "-c", "echo up; exec sleep 600"), terminal=True)
        passage = await enter_pod(api, box, "box", entry)
        await passage.read()
        await passage.write(b"\x03")
        return await everything(passage)

    assert talk(act).code == 130


@on_a_cluster
def test_a_port_is_reached(box: str) -> None:
    seen = run(box, port=8080, given=b"GET / HTTP/1.0\r\n\r\n")
    assert seen.out.startswith(b"HTTP/1.")
    assert seen.out.endswith(b"hello\n")
    assert (seen.code, seen.trouble) == (0, "")


@on_a_cluster
def test_a_port_at_which_nobody_listens_is_told(box: str) -> None:
    seen = run(box, port=8081, given=b"x")
    assert (seen.out, seen.trouble) == (b"", "nobody listens at port 8081 there")


@on_a_cluster
def test_who_closes_is_out_at_once_though_the_command_goes_on(box: str) -> None:
    async def act(api: Api) -> Seen:
        passage = await enter_pod(api, box, "box", Entry(command=("sleep", "600")))
        reading = asyncio.ensure_future(everything(passage))
        await asyncio.sleep(0)
        await passage.close()
        return await asyncio.wait_for(reading, 20)

    assert talk(act).code is None


@on_a_cluster
def test_a_connection_that_breaks_is_told(box: str) -> None:
    async def scenario() -> None:
        relay = Relay(load(kubeconfig()))
        await relay.listen()
        async with Api(relay.access) as api:
            passage = await enter_pod(api, box, "box", Entry(command=("sh", "-c", "echo up; sleep 600")))
            await passage.read()
            await relay.cut()
            with suppress(Unreachable):  # depending on how the end of it comes
                assert await passage.read() is None
            with pytest.raises(Unreachable):
                await write_for_ever(passage)
            assert passage.exit_code is None
            await passage.close()
            await relay.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))


@on_a_cluster
def test_a_pod_behind_a_proxy_is_entered_through_it(box: str) -> None:
    seen: list[str] = []

    async def scenario() -> Seen:
        async with proxying(seen) as proxy:
            access = msgspec.structs.replace(load(kubeconfig()), proxy=f"http://127.0.0.1:{proxy}")
            async with Api(access) as api:
                return await everything(await enter_pod(api, box, "box", Entry(command=("echo", "hi"))))

    assert asyncio.run(asyncio.wait_for(scenario(), 60)) == Seen(b"hi\n", b"", 0, "")
    assert [line.split()[0] for line in seen] == ["CONNECT"]


@on_a_cluster
def test_a_pod_that_is_not_there_is_told(box: str) -> None:
    with pytest.raises(NotFound):
        talk(partial(_enter, namespace=box, pod="nobody"))


@on_a_cluster
def test_who_may_not_enter_is_told_what_is_missing(box: str) -> None:
    login = Login(token=kubectl("create", "token", "default", "-n", box).strip())
    access = msgspec.structs.replace(load(kubeconfig()), login=login)
    with pytest.raises(Forbidden, match="pods/exec"):
        talk(partial(_enter, namespace=box, pod="box"), access)


def _enter(api: Api, *, namespace: str, pod: str) -> Awaitable[Passage]:
    return enter_pod(api, namespace, pod, Entry(command=("true",)))


def test_a_server_that_knows_no_websockets_is_told() -> None:
    async def scenario() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
            )
            await writer.drain()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with Api(_plain(port)) as api:
            with pytest.raises(Unreachable, match="did not accept the WebSocket"):
                await enter_pod(api, "lab", "box", Entry())
        server.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_refusal_has_the_words_of_the_server() -> None:
    async def scenario() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            body = b'{"kind": "Status", "code": 400, "message": "container main is not running"}'
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with Api(_plain(port)) as api:
            with pytest.raises(ApiError, match="container main is not running"):
                await enter_pod(api, "lab", "box", Entry())
        server.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def _plain(port: int) -> Access:
    return Access(server=f"http://127.0.0.1:{port}")
