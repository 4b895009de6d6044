"""Sessions: inside a running copy, through a service."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Protocol

import msgspec

from jobman.client.failures import Refused, Unreachable
from jobman.client.link import LATER, Link
from jobman.client.sse import read_events
from jobman.control import entering
from jobman.control.entering import MOST_INPUT, SessionEnd, SessionInput, SessionOutput

_PATIENCE = 30.0
"""Seconds for which a connection that broke is made again."""
_PAUSE = 0.2
_LEAVE_SECONDS = 5.0
_GONE = (
    "The session is over: its copy has ended, or the service was started again.",
    "The job itself goes on; `jobman connect` opens another one.",
)


class Session(Protocol):
    """A command that runs beside a copy, or a connection to a port of it.

    One thread reads what comes out while others put something in.
    """

    @property
    def exit_code(self) -> int | None:
        """Of the command, after the last of its output."""

    @property
    def trouble(self) -> str:
        """In words, why there is none."""

    def output(self) -> Iterator[tuple[str, bytes]]:
        """What comes out, and of which stream. Raises Refused and Unreachable."""

    def write(self, data: bytes) -> None:
        """Put something in."""

    def end_input(self) -> None:
        """Nothing more comes."""

    def resize(self, rows: int, columns: int) -> None:
        """The terminal has another size."""

    def close(self) -> None:
        """Leave. May be called twice, and by anybody."""


class ServiceSession:
    """A session that a service holds. It outlives connections that break."""

    def __init__(self, link: Link, path: str) -> None:
        self._link = link
        self._path = path
        self._number = 0
        self._sending = threading.Lock()
        self._closed = False
        self.exit_code: int | None = None
        self.trouble = ""

    def output(self) -> Iterator[tuple[str, bytes]]:
        position = "0"
        deadline = time.monotonic() + _PATIENCE
        while not self._closed:
            try:
                for sent in read_events(self._link.stream(f"{self._path}/output", _from(position))):
                    deadline = time.monotonic() + _PATIENCE
                    position = sent.id or position
                    if sent.event in ("stdout", "stderr"):
                        yield sent.event, msgspec.json.decode(sent.data, type=SessionOutput).data
                    elif sent.event == "end":
                        self._end(msgspec.json.decode(sent.data, type=SessionEnd))
                        return
                    elif sent.event == "stopping":
                        raise Unreachable("The service was stopped, and the session with it.", _GONE[1])
            except Refused as refused:
                self._check(refused)
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise Unreachable("The connection to the service broke.", _GONE[1])
            time.sleep(_PAUSE)

    def _end(self, end: SessionEnd) -> None:
        self.exit_code, self.trouble = end.exit_code, end.trouble

    def _check(self, refused: Refused) -> None:
        """Whether it is worth to ask again; raises where not."""
        if refused.code == "no-such-session":
            raise Unreachable(*_GONE) from refused
        if refused.code not in LATER:
            raise refused

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), MOST_INPUT):
            self._put(data=data[start : start + MOST_INPUT])

    def end_input(self) -> None:
        self._put(end=True)

    def resize(self, rows: int, columns: int) -> None:
        self._put(rows=rows, columns=columns)

    def _put(self, *, data: bytes = b"", end: bool = False, rows: int = 0, columns: int = 0) -> None:
        with self._sending:
            self._number += 1
            given = SessionInput(number=self._number, data=data, end=end, rows=rows, columns=columns)
            body = msgspec.json.encode(given)
            while not self._closed:
                answer = self._link.ask(
                    "POST", f"{self._path}/input", body=body, safe=True, patience=_PATIENCE
                )
                if msgspec.json.decode(answer, type=entering.Session).inputs >= self._number:
                    return

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(Refused, Unreachable):
            self._link.ask("DELETE", self._path, safe=False, patience=_LEAVE_SECONDS)


def _from(position: str) -> dict[str, str]:
    return {"Accept": "text/event-stream", "Last-Event-ID": position}
