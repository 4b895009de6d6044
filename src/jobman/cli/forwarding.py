"""A port of this machine that leads to a port of a copy: every connection gets a session of its own."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jobman.cli.state import say
from jobman.client import Refused, Unreachable

if TYPE_CHECKING:
    from jobman.client.sessions import Session

_AT_ONCE = 64 * 1024
_SILENT_SECONDS = 30.0
"""Whoever says no more may still want the answer; after so long without a word of it, not any more."""
_LOOK_SECONDS = 1.0
HERE = "127.0.0.1"


def listener_at(port: int) -> socket.socket:
    """A socket that only this machine can reach; port 0 is any that is free. Raises OSError."""
    return socket.create_server((HERE, port))


def begin(listener: socket.socket, enter: Callable[[], Session]) -> None:
    """Let connections in, as long as this process lives."""
    threading.Thread(target=_accept, args=(listener, enter), daemon=True).start()


def _accept(listener: socket.socket, enter: Callable[[], Session]) -> None:
    with listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, enter), daemon=True).start()


def _serve(connection: socket.socket, enter: Callable[[], Session]) -> None:
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            session = enter()
        except Refused as refused:
            say(refused.failure.message, refused.failure.advice)
            return
        except (Unreachable, OSError) as error:
            say(str(error), getattr(error, "advice", ""))
            return
        _Joint(connection, session).hold()


class _Joint:
    """A connection and a session, joined."""

    def __init__(self, connection: socket.socket, session: Session) -> None:
        self._connection = connection
        self._session = session
        self._heard_at = time.monotonic()
        self._over = threading.Event()
        self._left = False

    def hold(self) -> None:
        """Until one of them ends."""
        threading.Thread(target=self._feed, daemon=True).start()
        try:
            for _, data in self._session.output():
                self._heard_at = time.monotonic()
                self._connection.sendall(data)
            if self._session.trouble and not self._left:
                say(self._session.trouble)
        except (Refused, Unreachable) as error:
            say(str(error))
        except OSError:
            pass  # whoever asked has gone
        finally:
            self._over.set()
            self._session.close()
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def _feed(self) -> None:
        try:
            while data := self._connection.recv(_AT_ONCE):
                self._session.write(data)
            self._session.end_input()
        except (Refused, Unreachable, OSError):
            self._leave()
        while not self._over.wait(_LOOK_SECONDS):
            if time.monotonic() - self._heard_at > _SILENT_SECONDS:
                self._leave()

    def _leave(self) -> None:
        self._left = True
        self._session.close()


class LocalPort:
    """A session with a port of a copy that runs on this machine, whose network it shares."""

    def __init__(self, port: int) -> None:
        try:
            self._socket = socket.create_connection(("localhost", port), 10.0)
        except ConnectionRefusedError:
            raise ConnectionRefusedError(f"nobody listens at port {port}") from None
        self._socket.settimeout(None)
        self.exit_code: int | None = None
        self.trouble = ""

    def output(self) -> Iterator[tuple[str, bytes]]:
        while data := self._socket.recv(_AT_ONCE):
            yield "stdout", data

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def end_input(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def resize(self, rows: int, columns: int) -> None:
        """A port has no size."""

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
