"""The kinds of columns: how a value of a record is kept, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import zlib
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary, Text
from sqlalchemy.dialects.postgresql import TEXT
from sqlalchemy.types import TypeDecorator, TypeEngine

_UNREADABLE = "\N{REPLACEMENT CHARACTER}"


class Words(TypeDecorator[str]):
    """A text. What no database can keep (NUL, half a surrogate pair) is replaced, for one such text must not
    make the writes of everybody fail. Ordered by code point everywhere, so that ranges of prefixes hold."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return TEXT(collation="C") if dialect.name == "postgresql" else Text()

    def process_bind_param(self, value: str | None, _dialect: Dialect | None) -> str | None:
        if value is None or (type(value) is str and value.isascii() and "\0" not in value):
            return value
        return (
            str(value)
            .replace("\0", _UNREADABLE)
            .encode("utf-16", "surrogatepass")
            .decode("utf-16", "replace")
        )


class Json(TypeDecorator[Any]):
    """A plain value as JSON text; `kind` is what it is read back as."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: Any = Any) -> None:
        super().__init__()
        self.kind = kind
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(kind)

    def process_bind_param(self, value: Any, _dialect: Dialect | None) -> str:
        if not value:
            return "[]" if isinstance(value, tuple | list) else "{}"
        try:
            return self._encoder.encode(value).decode()
        except UnicodeEncodeError:
            # Half a surrogate pair, as in names of files that are not UTF-8: ASCII escapes can carry it.
            return json.dumps(msgspec.to_builtins(value))

    def process_result_value(self, value: str | None, _dialect: Dialect | None) -> Any:
        if value is None:
            return None
        try:
            return self._decoder.decode(value)
        except msgspec.DecodeError:
            return msgspec.convert(json.loads(value), self.kind)


class Packed(TypeDecorator[bytes]):
    """Bytes, compressed."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, _dialect: Dialect | None) -> bytes | None:
        return None if value is None else zlib.compress(value, 1)

    def process_result_value(self, value: bytes | None, _dialect: Dialect | None) -> bytes | None:
        return None if value is None else zlib.decompress(value)


# SQLite numbers its rows by a column only if its type is spelt INTEGER.
Number = BigInteger().with_variant(Integer(), "sqlite")
