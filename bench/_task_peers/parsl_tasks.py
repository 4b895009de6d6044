"""Parsl's HighThroughputExecutor with two workers."""

from __future__ import annotations

import tempfile

import parsl  # type: ignore[import-not-found,unused-ignore]
from parsl.config import Config  # type: ignore[import-not-found,unused-ignore]
from parsl.executors import HighThroughputExecutor  # type: ignore[import-not-found,unused-ignore]
from parsl.providers import LocalProvider  # type: ignore[import-not-found,unused-ignore]

from bench._task_peers.clock import WORKERS, measure, nothing, tell

_AHEAD = 100
"""Tasks that wait at the workers, so that none of them waits for tasks."""


def main() -> None:
    """One block on this machine, which is there from the start."""
    with tempfile.TemporaryDirectory(prefix="jobman-bench-") as folder:
        executor = HighThroughputExecutor(
            address="127.0.0.1",
            max_workers_per_node=WORKERS,
            prefetch_capacity=_AHEAD,
            encrypted=False,
            provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
        )
        with parsl.load(Config(executors=[executor], run_dir=folder, strategy="none")):
            task = parsl.python_app(nothing)
            tell(
                measure(
                    lambda tasks: len([future.result() for future in [task() for _ in range(tasks)]]),
                    lambda: task().result(),
                )
            )


if __name__ == "__main__":
    main()
