"""A connection that has stopped to be HTTP, and belongs to whoever asked for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import httpcore

from jobman.engines.kubernetes.errors import KubernetesError
from jobman.lean_httpx import httpx

_AT_ONCE = 64 * 1024
_BROKEN = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpx.RequestError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    OSError,
)
"""What lies below httpx does not put all of its errors into its own words."""


class Upgraded:
    """Bytes in both directions; one may read while another writes."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        answer: httpx.Response,
        explain: Callable[[Exception], KubernetesError],
    ) -> None:
        self._client = client
        self._answer = answer
        self._explain = explain
        self._stream: httpcore.AsyncNetworkStream = answer.extensions["network_stream"]
        self._closed = False

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the answer."""
        return self._answer.headers

    async def read(self) -> bytes:
        """What comes next; nothing at the end. Raises KubernetesError."""
        try:
            return await self._stream.read(_AT_ONCE)
        except _BROKEN as error:
            if self._closed:
                return b""
            raise self._explain(error) from error

    async def write(self, data: bytes) -> None:
        """Send something. Raises KubernetesError."""
        try:
            await self._stream.write(data)  # who does not read may have a reason
        except _BROKEN as error:
            raise self._explain(error) from error

    async def close(self) -> None:
        """Break it off."""
        self._closed = True
        await self._answer.aclose()
        await self._client.aclose()
