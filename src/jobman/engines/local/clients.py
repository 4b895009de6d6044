"""The clients of a launcher: connections on its socket, lines in, lines out, nobody waits for anybody."""

from __future__ import annotations

import os
import selectors
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from jobman.engines.local.wire import address

_MOST_UNREAD = 64 << 20
_LONGEST_LINE = 256 << 20
_CREDENTIALS = struct.Struct("3i")


class Client:
    """One connection. What it does not read in time is dropped with it: the files say the same."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.unread = bytearray()
        self.unfinished = bytearray()


class Clients:
    """The listening socket and all who came. `serve` is given each line and the client who said it."""

    def __init__(
        self, path: Path, selector: selectors.BaseSelector, serve: Callable[[bytes, Client], None]
    ) -> None:
        self._selector = selector
        self._serve = serve
        self._all: set[Client] = set()
        self._late: set[Client] = set()
        self._listening = _listen(path)
        selector.register(self._listening, selectors.EVENT_READ, lambda _: self._accept())

    def __len__(self) -> int:
        return len(self._all)

    def say(self, line: bytes, client: Client | None = None) -> None:
        """Say a line to one, or to all; it goes out with the next flush."""
        for each in (client,) if client else self._all:
            each.unread += line
            self._late.add(each)

    def flush(self) -> None:
        """Send what was said, as far as the clients take it."""
        late, self._late = self._late, set()
        for client in late & self._all:
            self._send(client)

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        if not _is_ours(connection):
            connection.close()
            return
        connection.setblocking(False)
        client = Client(connection)
        self._all.add(client)
        self._selector.register(connection, selectors.EVENT_READ, lambda events: self._hear(client, events))

    def _hear(self, client: Client, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._send(client)
        if events & selectors.EVENT_READ and client in self._all:
            self._receive(client)

    def _receive(self, client: Client) -> None:
        try:
            content = client.connection.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        if not content or len(client.unfinished) > _LONGEST_LINE:
            self._drop(client)
            return
        client.unfinished += content
        if b"\n" not in content:
            return
        *lines, rest = bytes(client.unfinished).split(b"\n")
        client.unfinished = bytearray(rest)
        for line in lines:
            if line:
                self._serve(line, client)

    def _send(self, client: Client) -> None:
        try:
            while client.unread:
                del client.unread[: client.connection.send(client.unread)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        if len(client.unread) > _MOST_UNREAD:
            self._drop(client)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.unread else 0)
        key = self._selector.get_key(client.connection)
        if key.events != events:
            self._selector.modify(client.connection, events, key.data)

    def _drop(self, client: Client) -> None:
        self._all.discard(client)
        self._selector.unregister(client.connection)
        client.connection.close()


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        with address(path) as place:
            listening.bind(place)
    finally:
        os.umask(before)
    listening.listen(64)
    listening.setblocking(False)
    return listening


def _is_ours(connection: socket.socket) -> bool:
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(found)[1] in (0, os.geteuid())
