"""A link to a service: connections that are made, kept, and made again when the service restarts."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from jobman.client.failures import Refused, Unreachable
from jobman.client.transport import Address, Broken, Connection, Reply, TcpAddress, UnixAddress
from jobman.control.answers import Failure
from jobman.control.embedded import SERVING, ensure_service, read_running
from jobman.control.places import Places, find_places
from jobman.version import __version__

LATER = ("stopping", "standby")
"""Refusals after which another service, or the same, answers in a moment."""
_SILENCE = 45.0
"""A stream says something every 15 seconds; after so many it is broken."""
_NO_SERVICE = ("No service is running.", "Any command that needs one starts it.")


class Link:
    """What a client sends its requests over."""

    def __init__(self) -> None:
        self._idle: list[Connection] = []
        self._process = os.getpid()
        self._headers = {"User-Agent": f"jobman/{__version__}"}

    def ask(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        safe: bool,
        patience: float,
    ) -> bytes:
        """The body of the answer. A request that is `safe` to be repeated is, when a connection breaks."""
        trials = self._trials()
        while True:
            connection = self._connection(trials)
            try:
                reply = connection.ask(method, target, {**self._headers, **(headers or {})}, body, patience)
                data = reply.read()
            except OSError as error:
                connection.close()
                self._broken(error, safe, patience)
                trials.next(error)
                continue
            except BaseException:
                connection.close()
                raise
            self._put_back(connection, reply)
            if reply.status < 400:
                return data
            refused = _refused(reply, data)
            if refused.code not in LATER:
                raise refused
            trials.next(refused)

    def stream(
        self, target: str, headers: Mapping[str, str], silence: float | None = None
    ) -> Iterator[bytes]:
        """The parts of an answer as they come; raises OSError when the connection breaks."""
        connection = self._connection(self._trials())
        try:
            reply = connection.ask("GET", target, {**self._headers, **headers}, None, silence or _SILENCE)
            if reply.status >= 400:
                raise _refused(reply, reply.read())
            yield from reply.parts()
        finally:
            connection.close()

    def close(self) -> None:
        """Close what is open."""
        while (connection := self._kept()) is not None:
            connection.close()

    # -- connections -----------------------------------------------------------------------------------

    def _address(self) -> Address:
        """Where the service is now."""
        raise NotImplementedError

    def _trials(self) -> Trials:
        """How often, and for how long, to try."""
        raise NotImplementedError

    def _connection(self, trials: Trials) -> Connection:
        if connection := self._kept():
            return connection
        while True:
            try:
                return Connection(self._address())
            except OSError as error:
                trials.next(error)

    def _kept(self) -> Connection | None:
        if self._process != os.getpid():
            # After a fork, what is open belongs to the other process.
            self._process, self._idle = os.getpid(), []
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread was faster
                connection = self._idle.pop()
                if not connection.is_stale:
                    return connection
                connection.close()
        return None

    def _put_back(self, connection: Connection, reply: Reply) -> None:
        if reply.keeps_alive:
            self._idle.append(connection)
        else:
            connection.close()

    def _broken(self, error: OSError, safe: bool, patience: float) -> None:
        if isinstance(error, TimeoutError):
            raise Unreachable(f"The service did not answer within {patience:.0f} s.") from error
        if not safe:
            raise Unreachable(
                "The connection broke before the answer came.",
                "It may have been done: look before you repeat it.",
            ) from error


class Trials:
    """Says when to try once more, after a pause, and when to give up."""

    def __init__(self, link: Link, seconds: float, words: tuple[str, str]) -> None:
        self._link = link
        self._deadline = time.monotonic() + seconds
        self._words = words
        self._pause = 0.0

    def next(self, error: Exception) -> None:
        """Wait for the next trial; raises Unreachable."""
        if isinstance(error, PermissionError) or time.monotonic() >= self._deadline:
            if isinstance(error, Refused):
                raise error
            message, advice = self._words
            if type(error).__name__ == "SSLCertVerificationError":
                advice = "Name the file of the authority that signed its certificate in SSL_CERT_FILE."
            raise Unreachable(message.format(error=_in_words(error)), advice) from error
        self._link.close()
        time.sleep(self._pause)
        self._pause = min(0.5, self._pause * 2 or 0.02)


class EmbeddedLink(Link):
    """To this user's own service, which is started where there is none."""

    def __init__(
        self, places: Places | None = None, *, start: bool = True, program: Sequence[str] = SERVING
    ) -> None:
        super().__init__()
        self._places = places or find_places()
        self._start = start
        self._program = program
        self._path: str | None = None

    def _address(self) -> Address:
        if self._path is None:
            self._path = self._find()
        return UnixAddress(self._path)

    def _find(self) -> str:
        if self._start:
            return ensure_service(self._places, self._program)
        running = read_running(self._places)
        return running.socket if running is not None else str(self._places.socket)

    def close(self) -> None:
        super().close()
        # After a break it may be elsewhere.
        self._path = None

    def _trials(self) -> Trials:
        if not self._start:
            return Trials(self, 0.0, _NO_SERVICE)
        words = "The service cannot be reached: {error}.", f"Look into {self._places.log}."
        return Trials(self, 20.0, words)


class TcpLink(Link):
    """To a shared service."""

    def __init__(self, url: str, token: str | None, ca_file: str | None) -> None:
        super().__init__()
        self._tcp = _tcp_address(url, ca_file)
        self._met = False
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def _address(self) -> Address:
        return self._tcp

    def _put_back(self, connection: Connection, reply: Reply) -> None:
        self._met = True
        super()._put_back(connection, reply)

    def _trials(self) -> Trials:
        words = (
            f"The service at {self._tcp} cannot be reached: {{error}}.",
            "Check its address in JOBMAN_SERVER.",
        )
        # One that has answered before is only restarting; an address that never did is rather wrong.
        return Trials(self, 15.0 if self._met else 0.0, words)


def _tcp_address(url: str, ca_file: str | None) -> TcpAddress:
    from urllib.parse import urlsplit

    parts = urlsplit(url if "://" in url else f"https://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unreachable(f"{url} is not the address of a service.", "Write https://HOST:PORT.")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise Unreachable(f"The port in {url} is not a number.", "Write https://HOST:PORT.") from None
    if parts.scheme == "http":
        return TcpAddress(parts.hostname, port)
    import ssl

    return TcpAddress(parts.hostname, port, ssl.create_default_context(cafile=ca_file))


def _refused(reply: Reply, data: bytes) -> Refused:
    try:
        failure = msgspec.json.decode(data, type=Failure)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        failure = Failure(code="internal", message=f"The service answered {reply.status}.", exit=5)
    return Refused(reply.status, failure)


def _in_words(error: Exception) -> str:
    if isinstance(error, Broken) or not isinstance(error, OSError):
        return str(error)
    return (error.strerror or str(error)).lower()
