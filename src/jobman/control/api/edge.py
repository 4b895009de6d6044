"""What surrounds every request: its id, a last resort for errors, its measures, and its line in the log."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from secrets import token_hex
from typing import Any

from jobman.control.api.call import Desk
from jobman.control.api.endpoint import EXCHANGE, Receive, Scope, Send, send_failure
from jobman.control.refusals import Refusal
from jobman.control.store.errors import BadCursor, StoreError
from jobman.version import __version__

logger = logging.getLogger("jobman.requests")
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
_VERSION = __version__.encode()
_NO_PATH = "-"
_PROBED = ("/healthz", "/readyz")
"""Asked every few seconds by whoever watches over a server; a line each would bury the others."""


class Exchange:
    """What is noted about a request on its way."""

    __slots__ = ("followed", "id", "owner", "route", "status")

    def __init__(self, request_id: str) -> None:
        self.id = request_id
        self.owner = ""
        self.route = _NO_PATH
        self.status = 0
        self.followed = False
        """Whether it is a stream, whose length says nothing about the speed of the service."""


class Edge:
    """An ASGI application around another one."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], desk: Desk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        exchange = scope[EXCHANGE] = Exchange(_request_id(scope))

        async def tagged(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", exchange.id.encode()),
                    (b"x-jobman-version", _VERSION),
                ]
            await send(message)

        try:
            await self._serve(scope, receive, tagged, exchange)
        finally:
            self._note(scope, exchange, time.perf_counter() - started)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange) -> None:
        try:
            if self._desk.stopping.is_set():
                raise Refusal("stopping", "The service is stopping.", "Ask again in a moment.")
            await self._app(scope, receive, send)
        except ConnectionAbortedError:
            return
        except (Refusal, StoreError, BadCursor) as error:
            if exchange.status:
                raise
            await send_failure(send, _refusal(error), exchange.id)
        except Exception:
            logger.exception("request=%s broke", exchange.id)
            if exchange.status:
                raise
            words = "Something went wrong inside the service."
            advice = f"Its log has more, beside the words request={exchange.id}."
            await send_failure(send, Refusal("internal", words, advice), exchange.id)

    def _note(self, scope: Scope, exchange: Exchange, seconds: float) -> None:
        measures = self._desk.measures
        measures.count(scope["method"], exchange.route, exchange.status)
        if not exchange.followed:
            measures.time(scope["method"], exchange.route, seconds)
        if exchange.route in _PROBED and exchange.status < 300:
            return
        # As it came, percent signs and all: nothing in it can break the line.
        path = scope.get("raw_path") or scope["path"].encode("ascii", "backslashreplace")
        logger.info(
            "method=%s path=%s status=%d ms=%.1f owner=%s request=%s",
            scope["method"],
            path.decode("ascii", "backslashreplace"),
            exchange.status,
            seconds * 1000,
            exchange.owner or "-",
            exchange.id,
        )


def _refusal(error: Refusal | StoreError | BadCursor) -> Refusal:
    if isinstance(error, StoreError):
        return Refusal("store", error.message, error.advice)
    if isinstance(error, BadCursor):
        return Refusal("bad-request", str(error), "Ask for the first page again.")
    return error


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return str(value, "ascii")
    return token_hex(8)
