"""A server that answers as it was told, one request after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import httpx
import msgspec

from jobman.engines.kubernetes.access import Access, Login
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.link import Link

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Pretender:
    """Its answers in order; the last one is repeated. Keeps what it was asked."""

    def __init__(self, *answers: Answer, login: Login | None = None, patience: float = 5.0) -> None:
        self._answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.access = Access(server="https://one.example", login=login or Login())
        self.link = Link(
            self.access, patience=patience, environment={}, transport=httpx.MockTransport(self._answer)
        )
        self.api = Api(self.access, link=self.link)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    def queries(self, name: str) -> list[str | None]:
        """What each request said in a part of its query."""
        return [request.url.params.get(name) for request in self.asked]


def said(body: Any, code: int = 200, **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(code, content=msgspec.json.encode(body), headers=names)


def refused(code: int, reason: str = "", message: str = "", **headers: str) -> httpx.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return said(body, code, **headers)


def page(names: Sequence[str], version: str = "7", go_on: str = "") -> httpx.Response:
    metadata = {"resourceVersion": version, **({"continue": go_on} if go_on else {})}
    return said({"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]})


def changes(*lines: tuple[str, str, str]) -> httpx.Response:
    """A watch of these types, names and versions, which then ends."""
    return httpx.Response(200, content=b"".join(_line(*line) for line in lines))


def ended(code: int, reason: str) -> bytes:
    """The last line of a watch that the server gives up."""
    body = {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason}}
    return msgspec.json.encode(body) + b"\n"


def _line(type: str, name: str, version: str) -> bytes:
    metadata = {"name": name, "resourceVersion": version}
    return msgspec.json.encode({"type": type, "object": {"metadata": metadata}}) + b"\n"
