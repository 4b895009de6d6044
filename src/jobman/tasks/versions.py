"""Versions of task types, and ranges of them: `2`, `2.x`, `>=2.1,<3`, `*`."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne

Version = tuple[tuple[int, str], ...]
_SIGNS: dict[str, Callable[[Version, Version], bool]] = {
    ">=": ge,
    "<=": le,
    "==": eq,
    "!=": ne,
    ">": gt,
    "<": lt,
    "": eq,
}
_PART = re.compile(r"\s*(>=|<=|==|!=|>|<|)\s*([^\s,<>=!]+)\s*")


def version(text: str) -> Version:
    """As something that can be compared: numbers by their size, words by their letters, `2` like `2.0`."""
    parts = [_piece(word) for word in re.split(r"[.+-]", text.strip().removeprefix("v")) if word]
    while parts and parts[-1] == (0, ""):
        parts.pop()
    return tuple(parts)


def _piece(word: str) -> tuple[int, str]:
    found = re.match(r"\d+", word)
    # A word comes before any number: 2.0-rc before 2.0.1, as people mean it.
    return (int(found[0]), word[found.end() :]) if found else (-1, word)


class Range:
    """Versions that fulfil all parts of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tests = [_test(part) for part in text.split(",") if part.strip()]
        if not self._tests:
            raise ValueError("a range is such as `2.x`, `>=2,<3` or `*`")

    def __contains__(self, of: str) -> bool:
        found = version(of)
        return all(test(found) for test in self._tests)


def _test(part: str) -> Callable[[Version], bool]:
    found = _PART.fullmatch(part)
    if found is None:
        raise ValueError(f"`{part.strip()}` is no range: write such as `2.x`, `>=2,<3` or `*`")
    sign, text = found[1], found[2]
    if text in ("*", "x"):
        return lambda _: True
    if text.endswith((".x", ".*")):
        prefix = version(text[:-2])
        wanted = len(text[:-2].split("."))
        filled = (*prefix, *((0, "") for _ in range(wanted - len(prefix))))
        return lambda of: (*of, *((0, "") for _ in range(wanted - len(of))))[:wanted] == filled
    bound = version(text)
    compare = _SIGNS[sign]
    return lambda of: compare(of, bound)
