"""Connecting jobs that run: labels of their pods say who may talk with whom, and change meanwhile."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence

from jobman.engines.kubernetes.managed import names
from jobman.engines.kubernetes.managed.releasing import Releaser
from jobman.engines.kubernetes.managed.runner import Runner
from jobman.engines.kubernetes.objects import Pod


class Connector:
    """Whom each job is to be connected with. Of several wishes for a job the last one counts."""

    def __init__(self, runner: Runner, releaser: Releaser) -> None:
        self._runner = runner
        self._releaser = releaser
        self._wanted: dict[str, tuple[str, ...]] = {}
        self._past: defaultdict[str, set[str]] = defaultdict(set)
        """Whom a job was ever connected with: a watch may not have shown those labels yet."""
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def is_connected(self, job: str) -> bool:
        return bool(self._wanted.get(job))

    def want(self, job: str, partners: Sequence[str]) -> bool:
        """Whether anything is to be done for it; most jobs are alone, and always were."""
        if not partners and job not in self._wanted and not any(map(_has_partners, self._pods(job))):
            return False
        self._wanted[job] = tuple(partners)
        self._past[job].update(partners)
        return True

    def suits(self, job: str, pod: Pod) -> bool:
        """Whether a pod that has just appeared says what its job wants by now."""
        return job not in self._wanted or not names.relabelled(pod.metadata.labels, self._wanted[job])

    def forget(self, job: str) -> None:
        for table in (self._wanted, self._past, self._turns):
            table.pop(job, None)

    async def relabel(self, job: str) -> None:
        """See to it that all pods of a job say whom it is connected with."""
        async with self._turns[job]:
            partners = self._wanted.get(job)
            attempt = next(iter(self._runner.of_job(job)), None)
            if partners is None or attempt is None:
                return
            if partners:
                await self._releaser.ensure_shared(attempt.order, connected=True)
            for pod in list(self._pods(job)):
                said = pod.metadata.labels | names.connections(self._past[job])
                await self._releaser.relabel(
                    pod, names.relabelled(said, partners) | names.connections(partners)
                )

    def _pods(self, job: str) -> Iterator[Pod]:
        return (pod for each in self._runner.of_job(job) for pod in each.pods.values())


def _has_partners(pod: Pod) -> bool:
    return bool(names.relabelled(pod.metadata.labels, ()))
