"""A launcher of one's own, orders for it, and ways to wait for what comes of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from jobman.engines.local.orders import Order
from jobman.engines.local.records import Exit, Started, path_of, read_copy, read_exit
from jobman.engines.local.trees import Process, facts, marked, process_alive
from jobman.engines.local.wire import Answer, Request, address, decode_answer, line

PATIENCE = 30.0
MODULE = "jobman.engines.local.launcher"
PATH = "/usr/local/bin:/usr/bin:/bin"
Found = TypeVar("Found")


def eventually(look: Callable[[], Found | None], what: str = "what was waited for") -> Found:
    """What a look finds, as soon as it does."""
    until = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < until, f"{what} did not happen in {PATIENCE:.0f} s"
        time.sleep(0.01)


class Workshop:
    """A launcher in a folder, with one connection to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "launcher"
        self.log = folder / "log"
        self.orders: list[Order] = []
        self.process: Any = None
        self.connection: Any = None
        self._unread = b""

    def start(self, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "jobman.engines.local.launcher",
            "--socket",
            str(self.socket),
            *options,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.connection = self.connect()

    def connect(self) -> socket.socket:
        def attempt() -> socket.socket | None:
            connection = socket.socket(socket.AF_UNIX)
            try:
                with address(self.socket) as place:
                    connection.connect(place)
            except OSError:
                connection.close()
                return None
            connection.settimeout(PATIENCE)
            return connection

        return eventually(attempt, "a connection")

    def kill_launcher(self) -> None:
        self.process.kill()
        self.process.wait()

    def order(self, *argv: str, **given: Any) -> Order:
        number = len(self.orders)
        settings: dict[str, Any] = {
            "id": f"{self.folder.name}-{number}",
            "folder": str(self.folder / f"attempt-{number}"),
            "argv": argv,
            "environment": {"PATH": PATH},
            "cwd": str(self.folder),
            "grace": 10.0,
        }
        order = Order(**{**settings, **given})
        self.orders.append(order)
        return order

    def shell(self, script: str, **given: Any) -> Order:
        return self.order("/bin/sh", "-c", script, **given)

    def say(self, request: Request) -> None:
        self.connection.sendall(line(request))

    def hear(self, fits: Callable[[Answer], object]) -> Any:
        """The next answer that fits; those before it are passed over."""
        while True:
            while b"\n" not in self._unread:
                content = self.connection.recv(1 << 16)
                assert content, "the launcher hung up"
                self._unread += content
            first, self._unread = self._unread.split(b"\n", 1)
            answer = decode_answer(first)
            if fits(answer):
                return answer

    def launch(self, *orders: Order) -> None:
        self.say(Request(launch=orders))

    def run(self, order: Order) -> Exit:
        """Launch a copy and see how it ends."""
        self.launch(order)
        return self.end(order)

    def stop(self, order: Order, grace: float | None = None, why: str = "") -> None:
        self.say(Request(stop=order.id, grace=grace, why=why))

    def started(self, order: Order) -> Started:
        return eventually(lambda: read_copy(order.folder, order.copy).started, "the start")

    def running(self, order: Order) -> Process:
        """The copy's process, once its command runs."""
        process = self.started(order).process
        eventually(lambda: MODULE not in own_name(process.pid) or not process_alive(*process), "the exec")
        return process

    def shim(self, order: Order) -> Process:
        """The shim that looks after a copy now."""
        return eventually(lambda: read_copy(order.folder, order.copy).keeper, "a shim")

    def end(self, order: Order) -> Exit:
        return eventually(lambda: read_exit(order.folder, order.copy), "the end")

    def out(self, order: Order) -> str:
        return Path(path_of(order.folder, order.copy, "out")).read_text(encoding="utf-8")

    def err(self, order: Order) -> str:
        return Path(path_of(order.folder, order.copy, "err")).read_text(encoding="utf-8")

    def file(self, name: str) -> str:
        """The content of a file in the folder, once it is there and has one."""
        path = self.folder / name
        return eventually(lambda: path.read_text(encoding="utf-8") if path.exists() else None, name)

    def file_exists(self, name: str) -> None:
        """Wait for a file, which may be empty."""
        eventually((self.folder / name).exists, name)

    def processes(self, order: Order) -> list[Process]:
        """All that carries the marker of an order."""
        return marked(order.id)

    def close(self) -> None:
        for order in self.orders:
            state = read_copy(order.folder, order.copy)
            for process in (*marked(order.id), state.keeper):
                if process is not None:
                    _kill(process.pid)
        if self.connection is not None:
            self.connection.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def opened(folder: Path) -> Iterator[Workshop]:
    """A workshop that is running, and gone with all it started in the end."""
    made = Workshop(folder)
    try:
        made.start()
        yield made
    finally:
        made.close()


def own_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return ""


def kill(process: Process) -> None:
    """Kill -9, and wait until it is gone."""
    _kill(process.pid)
    eventually(lambda: not process_alive(*process), "the death")


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_stopped(process: Process) -> bool:
    """Whether it stands still; one that waits for a child to exec (D) does, when that child stands still."""
    found = facts(process.pid)
    return found is not None and found.state in "tTD"
