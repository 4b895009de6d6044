"""The service about itself: health, status, metrics, its description, and how to stop it."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec

from jobman.control.answers import Health, Status
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Reply, Resource
from jobman.control.api.query import Query
from jobman.control.refusals import Refusal
from jobman.version import __version__

service = Resource("service")
METRICS = "text/plain; version=0.0.4; charset=utf-8"
HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
ALIVE_PATH = "/healthz"
ALIVE = Reply(b"alive\n", media=TEXT)


class StopQuery(Query, kw_only=True):
    """How to stop."""

    force: Annotated[bool, msgspec.Meta(description="Also while jobs wait or run; their copies go on.")] = (
        False
    )
    restart: Annotated[bool, msgspec.Meta(description="Another one is started right after.")] = False


@service.serve("GET", "/v1/health", answers={200: Health}, public=True)
async def health(call: Call) -> Health:
    """Whether the service answers and can work."""
    return Health(status="degraded" if call.director.trouble else "ok", version=__version__)


@service.serve("GET", ALIVE_PATH, answers={200: TEXT}, public=True)
async def alive(_call: Call) -> Reply:
    """Whether the process answers at all; one that does not should be started again."""
    return ALIVE


@service.serve("GET", "/readyz", answers={200: TEXT}, public=True)
async def ready(call: Call) -> Reply:
    """Whether requests should come here: not to a server that stands by while another leads."""
    trouble = call.director.trouble
    return Reply(f"in trouble: {trouble}\n".encode() if trouble else b"ready\n", media=TEXT)


@service.serve("GET", "/v1/status", answers={200: Status}, refuses=("store",))
def status(call: Call) -> Status:
    """What the service is and how it fares; users see their own jobs counted."""
    desk, trouble = call.desk, call.director.trouble
    return Status(
        version=__version__,
        pid=os.getpid(),
        mode=desk.mode,
        since=desk.since,
        database=desk.database,
        folder=desk.folder,
        socket=desk.socket,
        listen=desk.listen,
        jobs=call.store.counts(call.caller.horizon),
        healthy=not trouble,
        trouble=trouble,
        notes=call.director.notes,
    )


@service.serve(
    "POST",
    "/v1/stop",
    query=StopQuery,
    answers={200: Health},
    refuses=("forbidden", "wrong-state"),
    admin=True,
)
async def stop(call: Call, query: StopQuery) -> Health:
    """Stop the service. Copies that run go on, and are looked after again by the next one."""
    if not query.force and not call.director.is_idle():
        raise Refusal(
            "wrong-state",
            "Jobs wait or run.",
            "Say force=true: what runs goes on, what waits waits for a new start.",
        )
    call.desk.begin_stop(farewell=not query.restart)
    return Health(status="ok", version=__version__)


@service.serve("GET", "/metrics", answers={200: METRICS}, refuses=("store",))
async def metrics(call: Call) -> Reply:
    """Numbers for Prometheus."""
    # Its import costs a start as much as half a request to each endpoint, and few ever ask.
    from jobman.control.api.metrics import exposition, watch_lag

    watch_lag(call.desk)
    return await call.desk.read(exposition, call.desk)


@service.serve("GET", "/v1/openapi.json", answers={200: dict}, public=True)
def description(call: Call) -> Reply:
    """The description of this interface, as OpenAPI has it."""
    return Reply(call.desk.description())


@service.serve("GET", "/v1/docs", answers={200: HTML}, public=True)
def documentation(_call: Call) -> Reply:
    """The description as a page to read."""
    from jobman.control.api.docs import PAGE

    return Reply(PAGE.encode(), media=HTML)
