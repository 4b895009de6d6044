"""Workers on this machine: as many of each image as its outstanding seconds want, and none when all is done.

Each is an agent with a worker of its own. There are never more than the machine has room for: where that is
less than one of each image they take turns. All end with the broker, however that ends.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Container, Mapping
from contextlib import suppress

from jobman.tasks.broker import Broker
from jobman.tasks.local_types import LocalType, LocalTypes
from jobman.tasks.machine import Machine, this_machine
from jobman.tasks.members import Member
from jobman.tasks.room import Amounts, WrongResources, lacking, needs_of, share, times_in, without
from jobman.tasks.scaling import Limits, Scale, to_end
from jobman.tasks.station import CANNOT_START
from jobman.tasks.turns import Turns
from jobman.tasks.wire import Handler

log = logging.getLogger("jobman.tasks")
TARGET = 0.25
"""Seconds in which what is outstanding should be done: beyond, another core helps more than it costs."""
CALM = 10.0
_LOOK = 0.5
_START = 60.0
"""Seconds after which the turn of an image begins though its worker has not come up yet."""
_PAUSES = (1.0, 5.0)
"""Seconds before a worker that could not be started is tried again; after that its tasks are given up."""
_SHORT = 5.0
"""Seconds: an agent that ends earlier without being told to is not started anew at once."""
CANNOT_START_REASON, NO_ROOM = "worker-cannot-start", "no-room"
GiveUp = Callable[[str, str], None]
"""All that waits for an image is given up, for a reason."""


def demand(broker: Broker, leaving: Container[str] = frozenset()) -> dict[str, tuple[float, int]]:
    """Seconds of work that wait and slots that are busy, of each image that has some.

    What agents that are leaving finish is no work for anybody else.
    """
    busy: dict[str, int] = {}
    left: dict[str, int] = {}
    for batch in broker.batches.values():
        left[batch.image] = left.get(batch.image, 0) + batch.left
    for agent in broker.leases.agents.values():
        if agent.id in leaving:
            left[agent.image] = left.get(agent.image, 0) - agent.count
        else:
            busy[agent.image] = busy.get(agent.image, 0) + min(agent.count, agent.slots)
    found = {}
    for image in [image for image, count in left.items() if count > 0]:
        queue = broker.queues.get(image)
        waiting = queue.seconds if queue is not None and queue.count else 0.0
        # Those that rest between attempts are in no queue, and need somebody all the same.
        found[image] = (max(waiting, 1e-6), busy.get(image, 0))
    return found


class Pool:
    """The agents of this machine."""

    def __init__(
        self,
        broker: Broker,
        types: LocalTypes,
        handler: Handler,
        *,
        give_up: GiveUp,
        target: float = TARGET,
        calm: float = CALM,
    ) -> None:
        self._broker = broker
        self._types = types
        self._handler = handler
        self._give_up = give_up
        self._target = target
        self._calm = calm
        self._machine: Machine
        self._scales: dict[str, Scale] = {}
        self._turns = Turns()
        self._members: dict[str, Member] = {}
        self._numbers = itertools.count(1)
        self._changed = asyncio.Event()
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}

    async def run(self) -> None:
        """Have as many as are wanted, until cancelled."""
        self._machine = await asyncio.to_thread(this_machine)
        while True:
            self._adjust(asyncio.get_running_loop().time())
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._changed.wait()

    def wake(self) -> None:
        """Something has come: look at once."""
        self._changed.set()

    @property
    def is_idle(self) -> bool:
        """Whether there are no others than those that are there also when nothing is to be done."""
        return len(self._members) <= sum(type_.least for type_ in self._types.read())

    async def close(self) -> None:
        """End all of them now; what they had is given out again by the next broker."""
        await asyncio.gather(*(member.end() for member in self._members.values()))
        self._members.clear()

    # -- as many as are wanted ---------------------------------------------------------------------

    def _adjust(self, now: float) -> None:
        self._reap(now)
        known = self._types.by_image()
        work = demand(self._broker, {each.id for each in self._members.values() if each.is_leaving})
        active = [image for image in known if self._is_active(known[image], work)]
        needs = self._needs({image: known[image] for image in active}, work)
        wanted = self._wanted(known, needs, work, now)
        order = self._turns.order(wanted, work, now)
        idle = wanted.keys() - work.keys()
        shares = share({image: wanted[image] for image in order}, needs, self._machine.room, idle)
        staying = self._staying(known)
        served = {image for image, count in shares.items() if count}
        self._turns.note(wanted.keys() & work.keys(), served, self._present(staying, now), now)
        self._drain_others(staying, shares, now)
        self._start_missing(staying, shares, known, needs, now)

    def _is_active(self, type_: LocalType, working: Container[str]) -> bool:
        return type_.image in working or type_.image in self._scales or type_.least > 0

    def _needs(self, types: Mapping[str, LocalType], working: Container[str]) -> dict[str, Amounts]:
        """What a worker of each image needs; tasks of those that can never have it are given up."""
        found = {}
        for image, type_ in types.items():
            try:
                needs = needs_of(type_.resources)
                words = lacking(needs, self._machine.room)
            except WrongResources as error:
                words = str(error)
            if not words:
                found[image] = needs
            elif image in working:
                self._give_up(image, f"{NO_ROOM}: {words}")
        return found

    def _wanted(
        self,
        known: Mapping[str, LocalType],
        needs: Mapping[str, Amounts],
        work: Mapping[str, tuple[float, int]],
        now: float,
    ) -> dict[str, int]:
        found = {}
        for image in needs:
            limits = self._limits(known[image], needs[image])
            scale = self._scales.setdefault(image, Scale(limits))
            scale.limits = limits
            if wanted := min(scale.wanted(*work.get(image, (0.0, 0)), now), limits.most):
                found[image] = wanted
            elif image not in work:
                del self._scales[image]
        return found

    def _limits(self, type_: LocalType, needs: Amounts) -> Limits:
        room = times_in(needs, self._machine.room)
        most = room if type_.most is None else min(room, type_.most)
        least = min(type_.least, most)
        return Limits(least=least, most=most, slots=type_.slots, target=self._target, calm=self._calm)

    def _staying(self, known: Mapping[str, LocalType]) -> dict[str, list[Member]]:
        """Those of each image that were not told to end, and are as their type says now."""
        found: dict[str, list[Member]] = {}
        for member in self._members.values():
            if not member.is_leaving and known.get(member.image) == member.type:
                found.setdefault(member.image, []).append(member)
        return found

    def _present(self, staying: Mapping[str, list[Member]], now: float) -> set[str]:
        """The images of which a worker can take tasks: its agent asks for some as soon as it does."""
        agents = self._broker.leases.agents
        return {
            image
            for image, members in staying.items()
            if any(each.id in agents or now - each.since > _START for each in members)
        }

    def _drain_others(self, staying: dict[str, list[Member]], shares: Mapping[str, int], now: float) -> None:
        """Those that are too many, and those whose type was changed or removed."""
        agents = self._broker.leases.agents
        kept = {member.id for members in staying.values() for member in members}
        ends = [each.id for each in self._members.values() if each.id not in kept and not each.is_leaving]
        for image, members in staying.items():
            busy = {each.id: agents[each.id].count if each.id in agents else 0 for each in members}
            ends += to_end(busy, max(0, len(members) - shares.get(image, 0)))
        for id_ in ends:
            self._members[id_].drain(now)

    def _start_missing(
        self,
        staying: Mapping[str, list[Member]],
        shares: Mapping[str, int],
        known: Mapping[str, LocalType],
        needs: Mapping[str, Amounts],
        now: float,
    ) -> None:
        free = self._machine.room
        # Those that finish what they have still use their part.
        for member in self._members.values():
            free = without(free, member.holds(now))
        for image, count in shares.items():
            if now < self._not_before.get(image, 0.0):
                continue
            for _ in range(count - len(staying.get(image, ()))):
                if times_in(needs[image], free):
                    self._start(known[image], needs[image], now)
                # What is not free yet is kept for it as it becomes so.
                free = without(free, needs[image])

    def _start(self, type_: LocalType, needs: Amounts, now: float) -> None:
        used = {gpu for member in self._members.values() for gpu in member.gpus}
        gpus = [gpu for gpu in self._machine.gpus if gpu not in used][: needs.gpu]
        id_ = f"local-{os.getpid()}-{next(self._numbers)}"
        self._members[id_] = Member(
            id_,
            type_,
            needs,
            gpus,
            machine=self._machine,
            handler=self._handler,
            now=now,
            ended=self._changed.set,
        )

    # -- those that ended --------------------------------------------------------------------------

    def _reap(self, now: float) -> None:
        for member in list(self._members.values()):
            code = member.code
            if code is None:
                continue
            del self._members[member.id]
            if code == CANNOT_START:
                self._could_not_start(member.image, member.words, now)
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
