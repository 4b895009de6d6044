"""Endpoints: what is asked and answered at a path, declared once for the server and for its description.

A handler that is a coroutine runs on the event loop; a plain function may wait for the disk and runs in a
thread, its answer's encoding included.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from jobman.control.api.call import Call, Desk
from jobman.control.api.identity import Caller
from jobman.control.api.query import decoder_of, parse_query
from jobman.control.refusals import Refusal

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Method = Literal["GET", "POST", "DELETE"]

BODY_LIMIT = 20 * 2**20
BODY_SECONDS = 60
JSON = "application/json"
NOBODY = Caller("", "user")
EXCHANGE = "jobman.exchange"
"""The key in the scope under which the edge keeps what it wants to know of a request."""

_HEADERS_OF_REFUSALS = {
    "unauthenticated": [(b"www-authenticate", b"Bearer")],
    # What is still under way is not read, so nothing else can come over this connection.
    "too-large": [(b"connection", b"close")],
    "too-slow": [(b"connection", b"close")],
    "stopping": [(b"connection", b"close")],
}
_encode = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    """An answer with another status than 200, or one that is no JSON."""

    body: Any
    status: int = 200
    media: str = JSON


class Endpoint(NamedTuple):
    """One method at one path."""

    method: Method
    path: str
    handler: Callable[..., Any]
    tag: str
    query: type | None = None
    body: type | None = None
    answers: Mapping[int, Any] = {200: None}
    """Type of the body by status; a text is a media type."""
    refuses: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    """Headers of the request that it heeds, with what each is for."""
    public: bool = False
    """Whether strangers may ask, too."""
    admin: bool = False


class Resource:
    """The endpoints of one file, in the order they are written."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.endpoints: list[Endpoint] = []

    def serve(
        self,
        method: Method,
        path: str,
        *,
        query: type | None = None,
        body: type | None = None,
        answers: Mapping[int, Any] | None = None,
        refuses: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
        public: bool = False,
        admin: bool = False,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a handler. It gets the call, then the query and the body if there are any."""

        def declare(handler: Callable[..., Any]) -> Callable[..., Any]:
            self.endpoints.append(
                Endpoint(
                    method,
                    path,
                    handler,
                    self.tag,
                    query=query,
                    body=body,
                    answers=answers or {200: None},
                    refuses=refuses,
                    headers=headers or {},
                    public=public,
                    admin=admin,
                )
            )
            return handler

        return declare


class Crossing:
    """All methods of one path: an ASGI application."""

    def __init__(self, desk: Desk, endpoints: list[Endpoint]) -> None:
        self._desk = desk
        self._runs = {endpoint.method: Runner(desk, endpoint) for endpoint in endpoints}
        self._allow = ", ".join(sorted(self._runs))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        runner = self._runs.get(scope["method"])
        if runner is not None:
            await runner(scope, receive, send)
            return
        refusal = Refusal("no-such-method", f"{scope['method']} means nothing here.", f"Try {self._allow}.")
        await send_failure(send, refusal, scope[EXCHANGE].id, [(b"allow", self._allow.encode())])


class Runner:
    """Takes a request for one endpoint apart, calls its handler, and sends the answer."""

    def __init__(self, desk: Desk, endpoint: Endpoint) -> None:
        self._desk = desk
        self._endpoint = endpoint
        self._waits = not inspect.iscoroutinefunction(endpoint.handler)
        self._query = _decoder(endpoint.query, decoder_of)
        self._body = _decoder(endpoint.body, msgspec.json.Decoder)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint, desk = self._endpoint, self._desk
        exchange = scope[EXCHANGE]
        exchange.route = endpoint.path
        caller = NOBODY if endpoint.public else await self._identify(scope)
        exchange.owner = caller.user
        if endpoint.admin and not caller.is_admin:
            raise Refusal("forbidden", "Only an administrator may do this.", "Ask one of your service.")
        arguments: list[Any] = [Call(desk, scope, caller)]
        values = parse_query(scope["query_string"])
        _check_texts(scope["path_params"].values())
        if self._query is not None:
            arguments.append(self._query(values))
        elif values:
            raise Refusal("bad-request", f"{next(iter(values))} is not a parameter of this request.")
        if self._body is not None:
            arguments.append(_decoded(self._body, await read_body(scope, receive)))
        if self._waits:
            answer = await desk.read(_answer, endpoint.handler, arguments)
        else:
            answer = await endpoint.handler(*arguments)
        if callable(answer):
            await answer(scope, receive, send)
            return
        await send_reply(send, _encoded(answer))

    async def _identify(self, scope: Scope) -> Caller:
        door = self._desk.door
        try:
            return door.identify(scope)
        except Refusal:
            if not door.is_behind():
                raise
        await self._desk.read(door.learn)
        return door.identify(scope)


def _decoder(kind: type | None, make: Callable[[Any], Any]) -> Any:
    return None if kind is None else make(kind)


def _answer(handler: Callable[..., Any], arguments: list[Any]) -> Reply:
    return _encoded(handler(*arguments))


def _encoded(answer: Any) -> Reply:
    reply = answer if isinstance(answer, Reply) else Reply(answer)
    return reply if isinstance(reply.body, bytes) else reply._replace(body=_encode(reply.body))


async def send_reply(send: Send, reply: Reply, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Send an answer whose body is ready."""
    length = str(len(reply.body)).encode()
    fixed = [(b"content-type", reply.media.encode()), (b"content-length", length)]
    await send({"type": "http.response.start", "status": reply.status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": reply.body})


async def send_failure(
    send: Send, refusal: Refusal, request: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send a refusal."""
    reply = Reply(failure_of(refusal, request), refusal.status)
    await send_reply(send, reply, [*headers, *_HEADERS_OF_REFUSALS.get(refusal.code, ())])


def failure_of(refusal: Refusal, request: str) -> bytes:
    """The body that tells of a refusal."""
    return _encode(refusal.failure(request))


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body, if it is JSON and not too large."""
    headers = dict(scope["headers"])
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media != b"application/json":
        raise Refusal("not-json", "The body of this request is JSON.", "Say Content-Type: application/json.")
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > BODY_LIMIT:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise Refusal("too-slow", f"Nothing of the body came for {BODY_SECONDS} s.") from None
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_LIMIT:
            raise _too_large()
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large() -> Refusal:
    return Refusal("too-large", f"The body of a request is at most {BODY_LIMIT >> 20} MiB.")


def _decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("bad-request", f"The body is not as it should be: {_in_words(error)}.") from None


def _in_words(error: Exception) -> str:
    return "it is no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).rstrip(".")


def _check_texts(texts: Any) -> None:
    if any("\0" in text for text in texts):
        raise Refusal("bad-request", "A zero byte stands in the path.")
