"""Celery with two worker processes, and a Redis that both sends its tasks and keeps their results.

Redis keeps all in memory, and is given up with its folder at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from celery import Celery, group  # type: ignore[import-not-found,import-untyped,unused-ignore]

from bench._task_peers.clock import WORKERS, measure, nothing, tell

_PLACE = "JOBMAN_BENCH_REDIS"
_AHEAD = 100
"""Tasks that a worker process has at hand."""
_STARTING = 60.0

app = Celery("bench", broker=f"redis+socket://{os.environ.get(_PLACE)}")
app.conf.update(
    result_backend=f"redis+socket://{os.environ.get(_PLACE)}",
    worker_prefetch_multiplier=_AHEAD,
    worker_send_task_events=False,
)
task = app.task(name="nothing")(nothing)


@contextmanager
def _running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _await(socket: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _STARTING
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("redis-server does not listen")
        time.sleep(0.01)


def main() -> None:
    """Start Redis, and this program again with the place of it."""
    with tempfile.TemporaryDirectory(prefix="jobman-bench-") as folder:
        socket = Path(folder, "redis.sock")
        options = ["--port", "0", "--unixsocket", str(socket), "--dir", folder, "--save", ""]
        with _running("redis-server", *options, "--appendonly", "no") as redis:
            _await(socket, redis)
            environment = {**os.environ, _PLACE: str(socket)}
            subprocess.run([sys.executable, "-m", __spec__.name], env=environment, check=True)


def _measure() -> None:
    worker = [sys.executable, "-m", "celery", "--app", __spec__.name, "worker", "--pool=prefork"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=error"]
    with _running(*worker, f"--concurrency={WORKERS}", *quiet):
        tell(
            measure(
                lambda tasks: len(group(task.s() for _ in range(tasks)).apply_async().get()),
                lambda: task.delay().get(),
            )
        )


if __name__ == "__main__":
    _measure() if _PLACE in os.environ else main()
