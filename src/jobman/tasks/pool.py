"""Workers on this machine: as many of each image as its outstanding seconds want, and none when all is done.

Each is an agent with a worker of its own. They end with the broker, however that ends.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping

import msgspec

from jobman.tasks.agent_process import CANNOT_START, AgentOptions
from jobman.tasks.broker import Broker
from jobman.tasks.local_types import LocalType, LocalTypes
from jobman.tasks.scaling import Limits, Scale, to_end

log = logging.getLogger("jobman.tasks")
TARGET = 0.25
"""Seconds in which what is outstanding should be done: beyond, another core helps more than it costs."""
CALM = 10.0
_LOOK = 0.5
_PAUSES = (1.0, 5.0)
"""Seconds before a worker that could not be started is tried again; after that its tasks are given up."""
_SHORT = 5.0
"""Seconds: an agent that ends earlier without being told to is not started anew at once."""
_PATIENCE = 20.0
"""Seconds in which an agent ends that is told to."""
_MOST_WORDS = 4096
CANNOT_START_REASON = "worker-cannot-start"
GiveUp = Callable[[str, str], None]
"""All that waits for an image is given up, for a reason."""


def share(wanted: Mapping[str, int], cores: int) -> dict[str, int]:
    """How many of each there are where all together are too many: whoever wants most gives first, to one."""
    found = dict(wanted)
    while sum(found.values()) > cores:
        largest = max(found, key=lambda image: found[image])
        if found[largest] <= 1:
            break
        found[largest] -= 1
    return found


def demand(broker: Broker) -> dict[str, tuple[float, int]]:
    """Seconds of work that wait and slots that are busy, of each image that has some."""
    busy: dict[str, int] = {}
    for agent in broker.leases.agents.values():
        busy[agent.image] = busy.get(agent.image, 0) + min(agent.count, agent.slots)
    found = {}
    for image in {batch.image for batch in broker.batches.values() if batch.left}:
        queue = broker.queues.get(image)
        waiting = queue.seconds if queue is not None and queue.count else 0.0
        # Those that rest between attempts are in no queue, and need somebody all the same.
        found[image] = (max(waiting, 1e-6), busy.get(image, 0))
    return found


class _Member:
    """An agent of the pool."""

    def __init__(
        self, id_: str, image: str, process: subprocess.Popen[bytes], words: int, since: float
    ) -> None:
        self.id = id_
        self.image = image
        self.process = process
        self.since = since
        self.is_leaving = False
        self.pidfd = os.pidfd_open(process.pid)
        self._words = words

    def last_words(self) -> str:
        """Why its worker could not be started; for when it has ended."""
        return os.read(self._words, _MOST_WORDS).decode(errors="replace")

    def close(self) -> None:
        os.close(self.pidfd)
        os.close(self._words)


class Pool:
    """The agents of this machine."""

    def __init__(
        self,
        broker: Broker,
        types: LocalTypes,
        place: str,
        *,
        give_up: GiveUp,
        cores: int | None = None,
        target: float = TARGET,
        calm: float = CALM,
    ) -> None:
        self._broker = broker
        self._types = types
        self._place = place
        self._give_up = give_up
        self._cores = cores or len(os.sched_getaffinity(0))
        self._target = target
        self._calm = calm
        self._scales: dict[str, Scale] = {}
        self._members: dict[str, _Member] = {}
        self._numbers = itertools.count(1)
        self._changed = asyncio.Event()
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}

    async def run(self) -> None:
        """Have as many as are wanted, until cancelled."""
        while True:
            self._adjust(asyncio.get_running_loop().time())
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), _LOOK)
            except TimeoutError:
                continue

    def wake(self) -> None:
        """Something has come: look at once."""
        self._changed.set()

    @property
    def size(self) -> int:
        return len(self._members)

    async def close(self) -> None:
        """End all of them now; what they had is given out again by the next broker."""
        for member in self._members.values():
            member.process.send_signal(signal.SIGINT)
        for member in list(self._members.values()):
            await asyncio.to_thread(_end, member.process)
            self._forget(member)

    # -- as many as are wanted ---------------------------------------------------------------------

    def _adjust(self, now: float) -> None:
        self._reap(now)
        wanted = share(self._wanted(now), self._cores)
        for image in {member.image for member in self._members.values()} | wanted.keys():
            staying = [each for each in self._members.values() if each.image == image and not each.is_leaving]
            missing = wanted.get(image, 0) - len(staying)
            if missing > 0:
                self._start(image, missing, is_first=not staying, now=now)
            elif missing < 0:
                self._drain(staying, -missing)

    def _wanted(self, now: float) -> dict[str, int]:
        needs = demand(self._broker)
        known = self._types.by_image()
        found = {}
        for image in needs.keys() | self._scales.keys():
            if image not in known:
                continue
            limits = Limits(most=self._cores, slots=known[image].slots, target=self._target, calm=self._calm)
            scale = self._scales.setdefault(image, Scale(limits))
            if wanted := scale.wanted(*needs.get(image, (0.0, 0)), now):
                found[image] = wanted
            elif image not in needs:
                del self._scales[image]
        return found

    def _start(self, image: str, count: int, *, is_first: bool, now: float) -> None:
        if now < self._not_before.get(image, 0.0):
            return
        # Those that finish what they have still use their cores.
        room = max(self._cores - len(self._members), 1 if is_first else 0)
        for _ in range(min(count, room)):
            id_ = f"local-{os.getpid()}-{next(self._numbers)}"
            self._members[id_] = member = self._spawn(id_, image, self._types.by_image()[image], now)
            asyncio.get_running_loop().add_reader(member.pidfd, self._changed.set)

    def _spawn(self, id_: str, image: str, type_: LocalType, now: float) -> _Member:
        read, write = os.pipe()
        options = AgentOptions(
            broker=self._place,
            image=image,
            command=type_.command,
            slots=type_.slots,
            id=id_,
            on_port=type_.on_port,
            folder=type_.folder,
            environment=type_.environment,
            gives_up=True,
            words=write,
        )
        words = [sys.executable, "-P", "-m", "jobman.tasks.agent_process", "--parent", str(os.getpid())]
        try:
            process = subprocess.Popen(
                [*words, msgspec.json.encode(options).decode()],
                stdin=subprocess.DEVNULL,
                process_group=0,
                pass_fds=(write,),
            )
        finally:
            os.close(write)
        return _Member(id_, image, process, read, now)

    def _drain(self, members: list[_Member], count: int) -> None:
        agents = self._broker.leases.agents
        busy = {each.id: agents[each.id].count if each.id in agents else 0 for each in members}
        for id_ in to_end(busy, count):
            self._members[id_].is_leaving = True
            self._members[id_].process.send_signal(signal.SIGTERM)

    # -- those that ended --------------------------------------------------------------------------

    def _reap(self, now: float) -> None:
        for member in list(self._members.values()):
            code = member.process.poll()
            if code is None:
                continue
            words = member.last_words()
            self._forget(member)
            if code == CANNOT_START:
                self._could_not_start(member.image, words, now)
                continue
            self._failures.pop(member.image, None)
            if not member.is_leaving and now - member.since < _SHORT:
                self._not_before[member.image] = now + _PAUSES[0]

    def _could_not_start(self, image: str, words: str, now: float) -> None:
        """Try again after a pause, but not for ever: whoever waits for it is told in the end."""
        tries = self._failures[image] = self._failures.get(image, 0) + 1
        self._not_before[image] = now + _PAUSES[min(tries, len(_PAUSES)) - 1]
        is_there = any(agent.image == image for agent in self._broker.leases.agents.values())
        if tries > len(_PAUSES) and not is_there:
            self._give_up(image, f"{CANNOT_START_REASON}: {words}")

    def _forget(self, member: _Member) -> None:
        asyncio.get_running_loop().remove_reader(member.pidfd)
        member.close()
        del self._members[member.id]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for one that was told to end; one that does not hear is killed, and its worker with it."""
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
