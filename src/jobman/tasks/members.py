"""A member of the pool: an agent and its worker, with their part of this machine.

The agent is inside the broker, which costs a task two ways through the kernel less; its worker is kept by a
process of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from math import ceil

from jobman.engines.local.trees import MARKER
from jobman.tasks.keeping import KeptWorker
from jobman.tasks.local_types import LocalType
from jobman.tasks.machine import Machine
from jobman.tasks.room import Amounts
from jobman.tasks.station import AgentOptions, Station
from jobman.tasks.wire import Handler, Inside

log = logging.getLogger("jobman.tasks")
_LAST_TASK = 30.0
"""Seconds for which one that finishes its last tasks has its cores for itself."""
_FAULT = 1
"""The code of an agent with a fault of its own."""


class Member:
    """An agent that works, and what it was given."""

    def __init__(
        self,
        id_: str,
        type_: LocalType,
        needs: Amounts,
        gpus: Sequence[str],
        *,
        machine: Machine,
        handler: Handler,
        now: float,
        ended: Callable[[], None],
    ) -> None:
        """`handler` is the broker; `ended` is called when the agent has ended, and its worker with it."""
        self.id = id_
        self.type = type_
        self.needs = needs
        self.gpus = tuple(gpus)
        self.since = now
        self._leaves_since: float | None = None
        options = AgentOptions(
            image=type_.image,
            command=type_.command,
            slots=type_.slots,
            id=id_,
            on_port=type_.on_port,
            folder=type_.folder,
            environment={**type_.environment, **_variables(needs, self.gpus, machine), MARKER: id_},
            memory=needs.memory or None,
            gives_up=True,
        )
        self._station = Station(options, connect=lambda: Inside(handler), keep=KeptWorker)
        self._running = asyncio.create_task(self._station.run())
        self._running.add_done_callback(lambda _: ended())

    @property
    def image(self) -> str:
        return self.type.image

    @property
    def is_leaving(self) -> bool:
        return self._leaves_since is not None

    def drain(self, now: float) -> None:
        """Let it finish what it executes, and end."""
        self._leaves_since = now
        self._station.drain()

    def holds(self, now: float) -> Amounts:
        """What nobody else may have meanwhile.

        A last task that does not end may wait for tasks of another image: that one must come to a core.
        """
        is_late = self._leaves_since is not None and now - self._leaves_since > _LAST_TASK
        return self.needs._replace(cpu=0) if is_late else self.needs

    @property
    def code(self) -> int | None:
        """How it ended; None as long as it works."""
        if not self._running.done():
            return None
        if (error := self._running.exception()) is not None:
            log.error("the agent %s has a fault", self.id, exc_info=error)
            return _FAULT
        return self._running.result()

    @property
    def words(self) -> str:
        """Why its worker could not be started, where that was its end."""
        return self._station.words

    async def end(self) -> None:
        """End it now, and its worker with it."""
        self._station.end()
        await asyncio.wait([self._running])


def _variables(needs: Amounts, gpus: Sequence[str], machine: Machine) -> dict[str, str]:
    """What copies of jobs are told, too; GPUs that were not given are hidden where there are any."""
    found = {"JOBMAN_CORES": str(ceil(needs.cpu / 1000)), "JOBMAN_GPUS": str(len(gpus))}
    return found | ({"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if machine.gpus else {})
