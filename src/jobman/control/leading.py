"""Leading: of several servers one works, and the others stand by until it is gone.

```
 stand by ──▶ the Lease is ours ──▶ claim the store (epoch) ──▶ work ──▶ give the Lease back
                                                                  │
                                       the Lease is lost ◀────────┘  end at once, exit code 1
```

The Lease says who may begin; the epoch in the store keeps whoever lost it from writing, whatever it believes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple

from jobman.control.admission import SettingsShelf
from jobman.control.front import Front
from jobman.control.hosting import access_of
from jobman.control.standby import Standby
from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.managed.advertising import Advertisement, endpoints
from jobman.engines.kubernetes.managed.leadership import Leadership
from jobman.engines.kubernetes.managed.lease import Terms
from jobman.garbage import collector_paused

if TYPE_CHECKING:
    from jobman.control.serving import Build, ServeOptions

log = logging.getLogger("jobman.service")
LOST = 1
"""The exit code of a server that lost the Lease; whoever started it should start it again."""


class LeaseOptions(NamedTuple):
    """Which Lease to wait for."""

    name: str = "jobman"
    namespace: str | None = None
    """That of the jobs, by default."""
    seconds: int = 15
    """How long it lasts without a sign of life from its holder."""
    service: str | None = None
    """The Service beside the Lease whose only endpoint is the leader."""
    address: str = ""
    """Of this server, for that."""


async def lead(options: ServeOptions, build: Build, announce: Callable[[str], None]) -> int:
    """Stand by, then lead until told to stop or until the Lease is lost; returns the exit code."""
    assert options.lease is not None
    access = access_of(options, SettingsShelf())
    terms = Terms.lasting(options.lease.seconds)
    leadership = Leadership(access, options.lease.name, namespace=options.lease.namespace, terms=terms)
    return await _Lead(options, leadership, access).live(build, announce)


class _Lead:
    """A server that takes part in an election."""

    def __init__(self, options: ServeOptions, leadership: Leadership, access: Access) -> None:
        self._options = options
        self._leadership = leadership
        self._access = access
        self._front = Front(options, Standby(self._words))
        self._changed = asyncio.Event()
        self._told_to_stop = asyncio.Event()

    async def live(self, build: Build, announce: Callable[[str], None]) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        self._leadership.on_change = lambda: self._hear(loop)
        await self._front.open()
        announce(self._front.address)
        log.info("standing by at=%s identity=%s", self._front.address, self._leadership.identity)
        self._leadership.start()
        try:
            await asyncio.to_thread(_load, self._options)
            return await self._work(build) if await self._wait() else 0
        finally:
            # Nothing of this server acts any more: the next one need not wait for those who still read here.
            await asyncio.to_thread(self._leadership.leave)
            self._front.stop()
            await self._front.ended()

    async def _wait(self) -> bool:
        """Wait for the Lease; false where it is told to stop before."""
        while not self._leadership.has_won:
            if self._leadership.failure is not None:
                raise self._leadership.failure
            if self._told_to_stop.is_set():
                return False
            await self._next_change()
        return not self._told_to_stop.is_set()

    async def _work(self, build: Build) -> int:
        """Do the work of the leader until it ends by itself, or the Lease is lost."""
        working = asyncio.ensure_future(self._direct(build))
        while not working.done() and not self._must_end:
            change = asyncio.ensure_future(self._next_change())
            await asyncio.wait([working, change], return_when=asyncio.FIRST_COMPLETED)
            change.cancel()
        if working.done() and not self._leadership.is_lost:
            return working.result()
        self._front.app = Standby(self._words)
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await working
        return LOST if self._leadership.is_lost else 0

    @property
    def _must_end(self) -> bool:
        return self._leadership.is_lost or self._told_to_stop.is_set()

    async def _direct(self, build: Build) -> int:
        from jobman.control.life import Life

        with contextlib.ExitStack() as start:
            start.enter_context(collector_paused())
            director = await build(self._options._replace(guard=self._leadership.check))
            self._leadership.epoch = director.store.epoch
            try:
                self._leadership.check()
                await director.start()
                life = Life(self._options, director, self._front)
                start.close()
                async with self._advertisement():
                    return await life.lead()
            finally:
                await director.stop()

    def _advertisement(self) -> AbstractAsyncContextManager[None]:
        lease = self._options.lease
        if lease is None or lease.service is None:
            return contextlib.nullcontext()
        namespace = self._leadership.namespace
        written = endpoints(lease.service, namespace, lease.address, self._front.port)
        return Advertisement(self._access, written, self._leadership.check)

    async def _next_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    def _hear(self, loop: asyncio.AbstractEventLoop) -> None:
        """News of the Lease, in its thread."""
        if self._leadership.is_lost:
            _end_within(self._leadership.time_left)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._changed.set)

    def _stop(self) -> None:
        self._told_to_stop.set()
        self._changed.set()

    def _words(self) -> str:
        leadership = self._leadership
        if leadership.leads:
            return "This server takes over, and is not ready yet."
        if leadership.leader and leadership.leader != leadership.identity:
            return f"Another server leads: {leadership.leader}."
        return f"Nobody leads yet: {leadership.trouble or 'this server waits for its turn'}."


def _load(options: ServeOptions) -> None:
    """What only the leader needs is read while there is time: who takes over should not be slow."""
    import jobman.control.building
    import jobman.control.life

    if options.engine == "kubernetes":
        import jobman.engines.kubernetes.managed.engine  # noqa: F401


def _end_within(seconds: float) -> None:
    """Whatever the process is busy with: before anybody else may lead, it is gone."""
    if seconds <= 0:
        log.critical("ends at once: another server may lead")
        os._exit(LOST)
    timer = threading.Timer(seconds, os._exit, [LOST])
    timer.daemon = True
    timer.start()
