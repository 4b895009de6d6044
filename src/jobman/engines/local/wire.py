"""What is said between the service and its launcher: lines of JSON over a Unix socket, both ways."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jobman.engines.local.orders import Order
from jobman.engines.local.records import Exit, Started

LINGER = 30.0
"""Seconds for which a launcher stays with nothing to do."""
EARLIER = 3
"""The exit code of a launcher that found another one in its place."""
_LONGEST_ADDRESS = 107


class Request(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a client asks for; each key is one thing to do, and what belongs to it stands beside it.

    `launch` and `adopt` carry orders, the others the id of one. Adopting never starts anything. `duration` is
    the whole time of the copy from its start, so that asking twice is asking once.
    """

    launch: tuple[Order, ...] = ()
    adopt: tuple[Order, ...] = ()
    stop: str | None = None
    grace: float | None = None
    why: str = ""
    freeze: str | None = None
    thaw: str | None = None
    prolong: str | None = None
    duration: float | None = None
    known: tuple[str, ...] | None = None
    status: bool = False
    shut: bool = False


class Named(msgspec.Struct, frozen=True):
    """The id of a copy."""

    id: str


class Status(msgspec.Struct, frozen=True):
    """How a launcher is."""

    pid: int
    version: str
    copies: int
    since: float


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the launcher says; each line has one key.

    `started`, `ended` and `void` (given up before it started) are told to every client, the others to the one
    who asked. `unknown`: no copy of this id is in charge; launch or adopt its order first. `idle` is for the
    launcher's own ears: the shim of this pid has nothing to do.
    """

    started: Started | None = None
    ended: Exit | None = None
    void: Named | None = None
    unknown: Named | None = None
    known: dict[str, str] | None = None
    status: Status | None = None
    shut: bool | None = None
    error: str | None = None
    idle: int | None = None


_encoder = msgspec.json.Encoder()
decode_request = msgspec.json.Decoder(Request).decode
decode_answer = msgspec.json.Decoder(Answer).decode


def line(message: Request | Answer) -> bytes:
    """A message as it is sent."""
    return _encoder.encode(message) + b"\n"


@contextmanager
def address(path: Path) -> Iterator[str]:
    """The address of a socket, also where its path is longer than the system allows for one."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
