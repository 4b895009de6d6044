"""Requests over real sockets, on both event loops: what is kept, what is given up, and how it breaks."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import httpx
import pytest
import uvloop

from jobman.engines.kubernetes import wire
from jobman.engines.kubernetes.wire import Wire

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"
PATIENCE = 20


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request) -> Callable[[Awaitable[Any]], Any]:
    def runs(scenario: Awaitable[Any]) -> Any:
        async def in_time() -> Any:
            async with asyncio.timeout(PATIENCE):
                return await scenario

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(in_time())

    return runs


class Server:
    """Answers the requests of each connection in order, and keeps what it was asked."""

    def __init__(self, *answers: bytes, then: str = "wait") -> None:
        self.answers = list(answers)
        self.then = then
        self.connections = 0
        self.asked: list[bytes] = []
        self.gone = asyncio.Event()
        """Somebody hung up."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (
                        int(x.split(b":")[1])
                        for x in head.split(b"\r\n")
                        if x.lower().startswith(b"content-l")
                    ),
                    0,
                )
                self.asked.append(head + await reader.readexactly(length))
                if self.answers:
                    writer.write(self.answers.pop(0))
                    await writer.drain()
                if not self.answers and self.then == "close":
                    break
        self.gone.set()
        writer.close()


@asynccontextmanager
async def asking(server: Server) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    client = httpx.AsyncClient(transport=Wire(None), trust_env=False, timeout=5.0)
    try:
        yield client, f"http://127.0.0.1:{port}"
    finally:
        await client.aclose()
        listening.close()


def test_one_connection_serves_request_after_request(run):
    async def scenario() -> None:
        server = Server(FINE, FINE, FINE)
        async with asking(server) as (client, url):
            for number in range(3):
                answer = await client.post(f"{url}/{number}", content=b"x" * number)
                assert (answer.status_code, answer.text) == (200, "fine")
        assert server.connections == 1
        assert [request.split(b" ")[1] for request in server.asked] == [b"/0", b"/1", b"/2"]
        assert server.asked[2].endswith(b"\r\n\r\nxx")

    run(scenario())


def test_requests_at_the_same_time_have_a_connection_each(run):
    async def scenario() -> None:
        server = Server(FINE, FINE, FINE, FINE)
        async with asking(server) as (client, url):
            answers = await asyncio.gather(*(client.get(url) for _ in range(4)))
        assert [answer.text for answer in answers] == ["fine"] * 4
        assert server.connections == 4

    run(scenario())


def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again(run):
    async def scenario() -> None:
        server = Server(FINE, then="close")
        async with asking(server) as (client, url):
            await client.get(url)
            server.answers.append(FINE)
            while any(kept.is_reusable for kept in cast(Wire, client._transport)._idle):
                await asyncio.sleep(0.01)
            assert (await client.get(url)).text == "fine"
        assert server.connections == 2

    run(scenario())


def test_a_connection_that_was_idle_for_long_is_not_used_again(run, monkeypatch):
    monkeypatch.setattr(wire, "IDLE_SECONDS", 0.0)

    async def scenario() -> None:
        server = Server(FINE, FINE)
        async with asking(server) as (client, url):
            await client.get(url)
            await client.get(url)
        assert server.connections == 2

    run(scenario())


def test_a_server_that_says_close_is_taken_at_its_word(run):
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

    async def scenario() -> None:
        server = Server(closing, FINE)
        async with asking(server) as (client, url):
            await client.get(url)
            await client.get(url)
        assert server.connections == 2

    run(scenario())


def test_a_body_without_a_length_ends_with_its_connection(run):
    page = b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/html\r\n\r\n<html>no server</html>"

    async def scenario() -> None:
        async with asking(Server(page, then="close")) as (client, url):
            answer = await client.get(url)
        assert (answer.status_code, answer.text) == (503, "<html>no server</html>")

    run(scenario())


def test_a_body_in_chunks_comes_as_it_is_sent(run):
    async def scenario() -> None:
        server = Server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        async with asking(server) as (client, url), client.stream("GET", url) as answer:
            parts = answer.aiter_bytes()
            assert await anext(parts) == b"one"

    run(scenario())


def test_what_is_said_on_the_way_is_not_the_answer(run):
    async def scenario() -> None:
        hint = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
        async with asking(Server(hint + FINE)) as (client, url):
            answer = await client.get(url)
        assert (answer.status_code, answer.text) == (200, "fine")
        assert "link" not in answer.headers

    run(scenario())


