"""A service of ours on a cluster of simulated nodes, with the same pods as plain Jobs have.

Run as a program it is that service, which writes down how long each pass of its planner took.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import _kwok
from jobman.client import Client
from jobman.control.answers import Submission
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.kubeconfig import load

DOCUMENTS = 100
"""In each file that is submitted."""
_NAMESPACE = "jobs"
_STARTING = 120.0
_TOKEN = re.compile(r"jobman_[A-Za-z0-9_-]{20,}")
_URL = re.compile(r"listening at=(\S+)")
_SETTINGS = f"kubernetes:\n  nodes: {{type: kwok}}\n  tolerates: [{_kwok.TAINT}]\n"
_JOB = """version: 1
name: bench
tasks:
- command: [sleep, "{lasts}"]
  image: localhost/none:1
  attributes: {{environment: {{LAB_SECONDS: "{lasts}"}}}}
  resources: {{type: slot, count: {pods}, with: [{{type: core, count: 1}}, {{type: memory, count: 1Gi}}]}}
"""


class Found(NamedTuple):
    """What was measured of one load."""

    seconds: float
    """From the first submission to the moment when the last pod has its node."""
    processor: dict[str, float]
    """Seconds of processor time meanwhile, by the parts of the cluster, and of the service."""
    passes: list[float]
    """Seconds of processor time of each pass of the planner."""
    memory: float
    """Megabytes of the service at the end."""
    restart: float
    """Seconds from its start, after it was killed while all ran, until a pod of a new job has its node."""


def measure(kubeconfig: Path, jobs: int, pods: int) -> Found:
    """Submit so many jobs of so many pods each; then kill the service and start it again."""
    with tempfile.TemporaryDirectory(prefix="jobman-bench-") as folder:
        place = _Place(Path(folder), kubeconfig)
        with place.running() as client:
            pid = client.status().pid
            clock = _kwok.Clock(kubeconfig, service=pid)
            _submit(client, jobs, pods)
            _wait_bound(kubeconfig, jobs * pods)
            seconds, processor = clock.read()
            _ask(kubeconfig, _kwok.running)
            memory = _resident(pid)
        began = time.perf_counter()
        with place.running() as client:
            _submit(client, 1, 1)
            _wait_bound(kubeconfig, jobs * pods + 1)
            restart = time.perf_counter() - began
        return Found(seconds, processor, place.passes(), memory, restart)


class _Place:
    """Where a service has its state, its home and its output; it can be started again there."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self._folder = folder
        self._kubeconfig = kubeconfig
        self._token = ""
        (folder / "home" / ".jobman").mkdir(parents=True)
        (folder / "home" / ".jobman" / "settings.yaml").write_text(_SETTINGS, "utf-8")
        _make_namespace(kubeconfig)

    @contextmanager
    def running(self) -> Iterator[Client]:
        """The service, which is killed at the end: nobody tells it that it will be."""
        output = self._folder / "output"
        command = [sys.executable, "-m", "bench._managed", "server", "--engine", "kubernetes"]
        command += ["--kubeconfig", str(self._kubeconfig), "--namespace", _NAMESPACE]
        command += ["--listen", "127.0.0.1:0", "--state", str(self._folder / "state")]
        environment = {
            **os.environ,
            "HOME": str(self._folder / "home"),
            "JOBMAN_BENCH_PASSES": str(self._file),
        }
        with output.open("wb") as file:
            process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        try:
            url = _until(lambda: _found(_URL, output, process), "listens")
            self._token = self._token or _found(_TOKEN, output, process)
            with Client.connect(url, self._token) as client:
                yield client
        finally:
            process.kill()
            process.wait()

    @property
    def _file(self) -> Path:
        return self._folder / "passes"

    def passes(self) -> list[float]:
        return [float(line) for line in self._file.read_text().split()]


def _found(pattern: re.Pattern[str], output: Path, process: subprocess.Popen[bytes]) -> str:
    text = output.read_text("utf-8")
    if process.poll() is not None:
        raise RuntimeError(f"the service ended:\n{text[-2000:]}")
    match = pattern.search(text)
    return match[match.lastindex or 0] if match else ""


def _until(look: Callable[[], str], what: str) -> str:
    deadline = time.monotonic() + _STARTING
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody {what} after {_STARTING:.0f} s")
        time.sleep(0.01)
    return found


def _submit(client: Client, jobs: int, pods: int) -> None:
    """As files of many documents each, one after the other."""
    document = _JOB.format(lasts=_kwok.LASTS, pods=pods)
    while jobs > 0:
        several = min(jobs, DOCUMENTS)
        client.submit(Submission(document="---\n".join([document] * several)))
        jobs -= several


def _wait_bound(kubeconfig: Path, pods: int) -> None:
    _ask(kubeconfig, lambda api: _kwok.bound(api, pods))


def _make_namespace(kubeconfig: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
    _ask(kubeconfig, lambda api: api.ensure(namespace))


def _ask(kubeconfig: Path, work: Callable[[Api], Awaitable[object]]) -> None:
    async def ask() -> None:
        async with Api(load(kubeconfig)) as api:
            await work(api)

    asyncio.run(ask())


def _resident(pid: int) -> float:
    """Megabytes of memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / 1e6


def _serve() -> None:
    """The command line of jobman, with a clock on its planner."""
    from jobman.cli.main import main
    from jobman.sched.planner import Planner

    plan = Planner.plan

    def timed(self: Planner, *given: object, **named: object) -> object:
        began = time.process_time()
        try:
            return plan(self, *given, **named)  # type: ignore[arg-type]
        finally:
            os.write(file, b"%.6f\n" % (time.process_time() - began))

    file = os.open(os.environ["JOBMAN_BENCH_PASSES"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    Planner.plan = timed  # type: ignore[method-assign,assignment]
    main()


if __name__ == "__main__":
    _serve()
