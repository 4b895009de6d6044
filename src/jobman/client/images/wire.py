"""The wire to one registry: requests, repeated where it is busy and explained where nobody is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from jobman.client.images.errors import Unreachable
from jobman.client.images.reaching import unreachable
from jobman.client.images.times import pause
from jobman.client.images.trust import trust
from jobman.engines.kubernetes.proxies import proxy_for
from jobman.engines.kubernetes.reaching import is_distrust
from jobman.engines.kubernetes.trials import Trials
from jobman.lean_httpx import httpx
from jobman.settings.registries import Registry
from jobman.version import __version__

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
PATIENCE = 15.0
"""Seconds for which a busy registry is asked again."""
AT_ONCE = 8
"""Requests that are under way at a time."""
LARGEST = 32 * 1024 * 1024
"""Bytes of an answer; manifests and configurations are a thousand times smaller."""
_REDIRECTS = 5
_BUSY = (429, 502, 503, 504)
ELSEWHERE = (301, 302, 303, 307, 308)


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: httpx.Headers
    body: bytes
    url: str

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


class Wire:
    """The connections to a registry, and to where it points. Belongs to one event loop."""

    def __init__(
        self, registry: Registry, configured: bool, environment: Mapping[str, str], patience: float
    ) -> None:
        self.registry = registry
        self._configured = configured
        self._environment = environment
        self._patience = patience
        self._clients: dict[str, tuple[httpx.AsyncClient, str | None]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._met = False

    async def close(self) -> None:
        for client, _proxy in self._clients.values():
            await client.aclose()

    async def send(
        self, path: str, accept: Sequence[str], authorization: str, form: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask, and ask again where the registry is busy or the connection broke."""
        trials = Trials(self._patience)
        while True:
            try:
                async with self._turns:
                    answer = await self._follow(urljoin(self.registry.url, path), accept, authorization, form)
            except _Broken as broken:
                hopeful = self._met and not isinstance(broken.cause, httpx.TimeoutException)
                if not hopeful or is_distrust(broken.cause):
                    raise broken.error from broken.cause
                await trials.next(broken.error)
                continue
            self._met = True
            wanted = pause(answer.headers.get("retry-after", ""), time.time())
            if answer.status not in _BUSY and not (answer.status >= 500 and wanted is not None):
                return answer
            try:
                await trials.next(_Impatient(), wanted)
            except _Impatient:
                return answer

    async def _follow(
        self, url: str, accept: Sequence[str], authorization: str, form: Mapping[str, str] | None
    ) -> Answer:
        """The answer, also where it is to be had from somewhere else, as blobs often are."""
        for _ in range(_REDIRECTS):
            answer = await self._once(url, accept, authorization, form)
            place = answer.headers.get("location", "")
            if answer.status not in ELSEWHERE or not place:
                return answer
            target = _joined(url, place)
            parts = parsed(target)
            if parts is None or (parts.scheme == "http" and url.startswith("https:")):
                shown = f"{parts.scheme}://{parts.netloc}, which is not encrypted" if parts else "no address"
                raise Unreachable(f"{self.registry.url} points to {shown}", "tell whoever runs the registry")
            # A password or a token is for the one it was made for.
            authorization = authorization if _origin(target) == _origin(url) else ""
            url, form = target, None
        raise Unreachable(f"{self.registry.url} points in a circle", "tell whoever runs the registry")

    async def _once(
        self, url: str, accept: Sequence[str], authorization: str, form: Mapping[str, str] | None
    ) -> Answer:
        client, proxy = self._client(_origin(url))
        headers = {"Accept": ", ".join(accept), "User-Agent": f"jobman/{__version__}"}
        if authorization:
            headers["Authorization"] = authorization
        method = "GET" if form is None else "POST"
        try:
            async with client.stream(
                method, url, headers=headers, data=dict(form) if form else None
            ) as answer:
                return Answer(answer.status_code, answer.headers, await self._body(answer), url)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            # A name that no host can have is a wrong value to the one who looks it up.
            origin = _origin(url)
            words = unreachable(error, self.registry, origin, configured=self._configured, proxy=proxy)
            raise _Broken(words, error) from error

    async def _body(self, answer: httpx.Response) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in answer.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size > LARGEST:
                raise Unreachable(f"an answer of {self.registry.url} has no end", "is it a registry at all?")
        return b"".join(parts)

    def _client(self, origin: str) -> tuple[httpx.AsyncClient, str | None]:
        """A client for one origin; each may have a proxy of its own."""
        if origin not in self._clients:
            proxy = proxy_for(origin, self._environment)
            verify = trust(self.registry, self._environment) if origin.startswith("https:") else False
            timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
            try:
                client = httpx.AsyncClient(
                    verify=verify, proxy=proxy, trust_env=False, timeout=timeout, follow_redirects=False
                )
            except (ImportError, ValueError, httpx.InvalidURL):
                raise Unreachable(
                    f"the proxy to {origin} cannot be used", "are HTTPS_PROXY and NO_PROXY right?"
                ) from None
            self._clients[origin] = (client, proxy)
        return self._clients[origin]


class _Broken(Exception):
    """A connection that could not be made, or broke."""

    def __init__(self, error: Unreachable, cause: Exception) -> None:
        super().__init__(error.message)
        self.error = error
        self.cause = cause


class _Impatient(Exception):
    """The registry has been busy for too long."""


def parsed(url: str) -> SplitResult | None:
    """The parts of an address that can be asked; None for anything else."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_good else None


def _joined(url: str, place: str) -> str:
    try:
        return urljoin(url, place)
    except ValueError:
        return ""


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
