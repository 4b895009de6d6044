"""The calendar against a slow walk over every day, and what holds of every recurrence."""

from datetime import date, datetime, timedelta
from itertools import pairwise

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jobman.sched.calendar import (
    WEEKDAYS,
    Recurrence,
    Reservation,
    Window,
    faults,
    is_over,
    moment_of,
    occurrences,
    upcoming,
    wall_of,
)

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "+05:45")
FIRST = datetime(2011, 11, 1)
HORIZON = moment_of(datetime(2013, 6, 1), "UTC")


@st.composite
def recurrences(draw):
    unit = draw(st.sampled_from(("hour", "day", "week", "month")))
    return Recurrence(
        every=unit,
        interval=draw(st.integers(1, 5)),
        weekdays=tuple(draw(st.sets(st.sampled_from(WEEKDAYS)))) if unit == "week" else (),
        until=draw(st.none() | st.dates(date(2011, 11, 1), date(2013, 1, 1))),
        count=draw(st.none() | st.integers(1, 60)),
    )


@st.composite
def definitions(draw):
    start = FIRST + timedelta(minutes=15 * draw(st.integers(0, 4 * 24 * 300)))
    repeats = draw(st.none() | recurrences())
    common = {
        "name": "it",
        "start": start,
        "zone": draw(st.sampled_from(ZONES)),
        "duration": draw(st.integers(1, 96)) * 900.0,
        "repeats": repeats,
        "skips": tuple(draw(st.lists(st.dates(date(2011, 11, 1), date(2012, 6, 1)), max_size=5))),
    }
    made = draw(st.sampled_from((Window(**common), Reservation(**common, users=("ada",), count=2))))
    assume(not faults(made))
    return made


def walk(entry):
    """When all begin up to the horizon, found day by day from what the words of a recurrence mean."""
    repeats, wall = entry.repeats, entry.start
    if repeats is None:
        return [(entry.start.date(), moment_of(wall, entry.zone))]
    if repeats.every == "hour":
        first = moment_of(wall, entry.zone)
        moments = [first + n * 3600.0 * repeats.interval for n in range(600 * 24)]
        begun = [(wall_of(moment, entry.zone).date(), moment) for moment in moments if moment < HORIZON]
    else:
        days = (wall.date() + timedelta(days=n) for n in range(800))
        begun = [
            (day, moment_of(datetime.combine(day, wall.time()), entry.zone))
            for day in days
            if matches(day, wall.date(), repeats)
        ]
    begun = begun if repeats.count is None else begun[: repeats.count]
    return [(day, moment) for day, moment in begun if repeats.until is None or day <= repeats.until]


def matches(day, first, repeats):
    if repeats.every == "day":
        return (day - first).days % repeats.interval == 0
    if repeats.every == "month":
        apart = (day.year - first.year) * 12 + day.month - first.month
        is_last = (day + timedelta(days=1)).month != day.month
        return apart % repeats.interval == 0 and (day.day == first.day or (is_last and day.day < first.day))
    weeks = ((day - timedelta(days=day.weekday())) - (first - timedelta(days=first.weekday()))).days // 7
    wanted = repeats.weekdays or (WEEKDAYS[first.weekday()],)
    return weeks % repeats.interval == 0 and WEEKDAYS[day.weekday()] in wanted


@given(definitions())
def test_they_begin_when_a_walk_over_the_days_says(entry):
    expected = [
        moment
        for (day, moment), (_, following) in pairwise([*walk(entry), (None, float("inf"))])
        if day not in entry.skips and moment < HORIZON and following > moment
    ]
    assert [block.start for block in occurrences(entry, float("-inf"), HORIZON)] == expected


@given(definitions())
def test_they_are_in_order_apart_and_no_longer_than_said(entry):
    blocks = occurrences(entry, float("-inf"), HORIZON)
    assert all(early.end <= late.start for early, late in pairwise(blocks))
    assert all(0 < block.end - block.start <= entry.duration for block in blocks)
    assert len({block.name for block in blocks}) == len(blocks)


@given(definitions(), st.floats(0, HORIZON), st.floats(0, HORIZON))
def test_a_part_of_the_calendar_is_a_part_of_the_whole(entry, one, other):
    since, until = sorted((one, other))
    whole = occurrences(entry, float("-inf"), HORIZON)
    assert occurrences(entry, since, until) == [
        block for block in whole if block.end > since and block.start < until
    ]


@given(definitions(), st.floats(moment_of(FIRST, "UTC"), HORIZON))
def test_what_comes_next_is_the_first_that_is_not_over(entry, now):
    coming = [block for block in occurrences(entry, float("-inf"), HORIZON) if block.end > now]
    found = upcoming(entry, now, 3)
    assert found[: len(coming)] == coming[:3]
    assert is_over(entry, now) is (not found)


@given(definitions())
@settings(suppress_health_check=[HealthCheck.filter_too_much])  # half of them do not come again by the day
def test_the_hour_on_the_wall_is_kept_unless_the_clocks_leave_it_out(entry):
    assume(entry.repeats is not None and entry.repeats.every != "hour")
    for block in occurrences(entry, float("-inf"), HORIZON):
        shown = wall_of(block.start, entry.zone)
        day = date.fromisoformat(block.name.partition("/")[2])
        meant = datetime.combine(day, entry.start.time())
        is_left_out = wall_of(moment_of(meant, entry.zone), entry.zone) != meant
        assert shown == meant or is_left_out
