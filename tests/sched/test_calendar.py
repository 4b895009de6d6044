"""The calendar: when windows and reservations are, in words of the clock on the wall."""

from datetime import date, datetime
from itertools import pairwise
from math import inf

import msgspec
import pytest

from jobman.sched.calendar import (
    DAY,
    Definition,
    Recurrence,
    Reservation,
    Window,
    clashes,
    faults,
    is_over,
    is_zone,
    moment_of,
    occurrences,
    rhythm,
    shortest_gap,
    upcoming,
    wall_of,
)

HOUR = 3600.0
BERLIN = "Europe/Berlin"


def window(start="2026-11-16T02:00", zone="UTC", hours=2.0, repeats=None, name="nightly", **more):
    return Window(
        name=name,
        start=datetime.fromisoformat(start),
        zone=zone,
        duration=None if hours is None else hours * HOUR,
        repeats=repeats,
        **more,
    )


def reservation(start="2026-11-16T02:00", hours=2.0, name="course", users=("ada",), repeats=None, **more):
    first = datetime.fromisoformat(start)
    return Reservation(name=name, start=first, duration=hours * HOUR, users=users, repeats=repeats, **more)


def every(unit, interval=1, **more):
    return Recurrence(every=unit, interval=interval, **more)


def at(text, zone="UTC"):
    return moment_of(datetime.fromisoformat(text), zone)


def starts(definition, since, until, zone="UTC"):
    """When the blocks of a span of time begin, as the clock of a zone shows it."""
    found = occurrences(definition, at(since), at(until))
    return [wall_of(block.start, zone).isoformat(timespec="minutes") for block in found]


# -- once ----------------------------------------------------------------------------------------------------


def test_what_happens_once_is_one_block():
    (block,) = occurrences(window(nodes=("n1",)), 0.0, inf)
    assert (block.name, block.kind, block.nodes) == ("nightly/2026-11-16", "maintenance", ("n1",))
    assert (block.start, block.end) == (at("2026-11-16T02:00"), at("2026-11-16T04:00"))


def test_a_start_is_read_on_the_clock_of_its_zone():
    (block,) = occurrences(window("2026-07-01T08:00", BERLIN), 0.0, inf)
    assert block.start == at("2026-07-01T06:00")
    (block,) = occurrences(window("2026-07-01T08:00", "-03:30"), 0.0, inf)
    assert block.start == at("2026-07-01T11:30")


def test_without_a_length_it_has_no_end():
    (block,) = occurrences(window(hours=None), 0.0, inf)
    assert block.end == inf


def test_a_block_belongs_to_every_span_it_has_a_moment_in_common_with():
    for since, until, count in [
        ("2026-11-16T00:00", "2026-11-16T02:00", 0),
        ("2026-11-16T00:00", "2026-11-16T02:01", 1),
        ("2026-11-16T03:59", "2026-11-16T05:00", 1),
        ("2026-11-16T04:00", "2026-11-16T05:00", 0),
    ]:
        assert len(occurrences(window(), at(since), at(until))) == count


def test_a_reservation_says_who_may_use_it_and_how_many_nodes_it_takes():
    entry = reservation(count=4, requires={"gpu": "yes"}, accounts=("physics",))
    (block,) = occurrences(entry, 0.0, inf)
    assert (block.kind, block.users, block.accounts) == ("reservation", ("ada",), ("physics",))
    assert (block.nodes, block.count, block.requires) == ((), 4, {"gpu": "yes"})


# -- again and again -----------------------------------------------------------------------------------------


def test_every_day():
    found = starts(window(repeats=every("day")), "2026-11-17T00:00", "2026-11-20T00:00")
    assert found == ["2026-11-17T02:00", "2026-11-18T02:00", "2026-11-19T02:00"]


def test_there_is_none_before_the_first():
    assert starts(window(repeats=every("day")), "2026-11-01T00:00", "2026-11-17T00:00") == [
        "2026-11-16T02:00"
    ]


def test_every_second_week():
    found = starts(window(repeats=every("week", 2)), "2026-11-01T00:00", "2026-12-20T00:00")
    assert found == ["2026-11-16T02:00", "2026-11-30T02:00", "2026-12-14T02:00"]


def test_on_some_days_of_the_week():
    entry = window("2026-11-18T02:00", repeats=every("week", weekdays=("fri", "mon")))  # a Wednesday
    found = starts(entry, "2026-11-01T00:00", "2026-12-01T00:00")
    assert found == ["2026-11-20T02:00", "2026-11-23T02:00", "2026-11-27T02:00", "2026-11-30T02:00"]


def test_on_some_days_of_every_second_week():
    entry = window("2026-11-18T02:00", repeats=every("week", 2, weekdays=("mon", "fri")))
    found = starts(entry, "2026-11-01T00:00", "2026-12-12T00:00")
    assert found == ["2026-11-20T02:00", "2026-11-30T02:00", "2026-12-04T02:00"]


def test_a_month_that_lacks_the_day_has_it_on_its_last():
    found = starts(window("2027-01-31T02:00", repeats=every("month")), "2027-01-01T00:00", "2027-05-01T00:00")
    assert found == ["2027-01-31T02:00", "2027-02-28T02:00", "2027-03-31T02:00", "2027-04-30T02:00"]


