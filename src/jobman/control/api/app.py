"""The application: every endpoint at its path, inside the edge."""

from __future__ import annotations

from functools import cache

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from jobman.control.api.calendar import calendar
from jobman.control.api.call import Desk
from jobman.control.api.cluster import cluster
from jobman.control.api.edge import Edge
from jobman.control.api.endpoint import EXCHANGE, Crossing, Endpoint, failure_of
from jobman.control.api.events import events
from jobman.control.api.jobs import jobs
from jobman.control.api.logs import logs
from jobman.control.api.service import service
from jobman.control.api.sessions import sessions
from jobman.control.api.states import states
from jobman.control.api.tokens import tokens
from jobman.control.api.usage import usage
from jobman.control.refusals import Refusal
from jobman.version import __version__

RESOURCES = (jobs, logs, events, sessions, cluster, calendar, states, usage, service, tokens)
ENDPOINTS = [endpoint for resource in RESOURCES for endpoint in resource.endpoints]


def create_app(desk: Desk) -> FastAPI:
    """The ASGI application of a service."""
    desk.description = _description
    return FastAPI(
        title="jobman",
        version=__version__,
        openapi_url=None,
        redirect_slashes=False,
        routes=[Route(path, Crossing(desk, found)) for path, found in _by_path().items()],
        exception_handlers={HTTPException: _nothing_here},
        middleware=[Middleware(Edge, desk=desk)],
    )


def _by_path() -> dict[str, list[Endpoint]]:
    found: dict[str, list[Endpoint]] = {}
    for endpoint in ENDPOINTS:
        found.setdefault(endpoint.path, []).append(endpoint)
    return found


async def _nothing_here(request: Request, error: Exception) -> Response:
    del error
    refusal = Refusal(
        "no-such-path", f"There is nothing at {request.url.path}.", "GET /v1/docs shows all there is."
    )
    return Response(failure_of(refusal, request.scope[EXCHANGE].id), 404, media_type="application/json")


@cache
def _description() -> bytes:
    # Describing takes longer than most requests, and nobody asks in the first second.
    from jobman.control.api.openapi import document

    return msgspec.json.encode(document(ENDPOINTS))
