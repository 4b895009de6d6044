"""A web server in a thread, with TLS or without, that answers as a function says and remembers requests."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest


class Request(NamedTuple):
    """What was asked; the path is as it came, not decoded."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def one(self, name: str, otherwise: str = "") -> str:
        return self.query.get(name, [otherwise])[0]


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


HANG_UP = Reply(0)
"""No answer at all: the connection is closed."""
Answering = Callable[[Request], Reply]


def as_json(data: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(data).encode(), {"Content-Type": "application/json", **named})


def refusal(status: int, code: str, message: str, **headers: str) -> Reply:
    """An error as registries and Harbor tell it."""
    return as_json({"errors": [{"code": code, "message": message}]}, status, **headers)


class Keys:
    """An authority, and the certificate of a server on this machine that it signed."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("openssl is not there to make certificates")
        self.folder = folder
        self.authority = folder / "ca.crt"
        self._openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=tests", "-days", "2")
        asked = ("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1")
        self._openssl(*asked, key="server.key", out="server.csr")
        (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        signed = ("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial")
        self._openssl(*signed, "-days", "2", "-extfile", "names", key="", out="server.crt")

    def _openssl(self, *words: str, key: str = "ca.key", out: str = "ca.crt") -> None:
        files = (*(("-keyout", key) if key else ()), "-out", out)
        subprocess.run(["openssl", *words, *files], check=True, capture_output=True, cwd=self.folder)

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        return context


class Served:
    """A server that runs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Request] = []

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


class _Server(ThreadingHTTPServer):
    """Does not mind clients that go away."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


@contextmanager
def serving(answer: Answering, keys: Keys | None = None) -> Iterator[Served]:
    """Serve on a free port until the block is left."""
    served = Served("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            request = Request(self.command, path, parse_qs(query, True), dict(self.headers), body)
            served.requests.append(request)
            reply = answer(request)
            if reply is HANG_UP:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(reply.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if keys is not None:
        server.socket = keys.context().wrap_socket(server.socket, server_side=True)
    served.url = f"{'http' if keys is None else 'https'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
