"""Days and hours to come, as people write them."""

from datetime import UTC, date, datetime

import pytest

from jobman.cli import dates
from jobman.cli.dates import local_zone, parse_day, parse_every, parse_start, parse_weekdays
from jobman.sched.calendar import Recurrence

NOW = datetime(2026, 11, 18, 10, 30, 15, tzinfo=UTC).timestamp()
"""A Wednesday."""


def start(text, zone="UTC", now=NOW):
    found = parse_start(text, zone, now)
    return None if found is None else found.isoformat()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-12-01T08:00", "2026-12-01T08:00:00"),
        ("2026-12-01 08:00:30", "2026-12-01T08:00:30"),
        ("2026-12-01", "2026-12-01T00:00:00"),
        ("2026-12-01T08:00+02:00", "2026-12-01T06:00:00"),
        ("2026-12-01T08:00Z", "2026-12-01T08:00:00"),
        ("now", "2026-11-18T10:30:15"),
        ("+2h", "2026-11-18T12:30:15"),
        ("+1d12h", "2026-11-19T22:30:15"),
        ("11:00", "2026-11-18T11:00:00"),
        ("8:00", "2026-11-19T08:00:00"),
        ("10:30:15", "2026-11-18T10:30:15"),
        ("today 22:00", "2026-11-18T22:00:00"),
        ("tomorrow 08:00", "2026-11-19T08:00:00"),
        ("Tomorrow  8:05", "2026-11-19T08:05:00"),
        ("tomorrow", "2026-11-19T00:00:00"),
        ("fri 08:00", "2026-11-20T08:00:00"),
        ("monday 08:00", "2026-11-23T08:00:00"),
        ("wed 11:00", "2026-11-18T11:00:00"),
        ("wed 08:00", "2026-11-25T08:00:00"),
    ],
)
def test_a_start_is_what_the_clock_will_show(text, shown):
    assert start(text) == shown


def test_a_start_is_meant_by_the_clock_of_its_zone():
    assert start("now", "Asia/Tokyo") == "2026-11-18T19:30:15"
    assert start("11:00", "Asia/Tokyo") == "2026-11-19T11:00:00"
    assert start("2026-12-01T08:00Z", "Asia/Tokyo") == "2026-12-01T17:00:00"
    before_the_change = datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()
    assert start("+24h", "Europe/Berlin", before_the_change) == "2026-03-29T14:00:00"


@pytest.mark.parametrize(
    "text",
    ["", "soon", "24:00", "8", "+", "+soon", "tomorrow noon", "fri 8:00 sharp", "2026-13-01", "2h", "-2h"],
)
def test_what_is_no_start_is_none(text):
    assert start(text) is None


@pytest.mark.parametrize(
    ("text", "days", "meant"),
    [
        ("day", None, Recurrence(every="day")),
        ("daily", None, Recurrence(every="day")),
        ("2 weeks", None, Recurrence(every="week", interval=2)),
        ("2w", None, Recurrence(every="week", interval=2)),
        ("6h", None, Recurrence(every="hour", interval=6)),
        ("3months", None, Recurrence(every="month", interval=3)),
        ("monthly", None, Recurrence(every="month")),
        ("mon,thu", None, Recurrence(every="week", weekdays=("mon", "thu"))),
        ("Mondays", None, Recurrence(every="week", weekdays=("mon",))),
        ("2weeks", "mon, Friday", Recurrence(every="week", interval=2, weekdays=("mon", "fri"))),
        ("moon", None, None),
        ("", None, None),
        ("2", None, None),
        ("mon", "tue", None),
        ("week", "someday", None),
    ],
)
def test_how_often_is_said_in_words(text, days, meant):
    assert parse_every(text, days) == meant


def test_days_of_the_week_are_short_or_long():
    assert parse_weekdays("mon,wednesday") == ("mon", "wed")
    assert parse_weekdays("mon,") is None


def test_a_day_is_a_date():
    assert parse_day("2026-12-24") == date(2026, 12, 24)
    assert parse_day("christmas") is None


def test_the_zone_of_a_machine_is_known_by_name(monkeypatch, tmp_path):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert local_zone(NOW) == "Asia/Tokyo"
    monkeypatch.delenv("TZ")
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    monkeypatch.setattr(dates, "_LOCALTIME", link)
    assert local_zone(NOW) == "Europe/Berlin"


def test_a_machine_whose_zone_has_no_name_has_an_offset(monkeypatch, tmp_path):
    monkeypatch.setenv("TZ", "XYZ-05:30")
    import time

    time.tzset()
    try:
        assert local_zone(NOW) == "+05:30"
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
