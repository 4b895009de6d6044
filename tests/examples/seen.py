"""What commands print, without what differs from run to run: ids, times, nodes and the widths of columns."""

from __future__ import annotations

import re
import socket

_DIFFERS = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"), "MOMENT"),
    (re.compile(r"\b(?:just now|\d+ (?:s|min|h|d) ago)"), "AGO"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min|h)(?: \d+ (?:s|min))?\b"), "T"),
    (re.compile(rf"\b(?:node-\d+|{re.escape(socket.gethostname().partition('.')[0])})(?![\w-])"), "NODE"),
    (re.compile(r"[ \t]+"), " "),
)


def lines_of(text: str) -> list[str]:
    """The lines of a text that say something."""
    for pattern, word in _DIFFERS:
        text = pattern.sub(word, text)
    return [line for each in text.splitlines() if (line := each.strip())]
