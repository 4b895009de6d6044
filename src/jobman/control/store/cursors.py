"""Cursors: opaque texts that say after which item a page goes on."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from jobman.control.store.errors import BadCursor


def cursor_of(key: tuple[Any, ...]) -> str:
    """The cursor after the item with this key."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def key_of(cursor: str, kind: Any) -> Any:
    """The key of the item that a cursor stands after."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(text, type=kind)
    except (ValueError, msgspec.DecodeError):
        raise BadCursor(f"{cursor[:80]!r} is not a cursor of this list.") from None