def test_more_than_can_be_kept_waits_at_the_server(run, monkeypatch):
    monkeypatch.setattr(wire, "_MUCH", 1000)
    much = b"x" * 20_000_000

    async def scenario() -> None:
        server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(much) + much)
        async with asking(server) as (client, url):
            answer = await client.get(url)
        assert answer.content == much

    run(scenario())


# -- what breaks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n", httpx.RemoteProtocolError),
        (b"SSH-2.0-OpenSSH\r\n", httpx.RemoteProtocolError),
    ],
    ids=["nothing", "half a head", "half a body", "some of the chunks", "something else"],
)
def test_an_answer_that_is_not_whole_is_an_error(run, answer, error):
    async def scenario() -> None:
        async with asking(Server(answer, then="close")) as (client, url):
            with pytest.raises(error):
                await client.get(url)

    run(scenario())


def test_what_comes_behind_an_answer_ends_the_connection(run):
    async def scenario() -> None:
        server = Server(FINE + b"and this", FINE)
        async with asking(server) as (client, url):
            assert (await client.get(url)).text == "fine"
            assert (await client.get(url)).text == "fine"
        assert server.connections == 2

    run(scenario())


def test_a_server_that_stays_silent_is_not_waited_for(run):
    async def scenario() -> None:
        async with asking(Server()) as (client, url):
            with pytest.raises(httpx.ReadTimeout):
                await client.get(url, timeout=httpx.Timeout(5.0, read=0.05))

    run(scenario())


def test_a_server_that_falls_silent_within_a_body_is_not_waited_for(run):
    async def scenario() -> None:
        async with asking(Server(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")) as (client, url):
            with pytest.raises(httpx.ReadTimeout):
                await client.get(url, timeout=httpx.Timeout(5.0, read=0.05))

    run(scenario())


def test_where_nobody_listens_the_refusal_is_the_cause(run):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"

        async def scenario() -> None:
            async with httpx.AsyncClient(transport=Wire(None), trust_env=False) as client:
                with pytest.raises(httpx.ConnectError) as caught:
                    await client.get(url)
            assert isinstance(caught.value.__cause__, ConnectionRefusedError)

        run(scenario())


def test_a_name_that_nobody_knows_is_the_cause(run):
    async def scenario() -> None:
        async with httpx.AsyncClient(transport=Wire(None), trust_env=False) as client:
            with pytest.raises(httpx.ConnectError) as caught:
                await client.get("http://nobody.invalid")
        assert isinstance(caught.value.__cause__, socket.gaierror)

    run(scenario())


def test_a_host_is_reached_by_the_one_of_its_addresses_that_answers(monkeypatch):
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            nobody = unused.getsockname()

            async def addresses(_host: str, port: int, **_: object) -> list[Any]:
                kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
                return [(*kind, nobody), (*kind, ("127.0.0.1", port))]

            monkeypatch.setattr(loop, "getaddrinfo", addresses)
            async with asking(Server(FINE)) as (client, url):
                assert (await client.get(url.replace("127.0.0.1", "two.example"))).text == "fine"

    asyncio.run(scenario())


# -- what is given up ----------------------------------------------------------------------------------------


def test_a_connection_whose_answer_nobody_reads_to_the_end_is_closed(run):
    async def scenario() -> None:
        server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", FINE)
        async with asking(server) as (client, url):
            async with client.stream("GET", url) as answer:
                assert answer.status_code == 200
            await server.gone.wait()
            assert (await client.get(url)).text == "fine"
        assert server.connections == 2

    run(scenario())


def test_a_request_that_is_cancelled_closes_its_connection(run):
    async def scenario() -> None:
        server = Server()
        async with asking(server) as (client, url):
            asked = asyncio.create_task(client.get(url))
            while not server.asked:
                await asyncio.sleep(0.01)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await server.gone.wait()

    run(scenario())


def test_to_close_breaks_off_what_goes_on(run):
    async def scenario() -> None:
        server = Server()
        async with asking(server) as (client, url):
            asked = asyncio.create_task(client.get(url))
            while not server.asked:
                await asyncio.sleep(0.01)
            await client.aclose()
            with pytest.raises(httpx.ReadError):
                await asked

    run(scenario())


def test_a_guard_that_refuses_when_the_connection_stands_keeps_all_of_it_back(run):
    class Refused(Exception):
        pass

    async def refuse(name: str, _info: object) -> None:
        if name.endswith("send_request_headers.started"):
            raise Refused

    async def scenario() -> None:
        server = Server(FINE)
        async with asking(server) as (client, url):
            with pytest.raises(Refused):
                await client.post(url, content=b"x", extensions={"trace": refuse})
            await server.gone.wait()
        assert server.connections == 1
        assert server.asked == []

    run(scenario())
