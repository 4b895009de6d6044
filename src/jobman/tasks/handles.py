"""Single tasks: each has a handle, and those that come together go together."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from jobman.tasks.courier import Courier, closed
from jobman.tasks.mapping import CHUNK, outcome
from jobman.tasks.model import Ends
from jobman.tasks.options import Template

_CHUNK_BYTES = 2 * 2**20
_AT_ONCE = 2


class Handle(Future[Any]):
    """A task that was submitted: a Future that also ends the task when it is cancelled."""

    def __init__(self, payload: bytes, decode: Callable[[bytes], Any]) -> None:
        super().__init__()
        self.payload = payload
        self.decode = decode
        self.batch: _Together | None = None
        self.index = 0

    @property
    def id(self) -> str | None:
        """Batch and place in it; None before it is accepted."""
        known = self.batch is not None and self.batch.number is not None
        return f"{self.batch.number}/{self.index}" if known and self.batch is not None else None

    def cancel(self) -> bool:
        """End the task, whether it waits or runs; false where it has ended before."""
        if self.cancelled():
            return True
        if not super().cancel():
            return False
        # Where two do so at once, one of them has told it.
        with suppress(InvalidStateError):
            self.set_running_or_notify_cancel()
        if self.batch is not None:
            self.batch.cancelled()
        return True

    def settle(self, found: Any) -> None:
        """Tell those who wait; nobody hears of one that was cancelled before."""
        with suppress(InvalidStateError):
            if isinstance(found, BaseException):
                self.set_exception(found)
            else:
                self.set_result(found)


class _Together:
    """Handles that are one batch."""

    def __init__(self, handles: list[Handle], courier: Courier, counter: Counter) -> None:
        self._handles: list[Handle | None] = list(handles)
        self._courier = courier
        self._counter = counter
        self._left = len(handles)
        self._ended: set[int] = set()
        self._ending: asyncio.Task[None] | None = None
        self.number: int | None = None
        for index, handle in enumerate(handles):
            handle.batch, handle.index = self, index

    def sent(self, batch: int) -> None:
        self.number = batch
        self._end()
        self._counter.accepted()

    def received(self, batch: int, ends: Ends) -> None:
        for place, index in enumerate(ends.indexes):
            handle, self._handles[index] = self._handles[index], None
            if handle is not None:
                _settle(handle, batch, ends, place)
        self._count(len(ends.indexes))
        if not self._left:
            self._courier.fetched(batch)

    def broken(self, error: BaseException) -> None:
        if self.number is None:
            self._counter.accepted()
        for handle in self._handles:
            if handle is not None:
                handle.settle(error)
        self._count(self._left)

    def _count(self, number: int) -> None:
        self._left -= number
        self._counter.ended(number)

    def cancelled(self) -> None:
        """Nobody wants one of them any more; may be called from any thread."""
        if not self._courier.is_closed:
            self._courier.soon(self._end)

    def _end(self) -> None:
        """End those that nobody wants; what comes while the broker is told goes together with the next."""
        if self.number is None or self._ending is not None:
            return
        unwanted = [
            index
            for index, handle in enumerate(self._handles)
            if handle is not None and handle.cancelled() and index not in self._ended
        ]
        if unwanted:
            self._ended.update(unwanted)
            self._ending = self._courier.end(self.number, unwanted)
            self._ending.add_done_callback(self._told)

    def _told(self, ending: asyncio.Task[None]) -> None:
        self._ending = None
        if not ending.cancelled():
            self._end()


def _settle(handle: Handle, batch: int, ends: Ends, place: int) -> None:
    try:
        found = outcome(batch, ends, place, handle.decode)
    except Exception as error:
        found = error
    handle.settle(found)


class Counter:
    """Where tasks are handed in; what comes while others are on their way goes together with the next."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self._line: deque[tuple[Template, Handle]] = deque()
        self._on_the_way = 0
        self._open = 0
        self._changed = threading.Condition()

    def put(self, template: Template, handle: Handle) -> None:
        """Submit a task."""
        with self._changed:
            self._open += 1
            self._line.append((template, handle))
            is_first = len(self._line) == 1
        if is_first:
            self._courier.soon(self._send)

    def wait(self) -> None:
        """Until all have ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open)

    def close(self) -> None:
        """Those that are not on their way yet stay here, and whoever waits for them is told."""
        with self._changed:
            left, self._line = self._line, deque()
        for _, handle in left:
            handle.settle(closed())
        self.ended(len(left))

    def _send(self) -> None:
        while self._on_the_way < _AT_ONCE and (taken := self._take()) is not None:
            template, handles = taken
            self._on_the_way += 1
            payloads = [handle.payload for handle in handles]
            together = _Together(handles, self._courier, self)
            self._courier.send(template.of(payloads), together)

    def _take(self) -> tuple[Template, list[Handle]] | None:
        """The first that wait, as many as are of one kind."""
        with self._changed:
            if not self._line:
                return None
            template = self._line[0][0]
            handles: list[Handle] = []
            size = 0
            while self._line and len(handles) < CHUNK and size < _CHUNK_BYTES:
                if self._line[0][0] != template:
                    break
                handles.append(self._line.popleft()[1])
                size += len(handles[-1].payload)
            return template, handles

    def accepted(self) -> None:
        """A batch is at the broker, or refused: the next may go. Called from the courier's thread."""
        self._on_the_way -= 1
        self._courier.soon(self._send)

    def ended(self, count: int) -> None:
        """So many have ended."""
        with self._changed:
            self._open -= count
            self._changed.notify_all()
