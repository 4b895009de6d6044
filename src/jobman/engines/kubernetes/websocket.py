"""WebSockets (RFC 6455) as a client of an API server needs them: the opening, frames, whole messages."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_CONTINUED = 0
_KNOWN = (_CONTINUED, TEXT, BINARY, CLOSE, PING, PONG)
_CONTROL = 8
"""Kinds from here on are about the connection, short, and come between the parts of a message."""
_LONGEST_CONTROL = 125
LONGEST_MESSAGE = 4 << 20
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_LAST, _RESERVED, _MASKED = 0x80, 0x70, 0x80


class ProtocolError(Exception):
    """The other end does not speak as it should."""


class Message(NamedTuple):
    """A whole message, or a word about the connection."""

    kind: int
    data: bytes


def opening(protocol: str) -> tuple[dict[str, str], str]:
    """The headers that ask for a WebSocket with a protocol, and what the answer has to prove."""
    key = base64.b64encode(os.urandom(16))
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key.decode(),
        "Sec-WebSocket-Protocol": protocol,
    }
    return headers, _proof(key)


def check_opening(headers: Mapping[str, str], proof: str, protocol: str) -> None:
    """Raise ProtocolError for an answer that is not to our opening."""
    if headers.get("Sec-WebSocket-Accept", "") != proof:
        raise ProtocolError("it did not accept the WebSocket it was asked for")
    if headers.get("Sec-WebSocket-Protocol", "") != protocol:
        raise ProtocolError(f"it does not know the protocol {protocol}")


def _proof(key: bytes) -> str:
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest()).decode()


def frame(kind: int, data: bytes, mask: bytes | None = None) -> bytes:
    """A message as a client sends it: in one frame, masked."""
    mask = os.urandom(4) if mask is None else mask
    size = len(data)
    if size < 126:
        head = bytes([_LAST | kind, _MASKED | size])
    elif size < 1 << 16:
        head = bytes([_LAST | kind, _MASKED | 126]) + size.to_bytes(2)
    else:
        head = bytes([_LAST | kind, _MASKED | 127]) + size.to_bytes(8)
    return head + mask + masked(data, mask)


def masked(data: bytes, mask: bytes) -> bytes:
    """Data with a mask over it, or without it again."""
    size = len(data)
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data) ^ int.from_bytes(pattern)).to_bytes(size)


class Reader:
    """Takes bytes as they come from a server, and gives whole messages."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._parts: list[bytes] = []
        self._kind = 0
        """Of the message whose parts these are; 0 where there is none."""

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are whole now. Raises ProtocolError."""
        self._waiting += data
        while (found := self._frame()) is not None:
            last, kind, payload = found
            if kind >= _CONTROL:
                yield Message(kind, payload)
            elif (message := self._joined(last, kind, payload)) is not None:
                yield message

    def _frame(self) -> tuple[bool, int, bytes] | None:
        """The next frame, once it is there."""
        waiting = self._waiting
        if len(waiting) < 2:
            return None
        last, kind, short = bool(waiting[0] & _LAST), waiting[0] & 0x0F, waiting[1]
        if waiting[0] & _RESERVED or short & _MASKED or kind not in _KNOWN:
            raise ProtocolError("it sent a frame that means nothing")
        if kind >= _CONTROL and (not last or short > _LONGEST_CONTROL):
            raise ProtocolError("it sent a word about the connection that is too long")
        head = 2 + {126: 2, 127: 8}.get(short, 0)
        if len(waiting) < head:
            return None
        size = short if head == 2 else int.from_bytes(waiting[2:head])
        if size + sum(map(len, self._parts)) > LONGEST_MESSAGE:
            raise ProtocolError(f"it sent a message of more than {LONGEST_MESSAGE >> 20} MiB")
        if len(waiting) < head + size:
            return None
        payload = bytes(waiting[head : head + size])
        del waiting[: head + size]
        return last, kind, payload

    def _joined(self, last: bool, kind: int, payload: bytes) -> Message | None:
        if (kind == _CONTINUED) != bool(self._kind):
            raise ProtocolError("it sent the parts of a message in disorder")
        self._kind = self._kind or kind
        self._parts.append(payload)
        if not last:
            return None
        message = Message(self._kind, b"".join(self._parts))
        self._kind, self._parts = 0, []
        return message
