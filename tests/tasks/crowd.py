"""A broker, agents and workers as processes of their own, each of which may be killed at any moment."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from jobman.tasks.station import AgentOptions

MARK = "JOBMAN_TEST_CROWD"
"""In the environment of all of them, so that those who are left are found."""
_ENTRY = (sys.executable, "-P", str(Path(__file__).parent / "entry.py"))
SQUARES = """
import os, time
from jobman.tasks.worker import serve, this_task

book = os.open(os.environ["BOOK"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def square(payload: bytes) -> bytes:
    os.write(book, f"{this_task().id} {payload.decode()}\\n".encode())
    time.sleep(float(os.environ.get("SECONDS", "0.002")))
    return str(int(payload) ** 2).encode()

serve(square)
"""
GATED = """
import os, time
from jobman.tasks.worker import serve, this_task

began = os.open(os.environ["BOOK"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
ended = os.open(os.environ["BOOK"] + ".ended", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def square(payload: bytes) -> bytes:
    line = f"{this_task().id} {payload.decode()}\\n".encode()
    os.write(began, line)
    while not os.path.exists(os.environ["GATE"]):
        time.sleep(0.01)
    os.write(ended, line)
    return str(int(payload) ** 2).encode().ljust(int(os.environ.get("SIZE", "0")))

serve(square, batches=False)
"""
"""Squares numbers when there is a file, and notes the beginning and the end."""


def wait_until(condition: Callable[[], Any], seconds: float = 120.0) -> None:
    """For a condition that comes true at some time, however busy the machine is."""
    waiting = threading.Event()
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        waiting.wait(0.02)


def children(pid: int) -> list[int]:
    """Processes that one has started, and that live."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Signal one that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


class Crowd:
    """All of one site, on this machine."""

    def __init__(
        self,
        folder: Path,
        store: str,
        worker: str = SQUARES,
        *,
        environment: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """`environment` is for all of them, `more` for the broker."""
        self.folder = folder
        self.mark = secrets.token_hex(8)
        self.book = folder / "executed"
        self._store = store
        self._worker = folder / "worker.py"
        self._worker.write_text(worker)
        self._more = more
        self.port = _free_port()
        self._environment = {**os.environ, **(environment or {}), MARK: self.mark, "BOOK": str(self.book)}
        self.broker: subprocess.Popen[bytes] | None = None
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # -- starting ----------------------------------------------------------------------------------

    def start_broker(self) -> None:
        """One that answers some time later: see `wait_for_broker`."""
        options = {
            "listen": f"127.0.0.1:{self.port}",
            "store": self._store,
            "settings": {"types": [{"type": "square", "image": "squares"}]},
            **self._more,
        }
        self.broker = self._spawn([*_ENTRY, "broker", msgspec.json.encode(options).decode()], "broker")

    def has_broker(self) -> bool:
        """Whether it listens."""
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", self.port)) == 0

    def wait_for_broker(self) -> None:
        wait_until(lambda: self.has_broker() or self._has_failed())
        assert not self._has_failed()

    def _has_failed(self) -> bool:
        """Whether the broker has ended by itself."""
        return self.broker is not None and self.broker.poll() is not None

    def restart_broker(self) -> None:
        """It ends without a word, and the next one answers when this returns."""
        assert self.broker is not None
        self.end(self.broker, signal.SIGKILL)
        self.start_broker()
        self.wait_for_broker()

    def start_agent(self, name: str, **more: Any) -> None:
        """One with a worker of its own, under this name of a role; the broker sees another each time."""
        environment: Mapping[str, str] = more.pop("environment", {})
        options = AgentOptions(
            broker=self.url,
            image="squares",
            command=(sys.executable, str(self._worker)),
            environment=dict(environment),
            **{"id": f"{name}-{secrets.token_hex(4)}", **more},
        )
        words = ["agent", str(os.getpid()), msgspec.json.encode(options).decode()]
        self.agents[name] = self._spawn([*_ENTRY, *words], name)

    def _spawn(self, words: list[str], name: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                words, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    # -- looking -----------------------------------------------------------------------------------

    def workers(self) -> list[int]:
        return [pid for agent in list(self.agents.values()) for pid in children(agent.pid)]

    def executed(self) -> list[tuple[str, int]]:
        """The id under which and the number that was squared, for each time that a worker began to."""
        lines = self.book.read_text().splitlines() if self.book.exists() else []
        return [(id_, int(number)) for id_, number in (line.split() for line in lines)]

    def left(self) -> list[int]:
        """Processes of this crowd that still run."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                try:
                    words = (entry / "environ").read_bytes()
                    state = _state(int(entry.name))
                except OSError:
                    continue
                if f"{MARK}={self.mark}\0".encode() in words and state not in "ZX":
                    found.append(int(entry.name))
        return found

    def logs(self) -> str:
        """The last of what each of them said."""
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )

    # -- ending ------------------------------------------------------------------------------------

    def freeze(self, name: str) -> None:
        """An agent stands still until it gets a CONT; its worker goes on."""
        pid = self.agents[name].pid
        kill(pid, signal.SIGSTOP)
        wait_until(lambda: _state(pid) == "T")

    def end(self, process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> int:
        kill(process.pid, number)
        return process.wait(60)

    def close(self) -> None:
        everybody = [*self.agents.values(), *([self.broker] if self.broker is not None else [])]
        for process in everybody:
            kill(process.pid, signal.SIGCONT)
            self.end(process, signal.SIGKILL)


def _state(pid: int) -> str:
    """The letter of what a process does."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def crowd(folder: Path, store: str, worker: str = SQUARES, **more: Any) -> Iterator[Crowd]:
    found = Crowd(folder, store, worker, **more)
    try:
        yield found
    except BaseException:
        print(found.logs())
        raise
    finally:
        found.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
