"""`/v1/jobs/{ref}/logs`: what copies wrote, merged into the order of writing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, cast

import msgspec

from jobman.control.answers import LogLine
from jobman.control.api.call import Call, Desk
from jobman.control.api.endpoint import Resource
from jobman.control.api.jobs import ONE
from jobman.control.api.news import news_of_job
from jobman.control.api.query import Moment, Query, Text
from jobman.control.api.reading import find_job, is_over, job_answer, removal_words
from jobman.control.api.streams import EVENTS, LINES, Stream, bookmark, sse
from jobman.control.logs import streams
from jobman.control.logs.cursor import CursorError, LogCursor
from jobman.control.logs.feed import LogFeed
from jobman.control.logs.following import Follower, follow
from jobman.control.logs.merging import merge
from jobman.control.logs.sharing import apart
from jobman.control.refusals import Refusal
from jobman.control.store.records import JobRecord, LogRecord

logs = Resource("logs")
_encode = msgspec.json.Encoder().encode
_AT_ONCE = 1_000
_MANY_ATTEMPTS = 20
_SHARE_OF_BOOKMARKS = 20
"""A cursor of many streams is long: the next one is made no sooner than so many times as long as it took."""


class LogsQuery(Query, kw_only=True):
    """Which lines."""

    follow: Annotated[bool, msgspec.Meta(description="Go on with lines as they are written.")] = False
    tail: Annotated[int, msgspec.Meta(ge=0, le=10_000_000, description="The last so many.")] | None = None
    since: Annotated[Moment, msgspec.Meta(description="Written then or later.")] | None = None
    task: Text | None = None
    replica: (
        Annotated[
            Text,
            msgspec.Meta(description="Its key, or its index; of one copy with its number, as in train.3/1."),
        ]
        | None
    ) = None
    node: Text | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    stream: Literal["stdout", "stderr"] | None = None
    cursor: Annotated[str, msgspec.Meta(max_length=4_000_000, description="Where to go on.")] | None = None


@logs.serve(
    "GET",
    "/v1/jobs/{ref}/logs",
    query=LogsQuery,
    answers={200: (LINES, EVENTS)},
    refuses=(*ONE, "output-removed", "store"),
    headers={"Last-Event-ID": "Where to go on, in place of `cursor`, when lines are followed."},
)
async def read_logs(call: Call, query: LogsQuery) -> Stream:
    """The lines of a job's copies: those there are, or followed until the job is over."""
    record = await call.desk.read(find_job, call, call.part("ref"))
    cursor = _cursor(call, query)
    if query.follow and not is_over(record):
        return Stream(call.desk, _followed(call, query, record, cursor))
    found = await call.desk.read(_records, call.desk, query, record.id)
    removed = _removal(call.desk, record, found)
    if removed and all(each.removed_at is not None for each in found):
        raise Refusal("output-removed", removed, f"The job is still there: jobman details {record.id}")
    if query.follow:
        return Stream(call.desk, _followed(call, query, record, cursor, _of_the_rest(removed)))
    return Stream(call.desk, _written(call.desk, query, record, cursor, found), LINES)


def _cursor(call: Call, query: LogsQuery) -> LogCursor | None:
    text = (query.follow and call.header(b"last-event-id")) or query.cursor
    if not text:
        return None
    # A reader who comes back has seen the lines that it asked for first.
    query.tail = query.since = None
    try:
        return LogCursor.decode(text)
    except CursorError as error:
        raise Refusal("bad-request", str(error)) from None


# -- what is written -----------------------------------------------------------------------------------


async def _written(
    desk: Desk, query: LogsQuery, job: JobRecord, cursor: LogCursor | None, found: list[LogRecord]
) -> AsyncGenerator[bytes, None]:
    notes: list[str] = []
    lines = await desk.read(_merged, desk, found, query, cursor, notes.append)
    while data := await desk.read(_next_lines, lines):
        yield data
    removed = _removal(desk, job, found)
    if notes and (now := _removal(desk, job, await desk.read(_records, desk, query, job.id))) != removed:
        notes, removed = [], now  # It was removed while it was read, and that is why it could not be.
    yield b"".join(_encode(_note(words)) + b"\n" for words in [*notes, *_of_the_rest(removed)])


def _merged(
    desk: Desk,
    found: list[LogRecord],
    query: LogsQuery,
    cursor: LogCursor | None,
    note: Callable[[str], None],
) -> Iterator[streams.LogLine]:
    return merge(_readable(desk, found), since=query.since, tail=query.tail, cursor=cursor, note=note)


def _next_lines(lines: Iterator[streams.LogLine]) -> bytes:
    return b"".join(_encode(_line(line)) + b"\n" for line in islice(lines, _AT_ONCE))


# -- what is being written -----------------------------------------------------------------------------


async def _followed(
    call: Call, query: LogsQuery, job: JobRecord, cursor: LogCursor | None, first: Sequence[str] = ()
) -> AsyncGenerator[bytes, None]:
    desk, notes = call.desk, _Notes(first)
    # Asked before the streams: whatever begins in between is heard of.
    begin = (await desk.read(desk.store.last_numbers)).event
    feed = LogFeed(await desk.read(_streams, desk, query, job.id))
    follower = follow(
        feed, watcher=desk.logs, since=query.since, tail=query.tail, cursor=cursor, note=notes.add
    )
    scout = asyncio.ensure_future(_tell(feed, desk, query, job, begin))
    bookmarks = _Bookmarks(follower)
    try:
        async with aclosing(follower.batches()) as batches:
            async for batch in batches:
                yield b"".join([*notes.take(), *(_sent(line) for line in batch), bookmarks.next()])
        yield b"".join([*notes.take(), sse("end", _encode(job_answer(await scout)))])
    finally:
        scout.cancel()
        await asyncio.wait([scout])


