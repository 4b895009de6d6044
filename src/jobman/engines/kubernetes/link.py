"""Requests to one API server: logged in, retried where that is safe, and explained where they fail."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from urllib.parse import urlencode

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.credentials import Credentials
from jobman.engines.kubernetes.errors import (
    ApiError,
    ConfigError,
    Conflict,
    Unauthorized,
    Unreachable,
    from_answer,
)
from jobman.engines.kubernetes.proxies import proxy_for
from jobman.engines.kubernetes.reaching import is_distrust, unreachable, without_password
from jobman.engines.kubernetes.tls import tls_context
from jobman.engines.kubernetes.trials import Trials
from jobman.engines.kubernetes.upgrading import Upgraded
from jobman.engines.kubernetes.wire import Wire
from jobman.lean_httpx import httpx
from jobman.version import __version__

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 75.0
"""The server itself gives up after 60."""
JSON = "application/json"
AT_ONCE = 16
"""Requests that are under way at a time, so that many of them need few connections."""

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_BUSY = (502, 503, 504)
_LIVELY = [
    # A follower of logs may hear nothing for hours; a peer that is gone is noticed within two minutes.
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
]

Query = Mapping[str, str | int | bool | None]


class Link:
    """The connections to a server. Belongs to one event loop."""

    def __init__(
        self,
        access: Access,
        *,
        patience: float = 15.0,
        environment: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        guard: Callable[[], None] | None = None,
    ) -> None:
        self.access = access
        self.patience = patience
        """Seconds for which a busy server, or one that answered before and restarts, is asked again."""
        self._guard = guard
        """Raises where nothing may be changed any more; asked when a change is about to leave."""
        environment = os.environ if environment is None else environment
        self._proxy = access.proxy or proxy_for(access.server, environment)
        self._transport = transport
        self._credentials = Credentials(access)
        self._clients: list[httpx.AsyncClient] = []
        self._edition = -1
        self._certificate: tuple[bytes, bytes] | None = None
        self._met = False
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def close(self) -> None:
        clients, self._clients = self._clients, []
        for client in clients:
            await client.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        *,
        form: str = JSON,
        accept: str = JSON,
        safe: bool,
    ) -> bytes:
        """The body of the answer. A request that is `safe` to be repeated is, when a connection breaks."""
        trials = Trials(self.patience)
        renewed = False
        while True:
            edition = self._credentials.edition
            try:
                client, request = await self._request(
                    method, path, query, body, (form, accept), ANSWER_SECONDS
                )
                edition = self._credentials.edition
                async with self._turns:
                    if self._guard is not None and method != "GET":
                        _guarded(request, self._guard)
                    answer = await client.send(request)
            except (httpx.RequestError, OSError) as error:
                await self._broken(error, trials, safe)
                continue
            self._met = True
            if answer.is_success:
                return answer.content
            refused = from_answer(answer.status_code, answer.content, path)
            if isinstance(refused, Unauthorized) and not renewed and await self._credentials.renew(edition):
                renewed = True
                continue
            wanted = _wanted_pause(answer)
            if not _is_worth_repeating(refused, wanted, safe):
                raise refused
            await trials.next(refused, wanted)

    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        silence: float | None = None,
        opened: Callable[[], None] | None = None,
        accept: str = JSON,
    ) -> AsyncGenerator[bytes, None]:
        """The parts of an answer as they come; raises Unreachable when it breaks or is silent too long."""
        answer = await self._open(path, query, silence, accept)
        if opened is not None:
            opened()
        try:
            async for part in answer.aiter_bytes():
                yield part
        except (httpx.RequestError, OSError) as error:
            raise unreachable(error, self.access, proxy=self._proxy) from error
        finally:
            await answer.aclose()

    async def lines(
        self,
        path: str,
        query: Query | None = None,
        *,
        silence: float | None = None,
        opened: Callable[[], None] | None = None,
        accept: str = JSON,
    ) -> AsyncGenerator[bytes, None]:
        """Whole lines of a stream, without their ends. What has no end when it breaks off is dropped."""
        waiting: list[bytes] = []
        stream = self.stream(path, query, silence=silence, opened=opened, accept=accept)
        async with aclosing(stream) as parts:
            async for part in parts:
                first, *others = part.split(b"\n")
                waiting.append(first)
                for line in others:
                    yield b"".join(waiting)
                    waiting = [line]

    async def _open(
        self, path: str, query: Query | None, silence: float | None, accept: str
    ) -> httpx.Response:
        """The head of a streamed answer; nothing is repeated here but a login."""
        renewed = False
        while True:
            edition = self._credentials.edition
            try:
                client, request = await self._request("GET", path, query, None, ("", accept), silence)
                edition = self._credentials.edition
                answer = await client.send(request, stream=True)
                if answer.is_success:
                    self._met = True
                    return answer
                content = await _read_and_close(answer)
            except (httpx.RequestError, OSError) as error:
                raise unreachable(error, self.access, proxy=self._proxy) from error
            refused = from_answer(answer.status_code, content, path)
            if isinstance(refused, Unauthorized) and not renewed and await self._credentials.renew(edition):
                renewed = True
                continue
            raise refused

    async def upgrade(
        self, path: str, query: Sequence[tuple[str, str]], headers: Mapping[str, str]
    ) -> Upgraded:
        """A connection of its own, that the server agreed to use for something else than HTTP."""
        renewed = False
        while True:
            edition = self._credentials.edition
            try:
                own = await self._credentials.headers()
                edition = self._credentials.edition
                client = self._upgrading_client()
                url = f"{self.access.server}{path}?{urlencode(query)}"
                asked = [("User-Agent", f"jobman/{__version__}"), *own, *headers.items()]
                encoded = [(name.encode(), value.encode()) for name, value in asked]
                timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
                request = client.build_request("GET", url, headers=encoded, timeout=timeout)
                if self._guard is not None:
                    _guarded(request, self._guard)  # whoever enters a pod can change it
                answer = await client.send(request, stream=True)
                if answer.status_code == httpx.codes.SWITCHING_PROTOCOLS:
                    return Upgraded(client, answer, self._explained)
                content = await _read_and_close(answer)
                await client.aclose()
            except (httpx.RequestError, OSError) as error:
                raise self._explained(error) from error
            refused = from_answer(answer.status_code, content, path)
            if isinstance(refused, Unauthorized) and not renewed and await self._credentials.renew(edition):
                renewed = True
                continue
            raise refused

    def _upgrading_client(self) -> httpx.AsyncClient:
        certificate = self._credentials.certificate()
        is_safe = self.access.server.startswith("https:")
        context = tls_context(self.access, certificate) if is_safe else None
        return httpx.AsyncClient(transport=_through(self._proxy, context), trust_env=False)

    def _explained(self, error: Exception) -> Unreachable:
        return unreachable(error, self.access, proxy=self._proxy)

    async def _request(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: bytes | None,
        forms: tuple[str, str],
        silence: float | None,
    ) -> tuple[httpx.AsyncClient, httpx.Request]:
        form, accept = forms
        headers = await self._credentials.headers()
        headers += [("User-Agent", f"jobman/{__version__}"), ("Accept", accept)]
        headers += [("Accept-Encoding", "gzip" if self.access.compression else "identity")]
        if body is not None:
            headers.append(("Content-Type", form))
        client = self._client()
        url = self.access.server + path + _query_string(query)
        timeout = httpx.Timeout(silence, connect=CONNECT_SECONDS, write=ANSWER_SECONDS)
        encoded = [(name.encode(), value.encode()) for name, value in headers]
        return client, client.build_request(method, url, headers=encoded, content=body, timeout=timeout)

    def _client(self) -> httpx.AsyncClient:
        """A client that shows the certificate of now; those before it finish what they have begun."""
        if self._clients and self._edition == self._credentials.edition:
            return self._clients[-1]
        certificate = self._credentials.certificate()
        if not self._clients or certificate != self._certificate:
            self._clients.append(self._new_client(certificate))
        self._certificate, self._edition = certificate, self._credentials.edition
        return self._clients[-1]

    def _new_client(self, certificate: tuple[bytes, bytes] | None) -> httpx.AsyncClient:
        transport = self._transport or _transport(self.access, certificate, self._proxy)
        return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)

    async def _broken(self, error: Exception, trials: Trials, safe: bool) -> None:
        """After a connection could not be made or broke: pause, or raise."""
        unsent = isinstance(error, _NEVER_SENT)
        maybe_done = not (unsent or safe)
        failure = unreachable(error, self.access, proxy=self._proxy, maybe_done=maybe_done)
        failure.__cause__ = error
        # An address that never answered is rather wrong; one that did is only restarting.
        hopeful = (self._met if unsent else safe) and not isinstance(error, httpx.ReadTimeout)
        if not hopeful or is_distrust(error):
            raise failure
        await trials.next(failure)


def _guarded(request: httpx.Request, guard: Callable[[], None]) -> None:
    """Ask the guard now, and again when there is a connection: to make one may take its time."""
    guard()

    async def trace(name: str, _info: object) -> None:
        if name.endswith("send_request_headers.started"):
            guard()

    request.extensions["trace"] = trace


def _transport(
    access: Access, certificate: tuple[bytes, bytes] | None, proxy: str | None
) -> httpx.AsyncBaseTransport:
    context = tls_context(access, certificate) if access.server.startswith("https:") else None
    return Wire(context, _LIVELY) if proxy is None else _through(proxy, context)


def _through(proxy: str | None, context: ssl.SSLContext | None) -> httpx.AsyncHTTPTransport:
    # Each log that is followed holds a connection for as long as it lasts.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=60.0)
    try:
        return httpx.AsyncHTTPTransport(
            verify=context or False, proxy=proxy, limits=limits, trust_env=False, socket_options=_LIVELY
        )
    except ImportError:
        shown = without_password(proxy or "")
        raise ConfigError(f"The proxy {shown} needs a library that is missing.", "Install socksio.") from None
    except (ValueError, httpx.InvalidURL):
        shown = without_password(proxy or "")
        raise ConfigError(f"The proxy {shown} is none of http, https and socks5.") from None


async def _read_and_close(answer: httpx.Response) -> bytes:
    try:
        return await answer.aread()
    finally:
        await answer.aclose()


def _query_string(query: Query | None) -> str:
    """A query; what is None or empty is left out."""
    pairs = [(name, _text(value)) for name, value in (query or {}).items() if value not in (None, "")]
    return f"?{urlencode(pairs)}" if pairs else ""


def _text(value: str | int | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _wanted_pause(answer: httpx.Response) -> float | None:
    """Seconds that the server asks for; it may also name a date, which a busy API server never does."""
    given = answer.headers.get("Retry-After", "")
    return float(given) if given.isdigit() else None


def _is_worth_repeating(refused: ApiError, wanted: float | None, safe: bool) -> bool:
    """A server that names a pause has done nothing; else only what may be done twice is repeated."""
    if refused.code == 429 or (wanted is not None and refused.code >= 500):
        return True
    return (safe and refused.code in _BUSY) or _is_race_for_quota(refused)


def _is_race_for_quota(refused: ApiError) -> bool:
    """Whether nothing was done because others used the same quota at the same moment."""
    details = refused.status.details
    return isinstance(refused, Conflict) and details is not None and details.kind == "resourcequotas"
