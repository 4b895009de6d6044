"""Answers without a known end: server-sent events, and lines of JSON.

A stream is pulled no faster than its reader takes it, and ends as soon as the reader has gone or the service
stops. While nothing happens it says so now and then, for both ends to know of each other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from jobman.control.api.call import Desk
from jobman.control.api.endpoint import EXCHANGE, Receive, Scope, Send

EVENTS = "text/event-stream"
LINES = "application/x-ndjson"
_FAREWELL_SECONDS = 1.0


def sse(event: str, data: bytes, number: str | int | None = None) -> bytes:
    """One server-sent event. Data is JSON on one line."""
    tag = "" if number is None else f"id: {number}\n"
    return b"".join((tag.encode(), b"event: ", event.encode(), b"\ndata: ", data, b"\n\n"))


def bookmark(number: str | int) -> bytes:
    """Tells the reader where to go on although nothing was sent yet."""
    return f"id: {number}\n\n".encode()


class Stream:
    """An ASGI application that sends what a source yields."""

    def __init__(self, desk: Desk, source: AsyncGenerator[bytes, None], media: str = EVENTS) -> None:
        self._desk = desk
        self._source = source
        self._media = media
        self._idle = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[EXCHANGE].followed = True
        headers = [(b"content-type", self._media.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        self._desk.measures.streams += 1
        try:
            await self._until_over(receive, send)
        finally:
            self._desk.measures.streams -= 1

    async def _until_over(self, receive: Receive, send: Send) -> None:
        pump = asyncio.ensure_future(self._pump(send))
        gone = asyncio.ensure_future(_gone(receive))
        stopping = asyncio.ensure_future(self._desk.stopping.wait())
        chatter = asyncio.ensure_future(self._chatter(send))
        tasks = {pump, gone, stopping, chatter}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if gone.done() and not gone.cancelled():
            return
        if pump.done() and not pump.cancelled():
            # An error here breaks the connection in the middle, which is how the reader learns of it.
            pump.result()
            await send({"type": "http.response.body", "body": b""})
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await send({"type": "http.response.body", "body": self._farewell()})

    async def _pump(self, send: Send) -> None:
        async with contextlib.aclosing(self._source) as source:
            async for data in source:
                self._idle = False
                await send({"type": "http.response.body", "body": data, "more_body": True})

    async def _chatter(self, send: Send) -> None:
        """Lines of JSON have no comments, and are never silent for long."""
        while self._media == EVENTS:
            self._idle = True
            await asyncio.sleep(self._desk.keep_alive)
            if self._idle:
                await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        await asyncio.Event().wait()

    def _farewell(self) -> bytes:
        return sse("stopping", b"{}") if self._media == EVENTS and self._desk.farewell else b""


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
