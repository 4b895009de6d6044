"""What became of tasks, for those who wait for it: in order, from any place on, as often as they like.

The latest is in memory; what is older is read from the journal. So a slow reader costs nobody anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from jobman.tasks.entries import ENDS, Entry

_MOST_BYTES = 64 * 2**20
_AT_ONCE = 16 * 2**20
"""Bytes that are told at once, and what the last entry has beyond."""
_SOON = 0.05
"""Seconds after which others hear of what one who waited for it was told at once."""
Read = Callable[[int, int], Iterable[Entry]]
"""So many entries behind a place, from the journal, one after the other."""


class Results:
    """The end of the journal, as far as it is written."""

    def __init__(self, read: Read, *, most: int = _MOST_BYTES) -> None:
        self._read = read
        self._most = most
        self._latest: deque[Entry] = deque()
        self._bytes = 0
        self._before = 0
        """The last that is not in memory any more."""
        self._news = asyncio.Event()
        self._answered: set[int] = set()
        self._waking: asyncio.TimerHandle | None = None

    def start(self, last: int) -> None:
        """What was written before this broker is in the journal alone."""
        self._before = last

    @property
    def place(self) -> int:
        """The last that is written."""
        return self._latest[-1].seq if self._latest else self._before

    def add(self, entries: Iterable[Entry]) -> None:
        """These are written: whoever waits may have them."""
        entries = list(entries)
        if not entries:
            return
        for entry in entries:
            self._latest.append(entry)
            self._bytes += len(entry.body)
        while self._bytes > self._most:
            gone = self._latest.popleft()
            self._bytes -= len(gone.body)
            self._before = gone.seq
        if any(entry.kind == ENDS and entry.batch not in self._answered for entry in entries):
            self._wake()
        elif self._waking is None:
            self._waking = asyncio.get_running_loop().call_later(_SOON, self._wake)

    def _wake(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None
        self._news.set()
        self._news = asyncio.Event()

    @contextmanager
    def answered(self, batch: int) -> Iterator[Callable[[], list[Entry]]]:
        """Who submitted a batch is told its end with the acceptance: for that nobody else is woken at once.

        Tells what has been written of its end.
        """
        before = self.place
        self._answered.add(batch)
        try:
            yield lambda: [each for each in self._behind(before) if each.batch == batch and each.kind == ENDS]
        finally:
            self._answered.discard(batch)

    async def after(
        self, place: int, most: int, wait: float, wanted: Callable[[Entry], bool]
    ) -> tuple[list[Entry], int]:
        """Entries behind a place that somebody wants, and the place up to which was looked.

        Where there are none yet, it waits for the first of them, but not longer than so many seconds.
        """
        deadline = asyncio.get_running_loop().time() + wait
        while True:
            news = self._news
            seen = await self._some(place, most)
            found = [entry for entry in seen if wanted(entry)]
            place = seen[-1].seq if seen else place
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0:
                return found, place
            if not seen:
                try:
                    async with asyncio.timeout(left):
                        await news.wait()
                except TimeoutError:
                    return [], place

    async def _some(self, place: int, most: int) -> list[Entry]:
        if place < self._before:
            return await asyncio.to_thread(lambda: list(_first(self._read(place, most), most)))
        return list(_first(self._behind(place), most))

    def _behind(self, place: int) -> Iterator[Entry]:
        """From the end back to the place: mostly that is near."""
        found = []
        for entry in reversed(self._latest):
            if entry.seq <= place:
                break
            found.append(entry)
        return reversed(found)


def _first(entries: Iterable[Entry], most: int) -> Iterator[Entry]:
    size = 0
    for _, entry in zip(range(most), entries, strict=False):
        yield entry
        size += len(entry.body)
        if size > _AT_ONCE:
            return
