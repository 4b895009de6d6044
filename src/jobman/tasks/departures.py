"""Who goes first: where there are fewer pods, those whose agents have least to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import msgspec

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import NotFound
from jobman.engines.kubernetes.kinds import PODS
from jobman.engines.kubernetes.objects import Pod

log = logging.getLogger("jobman.tasks.cluster")
COST = "controller.kubernetes.io/pod-deletion-cost"


class Busy(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has to do, as the broker tells it."""

    held: int = 0


def costs(busy: Mapping[str, int], slots: int) -> dict[str, int]:
    """What it costs to delete each pod: the quarters of its slots that are busy, rounded up."""
    return {name: -(-min(held, slots) * 4 // slots) * 25 for name, held in busy.items()}


class Departures:
    """Sees to who would go first."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def price(self, pods: Sequence[Pod], slots: int, agents: Mapping[str, Busy]) -> None:
        """Who is idle is cheap: of several pods it is deleted first."""
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        if len(staying) < 2:
            return
        held = {pod.metadata.name: _held_by(pod, agents) for pod in staying}
        wanted = costs(held, slots)
        for pod in staying:
            cost = str(wanted[pod.metadata.name])
            if pod.metadata.annotations.get(COST, "0") != cost:
                await self._annotate(pod, cost)

    async def _annotate(self, pod: Pod, cost: str) -> None:
        try:
            patch = {"metadata": {"annotations": {COST: cost}}}
            await self._api.merge_patch(PODS, pod.metadata.name, patch, pod.metadata.namespace)
        except NotFound:
            log.debug("%s is gone", pod.metadata.name)


def _is_of(agent: str, pod: Pod) -> bool:
    """Whether an agent is in a pod: its id begins with the name of it."""
    return agent == pod.metadata.name or agent.startswith(f"{pod.metadata.name}-")


def _held_by(pod: Pod, agents: Mapping[str, Busy]) -> int:
    return sum(each.held for agent, each in agents.items() if _is_of(agent, pod))
