"""A simulated cluster with one driven job: attempts run as a script says, and drivers die where it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from math import inf

import msgspec

from jobman.api import loads
from jobman.client.driving.driver import Driver, NotNow
from jobman.client.driving.lead import Address, Wishes
from jobman.control.states import State
from jobman.engines.kubernetes.course import Course, course_data, course_of
from jobman.engines.kubernetes.objects import ConfigMap
from jobman.engines.kubernetes.seen import Seen
from jobman.plan.model import Plan

MOST_STEPS = 3000
STOP_SECONDS = 1.0
START_SECONDS = 0.5
Script = Callable[[str, int], tuple[float, str, int]]
"""For each attempt how long it takes, the reason of its failure and its exit code; no reason is success."""


class Died(Exception):
    """The driver was killed here."""


class Stuck(AssertionError):
    """Nothing will ever happen again, and the job is not over."""


class Try(msgspec.Struct):
    """An attempt that was made."""

    made: float
    ends: float
    reason: str = ""
    code: int | None = None
    stopped: bool = False


class SimulatedGround:
    """What outlives every driver: the time, the Jobs, the course and the wishes."""

    def __init__(self, script: Script, wishes: Mapping[float, Wishes] | None = None) -> None:
        self.time = 0.0
        self.tries: dict[Address, Try] = {}
        self.created: list[Address] = []
        self.config = ConfigMap(data=course_data(Course()))
        self.effects = 0
        self.dies: Iterator[int] = iter(())
        self._next_death: int | None = None
        self._script = script
        self._wishes = dict(wishes or {})
        self.ready_after: dict[str, float] = {}
        self.refused: dict[str, int] = {}
        """Tasks that are not let in, for so many trials."""
        self._deleted: set[Address] = set()
        self.halted: dict[Address, str] = {}
        """Attempts that were told to stop, and why."""

    # -- dying -----------------------------------------------------------------------------------------------

    def die_at(self, effects: Iterator[int]) -> None:
        """Drivers die at these effects, counted through all drivers; each has a before and an after."""
        self.dies = effects
        self._next_death = next(self.dies, None)

    def _pass(self) -> None:
        if self._next_death is not None and self.effects >= self._next_death:
            self._next_death = next(self.dies, None)
            self.effects += 1
            raise Died
        self.effects += 1

    # -- what a driver asks ----------------------------------------------------------------------------------

    def now(self) -> float:
        return self.time

    def wishes(self) -> Wishes:
        made = [moment for moment in self._wishes if moment <= self.time]
        return self._wishes[max(made)] if made else Wishes()

    async def look(self, addresses: Collection[Address], made: Collection[Address]) -> Mapping[Address, Seen]:
        del made
        return {one: self._seen(one) for one in addresses if one in self.tries and not self._is_gone(one)}

    def _is_gone(self, address: Address) -> bool:
        return address in self._deleted and self.tries[address].ends <= self.time

    def delete(self, address: Address) -> None:
        """Somebody deletes a Job; its pods take a moment to end."""
        self._deleted.add(address)
        one = self.tries[address]
        one.stopped, one.ends = True, self.time + STOP_SECONDS

    def _seen(self, address: Address) -> Seen:
        one = self.tries[address]
        begun = not (one.stopped and one.ends <= one.made) and self.time >= one.made + START_SECONDS
        if self.time < one.ends:
            ready = begun and self.time >= one.made + self.ready_after.get(address[0].split(".")[0], 0.0)
            return Seen(begun=begun, passed_start=begun, ready=ready, halted=one.stopped)
        return Seen(
            begun=begun,
            passed_start=begun,
            over=True,
            halted=one.stopped,
            reason=one.reason,
            exit_code=one.code,
        )

    async def write(self, course: Course, *, last: bool) -> None:
        del last
        self._pass()
        self.config = ConfigMap(data=course_data(course))
        self._pass()

    async def make(self, address: Address, *, stopped: bool) -> Seen | None:
        self._pass()
        name = address[0].split(".")[0]
        if self.refused.get(name, 0):
            self.refused[name] -= 1
            raise NotNow
        if address not in self.tries:
            assert address not in self.created, f"{address} was made twice"
            assert not self._runs(address[0]), f"{address[0]} runs twice"
            self.created.append(address)
            seconds, reason, code = self._script(*address)
            ends = self.time if stopped else self.time + START_SECONDS + seconds
            self.tries[address] = Try(self.time, ends, reason, code or None)
            if stopped:
                self.tries[address] = Try(self.time, self.time, "signal", None, True)
        self._pass()
        return None

    def _runs(self, key: str) -> bool:
        return any(other == key and self.time < one.ends for (other, _), one in self.tries.items())

    async def halt(self, address: Address, why: str = "") -> None:
        self._pass()
        one = self.tries[address]
        if not one.stopped and self.time < one.ends:
            one.stopped, one.reason, one.code = True, "signal", 143
            self.halted[address] = why
            one.ends = min(one.ends, self.time + STOP_SECONDS)
        self._pass()

    async def wait(self, until: float) -> None:
        moments = [until, *(moment for moment in self._wishes if moment > self.time)]
        for (key, _), one in self.tries.items():
            ready = self.ready_after.get(key.split(".")[0], 0.0)
            times = (one.made + START_SECONDS, one.made + ready, one.ends)
            moments += [moment for moment in times if moment > self.time]
        soonest = min(moments)
        if soonest == inf:
            raise Stuck(self)
        self.time = max(self.time, soonest)


def plan_of(text: str) -> Plan:
    spec = loads(text)
    assert spec.ok, spec.problems
    return spec.plan()


def driven(plan: Plan, ground: SimulatedGround) -> State:
    """Drive a job to its end, with a new driver for each that dies."""

    async def scenario() -> State:
        steps = 0
        while True:
            driver = Driver(plan, course_of(ground.config), 0.0, ground)
            try:
                while steps < MOST_STEPS:
                    steps += 1
                    if (outcome := await driver.step()) is not None:
                        return outcome
            except Died:
                continue
            raise Stuck("it does not come to an end")

    return asyncio.run(scenario())


def states(ground: SimulatedGround) -> dict[str, tuple[str, int]]:
    """Where every replica ended, and with which attempt."""
    return {each.key: (each.state, each.attempt) for each in course_of(ground.config).replicas}


def story(ground: SimulatedGround) -> list[str]:
    """What happened, in order."""
    return [f"{each.replica} {each.kind}" for each in course_of(ground.config).story]


def outcomes(ground: SimulatedGround) -> dict[tuple[str, str], str | None]:
    """What every unit came to in each of its scopes."""
    return {(each.scope, each.unit): each.outcome for each in course_of(ground.config).tasks}
