"""All objects of one kind in a cluster, kept up to date by a list and a watch, with nothing but Python."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

Written = dict[str, Any]

WATCH_SECONDS = 60
_SILENCE = 15  # of a server that should have ended the watch
_PAGE = 500
_PAUSE = 0.3


class Expired(Exception):
    """The server no longer knows what happened since; everything has to be listed again."""


class Unavailable(Exception):
    """The server gave no answer that can be used; it is worth trying again."""


@dataclass(frozen=True)
class Server:
    """Where the cluster's API is, and who asks."""

    url: str
    token: str = ""
    trust: ssl.SSLContext | None = None

    @classmethod
    def of_kubeconfig(cls, kubectl: Path, kubeconfig: Path) -> Server:
        view = subprocess.run(
            [kubectl, "config", "view", "--raw", "--minify", "--output=json"],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            check=True,
            capture_output=True,
        ).stdout
        config = json.loads(view)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        return cls(cluster["server"], user["token"], trust)

    def lines(self, path: str, **query: str | int) -> Iterator[bytes]:
        """The lines of an answer, as they come."""
        connection = self._connection()
        try:
            connection.request("GET", f"{path}?{urlencode(query)}", headers=self._headers())
            answer = connection.getresponse()
            if answer.status == http.HTTPStatus.GONE:
                raise Expired(path)
            if answer.status != http.HTTPStatus.OK:
                raise Unavailable(f"{path}: {answer.status} {answer.read(300)!r}")
            while line := answer.readline():
                yield line
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{path}: {error}") from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        place = urlsplit(self.url).netloc
        patience = WATCH_SECONDS + _SILENCE
        if self.trust is None:
            return http.client.HTTPConnection(place, timeout=patience)
        return http.client.HTTPSConnection(place, timeout=patience, context=self.trust)

    def _headers(self) -> dict[str, str]:
        return {"Accept": "application/json"} | (
            {"Authorization": f"Bearer {self.token}"} if self.token else {}
        )


class Watch:
    """Tells of all objects at first and when the thread was lost, and in between of one at a time."""

    def __init__(
        self,
        server: Server,
        path: str,
        everything: Callable[[list[Written]], None],
        one: Callable[[Written, bool], None],
        complain: Callable[[str], None] = print,
    ) -> None:
        self._server, self._path = server, path
        self._everything, self._one, self._complain = everything, one, complain
        self._version = ""

    def forever(self) -> None:
        while True:
            try:
                self.turn()
            except Unavailable as error:
                self._complain(f"the cluster gives no answer: {error}")
                time.sleep(_PAUSE)

    def turn(self) -> None:
        """Follow until the server ends the watch, as it does now and then; the next turn goes on there."""
        try:
            if not self._version:
                self._everything(self._listed())
            self._follow()
        except Expired:
            self._version = ""

    def _listed(self) -> list[Written]:
        found: list[Written] = []
        following = ""
        while True:
            query: dict[str, str | int] = {"limit": _PAGE, **({"continue": following} if following else {})}
            page = _parsed(b"".join(self._server.lines(self._path, **query)))
            found += page.get("items") or []
            following = page["metadata"].get("continue", "")
            if not following:
                self._version = page["metadata"]["resourceVersion"]
                return found

    def _follow(self) -> None:
        query: dict[str, str | int] = {
            "watch": 1,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_SECONDS,
        }
        for line in self._server.lines(self._path, **query, resourceVersion=self._version):
            event = _parsed(line)
            if event["type"] == "ERROR":
                # Whatever it is, a list that is new makes it good.
                raise Expired(self._path)
            if event["type"] != "BOOKMARK":
                self._one(event["object"], event["type"] == "DELETED")
            self._version = event["object"]["metadata"]["resourceVersion"]


def _parsed(text: bytes) -> Written:
    try:
        parsed: Written = json.loads(text)
    except ValueError as error:
        # A server that dies may do so in the middle of a line.
        raise Unavailable(f"half an answer: {error}") from error
    return parsed
