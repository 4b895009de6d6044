"""Ray on one machine with two cores; with the word `actors`, two actors in the place of tasks."""

from __future__ import annotations

import sys

import ray  # type: ignore[import-not-found,unused-ignore]

from bench._task_peers.clock import WORKERS, Found, measure, nothing, tell

_STORE = 200 * 2**20
"""Bytes of shared memory."""


class _Actor:
    def nothing(self) -> int:
        return nothing()


def _of_tasks() -> Found:
    task = ray.remote(nothing)
    return measure(
        lambda tasks: len(ray.get([task.remote() for _ in range(tasks)])),
        lambda: ray.get(task.remote()),
    )


def _of_actors() -> Found:
    actors = [ray.remote(_Actor).remote() for _ in range(WORKERS)]
    return measure(
        lambda tasks: len(ray.get([actors[number % WORKERS].nothing.remote() for number in range(tasks)])),
        lambda: ray.get(actors[0].nothing.remote()),
    )


def main() -> None:
    """A small store is enough: results of tasks that do nothing are sent and not shared."""
    ray.init(
        num_cpus=WORKERS,
        object_store_memory=_STORE,
        include_dashboard=False,
        log_to_driver=False,
    )
    tell(_of_actors() if "actors" in sys.argv[1:] else _of_tasks())
    ray.shutdown()


if __name__ == "__main__":
    main()
