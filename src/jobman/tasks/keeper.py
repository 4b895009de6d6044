"""The process that keeps a worker on a broker's machine: all processes below it belong to that worker.

Over the socket that is its standard input it is told which worker, and to end it, for now or for good; it
tells how it ended. It ends with whoever started it, and the worker with it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from jobman.tasks.worker_process import Started, WorkerProcess, ends_with

_GRACE = 10.0


class Order(msgspec.Struct, frozen=True):
    """What a keeper is told: nothing but that its worker has worked, or an end of it."""

    kills: bool = False
    closes: bool = False
    grace: float = 0.0


class Ended(msgspec.Struct, frozen=True):
    """What a keeper tells."""

    words: str
    said: str
    starts: int


class _Keeper:
    """One worker, until it is ended for good."""

    def __init__(self, worker: Started, channel: socket.socket, heard: bytes) -> None:
        self._channel = channel
        self._heard = heard
        self._over = asyncio.Event()
        self._grace = 0.0
        self._process = WorkerProcess(worker, self._ended)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._close, 0.0)
        loop.add_signal_handler(signal.SIGTERM, self._close, _GRACE)
        loop.add_reader(self._channel, self._hear)
        keeping = asyncio.create_task(self._process.keep())
        self._obey_all()
        # A fault there is the end here.
        keeping.add_done_callback(lambda _: self._over.set())
        await self._over.wait()
        await self._process.close(grace=self._grace)
        await keeping

    def _close(self, grace: float) -> None:
        if not self._over.is_set():
            self._grace = grace
            self._over.set()

    def _ended(self, words: str) -> None:
        told = Ended(words, self._process.last_words, self._process.starts)
        with suppress(OSError):
            self._channel.sendall(msgspec.json.encode(told) + b"\n")

    def _hear(self) -> None:
        try:
            some = self._channel.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            some = b""
        if not some:
            asyncio.get_running_loop().remove_reader(self._channel)
            self._close(0.0)
        self._heard += some
        self._obey_all()

    def _obey_all(self) -> None:
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            self._obey(msgspec.json.decode(line, type=Order))

    def _obey(self, order: Order) -> None:
        if order.closes:
            self._close(order.grace)
        elif order.kills:
            self._process.kill()
        else:
            self._process.has_worked()


async def _keep(worker: Started, channel: socket.socket, heard: bytes) -> None:
    channel.setblocking(False)
    try:
        await _Keeper(worker, channel, heard).run()
    finally:
        if worker.sockets is not None:
            shutil.rmtree(worker.sockets, ignore_errors=True)


def _first_line(channel: socket.socket) -> tuple[bytes, bytes]:
    """And what was heard beyond it."""
    heard = b""
    while b"\n" not in heard and (some := channel.recv(1 << 16)):
        heard += some
    line, _, rest = heard.partition(b"\n")
    return line, rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Be a keeper until its worker is ended for good."""
    parser = argparse.ArgumentParser(prog="jobman-keeper")
    parser.add_argument("--parent", type=int, required=True)
    given = parser.parse_args(arguments)
    ends_with(given.parent, signal.SIGINT)()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s keeper: %(message)s")
    with socket.socket(fileno=os.dup(0)) as channel:
        line, rest = _first_line(channel)
        if line:
            asyncio.run(_keep(msgspec.json.decode(line, type=Started), channel, rest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
