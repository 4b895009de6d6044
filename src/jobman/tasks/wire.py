"""HTTP as far as brokers, agents and workers need it, on plain asyncio protocols: both of its ends.

A connection has one request at a time and is kept for the next. Whoever wants more at once has more of them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol, cast

import httptools
import msgspec

MOST_BYTES = 64 * 2**20
"""Of a body."""
_MOST_HEAD = 32 * 2**10
_MOST_AHEAD = 8
"""Requests that somebody may send before the first of them is answered."""
_KEEP_ALIVE = {
    getattr(socket, name): value
    for name, value in {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}.items()
    if hasattr(socket, name)
}
"""Seconds of silence before it is asked whether somebody is there, how often again, and how many times."""
PACKED, JSON, TEXT = "application/msgpack", "application/json", "text/plain; charset=utf-8"


class Request(msgspec.Struct, frozen=True):
    """What somebody asks."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    """Names in small letters."""
    body: bytes = b""


def wants_json(request: Request) -> bool:
    """Whether a person, or a program of one, reads the answer."""
    return JSON in request.headers.get("accept", "")


class Answer(msgspec.Struct, frozen=True):
    """What comes back."""

    status: int = 200
    body: bytes = b""
    kind: str = PACKED
    headers: Mapping[str, str] = {}


Handler = Callable[[Request], Awaitable[Answer]]


class Broken(ConnectionError):
    """The other side is gone, or does not speak HTTP; what it did with a request is not known."""

    def __init__(self, words: str, *, is_wrong: bool = False, is_sent: bool = True) -> None:
        super().__init__(words)
        self.is_wrong = is_wrong
        """Whether it is there, and what it says is wrong."""
        self.is_sent = is_sent
        """Whether it may have heard the request: not where nobody was there."""


class Reading:
    """What a parser tells, put together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.start()

    def start(self) -> None:
        self.url = b""
        self.headers: dict[str, str] = {}
        self._head = 0
        self._chunks: list[bytes] = []
        self._size = 0
        self.is_too_large = False

    def on_message_begin(self) -> None:
        self.start()

    def on_url(self, url: bytes) -> None:
        self.url += url
        self._grow(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow(len(name) + len(value))
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def _grow(self, size: int) -> None:
        self._head += size
        if self._head > _MOST_HEAD:
            raise ValueError("the headers are too large")

    def on_body(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._most:
            # The rest is read and dropped, so that the other side hears of it.
            self.is_too_large = True
            self._chunks.clear()
        else:
            self._chunks.append(chunk)

    @property
    def body(self) -> bytes:
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)


def answer_bytes(answer: Answer, *, keep: bool) -> bytes:
    """An answer as it goes over a connection, which is kept for the next or not."""
    lines = [
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        f"content-length: {len(answer.body)}",
        f"content-type: {answer.kind}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
        *(() if keep else ("connection: close",)),
    ]
    return "\r\n".join((*lines, "", "")).encode("latin-1") + answer.body


def _fault(error: Exception) -> Answer:
    """What nobody has thought of."""
    return Answer(500, f"{type(error).__name__}: {error}\n".encode(), TEXT)


def _stay_awake(transport: asyncio.Transport) -> None:
    """Notice that the machine of the other side is gone without a word: often all that is done is to wait."""
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEP_ALIVE.items():
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


# -- who answers ---------------------------------------------------------------------------------------------


class _Serving(asyncio.Protocol, Reading):
    """One connection of somebody who asks."""

    def __init__(
        self,
        handler: Handler,
        most: int,
        tasks: set[asyncio.Task[None]],
        connections: set[asyncio.Transport],
    ) -> None:
        Reading.__init__(self, most)
        self._handler = handler
        self._tasks = tasks
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._turn: asyncio.Future[None] | None = None
        self._own: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # One of uvloop is no heir of asyncio's, and does all the same.
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self._transport)
        _stay_awake(self._transport)

    def pause_writing(self) -> None:
        """Who does not read its answers gets no more of them, and is not heard any more."""
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more to be answered; whoever works on it hears of that."""
        del exc
        self._connections.discard(self._transport)
        for task in self._own:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, ValueError) as error:
            self._send(Answer(400, f"{error}\n".encode(), TEXT), keep=False)

    def on_message_complete(self) -> None:
        url = httptools.parse_url(self.url)
        request = Request(
            self._parser.get_method().decode(),
            url.path.decode("latin-1"),
            (url.query or b"").decode("latin-1"),
            self.headers,
            self.body,
        )
        loop = asyncio.get_running_loop()
        # One that comes before the last was answered waits for its turn.
        before, self._turn = self._turn, loop.create_future()
        keep = self._parser.should_keep_alive()
        too_large = self.is_too_large
        task = loop.create_task(self._answer(request, keep, too_large, before, self._turn))
        for known in (self._tasks, self._own):
            known.add(task)
            task.add_done_callback(known.discard)
        if len(self._own) == _MOST_AHEAD:
            self._transport.pause_reading()
            task.add_done_callback(self._hear_again)

    def _hear_again(self, _: asyncio.Task[None]) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    async def _answer(
        self,
        request: Request,
        keep: bool,
        too_large: bool,
        before: asyncio.Future[None] | None,
        turn: asyncio.Future[None],
    ) -> None:
        try:
            if before is not None and not before.done():
                await before
            if too_large:
                answer = Answer(413, f"a body has at most {self._most:,} bytes\n".encode(), TEXT)
            else:
                answer = await self._handler(request)
            self._send(answer, keep=keep)
            await self._room.wait()
        except Exception as error:
            self._send(_fault(error), keep=False)
        finally:
            if not turn.done():
                turn.set_result(None)

    def _send(self, answer: Answer, *, keep: bool) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(answer_bytes(answer, keep=keep))
        if not keep:
            self._transport.close()


class Server:
    """Answers on a socket."""

    def __init__(self, handler: Handler, *, most: int = MOST_BYTES) -> None:
        self._handler = handler
        self._most = most
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.Transport] = set()

    async def listen(self, place: Path | tuple[str, int], tls: ssl.SSLContext | None = None) -> int:
        """Begin on a path, or on an address; returns the port, of which 0 takes any."""
        loop = asyncio.get_running_loop()

        def protocol() -> _Serving:
            return _Serving(self._handler, self._most, self._tasks, self._connections)

        if isinstance(place, Path):
            self._server = await loop.create_unix_server(protocol, str(place))
            return 0
        self._server = await loop.create_server(protocol, *place, ssl=tls)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Take no more, and hang up on those that wait for an answer: they come again, to whoever is next."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in list(self._connections):
            transport.close()


# -- who asks ------------------------------------------------------------------------------------------------


class _Asking(asyncio.Protocol, Reading):
    """One connection to somebody who answers."""

    def __init__(self, most: int) -> None:
        Reading.__init__(self, most)
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._waiting: asyncio.Future[Answer] | None = None
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # One of uvloop is no heir of asyncio's, and does all the same.
        self._transport = cast(asyncio.Transport, transport)
        _stay_awake(self._transport)
        self.is_open = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._fail("the connection was closed" if exc is None else str(exc))

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, ValueError) as error:
            self._fail(f"the answer is no HTTP: {error}", is_wrong=True)
            self.close()

    def on_message_complete(self) -> None:
        waiting, self._waiting = self._waiting, None
        if not self._parser.should_keep_alive():
            self.close()
        if waiting is None or waiting.done():
            # An answer to nobody: what comes next could be taken for another one.
            self.close()
        elif self.is_too_large:
            words = f"the answer has more than {self._most:,} bytes"
            waiting.set_exception(Broken(words, is_wrong=True))
        else:
            kind = self.headers.get("content-type", "")
            waiting.set_result(Answer(self._parser.get_status_code(), self.body, kind, self.headers))

    def _fail(self, words: str, *, is_wrong: bool = False) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(Broken(words, is_wrong=is_wrong))

    def ask(self, data: bytes) -> asyncio.Future[Answer]:
        assert self._waiting is None
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return self._waiting

    def close(self) -> None:
        self.is_open = False
        self._transport.close()


class Asks(Protocol):
    """Asks one after the other, wherever who answers is."""

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Raises Broken where no answer came."""

    def close(self) -> None:
        """Nothing will be asked for a while."""


