"""Probes: the checks of an attempt over the time it runs, and what they say of it as a whole.

Of each copy the `started` check is tried first and holds the others back. The attempt has started, and is
ready, when all of its copies are. The first copy that is not alive, or never starts, makes it unhealthy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal

from jobman.engines.local.prepared import Copy
from jobman.engines.local.tries import Try, try_check
from jobman.spec.checks import Check, Checks

Kind = Literal["started", "ready"]
_EAGER = 0.05


class Probes:
    """The probes of one attempt. `passed` and `unhealthy` are called when the attempt changes."""

    def __init__(
        self,
        checks: Checks,
        copies: Sequence[Copy],
        *,
        passed: Callable[[Kind, bool], None],
        unhealthy: Callable[[str], None],
        attempt: Try = try_check,
    ) -> None:
        self._checks = checks
        self._copies = copies
        self._passed = passed
        self._unhealthy = unhealthy
        self._try = attempt
        self._good: dict[Kind, set[int]] = {"started": set(), "ready": set()}
        self._may_go = asyncio.Event()
        self._may_go.set()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, since: float | None = None) -> None:
        """Begin; `since` is when the copies were started, where that was before."""
        ago = 0.0 if since is None else max(0.0, time.time() - since)
        self._tasks = [asyncio.create_task(self._watch(copy, ago)) for copy in self._copies]

    def pause(self) -> None:
        """Try nothing while the copies stand still."""
        self._may_go.clear()

    def resume(self) -> None:
        self._may_go.set()

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _watch(self, copy: Copy, ago: float) -> None:
        checks = self._checks
        if checks.started is not None and not await self._wait_for_start(checks.started, copy, ago):
            return
        async with asyncio.TaskGroup() as both:
            if checks.ready is not None:
                both.create_task(self._watch_readiness(checks.ready, copy, ago))
            if checks.alive is not None:
                both.create_task(self._watch_life(checks.alive, copy, ago))

    async def _wait_for_start(self, check: Check, copy: Copy, ago: float) -> bool:
        async for problem, row in self._rows(check, copy, ago):
            if not problem and row >= check.successes:
                self._note("started", copy, good=True)
                return True
            if problem and row >= check.failures:
                self._give_up("started", copy, problem, row)
                return False
        return False

    async def _watch_readiness(self, check: Check, copy: Copy, ago: float) -> None:
        async for problem, row in self._rows(check, copy, ago, eager=True):
            if row >= (check.failures if problem else check.successes):
                self._note("ready", copy, good=not problem)

    async def _watch_life(self, check: Check, copy: Copy, ago: float) -> None:
        async for problem, row in self._rows(check, copy, ago):
            if problem and row >= check.failures:
                self._give_up("alive", copy, problem, row)
                return

    async def _rows(
        self, check: Check, copy: Copy, ago: float, *, eager: bool = False
    ) -> AsyncIterator[tuple[str, int]]:
        """Try for ever: what was wrong, and how many tries in a row ended like this one.

        Until the first success, whoever is eager does not wait as long as it will later.
        """
        pause = _EAGER if eager else check.every
        await asyncio.sleep(max(0.0, check.delay - ago))
        last, row = None, 0
        while True:
            await self._may_go.wait()
            problem = await self._try(check, copy)
            # What stood still in the middle of a try could not answer.
            if self._may_go.is_set():
                row = row + 1 if bool(problem) is last else 1
                last = bool(problem)
                yield problem, row
            pause = check.every if last is False else min(check.every, pause * 2)
            await asyncio.sleep(pause)

    def _note(self, kind: Kind, copy: Copy, *, good: bool) -> None:
        """One copy counts as good from now on, or as bad; told only where the attempt changes by it."""
        known = self._good[kind]
        before = len(known) == len(self._copies)
        (known.add if good else known.discard)(copy.order.copy)
        after = len(known) == len(self._copies)
        if before != after:
            self._passed(kind, after)

    def _give_up(self, kind: str, copy: Copy, problem: str, row: int) -> None:
        which = f" of copy {copy.order.copy}" if len(self._copies) > 1 else ""
        times = "" if row == 1 else f" {row} times in a row"
        self._unhealthy(f"the check `{kind}`{which} failed{times}: {problem}")
