"""Values of options: times, sizes, counts, index lists; each raises `Wrong` for what is none."""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

_TIMES = (
    # days, hours, minutes, seconds by their number of colons
    (re.compile(r"(\d+)-(\d*)"), ("d", "h")),
    (re.compile(r"(\d+)-(\d+):(\d+)"), ("d", "h", "m")),
    (re.compile(r"(\d+)-(\d+):(\d+):(\d+)"), ("d", "h", "m", "s")),
    (re.compile(r"(\d+)"), ("m",)),
    (re.compile(r"(\d+):(\d+)"), ("m", "s")),
    (re.compile(r"(\d+):(\d+):(\d+)"), ("h", "m", "s")),
)
_UNIT_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_ENDLESS = ("unlimited", "infinite", "-1")
_SIZE = re.compile(r"(\d+)([kmgtp]?)b?", re.IGNORECASE)
_KIB = {"k": 1, "m": 1024, "": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
_SIGNAL = re.compile(r"(?:([BR]+):)?(\w+)(?:@(\d+))?", re.IGNORECASE)
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
_MOST_INDEXES = 1_000_000


class Wrong(ValueError):
    """A value that is none; `wanted` is what may be written."""

    def __init__(self, reason: str, wanted: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wanted = wanted


def seconds_of(text: str) -> int | None:
    """Seconds of a time limit; None where there is no limit."""
    if text.lower() in _ENDLESS or text == "0":
        return None
    for pattern, units in _TIMES:
        if found := pattern.fullmatch(text):
            numbers = (int(number or 0) for number in found.groups())
            return (
                sum(number * _UNIT_SECONDS[unit] for number, unit in zip(numbers, units, strict=True)) or None
            )
    raise Wrong("it is no time", "minutes, or days-hours:minutes:seconds such as 30, 1:30:00 or 2-12:00")


def duration_text(seconds: int) -> str:
    """The same time as a JobSpec writes it."""
    parts = []
    for unit, length in _UNIT_SECONDS.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def mebibytes_of(text: str) -> int:
    """Mebibytes of a size, rounded up as Slurm does."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise Wrong(
            "it is no size", "a whole number with K, M, G or T, such as 4G; without a unit it is megabytes"
        )
    return -(-int(found[1]) * _KIB[found[2].lower()] // 1024)


def size_text(mebibytes: int) -> str:
    """The same size as a JobSpec writes it."""
    for unit, size in (("Ti", 1024**2), ("Gi", 1024)):
        if mebibytes and mebibytes % size == 0:
            return f"{mebibytes // size}{unit}"
    return f"{mebibytes}Mi"


def count_of(text: str, most: int = 1_000_000) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise Wrong("it is no number from 1", "a whole number from 1")
    return int(text)


def nodes_of(text: str) -> tuple[int, int]:
    """The least and the most of `2` or `2-4`."""
    least, dash, most = text.partition("-")
    first = count_of(least)
    last = count_of(most) if dash else first
    if last < first:
        raise Wrong("the second number is smaller", "a number of nodes, or the least and the most: 2 or 2-4")
    return first, last


class Indexes(NamedTuple):
    """The numbers of an array in order, and how many run at once."""

    numbers: tuple[int, ...]
    at_once: int | None

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """The same numbers as (first, step, count)."""
        runs: list[tuple[int, int, int]] = []
        for number in self.numbers:
            first, step, count = runs[-1] if runs else (0, 0, 0)
            if count == 1:
                runs[-1] = (first, number - first, 2)
            elif count and number == first + step * count:
                runs[-1] = (first, step, count + 1)
            else:
                runs.append((number, 1, 1))
        return runs


def indexes_of(text: str) -> Indexes:
    """`0-9%4`, `1,3,7`, `0-20:2`; each number once, in order."""
    wanted = "numbers and ranges such as 0-9, 1,3,7 or 0-20:2, and %4 for at most four at once"
    numbers: set[int] = set()
    limits = re.findall(r"%(\d+)", text)
    for part in re.sub(r"%\d+", "", text).strip("[]").split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            raise Wrong(f"`{part}` is neither a number nor a range", wanted)
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or not step:
            raise Wrong(f"`{part}` has nothing in it", wanted)
        if (last - first) // step + len(numbers) >= _MOST_INDEXES:
            raise Wrong(f"it has more than {_MOST_INDEXES:,} numbers", wanted)
        numbers.update(range(first, last + 1, step))
    return Indexes(tuple(sorted(numbers)), (int(limits[-1]) or None) if limits else None)


class Alarm(NamedTuple):
    """`B:USR1@120`."""

    name: str
    seconds: int
    to_script: bool


def alarm_of(text: str) -> Alarm:
    """The signal before the end; a minute before where nothing is said."""
    found = _SIGNAL.fullmatch(text)
    name = _signal_name(found[2]) if found else None
    if not found or name is None:
        raise Wrong("it names no signal", "a signal and how many seconds before the end, such as B:USR1@120")
    return Alarm(name, int(found[3] or 60), "B" in (found[1] or "").upper())


def _signal_name(text: str) -> str | None:
    if text.isdigit():
        known = {each.value: each.name for each in signal.Signals}
        return known[int(text)].removeprefix("SIG") if int(text) in known else None
    name = text.upper().removeprefix("SIG")
    return name if f"SIG{name}" in signal.Signals.__members__ else None


class Gres(NamedTuple):
    """One generic resource: `gpu:a100:2`."""

    name: str
    kind: str
    number: int


def gres_of(text: str) -> list[Gres]:
    return [_gres(part) for part in text.split(",") if part] if text != "none" else []


def gpus_of(text: str) -> Gres:
    """`2`, `a100:2` or `a100`."""
    kind, colon, count = text.rpartition(":")
    if not colon and not text.isdigit():
        return Gres("gpu", text, 1)
    return Gres("gpu", kind, count_of(count))


def _gres(part: str) -> Gres:
    name, *rest = re.sub(r"\(.*?\)", "", part).split(":")
    if not rest:
        return Gres(name, "", 1)
    if rest[-1].isdigit():
        return Gres(name, ":".join(rest[:-1]), count_of(rest[-1]))
    return Gres(name, ":".join(rest), 1)
