"""Sight: the Jobs, pods and ConfigMaps of one job, as the cluster has them now."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.kinds import CONFIG_MAPS, JOBS, PODS
from jobman.engines.kubernetes.objects import ConfigMap, Job, Pod
from jobman.engines.kubernetes.seen import attempt_of
from jobman.engines.kubernetes.watching import Watched

_SETTLE_SECONDS = 0.05


class Sight:
    """What there is to see of a job; `wait` tells when it has changed."""

    def __init__(self, api: Api, job: str) -> None:
        self._api = api
        labels = f"{names.JOB}={job}"
        self._jobs, self._pods = Watched(JOBS, labels), Watched(PODS, labels)
        self._configs = Watched(CONFIG_MAPS, f"{labels},!{names.TASK}")
        self._changed = asyncio.Event()
        self._watches: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Look once at everything, and keep watching."""
        bells = [_Bell(self._changed) for _ in range(3)]
        self._watches = [
            asyncio.ensure_future(self._jobs.keep(self._api, bells[0])),
            asyncio.ensure_future(self._pods.keep(self._api, bells[1])),
            asyncio.ensure_future(self._configs.keep(self._api, bells[2])),
        ]
        while not all(bell.is_set() for bell in bells):
            await self.wait(1.0)

    async def close(self) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    async def wait(self, seconds: float) -> None:
        """Until something has changed, or so long; raises what the cluster does not let us see."""
        ringing = asyncio.ensure_future(self._changed.wait())
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait([ringing, *self._watches], timeout=max(0.0, seconds), return_when=first)
        finally:
            ringing.cancel()
        for watch in self._watches:
            if watch.done():
                watch.result()
        if self._changed.is_set():
            # What happens together is looked at together.
            await asyncio.sleep(_SETTLE_SECONDS)
        self._changed.clear()

    def config(self, name: str) -> ConfigMap | None:
        return next((each for each in self._configs.objects if each.metadata.name == name), None)

    def attempts(self) -> dict[tuple[str, int], list[Job]]:
        """The Jobs of each attempt, in the order of their parts."""
        found: defaultdict[tuple[str, int], list[Job]] = defaultdict(list)
        for job in sorted(self._jobs.objects, key=lambda job: (len(job.metadata.name), job.metadata.name)):
            if (address := attempt_of(job)) is not None:
                found[address].append(job)
        return dict(found)

    def pods_of(self, address: tuple[str, int]) -> list[Pod]:
        """The pods of an attempt, also those whose Job is gone."""
        key, attempt = address
        return [
            pod
            for pod in self._pods.objects
            if pod.metadata.annotations.get(names.KEY) == key
            and pod.metadata.labels.get(names.ATTEMPT) == str(attempt)
        ]

    def pods_by_owner(self) -> dict[str, list[Pod]]:
        """The pods of each Job."""
        own: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self._pods.objects:
            for owner in pod.metadata.owner_references:
                own[owner.uid].append(pod)
        return own


class _Bell(asyncio.Event):
    """Set for good when the first list has come; every change rings the one bell for all."""

    def __init__(self, all_: asyncio.Event) -> None:
        super().__init__()
        self._all = all_

    def set(self) -> None:
        super().set()
        self._all.set()
