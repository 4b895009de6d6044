"""A profile beside a naive model: one list of amounts with an entry for each second."""

import itertools
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.profile import Profile

HORIZON = 40
"""Seconds that the model knows; what is true of the last of them is true for ever."""
CAPACITY = (4, 2)
MOMENTS = st.integers(0, HORIZON - 1)
ENDS = st.integers(0, HORIZON - 1) | st.just(inf)
PAIRS = st.sampled_from([((0, 1),), ((0, 2),), ((0, 4),), ((1, 1),), ((0, 1), (1, 1)), ((0, 3), (1, 2)), ()])
CHANGES = st.lists(st.tuples(st.sampled_from(["take", "give"]), MOMENTS, ENDS, PAIRS), max_size=10)


class Seconds:
    """What is free in each second."""

    def __init__(self, since=0):
        self.since = since
        self.free = [list(CAPACITY) for _ in range(HORIZON)]

    def change(self, start, end, pairs, sign):
        for second in range(HORIZON):
            if start <= second < end:
                for kind, amount in pairs:
                    self.free[second][kind] += sign * amount

    def fits(self, pairs, start, end):
        span = range(start, max(start + 1, HORIZON if end == inf else min(end, HORIZON)))
        return all(self._has(pairs, second) for second in span)

    def _has(self, pairs, second):
        return all(self.free[min(second, HORIZON - 1)][kind] >= least for kind, least in pairs)

    def earliest(self, pairs, duration, after):
        for start in range(after, HORIZON):
            if self.fits(pairs, start, start + duration):
                return start
        return inf

    def until(self, pairs, start):
        for second in range(start, HORIZON):
            if not self._has(pairs, second):
                return second
        return inf


def both(changes):
    profile, model = Profile(CAPACITY), Seconds()
    for what, start, end, pairs in changes:
        (profile.take if what == "take" else profile.give)(start, end, pairs)
        model.change(start, end, pairs, -1 if what == "take" else 1)
    return profile, model


def seconds_of(profile):
    found = []
    for second in range(HORIZON):
        step = max(place for place, since in enumerate(profile.times) if since <= second or place == 0)
        found.append([column[step] for column in profile.columns])
    return found


@given(CHANGES)
def test_taking_and_giving_back_change_exactly_the_seconds_in_between(changes):
    profile, model = both(changes)
    assert seconds_of(profile) == model.free


@given(CHANGES)
def test_no_two_steps_in_a_row_are_equal_and_their_times_rise(changes):
    profile, _ = both([change for change in changes if change[1] < change[2]])
    assert profile.times == sorted(set(profile.times))
    steps = list(zip(*profile.columns, strict=True))
    assert all(one != next_ for one, next_ in itertools.pairwise(steps))


@given(CHANGES, MOMENTS, MOMENTS)
def test_what_is_over_can_be_forgotten_without_changing_what_is_to_come(changes, now, later):
    profile, model = both(changes)
    profile.forget(min(now, later))
    profile.forget(max(now, later))
    assert profile.times[0] == max(now, later) or profile.times[0] == -inf
    assert seconds_of(profile)[max(now, later) :] == model.free[max(now, later) :]


@given(CHANGES, MOMENTS, CHANGES)
def test_changes_that_began_before_what_is_forgotten_count_from_then_on(changes, now, more):
    profile, model = both(changes)
    profile.forget(now)
    for what, start, end, pairs in more:
        (profile.take if what == "take" else profile.give)(start, end, pairs)
        model.change(start, end, pairs, -1 if what == "take" else 1)
    assert seconds_of(profile)[now:] == model.free[now:]


@given(CHANGES, PAIRS, st.integers(0, 15) | st.just(inf), MOMENTS)
def test_the_earliest_start_is_the_first_second_from_which_it_fits(changes, pairs, duration, after):
    profile, model = both(changes)
    assert profile.earliest(pairs, duration, after) == model.earliest(pairs, duration, after)


@given(CHANGES, PAIRS.filter(bool), st.integers(1, 15), MOMENTS, MOMENTS)
def test_one_who_has_a_place_asks_only_for_an_earlier_one(changes, pairs, duration, after, before):
    profile, model = both(changes)
    profile.take(before, before + duration, pairs)
    answer = profile.earliest(pairs, duration, after, before)
    found = model.earliest(pairs, duration, after)
    fits_at_its_place = model.fits(pairs, before, before + duration)
    if fits_at_its_place:
        assert answer == (found if found < before else inf)


@given(CHANGES, PAIRS, MOMENTS, ENDS)
def test_it_fits_where_every_second_has_room(changes, pairs, start, end):
    profile, model = both(changes)
    assert profile.fits(pairs, start, end) == model.fits(pairs, start, end)


@given(CHANGES, PAIRS, MOMENTS, st.integers(1, 15), st.integers(1, 6))
def test_the_room_is_the_most_that_fits_in_every_second(changes, pairs, start, length, most):
    profile, model = both(changes)
    room = profile.room(pairs, start, start + length, most)
    counts = [
        count for count in range(1, most + 1) if model.fits(_times(pairs, count), start, start + length)
    ]
    assert room == max(counts, default=0)


def _times(pairs, count):
    return tuple((kind, least * count) for kind, least in pairs)


@given(CHANGES, PAIRS, MOMENTS)
def test_a_need_is_met_until_the_first_second_without_room(changes, pairs, start):
    profile, model = both(changes)
    assert profile.ends(pairs, start) == model.until(pairs, start)


@given(CHANGES, MOMENTS, st.integers(1, 15))
def test_the_peak_is_the_most_that_is_free_of_each_kind(changes, start, length):
    profile, model = both(changes)
    span = [model.free[min(second, HORIZON - 1)] for second in range(start, start + length)]
    assert profile.peak(start, start + length) == tuple(max(kind) for kind in zip(*span, strict=True))


@given(CHANGES, MOMENTS)
def test_the_next_change_is_where_the_next_second_differs(changes, after):
    profile, model = both([change for change in changes if change[1] < change[2]])
    found = [second for second in range(after + 1, HORIZON) if model.free[second] != model.free[second - 1]]
    assert profile.next_change(after) == min(found, default=inf)


def test_an_empty_span_changes_nothing():
    profile = Profile((4,))
    profile.take(5, 5, ((0, 1),))
    assert profile.earliest(((0, 4),), inf, 0) == 0
    assert profile.next_change(0) == inf


def test_a_profile_learns_of_more_kinds():
    profile = Profile((4,))
    profile.take(5, 10, ((0, 1),))
    profile.grow(2)
    assert profile.earliest(((1, 1),), 1, 0) == inf
    profile.give(7, 8, ((1, 3),))
    assert profile.earliest(((0, 3), (1, 3)), 1, 0) == 7
