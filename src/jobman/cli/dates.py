"""Days and hours to come, as people write them: `2026-12-01T08:00`, `08:00`, `tomorrow 8:00`, `+2h`."""

from __future__ import annotations

import os
import re
from datetime import date, datetime, time, timedelta
from pathlib import Path

from jobman.cli.times import parse_length
from jobman.sched.calendar import WEEKDAYS, Recurrence, Weekday, is_zone, wall_of

_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_EVERY = re.compile(r"(?:([0-9]{1,4})\s*)?(h|hour|d|day|w|week|month)s?")
_UNITS = {"h": "hour", "d": "day", "w": "week"}
_ADVERBS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}
_LOCALTIME = Path("/etc/localtime")


def local_zone(now: float) -> str:
    """The zone of this machine: by its name, so that its hours are kept, or else its offset of today."""
    named = os.environ.get("TZ", "").removeprefix(":") or _linked_zone()
    if named and is_zone(named):
        return named
    offset = datetime.fromtimestamp(now).astimezone().strftime("%z")
    return "UTC" if offset in ("+0000", "") else f"{offset[:3]}:{offset[3:5]}"


def _linked_zone() -> str:
    try:
        return str(_LOCALTIME.readlink()).partition("zoneinfo/")[2]
    except OSError:
        return ""


def parse_start(text: str, zone: str, now: float) -> datetime | None:
    """What the clock of a zone shows when it begins; None where the text says no such thing."""
    words = text.strip().lower().split()
    here = wall_of(now, zone).replace(microsecond=0)
    if words == ["now"]:
        return here
    if text.startswith("+"):
        seconds = parse_length(text[1:].strip())
        return None if seconds is None else wall_of(now + seconds, zone).replace(microsecond=0)
    if len(words) == 1 and (clock := _clock(words[0])) is not None:
        today = datetime.combine(here.date(), clock)
        return today if today >= here else today + timedelta(days=1)
    if words and (day := _day(words[0], here.date())) is not None:
        return _on_day(day, words[1:], here)
    return _iso(text.strip(), zone)


def _clock(word: str) -> time | None:
    match = _CLOCK.fullmatch(word)
    return None if match is None else time(int(match[1]), int(match[2]), int(match[3] or 0))


def _day(word: str, today: date) -> date | None:
    if word in ("today", "tomorrow"):
        return today + timedelta(days=word == "tomorrow")
    weekday = _weekday(word)
    if weekday is None:
        return None
    return today + timedelta(days=(WEEKDAYS.index(weekday) - today.weekday()) % 7)


def _on_day(day: date, rest: list[str], here: datetime) -> datetime | None:
    clock = time() if not rest else _clock(rest[0]) if len(rest) == 1 else None
    if clock is None:
        return None
    found = datetime.combine(day, clock)
    # A day of the week that is today, at an hour that has passed, is the one of next week.
    return found + timedelta(days=7) if found < here and day == here.date() and rest else found


def _iso(text: str, zone: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo is None else wall_of(found.timestamp(), zone)
    except (ValueError, OverflowError, OSError):
        return None


def parse_every(text: str, days: str | None = None) -> Recurrence | None:
    """`day`, `2 weeks`, `mon,thu`, or a week with days; None where the text says no such thing."""
    on = parse_weekdays(days) if days else ()
    word = text.strip().lower()
    if on is None:
        return None
    if weekdays := parse_weekdays(word):
        return None if days else Recurrence(every="week", weekdays=weekdays)
    match = _EVERY.fullmatch(_ADVERBS.get(word, word))
    if match is None:
        return None
    unit = _UNITS.get(match[2], match[2])
    return Recurrence(every=unit, interval=int(match[1] or 1), weekdays=on)  # type: ignore[arg-type]


def parse_weekdays(text: str) -> tuple[Weekday, ...] | None:
    """`mon,thu`, or whole names; None where one is no day of the week."""
    found = [_weekday(word.strip()) for word in text.lower().split(",")]
    return None if None in found else tuple(day for day in found if day is not None)


def _weekday(word: str) -> Weekday | None:
    names = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return next(
        (day for day, name in zip(WEEKDAYS, names, strict=True) if word in (day, name, name + "s")), None
    )


def parse_day(text: str) -> date | None:
    """`2026-12-24`; None for anything else."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        return None
