"""A worker that a process of its own keeps, as whoever has that process started sees it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec

from jobman.engines.local.cgroups import find
from jobman.engines.local.trees import kill_all, marked
from jobman.tasks.keeper import Ended, Order
from jobman.tasks.worker_process import Started, gone, group_of

_PATIENCE = 20.0
"""Seconds beyond the grace of its worker, after which a keeper that does not end is killed."""
_SWEEP = 1.0


class KeptWorker:
    """A keeper, and the worker that it keeps."""

    def __init__(self, worker: Started, ended: Callable[[str], None]) -> None:
        """`ended` is told how, whenever the worker has ended, before it is started anew."""
        self._worker = worker
        self._ended = ended
        self._heard = b""
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = _spawn(theirs)
        # Not on its command line, which everybody may read.
        self._channel.sendall(msgspec.json.encode(worker) + b"\n")
        self._channel.setblocking(False)
        self._is_gone = asyncio.Event()
        self.starts = 1
        self.last_words = ""

    async def keep(self) -> None:
        """Hear what its keeper says, until that has ended."""
        loop = asyncio.get_running_loop()
        try:
            with suppress(OSError):
                while some := await loop.sock_recv(self._channel, 1 << 16):
                    self._hear(some)
            if await gone(self._process) < 0:
                # It was killed, and could not end what its worker had started.
                await asyncio.to_thread(_sweep, self._worker.id)
        finally:
            self._channel.close()
            self._is_gone.set()

    def _hear(self, some: bytes) -> None:
        *lines, self._heard = (self._heard + some).split(b"\n")
        for line in lines:
            told = msgspec.json.decode(line, type=Ended)
            self.starts, self.last_words = told.starts, told.said
            self._ended(told.words)

    def has_worked(self) -> None:
        """It answered: what comes now is another story."""
        if self.starts > 1:
            self.starts = 1
            self._tell(Order())

    def kill(self) -> None:
        """End it now, with all that it has started; it is started anew."""
        self._tell(Order(kills=True))

    async def close(self, *, grace: float) -> None:
        """End it for good: it may end by itself for a while."""
        self._tell(Order(closes=True, grace=grace))
        try:
            async with asyncio.timeout(grace + _PATIENCE):
                await self._is_gone.wait()
        except TimeoutError:
            self._process.kill()
            await self._is_gone.wait()

    def _tell(self, order: Order) -> None:
        # One that has ended does not hear, and need not.
        with suppress(OSError):
            self._channel.send(msgspec.json.encode(order) + b"\n")


def _spawn(channel: socket.socket) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "jobman.tasks.keeper", "--parent", str(os.getpid())]
    return subprocess.Popen(command, stdin=channel.fileno(), process_group=0)


def _sweep(id_: str) -> None:
    kill_all(lambda: marked(id_), patience=_SWEEP)
    cage = find(group_of(id_))
    cage.kill()
    cage.remove()
