"""How far a reader of logs has come, as a text that it can come back with."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Annotated

import msgspec

from jobman.control.logs.streams import LogLine, LogStream, StreamKey, StreamName

_Offset = Annotated[int, msgspec.Meta(ge=0)]
_Written = dict[str, dict[int, dict[int, tuple[_Offset | None, _Offset | None]]]]
"""Replica, attempt, copy, then the offsets of stdout and stderr."""

_NAMES: tuple[StreamName, StreamName] = ("stdout", "stderr")
_VERSION = "1"
_LONGEST = 64 * 1024 * 1024


class CursorError(ValueError):
    """A text that is no position in logs."""

    def __init__(self) -> None:
        super().__init__(
            "This position in the logs cannot be read. Ask for the logs again without a position."
        )


class LogCursor:
    """The offset in each stream up to which its lines were delivered. A stream it does not know is new."""

    def __init__(self, offsets: Mapping[StreamKey, int] | None = None) -> None:
        self.offsets = dict(offsets or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogCursor) and self.offsets == other.offsets

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"LogCursor({self.offsets})"

    def of(self, stream: LogStream) -> int:
        """Where to go on reading a stream."""
        return max(stream.start, self.offsets.get(stream.key, 0))

    def advance(self, line: LogLine) -> None:
        """Remember that a line was delivered."""
        self.offsets[line.key] = line.end

    def copy(self) -> LogCursor:
        return LogCursor(self.offsets)

    def encode(self) -> str:
        """A short text of letters, digits, `-` and `_`."""
        written: dict[str, dict[int, dict[int, list[int | None]]]] = {}
        for replica, attempt, copy, name in sorted(self.offsets):
            pair = written.setdefault(replica, {}).setdefault(attempt, {}).setdefault(copy, [None, None])
            pair[_NAMES.index(name)] = self.offsets[replica, attempt, copy, name]
        packed = zlib.compress(msgspec.json.encode(written), 9)
        return _VERSION + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> LogCursor:
        """The cursor that a text was made of; raises CursorError."""
        written = _unpacked(text)
        return cls(
            {
                (replica, attempt, copy, name): offset
                for replica, attempts in written.items()
                for attempt, copies in attempts.items()
                for copy, pair in copies.items()
                for name, offset in zip(_NAMES, pair, strict=True)
                if offset is not None
            }
        )


def _unpacked(text: str) -> _Written:
    version, packed = text[:1], text[1:]
    if version != _VERSION:
        raise CursorError
    try:
        raw = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(raw, _LONGEST)
        if not unpacking.eof:
            raise CursorError
        return msgspec.json.decode(data, type=_Written)
    except (binascii.Error, ValueError, zlib.error) as problem:
        raise CursorError from problem
