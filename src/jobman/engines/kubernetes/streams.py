"""Ways into a pod through its API server: a command in a container, and a connection to a port.

Both are messages over a WebSocket whose first byte says which channel they belong to.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from contextlib import suppress
from typing import Literal

import msgspec

from jobman.engines.entering import Entry, Passage, Piece
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import KubernetesError, Unreachable
from jobman.engines.kubernetes.objects import Status
from jobman.engines.kubernetes.pods import MAIN
from jobman.engines.kubernetes.upgrading import Upgraded
from jobman.engines.kubernetes.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    Message,
    ProtocolError,
    Reader,
    check_opening,
    frame,
    opening,
)

EXEC_PROTOCOL = "v5.channel.k8s.io"
"""The first one that can say that there is no more input; servers know it since 1.29."""
PORT_PROTOCOL = "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _STATUS, _SIZE, _END = 0, 1, 2, 3, 4, 255
_DATA, _TROUBLE = 0, 1
_PING_SECONDS = 25.0
"""Those in between who forget silent connections do so after a minute, or later."""
_AT_ONCE = 32 * 1024
_CLOSE_SECONDS = 2.0
_KIND = "kubernetes:"
_NORMAL = (1000).to_bytes(2)
_TROUBLES = (
    (re.compile(r"unable to start container process: (.*?)(: unknown)?\s*$", re.DOTALL), r"\1"),
    (
        re.compile(r"forwarding port (\d+) .*connection refused", re.DOTALL),
        r"nobody listens at port \1 there",
    ),
)
_OUTPUTS: dict[int, Literal["stdout", "stderr"]] = {_STDOUT: "stdout", _STDERR: "stderr"}


def container_of(namespace: str, pod: str) -> str:
    """How `connect` is told of a pod."""
    return f"{_KIND}{namespace}/{pod}"


def pod_of(container: str) -> tuple[str, str]:
    """The namespace and the name of a pod, of which `connect` was told."""
    namespace, _, pod = container.removeprefix(_KIND).partition("/")
    return namespace, pod


async def enter_pod(api: Api, namespace: str, pod: str, entry: Entry) -> Passage:
    """Run a command in a pod's container, or connect to a port of it. Raises KubernetesError."""
    if entry.port is not None:
        ports = [("ports", str(entry.port))]
        return PortStream(await _opened(api, namespace, pod, "portforward", ports, PORT_PROTOCOL))
    query = [("container", MAIN), ("stdin", "true"), ("stdout", "true")]
    query.append(("tty", "true") if entry.terminal else ("stderr", "true"))
    query += [("command", word) for word in entry.command]
    stream = ExecStream(await _opened(api, namespace, pod, "exec", query, EXEC_PROTOCOL))
    if entry.terminal and entry.rows and entry.columns:
        await stream.resize(entry.rows, entry.columns)
    return stream


async def _opened(
    api: Api, namespace: str, pod: str, part: str, query: list[tuple[str, str]], protocol: str
) -> _Socket:
    headers, proof = opening(protocol)
    upgraded = await api.upgrade(pod, part, namespace, query=query, headers=headers)
    try:
        check_opening(upgraded.headers, proof, protocol)
    except ProtocolError as error:
        await upgraded.close()
        raise Unreachable(
            f"The cluster does not let anybody into its pods as we ask for it: {error}.",
            "Its API server has to be of version 1.30 or later, and a proxy has to pass on WebSockets.",
        ) from None
    return _Socket(upgraded)


