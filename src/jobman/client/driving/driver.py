"""The driver: look, decide, write down, act, wait; until the job is over.

What is done follows from what is written down, never from what somebody remembers. So it does not matter
where a driver dies: the next one reads the same course, sees the same Jobs, and does what is still to do. An
attempt has one name, and what has a name is made once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from math import inf
from typing import Any, Protocol

from jobman.client.driving.lead import GONE, Address, Lead, Wishes
from jobman.control.states import State
from jobman.engines.kubernetes.course import Course
from jobman.engines.kubernetes.seen import Seen
from jobman.plan.model import Plan

_SIDE_BY_SIDE = 8
_LATER_SECONDS = 5.0


class NotNow(Exception):
    """What was to be made is not let in at this moment, as by a quota; it may be later."""


class Ground(Protocol):
    """The cluster, as far as one job is concerned."""

    def now(self) -> float:
        """Seconds since 1970."""

    def wishes(self) -> Wishes:
        """What people want of the job."""

    async def look(self, addresses: Collection[Address], made: Collection[Address]) -> Mapping[Address, Seen]:
        """What there is to see of attempts; one of which nothing is there, or not all, is left out."""

    async def write(self, course: Course, *, last: bool) -> None:
        """Put a course down; raises where somebody else drives."""

    async def make(self, address: Address, *, stopped: bool) -> Seen | None:
        """Make the Jobs of an attempt, or those of it that are missing; `stopped`, so that they never run.

        Returns how it failed where the cluster will never take it; raises NotNow.
        """

    async def halt(self, address: Address, why: str = "") -> None:
        """Stop what still runs of an attempt; `why` as in Replica.stopping_for."""

    async def wait(self, until: float) -> None:
        """Until something has changed, or that moment."""


class Driver:
    """Drives one job on its ground."""

    def __init__(self, plan: Plan, course: Course, submitted_at: float, ground: Ground) -> None:
        self._ground = ground
        self._written = course
        self._halted: set[Address] = set()
        self._lead = Lead(plan, course, submitted_at, ground.now())

    async def drive(self) -> State:
        """Go on until the job is over; returns its outcome."""
        while True:
            outcome = await self.step()
            if outcome is not None:
                return outcome

    async def step(self) -> State | None:
        """Take in what there is to see, put down what follows, and do it."""
        ground, lead = self._ground, self._lead
        lead.wish(ground.wishes(), ground.now())
        shown = await ground.look(self._addresses(), lead.made)
        lost = {each: GONE for each in self._addresses() if each in lead.made and each not in shown}
        lead.see({**shown, **lost}, ground.now())
        await self._put_down()
        if lead.outcome is not None:
            return lead.outcome
        again = await self._act()
        if again is not None:
            moments = [moment for moment in (again, lead.due()) if moment is not None]
            await ground.wait(min(moments))
        return None

    def _addresses(self) -> list[Address]:
        return [(replica.key, replica.attempt) for replica in self._lead.live()]

    async def _put_down(self) -> None:
        course = self._lead.course(self._ground.now())
        if course != self._written:
            await self._ground.write(course, last=self._lead.outcome is not None)
            self._written = course

    async def _act(self) -> float | None:
        """Do what is to be done; None where something was, else when to try again at the latest."""
        lead, ground = self._lead, self._ground
        shown = await ground.look(self._addresses(), lead.made)
        places = asyncio.Semaphore(_SIDE_BY_SIDE)
        later = False

        async def make(address: Address, stopped: bool) -> None:
            nonlocal later
            async with places:
                try:
                    failed = await ground.make(address, stopped=stopped)
                except NotNow:
                    later = True
                    return
            lead.made.add(address)
            if failed is not None:
                lead.see({address: failed}, ground.now())

        async def halt(address: Address, why: str) -> None:
            async with places:
                await ground.halt(address, why)
            self._halted.add(address)

        work = []
        for replica in lead.live():
            address = replica.key, replica.attempt
            is_stopping = replica.state is State.STOPPING
            seen = shown.get(address)
            if seen is None and address not in lead.made:
                work.append(make(address, is_stopping))
            elif seen is not None and (is_stopping or seen.failing) and not (seen.over or seen.halted):
                # It takes a moment until it is seen to have been told.
                why = replica.stopping_for or ""
                work += [halt(address, why)] if address not in self._halted else []
        await _all(work)
        if later:
            return ground.now() + _LATER_SECONDS
        return None if work else inf


async def _all(work: list[Coroutine[Any, Any, None]]) -> None:
    """Do all of it, also when some of it fails; then tell of the first that did."""
    for done in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(done, BaseException):
            raise done
