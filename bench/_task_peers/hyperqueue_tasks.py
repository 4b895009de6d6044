"""HyperQueue: a server and two workers of one core each. Its tasks are programs, so the task is /bin/true."""

from __future__ import annotations

import contextlib
import tempfile
import time
from typing import Any

from hyperqueue import Job, LocalCluster  # type: ignore[import-not-found,unused-ignore]
from hyperqueue.cluster import WorkerConfig  # type: ignore[import-not-found,unused-ignore]

from bench._task_peers.clock import WORKERS, measure, tell

_SELDOM, _OFTEN = 0.02, 0.001
"""Seconds between two looks at many tasks, and at one."""


class _Looked(Exception):
    """Its own waiting looks once a second; this ends it after each look."""


def _look(client: Any, job: int) -> dict[str, int]:
    """How many of its tasks have ended and how, and whether that are all."""
    seen: dict[int, dict[str, int]] = {}

    def look(jobs: dict[int, dict[str, int]]) -> None:
        seen.update(jobs)
        raise _Looked

    with contextlib.suppress(_Looked):
        client.connection.wait_for_jobs((job,), look)
    return seen[job]


def _run(client: Any, tasks: int, pause: float) -> int:
    """No output is kept, since there is none."""
    job = Job()
    for _ in range(tasks):
        job.program(["/bin/true"], stdout=None, stderr=None)
    submitted = client.submit(job)
    while not (found := _look(client, submitted.id))["completed"]:
        time.sleep(pause)
    return found["finished"]


def main() -> None:
    """The server and the workers are threads of this process."""
    folders = tempfile.TemporaryDirectory(prefix="jobman-bench-")
    with folders as folder, LocalCluster(server_dir=folder) as cluster:
        for _ in range(WORKERS):
            cluster.start_worker(WorkerConfig(cores=1))
        client = cluster.client()
        tell(measure(lambda tasks: _run(client, tasks, _SELDOM), lambda: _run(client, 1, _OFTEN)))


if __name__ == "__main__":
    main()
