"""Selectors of labels as Kubernetes writes them: `image=a,tenant in (b, c),!old`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Labels = Mapping[str, str]
_PARTS = re.compile(r",(?![^()]*\))")
_AMONG = re.compile(r"(\S+)\s+(in|notin)\s+\(([^()]*)\)")
_EQUAL = re.compile(r"([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)")
_THERE = re.compile(r"(!?)\s*([^\s=!,()]+)")


class WrongSelector(ValueError):
    """It is no selector."""


def selects(text: str) -> Callable[[Labels], bool]:
    """Whether labels fulfil all parts of a selector; raises WrongSelector."""
    tests = [_test(part.strip()) for part in _PARTS.split(text)] if text.strip() else []
    return lambda labels: all(test(labels) for test in tests)


def _test(part: str) -> Callable[[Labels], bool]:
    if found := _AMONG.fullmatch(part):
        key, values = found[1], {value.strip() for value in found[3].split(",")}
        return (
            (lambda of: of.get(key) in values) if found[2] == "in" else (lambda of: of.get(key) not in values)
        )
    if found := _EQUAL.fullmatch(part):
        key, value, is_same = found[1], found[3], found[2] != "!="
        return lambda of: (of.get(key) == value) is is_same
    if found := _THERE.fullmatch(part):
        key, is_there = found[2], not found[1]
        return lambda of: (key in of) is is_there
    raise WrongSelector(f"`{part}` is no part of a selector; write such as `image=a` or `image in (a, b)`")