class Inside:
    """Asks one after the other in this very process, where nothing has to be carried anywhere."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._turn = asyncio.Lock()

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """As a server would answer."""
        place, _, query = path.partition("?")
        async with self._turn:
            try:
                return await self._handler(Request(method, place, query, headers or {}, body))
            except Exception as error:
                return _fault(error)

    def close(self) -> None:
        """There is nothing to hang up."""


class Connection:
    """Asks one after the other, over a connection that is made when it is needed."""

    def __init__(
        self,
        place: Path | tuple[str, int],
        *others: Path | tuple[str, int],
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        most: int = MOST_BYTES,
    ) -> None:
        """`others` are places where the same is asked when there is nobody at the first."""
        self._places = deque((place, *others))
        self._tls = tls
        self._most = most
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self._open: _Asking | None = None
        self._turn = asyncio.Lock()

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Raises Broken where no answer came. Who gives up waiting closes the connection."""
        async with self._turn:
            return await self._ask(method, path, body, headers)

    async def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None) -> Answer:
        asking = await self._connected()
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        first = f"{method} {path} HTTP/1.1\r\nhost: {_host(self._places[0])}\r\n"
        head = f"{first}{self._headers}{more}content-length: {len(body)}\r\n\r\n"
        try:
            return await asking.ask(head.encode("latin-1") + body)
        except BaseException:
            self.close()
            raise

    async def _connected(self) -> _Asking:
        if self._open is not None and self._open.is_open:
            return self._open
        loop = asyncio.get_running_loop()

        def protocol() -> _Asking:
            return _Asking(self._most)

        place = self._places[0]
        connecting: Any
        if isinstance(place, Path):
            connecting = loop.create_unix_connection(protocol, str(place))
        else:
            connecting = loop.create_connection(protocol, *place, ssl=self._tls)
        try:
            _, self._open = await connecting
        except OSError as error:
            # Whoever asks again asks the next.
            self._places.rotate(-1)
            raise Broken(str(error), is_sent=False) from error
        assert self._open is not None
        return self._open

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _host(place: Path | tuple[str, int]) -> str:
    return "localhost" if isinstance(place, Path) else f"{place[0]}:{place[1]}"
