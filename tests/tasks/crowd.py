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

from jobman.tasks.agent_process import AgentOptions

MARK = "JOBMAN_TEST_CROWD"
"""In the environment of all of them, so that those who are left are found."""
BROKER = """
import json, sys
import msgspec
from jobman.tasks.broker_process import BrokerOptions, run_broker
from jobman.tasks.settings import SiteSettings

given = json.loads(sys.argv[1])
run_broker(BrokerOptions(**{**given, "settings": msgspec.convert(given["settings"], SiteSettings)}))
"""
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

    def __init__(self, folder: Path, store: str, worker: str = SQUARES, **more: Any) -> None:
        self.folder = folder
        self.mark = secrets.token_hex(8)
        self.book = folder / "executed"
        self._store = store
        self._worker = folder / "worker.py"
        self._worker.write_text(worker)
        self._more = more
        self._port = _free_port()
        self._environment = {**os.environ, MARK: self.mark, "BOOK": str(self.book)}
        self.broker: subprocess.Popen[bytes] | None = None
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    # -- starting ----------------------------------------------------------------------------------

    def start_broker(self) -> None:
        """One that answers some time later: see `wait_for_broker`."""
        options = {
            "listen": f"127.0.0.1:{self._port}",
            "store": self._store,
            "settings": {"types": [{"type": "square", "image": "squares"}]},
            **self._more,
        }
        words = [sys.executable, "-c", BROKER, msgspec.json.encode(options).decode()]
        self.broker = self._spawn(words, "broker")

    def has_broker(self) -> bool:
        """Whether it listens."""
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", self._port)) == 0

    def wait_for_broker(self) -> None:
        wait_until(self.has_broker)

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
        words = [sys.executable, "-m", "jobman.tasks.agent_process", "--parent", str(os.getpid())]
        self.agents[name] = self._spawn([*words, msgspec.json.encode(options).decode()], name)

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
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
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

    def end(self, process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> int:
        kill(process.pid, number)
        return process.wait(60)

    def close(self) -> None:
        everybody = [*self.agents.values(), *([self.broker] if self.broker is not None else [])]
        for process in everybody:
            kill(process.pid, signal.SIGCONT)
            self.end(process, signal.SIGKILL)


@contextmanager
def crowd(folder: Path, store: str, worker: str = SQUARES, **more: Any) -> Iterator[Crowd]:
    found = Crowd(folder, store, worker, **more)
    try:
        yield found
    finally:
        found.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
