"""Following logs and events: a stream that breaks is asked for again from where it broke."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from jobman.client.failures import Refused, Unreachable
from jobman.client.link import LATER, Link
from jobman.client.sse import Sent, read_events
from jobman.client.targets import query_string
from jobman.control.answers import Event, Job, LogLine

_LONGEST_PAUSE = 2.0
_LOOK_AT_THE_CLOCK = 5.0
"""Seconds after which a stream with a deadline is asked for again: its keep-alive says nothing of time."""


def follow_events(
    link: Link, path: str, after: int | None, timeout: float | None = None
) -> Iterator[Event | Job]:
    """Events as they happen; the last of one job's is followed by the job."""
    for sent in _resumed(link, path, {"after": after}, timeout):
        if sent.event == "end":
            yield msgspec.json.decode(sent.data, type=Job)
        else:
            yield msgspec.json.decode(sent.data, type=Event)


def follow_logs(link: Link, path: str, filters: Mapping[str, Any], *, follow: bool) -> Iterator[LogLine]:
    """Lines that are written, or those there are."""
    decode = msgspec.json.Decoder(LogLine).decode
    if follow:
        lines = (decode(sent.data) for sent in _resumed(link, path, filters, None) if sent.event == "line")
        return _each_once(lines)
    return map(decode, _read_lines(link, path + query_string(filters)))


def _each_once(lines: Iterator[LogLine]) -> Iterator[LogLine]:
    """After a break, lines behind the last bookmark come again."""
    seen: dict[tuple[str, int, int, str], int] = {}
    for line in lines:
        key = (line.replica, line.attempt, line.copy, line.stream)
        if line.stream == "note" or line.end > seen.get(key, -1):
            seen[key] = line.end
            yield line


def _read_lines(link: Link, target: str) -> Iterator[bytes]:
    rest = b""
    try:
        for part in link.stream(target, {}):
            *lines, rest = (rest + part).split(b"\n")
            yield from lines
    except OSError as error:
        raise Unreachable(
            "The connection broke before the end of the logs.", "Ask for them again."
        ) from error


def _resumed(link: Link, path: str, query: Mapping[str, Any], timeout: float | None) -> Iterator[Sent]:
    """What is sent, until its end, over as many connections as that takes."""
    target = path + query_string({**query, "follow": True})
    deadline = None if timeout is None else time.monotonic() + timeout
    position: str | None = None
    pause = 0.0
    while True:
        headers = {"Accept": "text/event-stream"}
        if position is not None:
            headers["Last-Event-ID"] = position
        try:
            for sent in read_events(link.stream(target, headers, _left(deadline))):
                pause = 0.0
                position = sent.id or position
                if sent.event == "stopping":
                    raise Unreachable("The service was stopped.", "What runs goes on; any command starts it.")
                if sent.data:
                    yield sent
                if sent.event == "end":
                    return
                _left(deadline)
        except Refused as refused:
            if refused.code not in LATER:
                raise
        except OSError:
            _left(deadline)
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2 or 0.05)


def _left(deadline: float | None) -> float | None:
    """The seconds until a deadline; raises TimeoutError behind it."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise WaitedTooLong
    return min(left, _LOOK_AT_THE_CLOCK)


class WaitedTooLong(TimeoutError):
    """What was waited for did not happen in time."""

    def __init__(self) -> None:
        super().__init__("it did not happen in time")
