"""Lists of hosts as managers write them: `n[1-3,07],login`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

_PART = re.compile(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)*")


def expanded(text: str) -> list[str]:
    """Every host of a list."""
    return [host for part in _PART.findall(text) if part for host in _hosts(part)]


def _hosts(part: str) -> Iterator[str]:
    pieces = re.split(r"\[([^\]]*)\]", part)
    choices = [list(_numbers(piece)) if place % 2 else [piece] for place, piece in enumerate(pieces)]
    return ("".join(words) for words in product(*choices))


def _numbers(text: str) -> Iterator[str]:
    for span in text.split(","):
        low, dash, high = span.partition("-")
        if not dash or not (low.isdecimal() and high.isdecimal()):
            yield span
        else:
            yield from (str(number).zfill(len(low)) for number in range(int(low), int(high) + 1))
