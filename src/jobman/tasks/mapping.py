"""Many payloads in, their results out, with as much under way as fits a bounded memory.

Payloads are taken from an iterator as there is room, in chunks that become batches. A consumer that is slow
leaves no room, so nothing more is taken: the iterator may have no end.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jobman.tasks.batches import Status
from jobman.tasks.courier import Courier
from jobman.tasks.failures import GridError, TaskFailed
from jobman.tasks.model import Ends
from jobman.tasks.options import Template

CHUNK = 1000
"""Tasks of a batch."""
_FIRST = 50
_CHUNK_BYTES = 2 * 2**20
_CHUNK_SECONDS = 0.05
"""How long a chunk is waited for to fill."""
WINDOW = 50_000
"""Tasks whose results are not consumed yet."""
_WINDOW_BYTES = 64 * 2**20
_STATUSES = {status: status.name.lower() for status in Status}


def outcome(batch: int, ends: Ends, place: int, decode: Callable[[bytes], Any]) -> Any:
    """What became of one task: its value, or why there is none."""
    result = ends.results[place] if ends.results else b""
    if ends.status == Status.COMPLETED:
        return decode(result)
    index = ends.indexes[place]
    attempts = ends.attempts.get(index, 1)
    return TaskFailed(f"{batch}/{index}", _STATUSES[Status(ends.status)], reason_of(ends, place), attempts)


def reason_of(ends: Ends, place: int) -> str:
    """Why there is no result."""
    said = ends.results[place].decode(errors="replace") if ends.results else ""
    return ends.reasons.get(ends.indexes[place]) or ends.reason or said


class _Chunk:
    """A batch that is under way; hands what comes over to the thread of the consumer."""

    def __init__(
        self, start: int, payloads: list[bytes], news: queue.SimpleQueue[Any], courier: Courier
    ) -> None:
        self.start = start
        self.payloads = payloads
        """Until they are accepted."""
        self.left = len(payloads)
        self._batch: int | None = None
        self._is_unwanted = False
        self._news = news
        self._courier = courier
        self._turn = threading.Lock()

    def sent(self, batch: int) -> None:
        with self._turn:
            self._batch = batch
            self.payloads = []
            if self._is_unwanted:
                self._end(batch)

    def leave(self) -> None:
        """End what is left of it."""
        with self._turn:
            self._is_unwanted = True
            if self._batch is not None:
                self._end(self._batch)

    def _end(self, batch: int) -> None:
        if not self._courier.is_closed:
            self._courier.cancel(batch)
            self._courier.fetched(batch)

    def received(self, batch: int, ends: Ends) -> None:
        self._news.put((self, batch, ends))

    def broken(self, error: BaseException) -> None:
        self._news.put((self, None, error))


class Mapping:
    """The results of payloads, in their order or as they come."""

    def __init__(
        self,
        courier: Courier,
        template: Template,
        payloads: Iterable[bytes],
        decode: Callable[[bytes], Any],
        *,
        ordered: bool = True,
        raises: bool = True,
        chunk: int = CHUNK,
        window: int = WINDOW,
    ) -> None:
        self._courier = courier
        self._template = template
        self._payloads: Iterator[bytes] | None = iter(payloads)
        self._decode = decode
        self._ordered = ordered
        self._raises = raises
        self._most, self._chunk = chunk, min(_FIRST, chunk)
        self._window = window
        self._news: queue.SimpleQueue[tuple[_Chunk, int | None, Any]] = queue.SimpleQueue()
        self._under_way: set[_Chunk] = set()
        self._taken = 0
        """Payloads so far."""
        self._given = 0
        """Outcomes so far."""
        self._waiting: dict[int, Any] = {}
        self._ready: deque[Any] = deque()
        self._result_bytes = 0
        self._results = 0

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                self._fill()
                if self._given == self._taken and self._payloads is None:
                    return
                self._hear(block=self._payloads is None or not self._has_room)
                while self._ready:
                    found = self._ready.popleft()
                    self._given += 1
                    if self._raises and isinstance(found, TaskFailed):
                        raise found
                    yield found
        finally:
            self._leave()

    # -- in ----------------------------------------------------------------------------------------

    @property
    def _has_room(self) -> bool:
        return self._taken - self._given < self._room()

    def _room(self) -> int:
        if not self._results:
            return self._window
        mean = self._result_bytes / self._results + 1
        return max(1, min(self._window, int(_WINDOW_BYTES / mean)))

    def _fill(self) -> None:
        """Take and submit payloads while there is room and nothing has come that could be given."""
        while self._payloads is not None and self._has_room:
            payloads = self._next_chunk(self._room() - (self._taken - self._given))
            if payloads:
                self._send(payloads)
            if not self._news.empty():
                return

    def _next_chunk(self, room: int) -> list[bytes]:
        found: list[bytes] = []
        size = 0
        until = time.monotonic() + _CHUNK_SECONDS
        assert self._payloads is not None
        most = min(self._chunk, room)
        for payload in self._payloads:
            found.append(payload)
            size += len(payload)
            if len(found) >= most or size >= _CHUNK_BYTES or time.monotonic() > until:
                self._chunk = min(self._chunk * 2, self._most)
                return found
        self._payloads = None
        return found

    def _send(self, payloads: list[bytes]) -> None:
        self._put(self._taken, payloads)
        self._taken += len(payloads)

    def _put(self, start: int, payloads: list[bytes]) -> None:
        chunk = _Chunk(start, payloads, self._news, self._courier)
        self._under_way.add(chunk)
        self._courier.send(self._template.of(payloads), chunk)

    def _put_halves(self, chunk: _Chunk) -> None:
        """It is more than may be in the queue at once."""
        half = len(chunk.payloads) // 2
        self._most = self._chunk = min(self._most, half)
        self._put(chunk.start, chunk.payloads[:half])
        self._put(chunk.start + half, chunk.payloads[half:])

    # -- out ---------------------------------------------------------------------------------------

    def _hear(self, *, block: bool) -> None:
        if block and not self._ready:
            self._take(*self._news.get())
        while not self._news.empty():
            self._take(*self._news.get())

    def _take(self, chunk: _Chunk, batch: int | None, said: Any) -> None:
        if batch is None:
            self._under_way.discard(chunk)
            if isinstance(said, GridError) and said.code == "quota" and len(chunk.payloads) > 1:
                self._put_halves(chunk)
                return
            raise said
        ends: Ends = said
        self._results += len(ends.indexes)
        self._result_bytes += sum(map(len, ends.results))
        found = (outcome(batch, ends, place, self._decode) for place in range(len(ends.indexes)))
        if self._ordered:
            self._waiting.update(zip((chunk.start + index for index in ends.indexes), found, strict=True))
            self._put_in_order()
        else:
            self._ready.extend(found)
        chunk.left -= len(ends.indexes)
        if not chunk.left:
            self._under_way.discard(chunk)
            self._courier.fetched(batch)

    def _put_in_order(self) -> None:
        place = self._given + len(self._ready)
        while place in self._waiting:
            self._ready.append(self._waiting.pop(place))
            place += 1

    def _leave(self) -> None:
        """Who stops in the middle wants nothing of the rest."""
        for chunk in self._under_way:
            chunk.leave()
        self._under_way.clear()