def test_every_few_hours():
    entry = window(hours=1.0, repeats=every("hour", 8))
    found = occurrences(entry, at("2026-11-17T00:00"), at("2026-11-17T20:00"))
    assert [block.name for block in found] == [
        "nightly/2026-11-17T02:00Z",
        "nightly/2026-11-17T10:00Z",
        "nightly/2026-11-17T18:00Z",
    ]


def test_so_many_times():
    entry = window(repeats=every("day", count=3))
    assert len(occurrences(entry, 0.0, inf)) == 3
    assert starts(entry, "2026-11-18T00:00", "2027-01-01T00:00") == ["2026-11-18T02:00"]


def test_until_a_day_that_is_included():
    entry = window(repeats=every("day", until=date(2026, 11, 18)))
    assert starts(entry, "2026-11-01T00:00", "2027-01-01T00:00")[-1] == "2026-11-18T02:00"


def test_days_are_left_out():
    entry = window(repeats=every("day", count=3), skips=(date(2026, 11, 17),))
    found = starts(entry, "2026-11-01T00:00", "2027-01-01T00:00")
    assert found == ["2026-11-16T02:00", "2026-11-18T02:00"]  # the one that is left out is counted


def test_of_what_has_no_end_a_part_must_be_named():
    with pytest.raises(ValueError, match="only a part"):
        occurrences(window(repeats=every("day")), 0.0, inf)


def test_far_in_the_future_it_goes_on_and_then_the_calendar_ends():
    entry = window(repeats=every("day"))
    assert starts(entry, "2190-01-01T00:00", "2190-01-02T00:00") == ["2190-01-01T02:00"]
    assert occurrences(window(repeats=every("month", 999)), at("9950-01-01T00:00"), 1e12) == []


# -- when the clocks are changed -----------------------------------------------------------------------------


def test_the_hour_stays_when_the_clocks_go_back():
    entry = window("2026-10-24T08:00", BERLIN, repeats=every("day"))
    assert starts(entry, "2026-10-24T00:00", "2026-10-27T00:00", BERLIN) == [
        "2026-10-24T08:00",
        "2026-10-25T08:00",
        "2026-10-26T08:00",
    ]
    first, second, third = occurrences(entry, at("2026-10-24T00:00"), at("2026-10-27T00:00"))
    assert (second.start - first.start, third.start - second.start) == (25 * HOUR, 24 * HOUR)


def test_an_hour_that_is_left_out_is_the_one_behind_it():
    entry = window("2026-03-28T02:30", BERLIN, hours=1, repeats=every("day"))
    assert starts(entry, "2026-03-28T00:00", "2026-03-31T00:00", BERLIN) == [
        "2026-03-28T02:30",
        "2026-03-29T03:30",
        "2026-03-30T02:30",
    ]
    assert [block.name for block in occurrences(entry, 0.0, at("2026-03-30T00:00"))] == [
        "nightly/2026-03-28",
        "nightly/2026-03-29",
    ]


def test_of_an_hour_that_comes_twice_the_first_is_meant():
    entry = window("2026-10-25T02:30", BERLIN, hours=1)
    (block,) = occurrences(entry, 0.0, inf)
    assert block.start == at("2026-10-25T00:30")


def test_the_length_is_counted_in_time_that_passes():
    (block,) = occurrences(window("2026-10-24T22:00", BERLIN, hours=8), 0.0, inf)
    assert block.end - block.start == 8 * HOUR
    assert wall_of(block.end, BERLIN).isoformat() == "2026-10-25T05:00:00"


def test_a_day_of_23_hours_is_not_overrun_by_a_window_of_24():
    entry = window("2026-03-28T00:00", BERLIN, hours=24, repeats=every("day"))
    assert faults(entry) == []
    blocks = occurrences(entry, at("2026-03-28T00:00"), at("2026-04-01T00:00"))
    assert all(early.end <= late.start for early, late in pairwise(blocks))


def test_hours_are_counted_in_time_that_passes():
    entry = window("2026-10-25T00:00", BERLIN, hours=1, repeats=every("hour", 2))
    blocks = occurrences(entry, 0.0, at("2026-10-26T00:00"))
    assert {late.start - early.start for early, late in pairwise(blocks)} == {2 * HOUR}


# -- what comes next -----------------------------------------------------------------------------------------


def test_the_next_one_is_that_which_holds_now_or_comes():
    entry = window(repeats=every("day"))
    assert upcoming(entry, at("2026-11-20T03:00"))[0].name == "nightly/2026-11-20"
    assert [block.name for block in upcoming(entry, at("2026-11-20T05:00"), 2)] == [
        "nightly/2026-11-21",
        "nightly/2026-11-22",
    ]


def test_what_happened_is_over():
    assert not is_over(window(), at("2026-11-16T03:00"))
    assert is_over(window(), at("2026-11-16T04:00"))
    assert is_over(window(repeats=every("day", count=2)), at("2026-12-01T00:00"))
    assert not is_over(window(repeats=every("day")), at("2026-12-01T00:00"))


