"""Listening: the sockets of a service, and uvicorn on them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from jobman.control.api.identity import PEER

if TYPE_CHECKING:
    from jobman.control.serving import ServeOptions

_BACKLOG = 1024
_LONGEST_HEAD = 1024 * 1024
"""Of a request; the position of somebody who reads the logs of very many copies is long."""
_HEAD_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 75
_FINISH_SECONDS = 5
_CREDENTIALS = struct.Struct("3i")


class Unsafe(Exception):
    """A service would listen in a way that gives its tokens away, or to nobody."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class Protocol(HttpToolsProtocol):
    """uvicorn's own, with the peer's uid for those who ask, and a bound on what comes before a body."""

    _peer: int | None = None
    _head = 0
    _hurry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family == socket.AF_UNIX:
            data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            self._peer = _CREDENTIALS.unpack(data)[1]
        self._hurry = self.loop.call_later(_HEAD_SECONDS, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_hurrying()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        cast(dict[str, Any], self.scope)[PEER] = self._peer

    def on_url(self, url: bytes) -> None:
        self._measure(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._measure(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_hurrying()
        super().on_headers_complete()

    def _measure(self, size: int) -> None:
        self._head += size
        if self._head > _LONGEST_HEAD:
            raise ValueError("the head of a request is too long")

    def _stop_hurrying(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None


class Listener(Server):
    """uvicorn, stopped by a word instead of looking ten times a second whether it should."""

    def __init__(self, app: Any, sockets: list[socket.socket], options: ServeOptions) -> None:
        config = Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_FINISH_SECONDS,
            ssl_certfile=options.tls_cert,
            ssl_keyfile=options.tls_key,
        )
        super().__init__(config)
        self._sockets = sockets
        self._asked_to_stop = asyncio.Event()
        self.on_listening: Callable[[], None] = lambda: None
        self.on_closing: Callable[[], None] = lambda: None

    async def listen(self) -> None:
        """Answer requests until it is stopped."""
        await self.serve(self._sockets)

    def stop(self) -> None:
        """Take no more connections, and finish the requests that are under way."""
        self.should_exit = True
        self._asked_to_stop.set()

    async def main_loop(self) -> None:
        self.on_listening()
        await self._asked_to_stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.on_closing()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    @property
    def is_in_use(self) -> bool:
        """Whether somebody is connected."""
        return bool(self.server_state.connections)

    @property
    def answered(self) -> int:
        """How many requests there were."""
        return self.server_state.total_requests


# -- sockets -------------------------------------------------------------------------------------------


def unix_socket(path: Path) -> socket.socket:
    """A socket that only this user can reach, in place of whatever was left there.

    It gets its name when it listens already, so nobody ever finds it and is turned away.
    """
    fresh = path.with_name("service.new")
    fresh.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listener.bind(str(fresh))
    finally:
        os.umask(mask)
    listener.listen(_BACKLOG)
    fresh.rename(path)
    return listener


def tcp_sockets(listen: str) -> list[socket.socket]:
    """Sockets at all addresses of HOST:PORT; port 0 is any that is free."""
    host, port = host_and_port(listen)
    found = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE, proto=socket.IPPROTO_TCP
    )
    sockets: list[socket.socket] = []
    for family, kind, protocol, _, address in dict.fromkeys(found):
        listener = socket.socket(family, kind, protocol)
        sockets.append(listener)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if port == 0 and len(sockets) > 1:
            address = (address[0], sockets[0].getsockname()[1], *address[2:])
        listener.bind(address)
    return sockets


def address_of(listener: socket.socket, options: ServeOptions) -> str:
    """Where a shared service is found."""
    host, _ = host_and_port(options.listen or "")
    port = listener.getsockname()[1]
    scheme = "https" if options.tls_cert else "http"
    name = host or socket.gethostname()
    return f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"


def host_and_port(listen: str) -> tuple[str, int]:
    """HOST:PORT taken apart; an empty host is every address of this machine."""
    host, separator, port = listen.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise Unsafe(
            f"{listen!r} is not an address to listen at.", "Write HOST:PORT, such as localhost:7070."
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_safety(options: ServeOptions) -> None:
    """Refuse to send tokens over a network in the clear."""
    host, _ = host_and_port(options.listen or "")
    for file in (options.tls_cert, options.tls_key):
        if file is not None and not os.access(file, os.R_OK):
            raise Unsafe(f"{file} cannot be read.", "Name the files of a certificate and its key.")
    if options.tls_key is not None and options.tls_cert is None:
        raise Unsafe("A key without a certificate.", "Say --tls-cert, too.")
    if options.tls_cert is None and not options.insecure and not _is_loopback(host):
        raise Unsafe(
            f"Without TLS, everybody between here and {host or 'there'} could read the tokens.",
            "Say --tls-cert and --tls-key, listen at localhost, or insist with --insecure.",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
