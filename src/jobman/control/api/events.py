"""`/v1/events`: what happened, in pages or as it happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import msgspec

from jobman.control.answers import Event, Page
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Resource
from jobman.control.api.jobs import ONE
from jobman.control.api.news import news, news_of_job
from jobman.control.api.query import Limit, Query, Text
from jobman.control.api.reading import event_answer, find_job, job_answer
from jobman.control.api.streams import EVENTS, Stream, bookmark, sse
from jobman.control.refusals import Refusal
from jobman.control.store.records import EventRecord, JobRecord

events = Resource("events")
_encode = msgspec.json.Encoder().encode
_LARGEST = 2**62

Number = Annotated[
    int, msgspec.Meta(ge=0, le=_LARGEST, description="The number of the last event one knows.")
]
RESUMED = {"Last-Event-ID": "Where to go on, in place of `after`, when events are followed."}


class EventsQuery(Query, kw_only=True):
    """Which events; `cursor` is `after` under the name that pages have for it."""

    after: Number | None = None
    cursor: Number | None = None
    limit: Limit = 100
    follow: Annotated[bool, msgspec.Meta(description="Go on with events as they happen.")] = False


class AllEventsQuery(EventsQuery, kw_only=True):
    """Which events, of which job."""

    job: Text | None = None


@events.serve(
    "GET",
    "/v1/events",
    query=AllEventsQuery,
    answers={200: (Page[Event], EVENTS)},
    refuses=(*ONE, "store"),
    headers=RESUMED,
)
async def all_events(call: Call, query: AllEventsQuery) -> Page[Event] | Stream:
    """What happened to all jobs one may see. Followed without `after`: only what happens from now on."""
    if query.job is not None:
        return await _of_job(call, query, query.job)
    after = _position(call, query)
    if not query.follow:
        return await _page(call, None, after or 0, query.limit)
    if after is None:
        after = (await call.desk.read(call.store.last_numbers)).event
    return Stream(call.desk, _follow_all(call, after))


@events.serve(
    "GET",
    "/v1/jobs/{ref}/events",
    query=EventsQuery,
    answers={200: (Page[Event], EVENTS)},
    refuses=(*ONE, "store"),
    headers=RESUMED,
)
async def events_of_job(call: Call, query: EventsQuery) -> Page[Event] | Stream:
    """What happened to a job. Followed, they begin with the first, and end when the job is over."""
    return await _of_job(call, query, call.part("ref"))


async def _of_job(call: Call, query: EventsQuery, reference: str) -> Page[Event] | Stream:
    record = await call.desk.read(find_job, call, reference)
    after = _position(call, query) or 0
    if not query.follow:
        return await _page(call, record.id, after, query.limit)
    return Stream(call.desk, _follow_job(call, record, after))


def _position(call: Call, query: EventsQuery) -> int | None:
    """Behind which event to begin; a client that comes back knows best."""
    told = call.header(b"last-event-id") if query.follow else None
    if told:
        if not (told.isascii() and told.isdigit() and int(told) <= _LARGEST):
            raise Refusal("bad-request", "The Last-Event-ID is not the number of an event.")
        return int(told)
    return query.cursor if query.cursor is not None else query.after


async def _page(call: Call, job: str | None, after: int, limit: int) -> Page[Event]:
    found = await call.desk.read(call.store.events, job, call.caller.horizon, after, limit)
    cursor = str(found[-1].number) if len(found) == limit else None
    return Page(items=[event_answer(record) for record in found], cursor=cursor)


async def _follow_all(call: Call, after: int) -> AsyncGenerator[bytes, None]:
    yield bookmark(after)
    async with aclosing(news(call.desk, after, call.caller.horizon)) as source:
        async for found in source:
            yield _sent(found)


async def _follow_job(call: Call, job: JobRecord, after: int) -> AsyncGenerator[bytes, None]:
    yield bookmark(after)
    async with aclosing(news_of_job(call.desk, job.id, after)) as source:
        async for found, record in source:
            job = record or job
            if found:
                yield _sent(found)
    yield sse("end", _encode(job_answer(job)))


def _sent(records: list[EventRecord]) -> bytes:
    return b"".join(sse("event", _encode(event_answer(record)), record.number) for record in records)
