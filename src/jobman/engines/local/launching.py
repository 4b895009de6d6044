"""The service's end of the launcher: starts it where there is none, and again where it died."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from jobman.engines.local.orders import Order
from jobman.engines.local.records import Exit, Started
from jobman.engines.local.wire import EARLIER, LINGER, Answer, Request, Status, address, decode_answer, line

_PATIENCE = 15.0
_LONGEST_LINE = 1 << 26
_MODULE = "jobman.engines.local.launcher"
_LONGEST_PAUSE = 5.0


class LauncherError(Exception):
    """No launcher can be had; the text says why and what to look at."""


class Void(msgspec.Struct, frozen=True):
    """A copy that was given up before it started, and never will."""

    id: str


class Unknown(msgspec.Struct, frozen=True):
    """A copy that the launcher has not in charge: nothing was asked of anybody."""

    id: str


class Reconnected(msgspec.Struct, frozen=True):
    """The launcher had died and there is a new one, which was given all orders that are not over again."""


class Trouble(msgspec.Struct, frozen=True):
    """Something the launcher could not do, or that no launcher can be had at the moment."""

    message: str


Report = Started | Exit | Void | Unknown | Reconnected | Trouble


class Launcher:
    """A connection that heals: what was asked stays asked until the copy has ended, over many launchers."""

    def __init__(self, socket_path: Path, log_path: Path, linger: float = LINGER) -> None:
        self._path = socket_path
        self._log = log_path
        self._linger = linger
        self._process: subprocess.Popen[bytes] | None = None
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._given: dict[str, tuple[Order, bool]] = {}
        self._wishes: dict[str, dict[str, Request]] = {}
        self._asked: deque[tuple[Request, asyncio.Future[Answer]]] = deque()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def connect_or_start(cls, socket_path: Path, log_path: Path, *, linger: float = LINGER) -> Self:
        """Reach the launcher of a socket; where there is none, start it. Raises LauncherError."""
        launcher = cls(socket_path, log_path, linger)
        await launcher._connect()
        launcher._task = asyncio.create_task(launcher._listen())
        return launcher

    async def launch(self, orders: Iterable[Order]) -> None:
        """Have copies started. Those that were are not started again: what is known of them is reported."""
        batch = tuple(orders)
        self._given.update({order.id: (order, True) for order in batch})
        await self._send(Request(launch=batch))

    async def adopt(self, orders: Iterable[Order]) -> None:
        """Take charge of copies that were started before; those that were not are reported as unknown."""
        batch = tuple(orders)
        self._given.update({order.id: (order, False) for order in batch})
        await self._send(Request(adopt=batch))

    async def stop(self, id_: str, *, grace: float | None = None, why: str = "") -> None:
        """End a copy in peace, and by force after the grace; without one, after that of its order."""
        await self._wish(id_, "stop", Request(stop=id_, grace=grace, why=why))

    async def freeze(self, id_: str) -> None:
        """Let a copy stand still; its time limit stands still with it."""
        await self._wish(id_, "frozen", Request(freeze=id_))

    async def thaw(self, id_: str) -> None:
        """Let a copy go on."""
        await self._wish(id_, "frozen", Request(thaw=id_))

    async def prolong(self, id_: str, duration: float) -> None:
        """Give a copy this much time in all, counted from its start."""
        await self._wish(id_, "duration", Request(prolong=id_, duration=duration))

    async def known(self, ids: Iterable[str]) -> dict[str, str]:
        """Which of these copies the launcher has in charge, as starting or running."""
        return (await self._ask(Request(known=tuple(ids)))).known or {}

    async def status(self) -> Status:
        """How the launcher is."""
        status = (await self._ask(Request(status=True))).status
        assert status is not None
        return status

    async def shut(self) -> bool:
        """Let the launcher end, if it has no copies, and close; False where it has."""
        is_shut = bool((await self._ask(Request(shut=True))).shut)
        if is_shut:
            await self.close()
        return is_shut

    async def reports(self) -> AsyncIterator[Report]:
        """All news, in their order, for as long as one listens."""
        while True:
            yield await self._reports.get()

    async def close(self) -> None:
        """Let go; launcher and copies go on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._hang_up()
        for _, future in self._asked:
            future.cancel()

    async def _wish(self, id_: str, kind: str, request: Request) -> None:
        self._wishes.setdefault(id_, {})[kind] = request
        await self._send(request)

    async def _send(self, request: Request) -> None:
        if self._writer is None:
            return  # it is remembered, and said to the next launcher
        with suppress(OSError):
            self._writer.write(line(request))
            await self._writer.drain()

    async def _ask(self, request: Request) -> Answer:
        """What the launcher answers; if it dies over the question, what the next one does."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked.append((request, future))
        await self._send(request)
        return await future

    async def _listen(self) -> None:
        while True:
            await self._hear()
            self._hang_up()
            await self._come_back()
            self._reports.put_nowait(Reconnected())

    async def _hear(self) -> None:
        assert self._reader is not None
        try:
            async for content in self._reader:
                if content.endswith(b"\n"):
                    self._take(decode_answer(content))
        except ConnectionError:
            pass
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            self._reports.put_nowait(Trouble(f"the launcher is not understood: {error}"))

    def _take(self, answer: Answer) -> None:
        if answer.started is not None:
            self._reports.put_nowait(answer.started)
        elif answer.ended is not None:
            self._is_over(answer.ended.id)
            self._reports.put_nowait(answer.ended)
        elif answer.void is not None:
            self._is_over(answer.void.id)
            self._reports.put_nowait(Void(answer.void.id))
        elif answer.unknown is not None:
            self._is_over(answer.unknown.id)
            self._reports.put_nowait(Unknown(answer.unknown.id))
        elif answer.error is not None:
            self._reports.put_nowait(Trouble(answer.error))
        elif self._asked:
            _, future = self._asked.popleft()
            if not future.done():
                future.set_result(answer)

    def _is_over(self, id_: str) -> None:
        self._given.pop(id_, None)
        self._wishes.pop(id_, None)

    async def _come_back(self) -> None:
        pause = 0.1
        while True:
            try:
                await self._connect()
                await self._say_again()
                return
            except (LauncherError, OSError) as error:
                self._reports.put_nowait(Trouble(str(error)))
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _say_again(self) -> None:
        given = list(self._given.values())
        await self._send(Request(launch=tuple(order for order, may_start in given if may_start)))
        await self._send(Request(adopt=tuple(order for order, may_start in given if not may_start)))
        for wishes in list(self._wishes.values()):
            for request in list(wishes.values()):
                await self._send(request)
        for request, _ in list(self._asked):
            await self._send(request)

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE
        while True:
            try:
                connection = await _reach(self._path)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                await self._see_to_process()
            if loop.time() > until:
                raise LauncherError(f"the launcher does not answer on {self._path}; see {self._log}")
            await asyncio.sleep(0.02)
        self._reader, self._writer = await asyncio.open_unix_connection(sock=connection, limit=_LONGEST_LINE)

    async def _see_to_process(self) -> None:
        """Start a launcher unless one is on its way; of several at once, the first to hold the lock stays."""
        code = 0 if self._process is None else self._process.poll()
        if code is None:
            return
        self._process = None
        if code > 0 and code != EARLIER:
            raise LauncherError(f"the launcher could not start: {_last_words(self._log)} (see {self._log})")
        self._process = await asyncio.to_thread(self._start)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", _MODULE, "--socket", str(self._path), "--linger", str(self._linger)]
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )


async def _reach(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    connection.setblocking(False)
    try:
        with address(path) as place:
            await asyncio.get_running_loop().sock_connect(connection, place)
    except OSError:
        connection.close()
        raise
    return connection


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"
