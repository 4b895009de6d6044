"""Group commit: many callers, one thread that writes, and one transaction for all that waits."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress

from jobman.control.store.errors import StoreError
from jobman.control.store.records import Changes
from jobman.control.store.rows import Batch, batch_of
from jobman.control.store.store import Store

_MOST = 20_000
"""So many rows make a transaction full: who waits for it should not wait for long."""


class _Write:
    """What one caller wants written, and where it waits."""

    __slots__ = ("batch", "future", "loop")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()

    def answer(self, error: Exception | None) -> None:
        """Tell the caller, from its own thread."""
        if self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


class Writer:
    """Writes changes in the order in which they are handed over."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[_Write] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="jobman-store", daemon=True)
        self._thread.start()

    async def write(self, changes: Changes) -> None:
        """Return when the changes are committed, as they were at the time of the call.

        A StoreError says that none of them was, or, if the connection broke at that very moment, perhaps all:
        to write them again is safe either way. They are written even if the caller is cancelled.
        """
        write = _Write(batch_of(changes))
        with self._changed:
            if self._closed:
                raise StoreError("The store is closed.", "The service is stopping.")
            self._waiting.append(write)
            self._changed.notify()
        await write.future

    async def close(self) -> None:
        """Write what waits, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        while writes := self._next():
            _answer(writes, self._written(writes))

    def _next(self) -> list[_Write]:
        """What goes into the next transaction; nothing when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            writes: list[_Write] = []
            rows = 0
            while self._waiting and rows < _MOST:
                writes.append(self._waiting.popleft())
                rows += len(writes[-1].batch)
            return writes

    def _written(self, writes: list[_Write]) -> Exception | None:
        """Commit all of them or none; what went wrong, if something did."""
        merged = Batch()
        for write in writes:
            merged.merge(write.batch)
        try:
            self._store.write_batch(merged)
        except Exception as error:
            return error
        return None


def _answer(writes: list[_Write], error: Exception | None) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Write]] = {}
    for write in writes:
        by_loop.setdefault(write.loop, []).append(write)
    for loop, answered in by_loop.items():
        with suppress(RuntimeError):  # its loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_answer_all, answered, error)


def _answer_all(writes: list[_Write], error: Exception | None) -> None:
    for write in writes:
        write.answer(error)