class _Socket:
    """A WebSocket that is open: whole messages in both directions."""

    def __init__(self, upgraded: Upgraded) -> None:
        self._upgraded = upgraded
        self._reader = Reader()
        self._ready: deque[Message] = deque()
        self._sending = asyncio.Lock()
        self._closed = False
        self._pinging = asyncio.ensure_future(self._ping())
        self._answering = asyncio.ensure_future(asyncio.sleep(0))

    async def receive(self) -> bytes | None:
        """The next message; None at the end. Raises Unreachable."""
        while True:
            while self._ready:
                kind, data = self._ready.popleft()
                if kind in (TEXT, BINARY):
                    return data
                if kind == CLOSE:
                    return None
                if kind == PING and self._answering.done():
                    # Beside all else: who sends may have to wait until we have read.
                    self._answering = asyncio.ensure_future(self._answer(data))
            if self._closed or not (data := await self._upgraded.read()):
                return None
            try:
                self._ready.extend(self._reader.feed(data))
            except ProtocolError as error:
                raise Unreachable(f"What comes from the cluster makes no sense: {error}.") from None

    async def send(self, data: bytes) -> None:
        await self._send(BINARY, data)

    async def close(self) -> None:
        self._pinging.cancel()
        self._answering.cancel()
        if self._closed:
            return
        self._closed = True
        with suppress(KubernetesError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._send(CLOSE, _NORMAL)
        await self._upgraded.close()

    async def _send(self, kind: int, data: bytes) -> None:
        async with self._sending:
            await self._upgraded.write(frame(kind, data))

    async def _answer(self, data: bytes) -> None:
        with suppress(KubernetesError):
            await self._send(PONG, data)

    async def _ping(self) -> None:
        with suppress(KubernetesError):
            while True:
                await asyncio.sleep(_PING_SECONDS)
                await self._send(PING, b"")


class _Stream:
    """What the two have in common."""

    def __init__(self, socket: _Socket) -> None:
        self._socket = socket
        self._input_ended = False
        self.exit_code: int | None = None
        self.trouble = ""

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), _AT_ONCE):
            await self._socket.send(bytes([_STDIN]) + data[start : start + _AT_ONCE])

    async def close(self) -> None:
        await self._socket.close()


class ExecStream(_Stream):
    """A command that runs in a container."""

    async def read(self) -> Piece | None:
        while (message := await self._socket.receive()) is not None:
            channel, data = (message[0], message[1:]) if message else (_STDIN, b"")
            if channel == _STATUS and data:
                self.exit_code, self.trouble = _outcome(data)
            elif channel in _OUTPUTS and data:
                return Piece(_OUTPUTS[channel], data)
        if self.exit_code is None and not self.trouble:
            self.trouble = "the connection to it broke"
        return None

    async def end_input(self) -> None:
        if not self._input_ended:
            self._input_ended = True
            await self._socket.send(bytes([_END, _STDIN]))

    async def resize(self, rows: int, columns: int) -> None:
        size = msgspec.json.encode({"Width": columns, "Height": rows})
        await self._socket.send(bytes([_SIZE]) + size)


class PortStream(_Stream):
    """A connection to a port of a pod. What is said first on each channel is the number of the port."""

    def __init__(self, socket: _Socket) -> None:
        super().__init__(socket)
        self._headed: set[int] = set()

    async def read(self) -> Piece | None:
        while (message := await self._socket.receive()) is not None:
            channel, data = (message[0], message[1:]) if message else (_DATA, b"")
            if channel not in self._headed and data:
                self._headed.add(channel)
                data = data[2:]
            if channel == _DATA and data:
                return Piece("stdout", data)
            if channel == _TROUBLE and data:
                self.trouble = _in_short(self.trouble + data.decode(errors="replace"))
        if not self.trouble:
            self.exit_code = 0
        return None

    async def end_input(self) -> None:
        """This protocol has no word for it: the connection stays until one side ends all of it."""

    async def resize(self, rows: int, columns: int) -> None:
        """A port has no size."""


def _outcome(data: bytes) -> tuple[int | None, str]:
    """The exit code of a command, or why it has none."""
    try:
        status = msgspec.json.decode(data, type=Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None, data.decode(errors="replace")
    if status.status == "Success":
        return 0, ""
    causes = status.details.causes if status.details is not None else []
    codes = [cause.message for cause in causes if cause.reason == "ExitCode"]
    if codes and codes[0].isdecimal():
        return int(codes[0]), ""
    return None, _in_short(status.message or status.reason or "it failed without a word")


def _in_short(words: str) -> str:
    """What the innermost of those who took part said, without what each of the others put around it."""
    for known, short in _TROUBLES:
        if match := known.search(words):
            return match.expand(short)
    return words.strip()
