"""`/v1/jobs/{ref}/sessions`: into running copies, over plain requests that every proxy passes on.

What comes out is followed as events; what goes in comes in numbered requests, each of which counts once.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated

import msgspec

from jobman.control import sessions as kept
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Reply, Resource
from jobman.control.api.jobs import ONE
from jobman.control.api.query import Query
from jobman.control.api.reading import find_job
from jobman.control.api.streams import EVENTS, Stream, sse
from jobman.control.entering import NewSession, Session, SessionInput
from jobman.control.refusals import Refusal
from jobman.engines.base import CopyInfo
from jobman.engines.entering import Enterable, Entry

sessions = Resource("sessions")
log = logging.getLogger("jobman.sessions")
_HERE = (*ONE, "no-such-session", "stopping", "store")
_MOST_NAMED = 8


class OutputQuery(Query, kw_only=True):
    """From where on."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**53, description="The last number that was read.")] = 0


@sessions.serve(
    "POST",
    "/v1/jobs/{ref}/sessions",
    body=NewSession,
    answers={201: Session},
    refuses=(*ONE, "no-such-copy", "cannot", "forbidden", "quota", "engine", "stopping", "store"),
)
async def open_session(call: Call, wanted: NewSession) -> Reply:
    """Enter a running copy: for a command, or to connect to a port of it."""
    record = await call.desk.read(find_job, call, call.part("ref"))
    host, registry = call.director.host, call.desk.sessions
    copy = _copy(host.copies(record.id), wanted, record.name)
    if not isinstance(host, Enterable):
        raise Refusal(
            "cannot",
            "Copies that run on the machine of the service are not entered through it.",
            "`jobman connect` there becomes a process beside the copy.",
        )
    registry.check_room(call.caller.user)
    entry = Entry(
        command=tuple(wanted.command) or ("sh",),
        port=wanted.port,
        terminal=wanted.terminal,
        rows=wanted.rows,
        columns=wanted.columns,
    )
    try:
        passage = await host.enter(copy, entry)
    except Exception as error:
        raise _refusal(error) from error

    def runs() -> bool:
        return any(_is_same(copy, each) for each in host.copies(record.id))

    log.info("%s enters %s/%d of %s", call.caller.user, copy.replica, copy.copy, record.id)
    made = registry.add(record.id, call.caller.user, copy, passage, runs, call.desk.stopping)
    return Reply(_answer(made), 201)


@sessions.serve(
    "GET",
    "/v1/jobs/{ref}/sessions/{session}/output",
    query=OutputQuery,
    answers={200: EVENTS},
    refuses=_HERE,
    headers={"Last-Event-ID": "Where to go on, in place of `after`."},
)
async def read_session(call: Call, query: OutputQuery) -> Stream:
    """Follow what comes out of a session: events stdout and stderr, and at last end."""
    session = await _session(call)
    last = call.header(b"last-event-id") or ""
    after = int(last) if last.isascii() and last.isdecimal() and len(last) < 17 else query.after
    return Stream(call.desk, _events(session, after))


async def _events(session: kept.Session, after: int) -> AsyncGenerator[bytes, None]:
    async with aclosing(session.output(after)) as output:
        async for told in output:
            yield sse(told.event, told.data, told.number)


@sessions.serve(
    "POST",
    "/v1/jobs/{ref}/sessions/{session}/input",
    body=SessionInput,
    answers={200: Session},
    refuses=(*_HERE, "engine"),
)
async def feed_session(call: Call, given: SessionInput) -> Session:
    """Put something into a session, in the order of numbers. What the copy had no room for is sent again."""
    session = await _session(call)
    try:
        await session.put(given)
    except Exception as error:
        raise _refusal(error) from error
    return _answer(session)


@sessions.serve("DELETE", "/v1/jobs/{ref}/sessions/{session}", answers={200: Session}, refuses=_HERE)
async def close_session(call: Call) -> Session:
    """Leave a copy."""
    session = await _session(call)
    session.close()
    return _answer(session)


async def _session(call: Call) -> kept.Session:
    record = await call.desk.read(find_job, call, call.part("ref"))
    return call.desk.sessions.find(call.part("session"), record.id, call.caller.user)


def _copy(running: Sequence[CopyInfo], wanted: NewSession, job: str) -> CopyInfo:
    for copy in running:
        if (copy.replica, copy.copy) == (wanted.replica, wanted.copy):
            return copy
    names = [f"{copy.replica}/{copy.copy}" for copy in running]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    raise Refusal(
        "no-such-copy",
        f"{wanted.replica}/{wanted.copy} of {job} does not run now.",
        f"These do: {', '.join(names[:_MOST_NAMED])}{more}." if names else "Nothing of it does.",
    )


def _is_same(one: CopyInfo, other: CopyInfo) -> bool:
    return (one.replica, one.attempt, one.copy) == (other.replica, other.attempt, other.copy)


def _answer(session: kept.Session) -> Session:
    copy = session.copy
    return Session(
        id=session.id,
        job=session.job,
        replica=copy.replica,
        attempt=copy.attempt,
        copy=copy.copy,
        inputs=session.inputs,
    )


def _refusal(error: Exception) -> Refusal:
    """What a cluster says, as the service tells it; anything else is a fault of ours."""
    from jobman.engines.kubernetes.errors import ApiError, Forbidden, KubernetesError

    if isinstance(error, Refusal):
        return error
    if not isinstance(error, KubernetesError):
        raise error
    if isinstance(error, Forbidden):
        return Refusal("forbidden", f"The service itself may not: {error.message}", error.advice)
    return Refusal("cannot" if isinstance(error, ApiError) else "engine", error.message, error.advice)
