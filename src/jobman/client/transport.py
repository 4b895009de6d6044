"""HTTP/1.1 over a Unix socket, TCP or TLS: as much of it as our own service speaks.

Written for the start of a command: importing it costs a fraction of an HTTP library.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ssl import SSLContext

CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 50.0
"""The service closes what is idle for somewhat longer."""
_CHUNK = 64 * 1024
_LONGEST_LINE = 64 * 1024


class Address(Protocol):
    """Where a service listens."""

    host: str
    """What stands in the Host header."""

    def open(self) -> socket.socket:
        """A new connection; raises OSError."""
        ...


class UnixAddress:
    """A socket in the file system."""

    host = "localhost"

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def __str__(self) -> str:
        return self.path


class TcpAddress:
    """A host and a port, with TLS or without."""

    def __init__(self, host: str, port: int, tls: SSLContext | None = None) -> None:
        self.name = host
        self.port = port
        self.tls = tls
        self.host = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def open(self) -> socket.socket:
        connection = socket.create_connection((self.name, self.port), CONNECT_SECONDS)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is not None:
                return self.tls.wrap_socket(connection, server_hostname=self.name)
        except BaseException:
            connection.close()
            raise
        return connection

    def __str__(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://{self.host}"


class Broken(OSError):
    """The other end did not answer as HTTP has it, or stopped in the middle."""


class Connection:
    """One connection; a request at a time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket = address.open()
        self._reader = self._socket.makefile("rb", _CHUNK)
        self._last_used = time.monotonic()

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    @property
    def is_stale(self) -> bool:
        """Whether the other end has closed it while it was not in use, or is about to."""
        if time.monotonic() - self._last_used > _IDLE_SECONDS:
            return True
        waiter = select.poll()
        waiter.register(self._socket, select.POLLIN | select.POLLHUP)
        return bool(waiter.poll(0))

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, timeout: float | None
    ) -> Reply:
        """Send a request and read the head of the answer."""
        self._socket.settimeout(timeout)
        self._last_used = time.monotonic()
        head = [f"{method} {target} HTTP/1.1\r\nHost: {self._address.host}\r\n"]
        head += [f"{name}: {_clean(value)}\r\n" for name, value in headers.items()]
        if body is not None:
            head.append(f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n")
        head.append("\r\n")
        # It may have said why before it hung up, as for a body that is too large.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall("".join(head).encode() + (body or b""))
        return self._read_head()

    def _read_head(self) -> Reply:
        version, _, rest = self.take_line().decode("latin-1").partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise Broken("this is not the answer of a jobman service")
        headers = {}
        while line := self.take_line().decode("latin-1"):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Reply(self, int(rest[:3]), headers)

    def take_line(self) -> bytes:
        """A line, without its end."""
        line: bytes = self._reader.readline(_LONGEST_LINE)
        if not line.endswith(b"\r\n"):
            raise Broken("the service closed the connection")
        return line[:-2]

    def take(self, size: int) -> bytes:
        """This many bytes."""
        data: bytes = self._reader.read(size)
        if len(data) < size:
            raise Broken("the service closed the connection")
        return data


class Reply:
    """An answer whose body may still be under way."""

    def __init__(self, connection: Connection, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection may be used again, once the body was read."""
        return self.headers.get("connection", "").lower() != "close"

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.parts())

    def parts(self) -> Iterator[bytes]:
        """The body as it comes in."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self._chunks()
        else:
            yield self._connection.take(int(self.headers.get("content-length", "0")))

    def _chunks(self) -> Iterator[bytes]:
        while True:
            try:
                size = int(self._connection.take_line().partition(b";")[0], 16)
            except ValueError:
                raise Broken("a part of the answer has no length") from None
            if size:
                yield self._connection.take(size)
            self._connection.take_line()
            if not size:
                return


def _clean(value: str) -> str:
    if "\r" in value or "\n" in value or "\0" in value:
        raise ValueError("a header may not have line breaks in it")
    return value
