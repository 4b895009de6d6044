"""Amounts that are one number, and steps that things are taken out of, against the plain way to do it."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.forecast_amounts import Amounts
from jobman.sched.forecast_steps import Bounds, Steps

KINDS = ("core", "gpu", "memory")
AMOUNT = st.integers(0, 2**40) | st.sampled_from([0.25, 0.5, 1.5]) | st.integers(0, 3)
AMOUNTS = st.fixed_dictionaries(dict.fromkeys(KINDS, AMOUNT))
SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20), st.integers(1, 4)), max_size=8)


def fits(counted, free, need):
    return (free - need) & counted.marks == counted.marks


@given(AMOUNTS, st.lists(AMOUNTS, max_size=4), AMOUNTS)
def test_something_fits_where_every_kind_of_it_does(capacity, held, asked):
    counted = Amounts(capacity)
    free = counted.all - sum(counted.packed(each) for each in held)
    left = {kind: capacity[kind] - sum(each[kind] for each in held) for kind in KINDS}
    assert fits(counted, free, counted.packed(asked)) == all(asked[kind] <= left[kind] for kind in KINDS)


def test_what_is_not_counted_is_left_out():
    counted = Amounts({"core": 2})
    assert fits(counted, counted.all, counted.packed({"core": 2, "license": 5}))


def test_very_large_amounts_fit_exactly():
    counted = Amounts({"memory": 3 * 2.0**52})
    assert fits(counted, counted.all, counted.packed({"memory": 3 * 2**52}))
    assert not fits(counted, counted.all, counted.packed({"memory": 3 * 2**52 + 1}))


def plain(spans, moment, whole=8):
    return whole - sum(need for start, seconds, need in spans if start <= moment < start + seconds)


def steps_of(spans, whole=8):
    counted = Amounts({"core": whole})
    steps = Steps(counted.marks, 0.0, counted.all, (), ())
    for start, seconds, need in spans:
        steps.take(start, start + seconds, counted.packed({"core": need}))
    return counted, steps


@given(SPANS, st.integers(1, 8), st.integers(1, 10), st.integers(0, 15))
def test_the_earliest_room_is_the_first_there_is(spans, need, seconds, after):
    counted, steps = steps_of(spans)
    found = steps.earliest(counted.packed({"core": need}), seconds, after)
    expected = next(
        start
        for start in range(after, 300)
        if all(plain(spans, moment) >= need for moment in range(start, start + seconds))
    )
    assert found == expected


@given(SPANS, st.integers(1, 8), st.integers(1, 10), st.integers(0, 30))
def test_forgetting_what_is_over_changes_nothing(spans, need, seconds, now):
    counted, steps = steps_of(spans)
    asked = counted.packed({"core": need})
    before = steps.earliest(asked, seconds, now)
    steps.forget(now)
    assert steps.earliest(asked, seconds, now) == before


def test_there_is_never_room_for_more_than_there_is():
    counted, steps = steps_of([(2, 5, 1)])
    assert steps.earliest(counted.packed({"core": 9}), 1.0) == inf


def test_what_is_set_aside_is_in_the_way_of_what_lasts_into_it():
    counted, steps = steps_of([])
    steps.set_aside(10.0, 20.0, counted.packed({"core": 6}))
    assert steps.fits(counted.packed({"core": 8}), 10.0)
    assert not steps.fits(counted.packed({"core": 8}), 10.5)
    assert steps.fits(counted.packed({"core": 2}), inf)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 5)), max_size=20), st.sampled_from([0.0, 7.0]))
def test_bounds_come_back_as_they_were_when_what_was_added_is_removed(held, grid):
    bounds = Bounds(((5.0, 2), (50.0, 3)), grid)
    before = (list(bounds.times), list(bounds.needs))
    for time, need in held:
        bounds.add(time, need)
    assert sum(bounds.needs) == 5 + sum(need for _, need in held)
    assert bounds.times == sorted(set(bounds.times))
    for time, need in held:
        bounds.remove(time, need)
    assert (bounds.times, bounds.needs) == before
