"""Load bars made of letters: `██████░░░░`."""

from __future__ import annotations

import sys
from typing import TextIO

WIDTH = 10
_BLOCKS = ("█", "░")
_LETTERS = ("#", "-")


def bar(used: float, total: float, width: int = WIDTH, *, letters: tuple[str, str] = _BLOCKS) -> str:
    """How much of something is in use; nothing where there is nothing.

    Something in use is never an empty bar, and something free never a full one.
    """
    if total <= 0:
        return ""
    filled = round(width * min(max(used / total, 0.0), 1.0))
    if used > 0:
        filled = max(filled, 1)
    if used < total:
        filled = min(filled, width - 1)
    return letters[0] * filled + letters[1] * (width - filled)


def letters_for(stream: TextIO | None = None) -> tuple[str, str]:
    """Blocks where a stream can show them, plain letters elsewhere."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "ascii"
    try:
        "".join(_BLOCKS).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return _LETTERS
    return _BLOCKS


def colour_of(used: float, total: float) -> str:
    """Red where nothing is left, yellow where something is in use."""
    return "red" if used >= total else "yellow" if used else ""
