"""Moments as Slurm and Flux write them: `now+1hour`, `16:00`, `tomorrow`, dates; seen from a given now."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

from jobman.convert.values import Wrong

_AFTER = re.compile(r"now(?:\s*\+\s*(\d+)\s*([a-z]*))?", re.IGNORECASE)
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_NAMED = {"midnight": time(0), "noon": time(12), "fika": time(15), "teatime": time(16), "elevenses": time(11)}
_DAYS = {"today": 0, "tomorrow": 1}
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?\s*([ap]m)?", re.IGNORECASE)
_DATES = (
    (re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"), "T"),
    (re.compile(r"(?P<m>\d{1,2})[/.](?P<d>\d{1,2})(?:[/.](?P<y>\d{2,4}))?"), "-"),
    (re.compile(r"(?P<m>\d\d)(?P<d>\d\d)(?P<y>\d\d)?"), "-"),
)
_WANTED = "a moment such as now+1hour, 16:00, tomorrow or 2030-01-20T12:34:00"


def moment_of(text: str, now: datetime, earlier: timedelta = timedelta()) -> str:
    """The moment as a JobSpec writes it, `earlier` by so much: `+60s` from submission, or an ISO date."""
    text = text.strip()
    if after := _AFTER.fullmatch(text):
        seconds = int(after[1] or 0) * _unit(after[2] or "") - int(earlier.total_seconds())
        return f"+{max(seconds, 0)}s"
    return (_absolute(text, now) - earlier).isoformat(timespec="seconds")


def _unit(word: str) -> int:
    """A unit may be shortened; without one they are seconds."""
    for unit, seconds in _UNITS.items():
        if unit.startswith(word.lower()):
            return seconds
    raise Wrong(f"`{word}` is no unit of time", _WANTED)


def _absolute(text: str, now: datetime) -> datetime:
    try:
        if text.lower() in _DAYS:
            return _at(now.date() + timedelta(days=_DAYS[text.lower()]), time(0), now)
        if text.lower() in _NAMED:
            return _next(_NAMED[text.lower()], now)
        if clock := _CLOCK.fullmatch(text):
            return _next(_time(clock), now)
        return _dated(text, now)
    except (ValueError, OverflowError) as error:
        if isinstance(error, Wrong):
            raise
        raise Wrong(f"it is no moment ({error})", _WANTED) from None


def _dated(text: str, now: datetime) -> datetime:
    for pattern, joint in _DATES:
        found = pattern.match(text)
        if found is None:
            continue
        rest = text[found.end() :]
        clock = _CLOCK.fullmatch(rest.removeprefix(joint).strip()) if rest else None
        if rest and clock is None:
            continue
        return _day(found, now, _time(clock) if clock else time(0))
    raise Wrong("it is no moment", _WANTED)


def _day(found: re.Match[str], now: datetime, clock: time) -> datetime:
    """A day without a year is the next of its kind."""
    month, day, year = int(found["m"]), int(found["d"]), found["y"]
    if year is not None:
        return _at(date(int(year) + (2000 if len(year) == 2 else 0), month, day), clock, now)
    this = _at(date(now.year, month, day), clock, now)
    return this if this >= now else _at(date(now.year + 1, month, day), clock, now)


def _time(found: re.Match[str]) -> time:
    hour = int(found[1])
    if half := (found[4] or "").lower():
        hour = hour % 12 + (12 if half == "pm" else 0)
    return time(hour, int(found[2]), int(found[3] or 0))


def _next(clock: time, now: datetime) -> datetime:
    today = _at(now.date(), clock, now)
    return today if today > now else _at(now.date() + timedelta(days=1), clock, now)


def _at(day: date, clock: time, now: datetime) -> datetime:
    return datetime.combine(day, clock, tzinfo=now.tzinfo)
