"""HTTP/1.1 to one API server, with little work for each of very many requests.

In the place of httpx's own transport, of whose time most goes to its pool and to a parser in Python.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import cast

import httptools

from jobman.lean_httpx import httpx

IDLE_SECONDS = 60.0
"""For so long a connection is kept for the next request."""
MOST_IDLE = 20
_NEXT_ADDRESS = 0.25
"""Seconds after which another address of the same host is tried beside the first."""
_MUCH = 1 << 20
"""Bytes that may wait to be read before the server has to."""

SocketOption = tuple[int, int, int]


class Wire(httpx.AsyncBaseTransport):
    """The connections to one server. Belongs to one event loop."""

    def __init__(self, context: ssl.SSLContext | None, options: Sequence[SocketOption] = ()) -> None:
        if context is not None:
            context.set_alpn_protocols(["http/1.1"])
        self._context = context
        self._options = options
        self._all: set[_Connection] = set()
        self._idle: list[_Connection] = []
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The head of the answer, and its body as it comes; errors are httpx's."""
        limits = request.extensions.get("timeout", {})
        connection = self._kept() or await self._connect(request.url, limits.get("connect"))
        silence = limits.get("read")
        try:
            body = await request.aread()
            if trace := request.extensions.get("trace"):
                await trace("wire.send_request_headers.started", {"request": request})
            connection.send(_bytes_of(request, body))
            status, headers = await connection.head(silence)
        except BaseException:
            connection.abort()
            raise
        return httpx.Response(status, headers=headers, stream=_Body(self, connection, silence))

    async def aclose(self) -> None:
        """Break off what goes on."""
        self._closed = True
        connections = list(self._all)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.lost.wait()

    def give_back(self, connection: _Connection) -> None:
        """After an answer was read, or nobody wants the rest of it."""
        if connection.is_reusable and len(self._idle) < MOST_IDLE and not self._closed:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.abort()

    def _kept(self) -> _Connection | None:
        """One that is open from before; the last used first, so that those too many grow old."""
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    async def _connect(self, url: httpx.URL, seconds: float | None) -> _Connection:
        host = url.raw_host.decode("ascii").strip("[]")
        port = url.port or (443 if self._context else 80)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                reached = await _reach(host, port, self._options)
                try:
                    _, connection = await loop.create_connection(
                        lambda: _Connection(self._all),
                        sock=reached,
                        ssl=self._context,
                        server_hostname=host if self._context else None,
                    )
                except BaseException:
                    reached.close()
                    raise
        except TimeoutError as error:
            raise httpx.ConnectTimeout("nobody answers") from error
        except (OSError, ExceptionGroup) as error:
            raise httpx.ConnectError(str(error)) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection, and the answer that comes on it."""

    def __init__(self, registered: set[_Connection]) -> None:
        self.idle_since = 0.0
        self.lost = asyncio.Event()
        self._registered = registered
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._reset()

    def _reset(self) -> None:
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: deque[bytes] = deque()
        self._waiting = 0
        self._measured = False
        self._complete = False
        self._paused = False

    # -- for those who ask ---------------------------------------------------------------------------------

    @property
    def is_reusable(self) -> bool:
        """Whether the last answer is over, and another can come."""
        return self._parser is None and not self.lost.is_set() and self._failure is None

    def send(self, request: bytes) -> None:
        if self._transport is None or self.lost.is_set():
            raise httpx.ConnectError("the server closed the connection before it was used")
        self._reset()
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)

    async def head(self, silence: float | None) -> tuple[int, list[tuple[bytes, bytes]]]:
        while not self._status:
            await self._more(silence)
        return self._status, self._headers

    async def part(self, silence: float | None) -> bytes:
        """The next part of the body; nothing at its end."""
        while not self._parts:
            if self._complete:
                return b""
            await self._more(silence)
        part = self._parts.popleft()
        self._waiting -= len(part)
        self._pause(self._waiting > _MUCH)
        return part

    def abort(self) -> None:
        self._failure = self._failure or httpx.ReadError("the connection was given up")
        if self._transport is not None and not self.lost.is_set():
            self._transport.abort()

    async def _more(self, silence: float | None) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(silence):
                await self._waiter
        except TimeoutError as error:
            raise httpx.ReadTimeout("no answer came") from error
        finally:
            self._waiter = None

    # -- for the event loop --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so
        self._registered.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            if self._parser is None:
                raise httpx.RemoteProtocolError("the server says what nobody asked for")
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httpx.RemoteProtocolError) as error:
            self._fail(httpx.RemoteProtocolError(f"this is not HTTP: {error}"))
            self.abort()
        self._pause(self._waiting > _MUCH)
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        self._registered.discard(self)
        if self._status and not self._measured and error is None:
            self._complete = True  # the end of the connection is the end of such a body
        words = "the server closed the connection before it had answered"
        failure = httpx.ReadError(str(error)) if error else httpx.RemoteProtocolError(words)
        failure.__cause__ = error
        self._fail(failure)
        self._wake()

    def _pause(self, paused: bool) -> None:
        if self._transport is None or self._paused == paused or self._transport.is_closing():
            return
        self._paused = paused
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- for the parser ------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        self._measured |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self._headers.clear()  # only a word on the way
            self._measured = False
        else:
            self._status = status

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        self._waiting += len(body)

    def on_message_complete(self) -> None:
        if not self._status:
            return
        assert self._parser is not None
        self._complete = True
        if self._parser.should_keep_alive():
            self._parser = None


class _Body(httpx.AsyncByteStream):
    """The rest of an answer."""

    def __init__(self, wire: Wire, connection: _Connection, silence: float | None) -> None:
        self._wire = wire
        self._connection = connection
        self._silence = silence
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while part := await self._connection.part(self._silence):
            yield part

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._wire.give_back(self._connection)


def _bytes_of(request: httpx.Request, body: bytes) -> bytes:
    lines = [b"%b: %b" % pair for pair in request.headers.raw]
    first = b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)
    return b"\r\n".join([first, *lines, b"", body])


async def _reach(host: str, port: int, options: Sequence[SocketOption]) -> socket.socket:
    """A socket to the first of a host's addresses that answers; an address that does not holds up nobody."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    trials: set[asyncio.Task[socket.socket]] = set()
    failures: list[OSError] = []
    try:
        for number, (family, _, protocol, _, address) in enumerate(found, 1):
            trials.add(asyncio.create_task(_call(family, protocol, address, options)))
            last = number == len(found)
            while trials:
                done, trials = await asyncio.wait(
                    trials, timeout=None if last else _NEXT_ADDRESS, return_when=asyncio.FIRST_COMPLETED
                )
                failures += [failure for trial in done if isinstance(failure := trial.exception(), OSError)]
                if reached := [trial for trial in done if trial.exception() is None]:
                    trials.update(reached[1:])
                    return reached[0].result()
                if not last:
                    break
    finally:
        await _end(trials)
    raise failures[0] if len(failures) == 1 else ExceptionGroup("no address answers", failures)


async def _call(
    family: int, protocol: int, address: tuple[object, ...], options: Sequence[SocketOption]
) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        made.setblocking(False)
        for option in options:
            with suppress(OSError):
                made.setsockopt(*option)
        await asyncio.get_running_loop().sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


async def _end(trials: set[asyncio.Task[socket.socket]]) -> None:
    for trial in trials:
        trial.cancel()
    for trial in trials:
        with suppress(OSError, asyncio.CancelledError):
            (await trial).close()
