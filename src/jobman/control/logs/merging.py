"""The lines of many streams as one, in the order in which they were written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

from jobman.control.logs import files
from jobman.control.logs.cursor import LogCursor
from jobman.control.logs.sources import Note, Source, merged
from jobman.control.logs.streams import LogLine, LogStream

_MEMORY = 16 * 1024 * 1024
"""Bytes of text that a merge holds at once, as long as no line is longer than a page."""
_PAGE = 4096


def merge(
    streams: Sequence[LogStream],
    *,
    since: float | None = None,
    tail: int | None = None,
    cursor: LogCursor | None = None,
    note: Note | None = None,
) -> Iterator[LogLine]:
    """Every line written so far behind `cursor`, not before `since`, and of those the last `tail`.

    Lines of the same moment come in the order of their streams. The unfinished last line of a stream that has
    not ended comes as a partial one.
    """
    sources = opened(streams, cursor or LogCursor(), note)
    for source, position in zip(sources, beginnings(sources, since, tail), strict=True):
        source.position = position
    return whole(sources)


def start(
    streams: Sequence[LogStream],
    *,
    since: float | None = None,
    tail: int | None = None,
    cursor: LogCursor | None = None,
) -> LogCursor:
    """The position from which `merge` and `follow` deliver what these arguments ask for.

    It names every stream there is: a reader that has it can come back to lines of streams it never saw.
    """
    sources = opened(streams, cursor or LogCursor(), None)
    positions = zip(sources, beginnings(sources, since, tail), strict=True)
    return LogCursor({source.stream.key: position for source, position in positions})


def opened(streams: Sequence[LogStream], cursor: LogCursor, note: Note | None) -> list[Source]:
    """The streams that can be read, as far as they have come."""
    sources = [Source(stream, rank, cursor.of(stream), note) for rank, stream in enumerate(streams)]
    return [source for source in sources if source.look()]


def whole(sources: Sequence[Source]) -> Iterator[LogLine]:
    """All lines of the sources, as far as they have come."""
    chunk = chunk_for(len(sources))
    return merged(sources, [source.groups(source.size, math.inf, chunk) for source in sources])


def chunk_for(count: int) -> int:
    """How much to read at once of each stream: a power of two, the smaller the more there are."""
    chunk = files.WINDOW
    while chunk > _PAGE and chunk * count > _MEMORY:
        chunk //= 2
    return chunk


def beginnings(sources: Sequence[Source], since: float | None, tail: int | None) -> list[int]:
    """Where to begin in each source."""
    if since is not None:
        for source in sources:
            source.skip_before(since)
    if tail is not None:
        return _beginnings_of_last(sources, tail)
    return [source.position for source in sources]


def _beginnings_of_last(sources: Sequence[Source], count: int) -> list[int]:
    extra = _skip_to_last(sources, count) - count
    positions = {source.stream.key: source.position for source in sources}
    for line in islice(whole(sources), max(0, extra)):
        positions[line.key] = line.end
    return [positions[source.stream.key] for source in sources]


def _skip_to_last(sources: Sequence[Source], count: int) -> int:
    """Go, in each source, to where its last lines begin; returns how many lines that leaves in all."""
    floor, left = -math.inf, 0
    for source in sorted(sources, key=lambda source: source.moment(source.size), reverse=True):
        if source.moment(source.size) < floor:
            source.position = source.size
            continue
        found = source.skip_to_last(count)
        left += found
        if found == count:
            # No line before the last so many of one stream can be among the last so many of all.
            floor = max(floor, source.moment(source.position + 1))
    return left
