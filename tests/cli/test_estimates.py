"""Words for when something starts."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.cli.estimates import latest, moment, ordinal, sentence
from jobman.control.answers import Estimate

NOON = 1_800_014_400.0  # 2027-01-15, 12:00 UTC


@pytest.fixture(autouse=True)
def in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(hour, minute=0, second=0):
    return NOON + (hour - 12) * 3600 + minute * 60 + second


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"starts_now": True}, "starts now"),
        ({"guaranteed_by": NOON - 1, "position": 1}, "starts now"),
        ({"guaranteed_by": at(14, 32)}, "starts by 14:32 at the latest"),
        (
            {"guaranteed_by": at(14, 32), "position": 1, "queue": "batch"},
            "starts by 14:32 at the latest; 1st in batch",
        ),
        (
            {
                "guaranteed_by": at(14, 32),
                "expected_at": at(14, 10),
                "expected_p90": at(14, 25),
                "position": 3,
                "queue": "batch",
            },
            "starts by 14:32 at the latest, expected around 14:10 (9 in 10: by 14:25); 3rd in batch",
        ),
        (
            {"guaranteed_by": at(14, 32), "expected_at": NOON - 5, "expected_p90": at(12, 2, 30)},
            "starts by 14:32 at the latest, expected any moment (9 in 10: by 12:02:30)",
        ),
        (
            {"guaranteed_by": at(14, 32), "expected_at": at(14, 10), "expected_p90": at(14, 32)},
            "starts by 14:32 at the latest, expected around 14:10",
        ),
        (
            {"guaranteed_by": at(14, 40), "expected_at": at(14, 10), "expected_p90": at(14, 9, 40)},
            "starts by 14:40 at the latest, expected around 14:10",
        ),
        (
            {"position": 3, "queue": "batch"},
            "no promise yet; 3rd in batch",
        ),
        (
            {"expected_at": at(14, 10), "position": 2},
            "no promise yet; expected around 14:10; 2nd in the queue",
        ),
        (
            {"position": 2, "queue": "batch", "unpromised": "the queue batch is closed"},
            "no promise: the queue batch is closed; 2nd in batch",
        ),
    ],
)
def test_an_estimate_is_one_sentence(fields, words):
    assert sentence(Estimate(**fields), NOON) == words


def test_nothing_that_was_only_asked_for_starts():
    assert sentence(Estimate(starts_now=True), NOON, would=True) == "would start now"
    assert sentence(Estimate(guaranteed_by=at(13)), NOON, would=True) == "would start by 13:00 at the latest"
    assert sentence(Estimate(position=2), NOON, would=True) == "would get no promise; 2nd in the queue"
    gated = Estimate(unpromised="its gate approval is closed")
    assert sentence(gated, NOON, would=True) == "would get no promise: its gate approval is closed"


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (NOON + 40.2, "12:00:41"),
        (NOON + 599, "12:09:59"),
        (at(14, 32, 1), "14:33"),
        (at(24, 0), "2027-01-16 00:00"),
        (at(23, 59, 30), "2027-01-16 00:00"),
        (at(24 * 3, 5), "2027-01-18 00:05"),
    ],
)
def test_a_promise_is_told_as_exactly_as_it_makes_sense(when, words):
    assert latest(when, NOON) == words


def test_an_expectation_is_told_by_the_nearest_minute():
    assert (moment(at(14, 10, 20), NOON), moment(at(14, 10, 40), NOON)) == ("14:10", "14:11")


@given(st.floats(0, 86_000))
def test_what_is_told_is_never_before_what_is_promised(seconds):
    told = latest(NOON + seconds, NOON)
    form = "%Y-%m-%d %H:%M" if " " in told else "%H:%M"
    parsed = time.strptime(told, form if told.count(":") == 1 else f"{form}:%S")
    of_day = parsed.tm_hour * 3600 + parsed.tm_min * 60 + parsed.tm_sec
    days = 86_400 if " " in told else 0
    assert days + of_day >= int(12 * 3600 + seconds)


def test_places_are_counted_as_people_do():
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 103, 111, 1012)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th"),
        *("21st", "22nd", "103rd", "111th", "1,012th"),
    ]
