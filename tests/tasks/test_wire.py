"""Both ends of HTTP, on real sockets: what is asked is answered, and what goes wrong is told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from jobman.tasks.wire import Answer, Broken, Connection, Request, Server


async def echo(request: Request) -> Answer:
    if request.path == "/broken":
        raise RuntimeError("no")
    if request.path == "/slow":
        await asyncio.sleep(float(request.query))
    headers = {
        "x-asked": f"{request.method} {request.path}?{request.query} {request.headers.get('x-own', '')}"
    }
    return Answer(200, request.body, headers=headers)


def serving(scenario: Callable[[int], Awaitable[None]], *, most: int = 1000) -> None:
    """Run something against a server that says what it heard."""

    async def run() -> None:
        server = Server(echo, most=most)
        try:
            await asyncio.wait_for(scenario(await server.listen(("127.0.0.1", 0))), 30)
        finally:
            await server.close()

    asyncio.run(run())


@contextmanager
def saying(answer: bytes) -> Iterator[int]:
    """The port of somebody who says the same to everybody, and hangs up."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def run() -> None:
            while True:
                try:
                    other, _ = listening.accept()
                except OSError:
                    return
                with other:
                    other.recv(65536)
                    other.sendall(answer)

        Thread(target=run, daemon=True).start()
        yield listening.getsockname()[1]


def raw(port: int, data: bytes) -> bytes:
    """What comes back to bytes as they are, until the other side hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as asking:
        asking.sendall(data)
        return b"".join(iter(lambda: asking.recv(65536), b""))


def test_many_are_asked_over_one_connection() -> None:
    async def scenario(port: int) -> None:
        connection = Connection(("127.0.0.1", port), headers={"x-own": "me"})
        for number in range(20):
            answer = await connection.ask("POST", f"/a?{number}", bytes([number]) * number)
            assert (answer.status, answer.body) == (200, bytes([number]) * number)
            assert answer.headers["x-asked"] == f"POST /a?{number} me"
        connection.close()

    serving(scenario)


def test_a_path_is_as_good_as_a_port(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = Server(echo)
        await server.listen(tmp_path / "socket")
        answer = await Connection(tmp_path / "socket").ask("GET", "/")
        assert answer.status == 200
        await server.close()

    asyncio.run(scenario())


def test_one_that_takes_long_holds_nobody_up() -> None:
    async def scenario(port: int) -> None:
        slow = asyncio.create_task(Connection(("127.0.0.1", port)).ask("GET", "/slow?20"))
        await asyncio.sleep(0)
        assert (await Connection(("127.0.0.1", port)).ask("GET", "/")).status == 200
        assert not slow.done()
        slow.cancel()

    serving(scenario)


def test_what_is_too_large_is_refused_and_the_connection_goes_on() -> None:
    async def scenario(port: int) -> None:
        connection = Connection(("127.0.0.1", port))
        assert (await connection.ask("POST", "/", b"x" * 1001)).status == 413
        assert (await connection.ask("POST", "/", b"x" * 1000)).body == b"x" * 1000

    serving(scenario)


def test_a_handler_that_fails_is_told() -> None:
    async def scenario(port: int) -> None:
        connection = Connection(("127.0.0.1", port))
        answer = await connection.ask("GET", "/broken")
        assert (answer.status, answer.body) == (500, b"RuntimeError: no\n")
        assert (await connection.ask("GET", "/")).status == 200

    serving(scenario)


@pytest.mark.parametrize("data", [b"garbage\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * 40_000 + b"\r\n\r\n"])
def test_garbage_is_answered_with_400(data: bytes) -> None:
    async def scenario(port: int) -> None:
        said = await asyncio.to_thread(raw, port, data)
        assert said.startswith(b"HTTP/1.1 400 ")

    serving(scenario)


def test_requests_that_come_at_once_are_answered_in_order() -> None:
    async def scenario(port: int) -> None:
        first = b"GET /slow?0.05 HTTP/1.1\r\nhost: x\r\n\r\n"
        last = b"GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        said = (await asyncio.to_thread(raw, port, first + last)).decode()
        assert said.index("GET /slow") < said.index("GET /last")

    serving(scenario)


@pytest.mark.parametrize(
    "answer",
    [b"", b"no HTTP at all\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf"],
)
def test_an_answer_that_is_none_is_told(answer: bytes) -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(Broken):
            await Connection(("127.0.0.1", port)).ask("GET", "/")

    with saying(answer) as port:
        asyncio.run(asyncio.wait_for(scenario(port), 30))


def test_a_huge_answer_is_told() -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(Broken, match="more than 10 bytes"):
            await Connection(("127.0.0.1", port), most=10).ask("GET", "/")

    with saying(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n" + b"x" * 11) as port:
        asyncio.run(asyncio.wait_for(scenario(port), 30))


def test_nobody_there_is_told() -> None:
    async def scenario() -> None:
        with pytest.raises(Broken):
            await Connection(Path("/nowhere/socket")).ask("GET", "/")

    asyncio.run(scenario())


def test_who_gave_up_does_not_get_the_answer_of_before() -> None:
    async def scenario(port: int) -> None:
        connection = Connection(("127.0.0.1", port))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.ask("POST", "/slow?20", b"first"), 0.05)
        assert (await connection.ask("POST", "/", b"second")).body == b"second"

    serving(scenario)
