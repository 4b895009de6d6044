"""Server-sent events, read from the parts of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Sent(NamedTuple):
    """One event; `id` is where to go on behind it."""

    event: str
    data: bytes
    id: str | None


def read_events(parts: Iterable[bytes]) -> Iterator[Sent]:
    """Events in order. Comments are left out; an event without data only says where to go on."""
    waiting = b""
    for part in parts:
        waiting += part
        *blocks, waiting = waiting.split(b"\n\n")
        for block in blocks:
            if sent := _read(block):
                yield sent


def _read(block: bytes) -> Sent | None:
    event, identity = "message", None
    data: list[bytes] = []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            event = value.decode()
        elif name == b"data":
            data.append(value)
        elif name == b"id":
            identity = value.decode()
    if not data and identity is None:
        return None
    return Sent(event, b"\n".join(data), identity)
