"""An attempt that is under way on a cluster: its order, its pods as they are seen, what was said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from math import inf
from pathlib import Path

from jobman.engines import base
from jobman.engines.kubernetes import endings
from jobman.engines.kubernetes.managed.collecting import Collector
from jobman.engines.kubernetes.managed.course import Scene, Stop, has_started
from jobman.engines.kubernetes.objects import Pod
from jobman.engines.kubernetes.streams import container_of


class Attempt:
    """What the engine knows of one attempt."""

    def __init__(self, order: base.Order, name: str, since: float, *, is_new: bool) -> None:
        self.order = order
        self.name = name
        """Of its Job."""
        self.pods: dict[int, Pod] = {}
        self.created: set[int] = set()
        """Copies whose pods were made, though nobody may have seen them yet."""
        self.is_tried = not is_new
        """Whether somebody began to make its pods."""
        self.stop: Stop | None = None
        self.released = order.has_begun
        self.born = since if is_new else 0.0
        """No moment of it is earlier; that of one which is taken up again nobody remembers."""
        self.patience = inf
        """Since when it waits for the cluster to do its part; not before anybody has come to it."""
        self.extra = order.extra
        self.trials = 0
        """How often in a row the cluster could not be asked."""
        self.forbidden_since: float | None = None
        self.is_told = order.has_begun
        """Whether it was said to run."""
        self.delays: set[str] = set()
        """The kinds of delay that were told."""
        self.is_over = False
        self.passed_start = False
        self.is_ready: bool | None = None
        self.collectors: dict[int, Collector] = {}
        self.following: dict[int, asyncio.Task[None]] = {}
        self.is_concluding = False
        self.timer: asyncio.TimerHandle | None = None

    @property
    def address(self) -> base.Address:
        return self.order.address

    @property
    def copies(self) -> int:
        return len(self.order.allocation.slots)

    @property
    def is_gang(self) -> bool:
        """Whether its pods have to be let go together."""
        return self.copies > 1

    def scene(self, lost: Mapping[int, str]) -> Scene:
        return Scene(self.copies, self.pods, self.stop, self.released, lost)

    @property
    def missing(self) -> list[int]:
        """Copies that have no pod, and none on its way."""
        return [copy for copy in range(self.copies) if copy not in self.pods and copy not in self.created]

    @property
    def is_complete(self) -> bool:
        return len(self.pods) == self.copies

    @property
    def is_running(self) -> bool:
        """Whether the commands of all copies were started."""
        return self.is_complete and all(map(has_started, self.pods.values()))

    def started_at(self) -> float | None:
        """When its last copy started; the cluster tells it in whole seconds."""
        times = [found.timestamp() for pod in self.pods.values() if (found := endings.started_at(pod))]
        return max(max(times), self.born) if times else None

    def ended_at(self) -> float | None:
        times = [found.timestamp() for pod in self.pods.values() if (found := endings.ended_at(pod))]
        return max(times, default=None)

    def outputs(self, *, ended: bool) -> tuple[base.OutputFile, ...]:
        """Where its output goes. Pods have one stream for both."""
        return tuple(
            base.OutputFile(
                copy,
                "stdout",
                str(collector.path),
                self.order.allocation.slots[copy].node,
                0,
                collector.size if ended else 0,
            )
            for copy, collector in sorted(self.collectors.items())
        )

    def infos(self) -> list[base.CopyInfo]:
        return [
            base.CopyInfo(
                replica=self.order.key,
                attempt=self.order.attempt,
                copy=copy,
                node=pod.spec.node_name,
                pid=0,
                cwd="",
                container=container_of(pod.metadata.namespace, pod.metadata.name),
            )
            for copy, pod in sorted(self.pods.items())
            if has_started(pod) and not endings.is_over(pod)
        ]


def output_path(jobs: Path, address: base.Address, copy: int) -> Path:
    """Where the output of a copy is kept."""
    job, key, attempt = address
    return jobs / job / key / str(attempt) / f"{copy}.out"
