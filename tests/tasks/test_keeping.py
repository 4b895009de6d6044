"""A worker that a keeper keeps: whatever happens to either of them, nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jobman.engines.local.trees import MARKER, marked
from jobman.tasks.keeping import KeptWorker
from jobman.tasks.worker_process import Started
from tests.tasks.crowd import children
from tests.tasks.test_recording import until
from tests.tasks.test_serving import run

NOTED = "echo $$ >>{book}; setsid sleep 1000 & wait"
"""Notes that it has started, and leaves a daemon behind."""


class Kept:
    """A keeper, its worker, and what was heard of them."""

    def __init__(self, folder: Path, script: str = NOTED, **environment: str) -> None:
        self.book = folder / "starts"
        self.sockets = folder / "sockets"
        self.sockets.mkdir()
        self.id = f"kept-{secrets.token_hex(4)}"
        self.heard: list[str] = []
        command = ("sh", "-c", script.format(book=self.book))
        told = {**environment, MARKER: self.id}
        started = Started(self.id, command, told, str(folder), None, str(self.sockets))
        self.worker = KeptWorker(started, self.heard.append)
        self.keeping = asyncio.create_task(self.worker.keep())

    @property
    def starts(self) -> int:
        return len(self.book.read_text().split()) if self.book.exists() else 0

    @property
    def keeper(self) -> int:
        return self.worker._process.pid

    def left(self) -> list[int]:
        return [process.pid for process in marked(self.id)]


Scenario = Callable[[Kept], Awaitable[None]]


def scene(folder: Path, scenario: Scenario, script: str = NOTED, **environment: str) -> None:
    async def whole() -> None:
        kept = Kept(folder, script, **environment)
        await scenario(kept)
        await kept.worker.close(grace=0.0)
        await kept.keeping
        assert kept.left() == []
        assert not kept.sockets.exists()

    run(whole)


def test_a_worker_that_is_killed_is_started_anew_and_leaves_no_daemon(tmp_path: Path) -> None:
    async def scenario(kept: Kept) -> None:
        await until(lambda: len(kept.left()) >= 2)
        before = set(kept.left())
        kept.worker.kill()
        await until(lambda: kept.starts == 2)
        assert not before & set(kept.left())
        assert kept.heard == ["by signal 9"]
        assert kept.worker.starts == 1

    scene(tmp_path, scenario)


def test_how_often_it_was_started_in_vain_is_known_and_forgotten_once_it_has_worked(tmp_path: Path) -> None:
    async def scenario(kept: Kept) -> None:
        await until(lambda: kept.worker.starts >= 3)
        assert kept.worker.last_words == "no such license"
        assert set(kept.heard) == {"with exit code 3 no such license"}
        kept.worker.has_worked()
        heard = len(kept.heard)
        await until(lambda: len(kept.heard) > heard)
        assert kept.worker.starts < 3

    scene(tmp_path, scenario, "echo no such license >&2; exit 3")


def test_it_may_end_by_itself(tmp_path: Path) -> None:
    script = "trap 'echo bye >>{book}; exit 0' TERM; echo $$ >>{book}; while :; do sleep 0.01; done"

    async def scenario(kept: Kept) -> None:
        await until(lambda: kept.starts == 1)
        await kept.worker.close(grace=30.0)
        assert kept.book.read_text().split()[1:] == ["bye"]

    scene(tmp_path, scenario, script)


def test_a_keeper_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    async def whole() -> None:
        kept = Kept(tmp_path)
        await until(lambda: len(kept.left()) >= 2)
        os.kill(kept.keeper, signal.SIGKILL)
        await kept.keeping
        await until(lambda: not kept.left())
        # Nobody is there to hear it.
        kept.worker.kill()
        await kept.worker.close(grace=0.0)

    run(whole)


def test_what_a_worker_is_told_is_on_no_command_line(tmp_path: Path) -> None:
    async def scenario(kept: Kept) -> None:
        await until(lambda: kept.starts == 1)
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (kept.keeper, *children(kept.keeper))]
        assert not any(b"for-nobody-else" in line for line in lines)

    scene(tmp_path, scenario, PASSWORD="for-nobody-else")


def test_an_environment_that_is_larger_than_a_socket_takes_at_once_arrives(tmp_path: Path) -> None:
    large = {f"LARGE_{number}": "x" * 100_000 for number in range(8)}

    async def scenario(kept: Kept) -> None:
        await until(lambda: kept.starts == 1)

    scene(tmp_path, scenario, "[ ${{#LARGE_7}} = 100000 ] && echo $$ >>{book}; sleep 1000", **large)


@pytest.mark.parametrize("said", [b"", b"{half"])
def test_a_keeper_that_is_told_nothing_ends(said: bytes) -> None:
    command = [sys.executable, "-P", "-m", "jobman.tasks.keeper", "--parent", str(os.getpid())]
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(command, stdin=theirs.fileno(), stderr=subprocess.DEVNULL)
    with ours:
        ours.sendall(said)
    process.wait(60)
    assert children(process.pid) == []
