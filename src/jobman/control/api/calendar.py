"""`/v1/calendar`: windows of maintenance and advance reservations."""

from __future__ import annotations

from typing import Annotated

import msgspec

from jobman.control.administration import CalendarEntry, CalendarKind, NewEntry
from jobman.control.answers import Listing
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Reply, Resource
from jobman.control.api.query import Query

calendar = Resource("calendar")


class KindQuery(Query, kw_only=True):
    """Which entries are meant."""

    kind: Annotated[CalendarKind, msgspec.Meta(description="Only of this kind.")] | None = None


@calendar.serve("GET", "/v1/calendar", query=KindQuery, answers={200: Listing[CalendarEntry]})
async def list_calendar(call: Call, query: KindQuery) -> Listing[CalendarEntry]:
    """List windows and reservations, those that come first first; those that are over stand last."""
    found = call.director.calendar()
    return Listing(items=[entry for entry in found if query.kind in (None, entry.kind)])


@calendar.serve(
    "POST",
    "/v1/calendar",
    body=NewEntry,
    answers={201: CalendarEntry},
    refuses=("no-such-node", "does-not-fit", "wrong-state", "store"),
    admin=True,
)
async def add_to_calendar(call: Call, wanted: NewEntry) -> Reply:
    """Add a window of maintenance or a reservation. Guarantees that it moves name it as the cause."""
    return Reply(await call.director.add_calendar(wanted, call.caller.user), 201)


@calendar.serve(
    "DELETE",
    "/v1/calendar/{entry}",
    query=KindQuery,
    answers={200: CalendarEntry},
    refuses=("no-such-entry", "store"),
    admin=True,
)
async def remove_from_calendar(call: Call, query: KindQuery) -> CalendarEntry:
    """Take a window or a reservation away, all of it; its nodes can be used again."""
    return await call.director.remove_calendar(call.part("entry"), query.kind, call.caller.user)
