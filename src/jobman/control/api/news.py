"""What happens from a moment on: the past from the store, then what is committed, each event once."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from jobman.control.api.call import Desk
from jobman.control.api.reading import is_over
from jobman.control.broadcast import Behind, Subscription
from jobman.control.store.records import EventRecord, JobRecord

_AT_ONCE = 500
_OWNERS = 10_000


async def news(desk: Desk, after: int, owner: str | None) -> AsyncGenerator[list[EventRecord], None]:
    """Events after a number, in lists, of one owner's jobs or of all. They have no end."""
    with desk.director.subscribe() as live:
        while True:
            async for events in past(desk, after, owner=owner):
                after = events[-1].number
                yield events
            try:
                async for events in _present(desk, live, owner):
                    # What was committed while the past was read is known from there.
                    if fresh := [event for event in events if event.number > after]:
                        after = fresh[-1].number
                        yield fresh
            except Behind:
                continue


async def news_of_job(
    desk: Desk, job: str, after: int
) -> AsyncGenerator[tuple[list[EventRecord], JobRecord | None], None]:
    """Events of a job after a number, in lists that may be empty, with the job as it was just before.

    Ends behind the last event of a job that is over or gone.
    """
    with desk.director.subscribe() as live:
        while True:
            record = await desk.read(desk.store.job, job)
            found = False
            async for events in past(desk, after, job=job):
                found, after = True, events[-1].number
                yield events, record
            if not found:
                yield [], record
            if record is None or is_over(record):
                return
            await _anything_about(live, job)


async def until_over(desk: Desk, record: JobRecord) -> JobRecord:
    """Wait for the end of a job; one that is deleted meanwhile is over as well."""
    after = (await desk.read(desk.store.last_numbers)).event
    async for _, found in news_of_job(desk, record.id, after):
        record = found or record
    return record


async def past(
    desk: Desk, after: int, *, job: str | None = None, owner: str | None = None
) -> AsyncGenerator[list[EventRecord], None]:
    """Events after a number that are in the store, in lists."""
    while events := await desk.read(desk.store.events, job, owner, after, _AT_ONCE):
        yield events
        after = events[-1].number
        if len(events) < _AT_ONCE:
            return


async def _present(
    desk: Desk, live: Subscription, owner: str | None
) -> AsyncGenerator[list[EventRecord], None]:
    owners = _Owners(desk)
    while True:
        events = await live.batch()
        yield [event for event in events if owner is None or await owners.of(event.job) == owner]


async def _anything_about(live: Subscription, job: str) -> None:
    try:
        while all(event.job != job for event in await live.batch()):
            pass
    except Behind:
        return


class _Owners:
    """Whose jobs events are about, as they do not say it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._known: dict[str, str | None] = {}

    async def of(self, job: str) -> str | None:
        if job not in self._known:
            if len(self._known) >= _OWNERS:
                self._known.clear()
            record = await self._desk.read(self._desk.store.job, job)
            self._known[job] = None if record is None else record.owner
        return self._known[job]
