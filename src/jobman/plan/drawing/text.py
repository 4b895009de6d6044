"""Text that can be seen, how wide it is, and as much of it as there is room for."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Literal

Style = Literal["", "bold", "mono"]

# In em, those of DejaVu Sans: the widest of the common sans fonts, so that text fits in the others too.
_WIDTHS = {
    character: width
    for width, characters in {
        0.30: "'ijlIJ",
        0.36: " ,./:;\\|f-·",
        0.41: "()[]t!r",
        0.56: '"*_`szc?L',
        0.79: "KAVBRXZCUHNDG&OQ",
        0.84: "w#+<=>^~×",
        1.00: "M%mW@…",
    }.items()
    for character in characters
}
_BOLD = 1.13
_MONO = 0.61


def plain(text: str) -> str:
    """A text on one line in which every character can be seen and written."""
    return "".join(map(_seen, " ".join(text.split())))


def text_width(text: str, size: float, style: Style = "") -> float:
    """About how wide a text is, rather too much than too little."""
    if style == "mono":
        return size * sum(_MONO if character < "\u0300" else max(_MONO, _em(character)) for character in text)
    return size * sum(map(_em, text)) * (_BOLD if style == "bold" else 1)


def fit(text: str, width: float, size: float, style: Style = "") -> str:
    """The text, or as much of its beginning as there is room for, with an ellipsis."""
    if text_width(text, size, style) <= width:
        return text
    room = width - text_width("…", size, style)
    widths = accumulate(text_width(character, size, style) for character in text)
    return text[: sum(1 for _ in _while(widths, room))].rstrip() + "…"


def _while(widths: Iterable[float], room: float) -> Iterator[float]:
    for width in widths:
        if width > room:
            return
        yield width


def _em(character: str) -> float:
    if character < "\u0300":
        return _WIDTHS.get(character, 0.64 if character < "\u007f" else 0.8)
    if unicodedata.combining(character):
        return 0.0
    return 1.3 if unicodedata.east_asian_width(character) in "WF" else 0.9


def _seen(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Co"):
        return "\ufffd"
    return character
