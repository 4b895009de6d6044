"""A stream while it is read: lines in groups that were written by the same moment, and the merge of such."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from jobman.control.logs.files import NEWLINE, blocks, boundaries, last_lines
from jobman.control.logs.streams import LogLine, LogStream
from jobman.control.logs.times import Times

Note = Callable[[str], None]
"""Told in a sentence what could not be read."""


class Group(NamedTuple):
    """Lines that were written by the same moment; the order of these tuples is the order of the merge."""

    at: float
    rank: int
    offset: int
    data: bytes
    partial: bool


class Source:
    """One stream, from a position on. `rank` decides between lines of the same moment."""

    def __init__(self, stream: LogStream, rank: int, position: int, note: Note | None = None) -> None:
        self.stream = stream
        self.rank = rank
        self.position = max(position, stream.start)
        self.size = 0
        self.times = Times(stream.marks)
        self._touched = 0.0
        self._reached = 0.0
        self.failed = False
        self._note = note

    def look(self) -> bool:
        """Learn how far the stream has come; False if there is nothing to be read (any more)."""
        try:
            status = self.stream.path.stat()
        except OSError as problem:
            return self._missing(problem)
        end = self.stream.end
        self.size = max(self.position, status.st_size if end is None else min(end, status.st_size))
        self._touched = status.st_mtime
        self.times.refresh()
        return True

    def moment(self, end: int) -> float:
        """When everything before an offset had been written: by its marks, or by the file's own time."""
        mark = self.times.covering(end)
        return self.unmarked if mark is None else mark.at

    @property
    def unmarked(self) -> float:
        """The moment of what no mark covers."""
        return max(self.times.last.at, self._touched)

    # -- where to begin ------------------------------------------------------------------------------

    def skip_before(self, moment: float) -> None:
        """Go to the first line that was not written before a moment, or to the line being written."""
        index = self.times.first_since(moment)
        offset = self.size
        if index < len(self.times) or self.unmarked >= moment:
            offset = min(max(self.times[index - 1].offset if index else 0, self.position), self.size)
        if offset == self.size and self.stream.ended:
            self.position = self.size
        else:
            self.position = self._boundary(offset)

    def skip_to_last(self, count: int) -> int:
        """Go to where the last lines begin; how many there are, if fewer than asked for."""
        try:
            self.position, found = last_lines(self.stream.path, self.position, self.size, count)
        except OSError:
            return 0  # reading will say why
        return found

    def _boundary(self, offset: int) -> int:
        try:
            return next(boundaries(self.stream.path, self.position, self.size, offset))
        except OSError:
            return self.position  # reading will say why

    # -- reading -------------------------------------------------------------------------------------

    def groups(self, end: int, stale: float = math.inf, chunk: int | None = None) -> Iterator[Group]:
        """Lines up to an offset; a last one without newline only if it began no later than `stale`."""
        reached = self._reached
        for group in self._readable(end, stale, chunk):
            # Whatever a damaged file of marks says, the lines of a stream keep their order.
            reached = max(reached, group.at)
            yield group if group.at == reached else group._replace(at=reached)

    def _readable(self, end: int, stale: float, chunk: int | None) -> Iterator[Group]:
        try:
            for offset, data, whole in blocks(self.stream.path, self.position, end, chunk):
                if data.endswith(NEWLINE):
                    yield from self._timed(offset, data)
                elif whole or self.moment(offset + 1) <= stale:
                    stop = offset + len(data)
                    partial = stop < self.size or not self.stream.ended
                    yield Group(self.moment(stop), self.rank, offset, data, partial)
        except OSError as problem:
            self._missing(problem)

    def lines(self, group: Group) -> Iterator[LogLine]:
        """The lines of a group. The position moves behind it."""
        at, _, offset, data, partial = group
        self.position, self._reached = offset + len(data), at
        (replica, attempt, copy, name), node = self.stream.key, self.stream.node
        if not data.endswith(NEWLINE):
            text = data.decode("utf-8", "replace")
            yield LogLine(at, replica, attempt, copy, node, name, text, partial, self.position)
            return
        for raw in data[:-1].split(NEWLINE):
            offset += len(raw) + 1
            text = raw.decode("utf-8", "replace")
            yield LogLine(at, replica, attempt, copy, node, name, text, False, offset)

    def _timed(self, offset: int, data: bytes) -> Iterator[Group]:
        """Whole lines, cut where the moment changes. A line across a mark belongs to the next."""
        begin, length = 0, len(data)
        while begin < length:
            mark = self.times.covering(offset + data.find(NEWLINE, begin) + 1)
            at, reach = (self.unmarked, length) if mark is None else (mark.at, mark.offset - offset)
            stop = length if reach >= length else data.rfind(NEWLINE, begin, reach) + 1
            yield Group(at, self.rank, offset + begin, data[begin:stop], False)
            begin = stop

    def _missing(self, problem: OSError) -> bool:
        if isinstance(problem, FileNotFoundError) and not self.stream.ended:
            return False  # its copy has not begun to write
        self.failed = True
        if self._note is not None:
            why = problem.strerror or str(problem)
            self._note(f"The {self.stream} cannot be read: {why}: {self.stream.path}")
        return False


def merged(sources: Iterable[Source], readings: Iterable[Iterator[Group]]) -> Iterator[LogLine]:
    """The lines of many readings in the order in which they were written."""
    by_rank = {source.rank: source for source in sources}
    for group in heapq.merge(*readings):
        yield from by_rank[group.rank].lines(group)
