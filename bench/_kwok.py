"""A cluster of simulated nodes as the place of a measurement: fresh every time, with nothing else on it.

It is the lab's second one, whose parts do not hold themselves back. As they come, the controllers of
Kubernetes send twenty requests a second and its scheduler fifty: nothing else would be measured.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from jobman.engines.kubernetes.api import EVERYWHERE, Api
from jobman.engines.kubernetes.kinds import PODS
from jobman.engines.kubernetes.kubeconfig import load
from jobman.engines.kubernetes.objects import Written
from lab.components import FOLDER

MOST_SECONDS = 3600
AT_ONCE = 16
LASTS = "86400"
"""Seconds that a simulated pod runs: longer than any measurement."""
TAINT = "kwok.x-k8s.io/node"
_ENVIRONMENT = {**os.environ, "JOBMAN_LAB_CLUSTER": "bench", "JOBMAN_LAB_PYTHON": sys.executable}


def reason() -> str:
    """Why there is no cluster to measure; nothing when there can be one."""
    answer = _call("status")
    words = answer.stdout.strip().rpartition("\n")[2]
    return "" if answer.returncode == 0 or "is not running" in words else words or "lab/kubernetes is broken"


@contextmanager
def cluster(nodes: int) -> Iterator[Path]:
    """A new cluster of so many simulated nodes; its kubeconfig."""
    _lab("down")
    try:
        settings = dict(line.split("=", 1) for line in _lab("up").splitlines())
        _lab("kwok", str(nodes))
        yield Path(settings["JOBMAN_LAB_KUBECONFIG"])
    finally:
        _lab("down")


def _lab(*words: str) -> str:
    answer = _call(*words)
    if answer.returncode:
        raise RuntimeError(f"lab/kubernetes {' '.join(words)}: {answer.stdout.strip()}")
    return answer.stdout


def _call(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(FOLDER / "kubernetes"), *words]
    return subprocess.run(command, env=_ENVIRONMENT, stdout=subprocess.PIPE, text=True)


class Clock:
    """Seconds since it was made, and the processor time that each part of a cluster has used meanwhile."""

    def __init__(self, kubeconfig: Path, **others: int) -> None:
        """`others` are processes beside the cluster."""
        folder = kubeconfig.parent.parent / "run"
        parts = {path.stem: int(path.read_text().split()[0]) for path in folder.glob("*.pid")}
        self._processes = {**parts, **others}
        self._before = {name: _processor_time(pid) for name, pid in self._processes.items()}
        self._began = time.perf_counter()

    def read(self) -> tuple[float, dict[str, float]]:
        seconds = time.perf_counter() - self._began
        return seconds, {
            name: _processor_time(pid) - self._before[name] for name, pid in self._processes.items()
        }


def _processor_time(pid: int) -> float:
    # The name, in brackets, may contain anything; behind it the 12th and 13th word are ticks.
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def bind_plain(kubeconfig: Path, jobs: Sequence[Written]) -> tuple[float, dict[str, float]]:
    """From the first of these plain Jobs until the last of their pods has its node, as a clock reads it."""

    async def work() -> tuple[float, dict[str, float]]:
        async with _opened(kubeconfig) as api:
            clock = Clock(kubeconfig)
            await _create(api, jobs)
            await bound(api, sum(job["spec"]["completions"] for job in jobs))
            return clock.read()

    return asyncio.run(work())


@asynccontextmanager
async def _opened(kubeconfig: Path) -> AsyncIterator[Api]:
    async with Api(load(kubeconfig)) as api:
        await api.version()
        yield api


async def _create(api: Api, jobs: Sequence[Written]) -> None:
    waiting = iter(jobs)

    async def worker() -> None:
        for job in waiting:
            await api.create(job, "default")

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


async def bound(api: Api, pods: int) -> None:
    """Wait until there are so many pods, and each has its node; asks for little, since it is not measured."""

    async def waits() -> bool:
        return await _count(api) < pods or await _some(api, "spec.nodeName=")

    await _while(waits, f"not all of {pods} pods had a node", 0.2)


async def _count(api: Api) -> int:
    async for page in api.pages(PODS, EVERYWHERE, limit=1):
        return len(page.items) + (page.metadata.remaining_item_count or 0)
    return 0


async def running(api: Api) -> None:
    """Wait until every pod runs: simulated nodes say so some time after they got them."""
    await _while(lambda: _some(api, "status.phase=Pending"), "not all pods ran", 0.5)


async def _while(waits: Callable[[], Awaitable[bool]], trouble: str, pause: float) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while await waits():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{trouble} within {MOST_SECONDS} s")
        await asyncio.sleep(pause)


async def _some(api: Api, fields: str) -> bool:
    async for page in api.pages(PODS, EVERYWHERE, fields=fields, limit=1):
        return bool(page.items)
    return False


def plain_job(number: int, pods: int) -> Written:
    """A Job as a user of Kubernetes writes it, indexed where it has several pods."""
    container = {
        "name": "main",
        "image": "localhost/none:1",
        "command": ["sleep", LASTS],
        "env": [{"name": "LAB_SECONDS", "value": LASTS}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "tolerations": [{"key": TAINT, "operator": "Exists"}],
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"job-{number}"},
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {"spec": pod},
        },
    }
