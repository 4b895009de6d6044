"""Words for moments and durations, and what is read from the command line."""

import pytest

from jobman.cli.times import ago, clock, fine_clock, length, parse_length, parse_moment

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0, "0 ms"),
        (-3, "0 ms"),
        (0.023, "23 ms"),
        (0.0996, "0.1 s"),
        (0.44, "0.4 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (86_400, "1 d"),
        (270_000, "3 d 3 h"),
    ],
)
def test_a_length_of_time_in_words(seconds, words):
    assert length(seconds) == words


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (0, "just now"),
        (1.9, "just now"),
        (12, "12 s ago"),
        (200, "3 min ago"),
        (18_100, "5 h ago"),
        (200_000, "2 d ago"),
        (-0.5, "just now"),
        (-30, "in 30 s"),
    ],
)
def test_a_moment_in_words(passed, words):
    assert ago(NOW - passed, NOW) == words


def test_what_is_long_past_is_told_by_its_date():
    assert ago(NOW - 40 * 86_400, NOW) == clock(NOW - 40 * 86_400)[:10]


def test_a_moment_in_utc_says_so():
    assert clock(NOW, utc=True) == "2027-01-15 08:00:00Z"
    assert fine_clock(NOW + 0.25, utc=True) == "2027-01-15T08:00:00.250Z"


def test_a_moment_that_never_came_is_empty():
    assert (ago(None), clock(None)) == ("", "")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("1.5h", 5400),
    ],
)
def test_a_length_of_time_is_read(text, seconds):
    assert parse_length(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "1m1h", "1h1h", "1h30", "-3m", "1x", "1..5h", ".", "٣m"])
def test_what_is_no_length_of_time_is_refused(text):
    assert parse_length(text) is None


def test_a_moment_is_so_long_ago_or_written_out():
    assert parse_moment("10m", NOW) == NOW - 600
    assert parse_moment("2027-01-15T08:00:00Z") == NOW
    assert parse_moment("yesterday") is None
