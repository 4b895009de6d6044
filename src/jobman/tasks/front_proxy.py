"""A server that only the API server of a cluster may ask, by the certificate with which it comes.

The cluster tells in a ConfigMap who signs such certificates, and which names they have. Only `/healthz` is
answered to everybody: a node that asks for it has no certificate.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import ConfigError
from jobman.engines.kubernetes.kinds import CONFIG_MAPS
from jobman.tasks.external_metrics import Said, problem

Answering = Callable[[str, str], Said]
"""From a path and a query to an answer."""
_PLACE, _NAME = "kube-system", "extension-apiserver-authentication"
_HEALTH = ("/healthz", "/livez", "/readyz")
_MOST_HEAD = 64 * 2**10
_IDLE = 120.0


class FrontProxy(msgspec.Struct, frozen=True):
    """Who may ask: whoever this authority has given one of these names to; any name where there is none."""

    authority: str
    names: tuple[str, ...] = ()

    def admits(self, certificate: dict[str, Any] | None) -> bool:
        """Whether a certificate that the authority has signed has one of the names."""
        if not certificate:
            return False
        subject = {key: value for part in certificate.get("subject", ()) for key, value in part}
        return not self.names or subject.get("commonName") in self.names


class Certificate(msgspec.Struct, frozen=True):
    """By which the server is known, as files."""

    chain: Path
    key: Path

    @property
    def content(self) -> tuple[bytes, bytes]:
        return self.chain.read_bytes(), self.key.read_bytes()

    @property
    def authority(self) -> Path:
        """Who signed it: the file `ca.crt` beside it, and it itself where there is none."""
        beside = self.chain.with_name("ca.crt")
        return beside if beside.exists() else self.chain


async def front_proxy(api: Api) -> FrontProxy:
    """As the cluster says; raises ConfigError where it has no API server in front of others."""
    found = await api.find(CONFIG_MAPS, _NAME, _PLACE)
    authority = found.data.get("requestheader-client-ca-file", "") if found is not None else ""
    if found is None or not authority:
        raise ConfigError(
            "The cluster does not say whose certificate its API server shows to others.",
            "Start its API server with --requestheader-client-ca-file, or do without an HPA: `--scaler own`.",
        )
    names = json.loads(found.data.get("requestheader-allowed-names") or "[]")
    return FrontProxy(authority, tuple(names))


def tls(certificate: Certificate, proxy: FrontProxy) -> ssl.SSLContext:
    """A certificate is asked for and, where there is one, must be signed by the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    context.load_verify_locations(cadata=proxy.authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


class ProxiedServer:
    """Answers questions that come through the API server."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._server: asyncio.Server | None = None
        self._proxy = FrontProxy("")
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self, place: tuple[str, int], certificate: Certificate, proxy: FrontProxy) -> int:
        """Begin, or begin anew with other certificates; returns the port, of which 0 takes any."""
        context = tls(certificate, proxy)
        await self.close()
        self._proxy = proxy
        self._server = await asyncio.start_server(self._serve, *place, ssl=context, limit=_MOST_HEAD)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in list(self._open):
                writer.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        may_ask = self._proxy.admits(writer.get_extra_info("peercert"))
        try:
            while await self._one(reader, writer, may_ask):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # whoever asked is gone, or never speaks HTTP
        finally:
            self._open.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_ask: bool) -> bool:
        """Answer one question; whether there may be another on this connection."""
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _IDLE)
        first, *rest = head.decode("latin-1").split("\r\n")
        lines = [line.lower() for line in rest]
        said = self._answer(first.split(" "), may_ask)
        # A body is not read: nobody has one to give here, and who sends one begins anew.
        has_body = any(each.startswith(("content-length:", "transfer-encoding:")) for each in lines)
        keep = first.endswith("HTTP/1.1") and not has_body and "connection: close" not in lines
        await _send(writer, said, keep=keep)
        return keep

    def _answer(self, line: list[str], may_ask: bool) -> Said:
        if len(line) != 3:
            return problem(400, "BadRequest", "this is no question")
        method, target, _ = line
        path, _, query = target.partition("?")
        if path in _HEALTH:
            return Said(200, {"status": "ok"})
        if not may_ask:
            return problem(403, "Forbidden", "only the API server of the cluster may ask here")
        if method != "GET":
            return problem(405, "MethodNotAllowed", "metrics can only be read")
        return self._answering(path, query)


async def _send(writer: asyncio.StreamWriter, said: Said, *, keep: bool) -> None:
    body = msgspec.json.encode(said.body)
    lines = (
        f"HTTP/1.1 {said.status} {HTTPStatus(said.status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"connection: {'keep-alive' if keep else 'close'}",
    )
    writer.write("\r\n".join((*lines, "", "")).encode() + body)
    await writer.drain()
