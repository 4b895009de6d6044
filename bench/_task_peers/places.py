"""The environments of the peers: installed on demand below the cache of the lab, and kept there."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._task_peers.clock import Found

_ROOT = Path(__file__).parents[2]
_MOST_SECONDS = 300.0
"""That a peer may take for all of its measurement."""


class Missing(Exception):
    """A peer that cannot be measured here, and why."""


@dataclass(frozen=True)
class Peer:
    """A system, what it is installed from and what measures it."""

    name: str
    requirements: tuple[str, ...]
    program: str
    arguments: tuple[str, ...] = ()
    needs: str = ""
    """A script beside this file that brings what no environment of Python has."""
    note: str = "not durable"

    @property
    def folder(self) -> Path:
        """Peers of the same requirements share it."""
        words = self.requirements[0].partition("==")[0].partition("[")[0]
        return _cache() / "task-peers" / words


PEERS = (
    Peer("Dask 2026.8", ("distributed==2026.8.0",), "dask_tasks"),
    Peer("Ray 2.60, tasks", ("ray==2.60.0",), "ray_tasks"),
    Peer("Ray 2.60, actors", ("ray==2.60.0",), "ray_tasks", ("actors",)),
    Peer(
        "Celery 5.7 + Redis",
        ("celery[redis]==5.7.0",),
        "celery_tasks",
        needs="redis",
        note="not durable: Redis in memory",
    ),
    Peer("Parsl HTEX 2026.10", ("parsl==2026.10.26",), "parsl_tasks"),
    Peer(
        "HyperQueue 0.27",
        ("hyperqueue==0.27.0",),
        "hyperqueue_tasks",
        note="not durable: no journal; a process for each task",
    ),
)


def measured(peer: Peer) -> Found:
    """Run its program in its environment; raises Missing where that is not possible."""
    python = _environment(peer)
    if peer.needs:
        _bring(Path(__file__).parent / peer.needs)
    with tempfile.TemporaryDirectory(prefix="jobman-bench-") as folder:
        command = [str(python), "-m", f"bench._task_peers.{peer.program}", *peer.arguments]
        output = Path(folder, "output")
        _run(command, output)
        return _told(output.read_text("utf-8", "replace"), peer.name)


def _cache() -> Path:
    """The one of the lab."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobman-lab"
    return Path(os.environ.get("JOBMAN_LAB_CACHE") or cache)


# -- installing ----------------------------------------------------------------------------------------------


def _environment(peer: Peer) -> Path:
    """Its interpreter; what is half installed is completed."""
    python = peer.folder / "bin" / "python"
    stamp = peer.folder / "requirements"
    wanted = "\n".join(peer.requirements)
    with _alone(peer.folder):
        if not stamp.exists() or stamp.read_text() != wanted:
            _do([sys.executable, "-m", "venv", str(peer.folder)], peer.name)
            _do([str(python), "-m", "pip", "install", "--quiet", *peer.requirements], peer.name)
            stamp.write_text(wanted)
    return python


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _do(command: list[str], name: str) -> None:
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if answer.returncode:
        raise Missing(f"{name} cannot be installed: {_last(answer.stderr or answer.stdout)}")


def _bring(script: Path) -> None:
    answer = subprocess.run([script, "up"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if answer.returncode:
        raise Missing(_last(answer.stdout or answer.stderr))


# -- measuring -----------------------------------------------------------------------------------------------


def _run(command: list[str], output: Path) -> None:
    """In a group of processes that ends with it, whatever it leaves behind."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(_ROOT),
        "PATH": os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")]),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        process.wait(_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise Missing(f"not done after {_MOST_SECONDS:.0f} s") from None
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def _told(output: str, name: str) -> Found:
    try:
        return Found(*json.loads(_last(output)))
    except (ValueError, TypeError):
        raise Missing(f"{name} ended without a number: {_last(output)}") from None


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2]