async def _tell(feed: LogFeed, desk: Desk, query: LogsQuery, job: JobRecord, after: int) -> JobRecord:
    """Tell a follower of streams that begin and end, until the job is over."""
    try:
        async with aclosing(news_of_job(desk, job.id, after)) as news:
            async for events, record in news:
                job = record or job
                attempts = {(event.replica, event.attempt) for event in events if event.attempt is not None}
                if attempts:
                    feed.put(*await desk.read(_streams_of, desk, query, job.id, attempts))
        feed.put(*await desk.read(_streams, desk, query, job.id))
    finally:
        feed.finish()
    return job


class _Notes:
    """Words about what could not be read, until they are sent."""

    def __init__(self, first: Sequence[str]) -> None:
        self._words = list(first)

    def add(self, words: str) -> None:
        self._words.append(words)

    def take(self) -> list[bytes]:
        words, self._words = self._words, []
        return [sse("line", _encode(_note(each))) for each in words]


class _Bookmarks:
    """Where to go on, said behind each batch of lines unless that would be most of the work."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._not_before = 0.0

    def next(self) -> bytes:
        began = time.monotonic()
        if began < self._not_before:
            return b""
        said = bookmark(self._follower.cursor.encode())
        ended = time.monotonic()
        self._not_before = ended + _SHARE_OF_BOOKMARKS * (ended - began)
        return said


# -- streams -------------------------------------------------------------------------------------------


def _records(desk: Desk, query: LogsQuery, job: str) -> list[LogRecord]:
    """All output of a job that is asked for, also what was removed."""
    found: list[LogRecord] = []
    cursor = None
    while True:
        page = desk.store.logs(job, attempt=query.attempt, stream=query.stream, cursor=cursor)
        found += (record for record in page.items if _is_wanted(query, record))
        cursor = page.cursor
        if cursor is None:
            return found


def _removal(desk: Desk, job: JobRecord, found: Iterable[LogRecord]) -> str:
    """In words, when and why output was removed; empty where all of it is there."""
    moments = [record.removed_at for record in found if record.removed_at is not None]
    return removal_words(desk, job, max(moments)) if moments else ""


def _of_the_rest(removed: str) -> list[str]:
    """The note beside output that is there."""
    return [f"the rest of {removed}"] if removed else []


def _streams(desk: Desk, query: LogsQuery, job: str) -> list[streams.LogStream]:
    """All streams of a job that are asked for."""
    return _readable(desk, _records(desk, query, job))


def _readable(desk: Desk, found: Iterable[LogRecord]) -> list[streams.LogStream]:
    return apart(_stream(desk, record) for record in found if record.removed_at is None)


def _streams_of(
    desk: Desk, query: LogsQuery, job: str, attempts: set[tuple[str | None, int | None]]
) -> list[streams.LogStream]:
    """The streams of some attempts."""
    if len(attempts) > _MANY_ATTEMPTS:
        return _streams(desk, query, job)
    found = [record for key, attempt in attempts for record in desk.store.logs(job, key, attempt).items]
    if any(not Path(record.path).is_relative_to(Path(desk.folder)) for record in found):
        return _streams(desk, query, job)  # A file the user named: others may write to it, too.
    return [_stream(desk, record) for record in found if _is_wanted(query, record)]


def _is_wanted(query: LogsQuery, record: LogRecord) -> bool:
    return (
        query.attempt in (None, record.attempt)
        and query.stream in (None, record.stream)
        and query.node in (None, record.node)
        and (query.replica is None or query.replica in _names_of(record))
        and (query.task is None or _is_of_task(query.task, record.key))
    )


def _names_of(record: LogRecord) -> tuple[str, ...]:
    """How a replica is named, and one copy of it."""
    short = record.key.rpartition(".")[2]
    return record.key, short, f"{record.key}/{record.copy}", f"{short}/{record.copy}"


def _is_of_task(task: str, key: str) -> bool:
    """Whether a replica such as `train.0/test.3` is one of `test` or `train/test`, or inside of `train`."""
    names = [step.rpartition(".")[0] for step in key.split("/")]
    path = "/".join(names)
    return task in names or path == task or path.startswith(f"{task}/")


def _stream(desk: Desk, record: LogRecord) -> streams.LogStream:
    return streams.LogStream(
        replica=record.key,
        attempt=record.attempt,
        copy=record.copy,
        node=record.node or None,
        stream=cast(streams.StreamName, record.stream),
        path=Path(desk.folder) / record.path,
        start=record.start,
        # Unknown sizes are 0: then all that is in the file counts.
        end=(record.size or None) if record.ended else None,
        ended=record.ended,
    )


# -- lines ---------------------------------------------------------------------------------------------


def _sent(line: streams.LogLine) -> bytes:
    return sse("line", _encode(_line(line)))


def _line(line: streams.LogLine) -> LogLine:
    return LogLine(
        at=line.at,
        replica=line.replica,
        attempt=line.attempt,
        copy=line.copy,
        node=line.node or "",
        stream=line.stream,
        text=line.text,
        partial=line.partial,
        end=line.end,
    )


def _note(words: str) -> LogLine:
    return LogLine(at=time.time(), replica="", attempt=0, copy=0, stream="note", text=words)