# -- clashes -------------------------------------------------------------------------------------------------


def test_the_first_clash_of_two_that_come_again_is_found():
    weekly = reservation("2026-11-18T02:00", repeats=every("week"), nodes=("n1",))
    daily = window("2026-11-01T03:00", repeats=every("day"), nodes=("n1", "n2"))
    found = clashes(weekly, daily, at("2026-11-01T00:00"), at("2027-01-01T00:00"))
    assert found is not None
    assert [block.name for block in found] == ["course/2026-11-18", "nightly/2026-11-18"]


def test_on_other_nodes_or_at_other_hours_there_is_no_clash():
    daily = window(repeats=every("day"), nodes=("n1",))
    for other in (
        reservation(repeats=every("day"), nodes=("n2",)),
        reservation("2026-11-16T04:00", repeats=every("day"), nodes=("n1",)),
    ):
        assert clashes(daily, other, 0.0, at("2027-06-01T00:00")) is None


# -- what makes no sense -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (window(zone="Europe/Nowhere"), "There is no time zone Europe/Nowhere."),
        (window("1901-01-01T00:00"), "The start is no day of this or the next century."),
        (window(hours=0), "It lasts from a second to ten years."),
        (window(hours=None, repeats=every("day")), "What has no end cannot come again."),
        (window(hours=25, repeats=every("day")), "It would begin again before it has ended."),
        (window(hours=25, repeats=every("week", weekdays=("mon", "tue"))), "It would begin again before"),
        (window(hours=25, repeats=every("week", weekdays=("sun", "mon"))), "It would begin again before"),
        (window(hours=2, repeats=every("hour")), "It would begin again before it has ended."),
        (window(repeats=every("day", 0)), "It cannot come so often, or so seldom."),
        (window(repeats=every("day", 10**9)), "It cannot come so often, or so seldom."),
        (window(repeats=every("day", count=0)), "It cannot come so often, or so seldom."),
        (window(repeats=every("day", weekdays=("mon",))), "Days of the week are for what comes by weeks."),
        (window(repeats=every("day", until=date(2026, 1, 1))), "It never happens"),
        (
            window(repeats=every("day", count=1), skips=(date(2026, 11, 16),)),
            "It never happens: all of it is left out.",
        ),
        (reservation(users=()), "A reservation is for somebody."),
        (reservation(count=2, nodes=("n1",)), "Nodes are either named or counted."),
        (reservation(count=0), "A reservation is for one node at least."),
        (reservation(requires={"a": "b"}), "Facts are for nodes that are counted."),
    ],
)
def test_what_is_wrong_is_said_with_an_advice(entry, words):
    (fault,) = faults(entry)
    assert fault.message.startswith(words)
    assert fault.advice


def test_everything_wrong_is_said_at_once():
    assert len(faults(reservation("1901-01-01T00:00", hours=0, users=()))) == 3


@pytest.mark.parametrize(
    "entry",
    [
        window(),
        window(hours=None),
        window(hours=24, repeats=every("day")),
        window(hours=24, repeats=every("week", weekdays=("mon", "tue"))),
        window(hours=28 * 24, repeats=every("month")),
        reservation(nodes=("n1",)),
        reservation(count=3, requires={"gpu": "yes"}),
        reservation(users=(), accounts=("physics",)),
    ],
)
def test_what_makes_sense_has_no_fault(entry):
    assert faults(entry) == []


def test_the_shortest_gap_is_that_between_neighbours():
    assert shortest_gap(every("week", weekdays=("mon", "thu"))) == 3 * DAY
    assert shortest_gap(every("week", weekdays=("mon", "sun"))) == DAY
    assert shortest_gap(every("week", 2, weekdays=("mon", "sun"))) == 6 * DAY
    assert shortest_gap(every("week", 3, weekdays=("mon", "mon"))) == 21 * DAY


def test_zones_are_names_or_offsets():
    assert all(map(is_zone, ["UTC", "Europe/Berlin", "+01:00", "-11:30"]))
    assert not any(map(is_zone, ["", "Nowhere", "../etc/passwd", "+25:00", "\0", "Europe", "x" * 5000]))


def test_a_definition_survives_being_kept_as_data():
    for entry in (
        window(zone=BERLIN, repeats=every("week", 2, weekdays=("mon",), until=date(2027, 1, 1))),
        reservation(count=2, requires={"a": "b"}, skips=(date(2026, 11, 17),)),
    ):
        kept = msgspec.to_builtins(entry)
        assert msgspec.convert(kept, Definition) == entry
        assert kept["kind"] in ("maintenance", "reservation")


@pytest.mark.parametrize(
    ("repeats", "words"),
    [
        (None, "once"),
        (every("day"), "every day"),
        (every("week", 2, weekdays=("thu", "mon")), "every 2 weeks on mon, thu"),
        (every("month", until=date(2027, 1, 1)), "every month until 2027-01-01"),
        (every("hour", 6, count=4), "every 6 hours, 4 times"),
    ],
)
def test_how_it_comes_again_is_said_in_words(repeats, words):
    assert rhythm(window(repeats=repeats)) == words
