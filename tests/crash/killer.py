"""Somebody who kills the service and those who look after copies, at random moments."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Self

from jobman.control.answers import Attempt
from jobman.engines.local.trees import Process
from tests.crash.machine import Machine
from tests.crash.victims import kill

_BEFORE = 5.0
"""A shim may start a copy although its launcher has been dead for a while."""


class Killed(NamedTuple):
    what: str
    who: Process
    at: float


class Killer(threading.Thread):
    """Kills the service, the launcher or a shim, again and again at moments that a seed decides."""

    def __init__(self, machine: Machine, seed: int) -> None:
        super().__init__(daemon=True)
        self._victims = machine.victims
        self._random = random.Random(seed)
        self._enough = threading.Event()
        self.killed: list[Killed] = []

    def run(self) -> None:
        finders: list[tuple[str, float, Callable[[], list[Process]]]] = [
            ("service", 0.45, self._victims.services),
            ("launcher", 0.15, self._victims.launchers),
            ("shim", 0.4, self._victims.shims),
        ]
        while not self._enough.wait(self._random.uniform(0.05, 1.2)):
            [(name, _, find)] = self._random.choices(finders, [weight for _, weight, _ in finders])
            found = find()
            victim = self._random.choice(found) if found else None
            if victim is not None and kill(victim):
                self.killed.append(Killed(name, victim, time.time()))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self.join()

    def count(self) -> Counter[str]:
        return Counter(each.what for each in self.killed)

    def could_see_nothing(self, attempt: Attempt, shim: Process) -> bool:
        """Whether both who may learn of the end of a copy, shim and launcher, were killed about then."""
        first, last = (attempt.started_at or 0) - _BEFORE, attempt.ended_at or 0
        meanwhile = [each for each in self.killed if first <= each.at <= last]
        return shim in [each.who for each in meanwhile] and "launcher" in [each.what for each in meanwhile]
