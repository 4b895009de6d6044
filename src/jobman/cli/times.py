"""Words for moments and durations, and reading them from the command line."""

from __future__ import annotations

import time

_STEPS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (10 * 86_400, 86_400, "d"))
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def length(seconds: float | None) -> str:
    """`40 ms`, `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`; nothing for None."""
    if seconds is None:
        return ""
    if seconds < 0.0995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, name, smaller, smaller_name in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {name}" + (f" {rest} {smaller_name}" if rest else "")
    return f"{whole} s"


def ago(moment: float | None, now: float | None = None) -> str:
    """`just now`, `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`, and the date of what is long past."""
    if moment is None:
        return ""
    passed = (time.time() if now is None else now) - moment
    if passed < 0:
        return f"in {length(-passed)}" if passed < -1 else "just now"
    if passed < 2:
        return "just now"
    for end, size, name in _STEPS:
        if passed < end:
            return f"{int(passed // size)} {name} ago"
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def clock(moment: float | None, *, utc: bool = False) -> str:
    """The moment itself: `2026-03-01 14:05:09`, with a Z in UTC."""
    if moment is None:
        return ""
    if utc:
        return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(moment))
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def fine_clock(moment: float, *, utc: bool = False) -> str:
    """The time of day with milliseconds, with the date and a Z in UTC."""
    thousandths = int(moment * 1000) % 1000
    if utc:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{thousandths:03d}Z"
    return time.strftime("%H:%M:%S", time.localtime(moment)) + f".{thousandths:03d}"


def when(moment: float | None, *, utc: bool) -> str:
    """Words for a person, or the moment itself where that was asked for."""
    return clock(moment, utc=True) if utc else ago(moment)


def parse_length(text: str) -> float | None:
    """Seconds of `30`, `90s`, `10m`, `1h30m`, `2d`, `1w`; None for anything else."""
    total, digits = 0.0, ""
    last = float("inf")
    for character in text:
        if character.isascii() and (character.isdigit() or character == "."):
            digits += character
            continue
        size = _UNITS.get(character)
        number = _number(digits)
        if size is None or number is None or size >= last:
            return None
        total, digits, last = total + number * size, "", size
    if not digits:
        return total if text else None
    bare = _number(digits)
    return bare if last == float("inf") else None


def parse_moment(text: str, now: float | None = None) -> float | None:
    """A moment: so long ago (`10m`), or in ISO 8601, local where it has no zone; None for anything else."""
    length_of_it = parse_length(text)
    if length_of_it is not None:
        return (time.time() if now is None else now) - length_of_it
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(digits: str) -> float | None:
    return float(digits) if digits.count(".") <= 1 and digits.strip(".") else None
