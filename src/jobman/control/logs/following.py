"""Following streams: the past first, then each line as it comes, in the order of writing."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from itertools import islice
from pathlib import Path

import msgspec

from jobman.control.logs.cursor import LogCursor
from jobman.control.logs.feed import LogFeed
from jobman.control.logs.growth import Growth
from jobman.control.logs.merging import chunk_for, start
from jobman.control.logs.sources import Note, Source, merged
from jobman.control.logs.streams import LogLine, LogStream, StreamKey
from jobman.control.logs.watching import LogWatcher

_WINDOW = 0.05
"""Lines rest so long before they are delivered: by then all that was written before them has its marks."""
_PATIENCE = 0.2
"""A line that lacks its newline for so long is delivered as a partial one."""
_OVERDUE = 0.3
"""What has been seen for so long is delivered, whatever a clock that was set back says of its time."""
_POLL = 0.1
_BATCH = 1000


def follow(
    feed: LogFeed,
    *,
    watcher: LogWatcher | None = None,
    since: float | None = None,
    tail: int | None = None,
    cursor: LogCursor | None = None,
    note: Note | None = None,
) -> Follower:
    """The lines that `merge` would give, then those that come, until the feed is over and all are delivered.

    `since` and `tail` bound the past of the streams that are in the feed at first; all of a later stream is
    delivered. Without a watcher to tell of growth, files are looked at ten times a second.
    """
    return Follower(feed, watcher, since, tail, cursor or LogCursor(), note)


class _Followed(Source):
    """A stream that may grow while it is read."""

    glimpse = 0
    """A size up to which it is not delivered yet."""
    _glimpsed = 0.0
    _ripened = 0

    def ripe(self) -> tuple[int, float]:
        """Up to where lines may be delivered by now, and how old a line without newline has to be for it."""
        wall, overdue = time.time(), self._seen_for(time.monotonic()) >= _OVERDUE
        end = self.size if self.unmarked <= wall - _WINDOW else self._marked_by(wall - _WINDOW)
        if overdue:
            end = max(end, self.glimpse)
        at_last = end == self.size and (overdue or self.stream.ended)
        return end, math.inf if at_last else wall - _PATIENCE

    def _marked_by(self, moment: float) -> int:
        index = self._ripened = self.times.first_since(moment, self._ripened)
        return min(max(self.times[index - 1].offset if index else 0, self.position), self.size)

    def _seen_for(self, clock: float) -> float:
        """For how long something has been there that is not delivered."""
        if self.glimpse <= self.position:
            self.glimpse, self._glimpsed = self.size, clock
        return clock - self._glimpsed


class Follower:
    """An async iterator of lines; `batches` gives many at a time, and `cursor` is behind the last given."""

    def __init__(
        self,
        feed: LogFeed,
        watcher: LogWatcher | None,
        since: float | None,
        tail: int | None,
        cursor: LogCursor,
        note: Note | None,
    ) -> None:
        self.cursor = cursor.copy()
        self._feed = feed
        self._watched = watcher is not None
        self._growth = Growth({} if watcher is None else watcher.followers, feed.stirred)
        self._since, self._tail = since, tail
        self._note = note
        self._notes: list[str] = []
        self._rank = 0
        self._sources: dict[StreamKey, _Followed] = {}
        self._by_path: dict[Path, set[StreamKey]] = {}
        self._active: set[StreamKey] = set()
        self._over: set[StreamKey] = set()

    async def __aiter__(self) -> AsyncGenerator[LogLine, None]:
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for line in batch:
                    yield line

    async def batches(self) -> AsyncGenerator[list[LogLine], None]:
        """The lines in lists, none of them empty."""
        try:
            await self._begin()
            while True:
                over = self._feed.over.is_set()
                self._learn()
                lines = self._step(over)
                while batch := await asyncio.to_thread(_some, lines):
                    for line in batch:
                        self.cursor.advance(line)
                    yield batch
                self._settle()
                if over:
                    return
                await self._rest()
        finally:
            self._growth.close()

    async def _begin(self) -> None:
        streams = list({stream.key: stream for stream in self._feed.take()}.values())
        if self._since is not None or self._tail is not None:
            begin = await asyncio.to_thread(
                start, streams, since=self._since, tail=self._tail, cursor=self.cursor
            )
            self.cursor.offsets.update(begin.offsets)
        for stream in streams:
            self._add(stream)

    def _learn(self) -> None:
        """Take in what is new: files that grew, and streams that came or ended."""
        for path in self._growth.take():
            self._active |= self._by_path.get(path, set())
        for stream in self._feed.take():
            self._add(stream)

    def _add(self, stream: LogStream) -> None:
        key = stream.key
        if key in self._over:
            return
        if key in self._sources:
            self._sources[key].stream = stream
        else:
            self._sources[key] = _Followed(stream, self._rank, self.cursor.of(stream), self._notes.append)
            self._rank += 1
            self._by_path.setdefault(stream.path, set()).add(key)
            self._growth.add(stream.path)
        self._active.add(key)

    def _step(self, over: bool) -> Iterator[LogLine]:
        """The lines that may be delivered by now. Read in a thread, while the follower does nothing else."""
        sources = [self._sources[key] for key in (self._sources if over else self._active)]
        chunk = chunk_for(len(sources))
        readings = []
        for source in sources:
            if over:
                source.stream = msgspec.structs.replace(source.stream, ended=True)
            if source.look():
                end, stale = (source.size, math.inf) if over else source.ripe()
                readings.append(source.groups(end, stale, chunk))
        yield from merged(sources, readings)

    def _settle(self) -> None:
        """Lay aside the streams of which nothing is left to deliver at the moment, or for ever."""
        for note in self._notes:
            if self._note is not None:
                self._note(note)
        self._notes.clear()
        for key in tuple(self._active):
            source = self._sources[key]
            nothing_left = source.position >= source.size
            if source.failed or (nothing_left and source.stream.ended):
                self._drop(key)
            elif nothing_left and self._watched:
                self._active.discard(key)

    def _drop(self, key: StreamKey) -> None:
        path = self._sources.pop(key).stream.path
        self._active.discard(key)
        self._over.add(key)
        self._by_path[path].discard(key)
        if not self._by_path[path]:
            del self._by_path[path]
            self._growth.discard(path)

    async def _rest(self) -> None:
        """Sleep while there is nothing to do; while lines wait to be delivered, as long as they have to."""
        if self._active:
            await _set_within(self._feed.over, _WINDOW if self._watched else _POLL)
        else:
            await self._feed.stirred.wait()


def _some(lines: Iterator[LogLine]) -> list[LogLine]:
    return list(islice(lines, _BATCH))


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
