"""Durations, sizes and moments as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise

import msgspec

_DURATION_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_NUMBER = r"[0-9]{1,19}(?:\.[0-9]{1,18})?"
_BARE = re.compile(rf"{_NUMBER}\Z")
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ms|d|h|m|s))+\Z")
_DURATION_PART = re.compile(rf"({_NUMBER})(ms|d|h|m|s)")
_CLOCK = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,6}):([0-9]{1,2})(?::([0-9]{1,2}))?\Z")
_LONG_UNIT = re.compile(
    rf"({_NUMBER})\s*(seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|w)\Z", re.IGNORECASE
)
_BINARY_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL_UNITS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_SIZE = re.compile(rf"({_NUMBER})(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?\Z")
_MILLI = re.compile(r"([0-9]{1,12})m\Z")
MAX_SECONDS = 10 * 366 * 86400.0
MAX_BYTES = 2**63 - 1


def parse_duration(text: str) -> float | None:
    """Seconds of `1h30m`, `300s` or a bare number; None where it is not a duration."""
    if _BARE.match(text):
        seconds = float(text)
    elif _DURATION.match(text) and _units_fall(text):
        seconds = _sum_of_units(text)
    else:
        return None
    return round(seconds, 3) if seconds <= MAX_SECONDS else None


def _sum_of_units(text: str) -> float:
    return sum(float(number) * _DURATION_UNITS[unit] for number, unit in _DURATION_PART.findall(text))


def _units_fall(text: str) -> bool:
    """`1h30m` and not `30m1h` or `1m1m`: each unit once, from large to small."""
    sizes = [_DURATION_UNITS[unit] for _, unit in _DURATION_PART.findall(text)]
    return all(a > b for a, b in pairwise(sizes))


def format_duration(seconds: float) -> str:
    """`1h30m` for 5400: whole units, none of them zero."""
    if seconds <= 0:
        return "0s"
    parts = []
    rest = round(seconds * 1000)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def duration_hint(text: str) -> str:
    """How to write what the author probably meant."""
    if match := _CLOCK.match(text):
        return f"write `{_from_clock(match)}`"
    if match := _LONG_UNIT.match(text.strip()):
        number, unit = match[1], match[2][0].lower()
        return f"write `{float(number) * 7:g}d`" if unit == "w" else f"write `{number}{unit}`"
    if re.fullmatch(r"-\d.*", text):
        return "a duration cannot be negative"
    if parse_duration(text.lower()) is not None:
        return f"write `{text.lower()}`"
    if _BARE.match(text) or (_DURATION.match(text) and _units_fall(text)):
        return f"write at most `{format_duration(MAX_SECONDS)}`"
    return "write a number with a unit, from large to small: `300s`, `5m`, `1h30m` or `2d`"


def _from_clock(match: re.Match[str]) -> str:
    days, first, second, third = (int(group) if group else 0 for group in match.groups())
    if match[4] is None and match[1] is None:
        hours, minutes = format_duration(first * 3600 + second * 60), format_duration(first * 60 + second)
        return f"{hours}` for hours and minutes or `{minutes}"
    return format_duration(days * 86400 + first * 3600 + second * 60 + third)


def parse_size(text: str) -> int | None:
    """Bytes of `4Gi`, `500M` or a bare number; None where it is not a size."""
    match = _SIZE.match(text)
    if not match:
        return None
    factor = (_BINARY_UNITS | _DECIMAL_UNITS).get(match[2] or "", 1)
    size = int(match[1]) * factor if match[1].isdigit() else round(float(match[1]) * factor)
    return size if size <= MAX_BYTES else None


def format_size(size: float) -> str:
    """The shortest exact form, binary units first."""
    size = int(size)
    for units in (_BINARY_UNITS, _DECIMAL_UNITS):
        for unit, factor in reversed(units.items()):
            if size and size % factor == 0:
                return f"{size // factor}{unit}"
    return str(size)


def size_hint(text: str) -> str:
    """How to write what the author probably meant."""
    if known := _SIZE.match(text):
        return "write less than `8Ei`" if float(known[1]) else "write more than nothing, such as `1Gi`"
    match = re.fullmatch(rf"\s*({_NUMBER})\s*([kKmMgGtTpP])(i?)[bB]?(?:ytes)?\s*", text)
    if match:
        unit = match[2].upper()
        decimal = "k" if unit == "K" else unit
        return f"write `{match[1]}{unit}i` (powers of 1024) or `{match[1]}{decimal}` (powers of 1000)"
    return "write a number with a unit such as `512Mi`, `4Gi` or `2T`"


def parse_amount(text: str) -> float | None:
    """A Kubernetes amount of cores: `1`, `1.5` or `500m`."""
    if match := _MILLI.match(text):
        return int(match[1]) / 1000
    return float(text) if _BARE.match(text) else None


class Moment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A point in time: `at` in UTC, or so many seconds `after` the submission."""

    at: datetime | None = None
    after: float | None = None


def parse_moment(text: str) -> tuple[Moment, bool] | None:
    """A moment in ISO 8601, or `+2h` after submission; and whether its zone was given."""
    if text.startswith("+"):
        seconds = parse_duration(text[1:])
        return None if seconds is None else (Moment(after=seconds), True)
    try:
        moment = datetime.fromisoformat(text)
        zoned = moment.tzinfo is not None
        return Moment(at=moment.astimezone(UTC) if zoned else moment.replace(tzinfo=UTC)), zoned
    except (ValueError, OverflowError):
        return None
