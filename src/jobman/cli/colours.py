"""Colours, where somebody sees them: a table from meaning to style, for every command alike."""

from __future__ import annotations

import os
import sys
from typing import TextIO

STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bold red": "1;31",
    "bold green": "1;32",
    "bold yellow": "1;33",
}
STATES = {
    "waiting": "yellow",
    "queued": "yellow",
    "resting": "yellow",
    "held": "yellow",
    "starting": "cyan",
    "running": "cyan",
    "stopping": "cyan",
    "frozen": "blue",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "magenta",
    "skipped": "dim",
}
PREFIXES = ("cyan", "green", "magenta", "yellow", "blue", "red")
"""For the prefixes of lines, in turn."""


def wanted(stream: TextIO | None = None) -> bool:
    """Whether a stream is to have colours: terminals do, unless the environment says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and (stream or sys.stdout).isatty()


def paint(text: str, style: str, *, on: bool) -> str:
    """A text in a style, or as it is."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if on and style and text else text


def clean(text: str) -> str:
    """A text without line breaks and control characters, which could play tricks with a terminal."""
    if text.isprintable():
        return text
    if "\x1b" in text:
        import re

        text = re.sub(_ESCAPES, "", text)
    return "".join(one if one.isprintable() else _SHOWN.get(one, "\ufffd") for one in text)


_SHOWN = {"\n": "⏎", "\r": "", "\t": " "}
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])"
