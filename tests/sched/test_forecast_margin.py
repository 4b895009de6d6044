"""The margin: how what was told is moved to where the wanted share starts in time."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.forecast_margin import Margin, for_p50, for_p90

WAITS = st.floats(0, 1e9)


def judged(margin, wait, real):
    """Whether a wait that was told was long enough; the margin learns from it."""
    in_time = real <= margin.edge(wait)
    margin.learn(margin.bucket(wait), not in_time)
    return in_time


@pytest.mark.parametrize("off_by", [0.2, 1.0, 5.0, 50.0])
def test_nine_in_ten_are_in_time_however_far_off_the_play_is(off_by):
    random, margin = Random(1), for_p90()
    found = [judged(margin, 3000.0, 3000.0 * off_by * random.lognormvariate(0, 0.7)) for _ in range(8000)]
    assert sum(found[4000:]) / 4000 == pytest.approx(0.9, abs=0.03)


def test_the_middle_is_left_alone_where_the_play_is_about_right():
    random, margin = Random(1), for_p50()
    for _ in range(5000):
        judged(margin, 3000.0, 3000.0 * 1.5 * random.lognormvariate(0, 0.7))
    assert margin.applied(3000.0) == pytest.approx(3000.0)


def test_the_middle_is_moved_where_the_play_is_far_off():
    random, margin = Random(1), for_p50()
    for _ in range(8000):
        judged(margin, 0.0, 20_000 * random.lognormvariate(0, 0.7))
    assert margin.applied(0.0) > 5000.0


def test_neighbours_learn_too_but_less():
    margin = Margin(share=0.9, step=0.01)
    margin.learn(5, late=True)
    assert margin.logs[5] > margin.logs[6] > margin.logs[7] > margin.logs[8] == 0.0


def test_a_margin_follows_when_the_forecast_becomes_better():
    margin = for_p90()
    for _ in range(500):
        margin.learn(3, late=True)
    wide = margin.applied(3000.0)
    for _ in range(500):
        margin.learn(3, late=False)
    assert margin.applied(3000.0) < wide


@given(st.lists(st.tuples(WAITS, st.booleans()), max_size=50), WAITS, WAITS)
def test_what_is_told_is_never_negative_and_always_finite(learned, wait, other):
    margin = for_p90()
    for told, late in learned:
        margin.learn(margin.bucket(told), late)
    assert 0 <= margin.applied(wait) < float("inf")
    if margin.bucket(wait) == margin.bucket(other) and wait <= other:
        assert margin.applied(wait) <= margin.applied(other)


def test_before_anything_is_learned_what_is_played_is_told():
    assert for_p90().applied(1234.0) == pytest.approx(1234.0)
    assert for_p50().applied(-5.0) == 0.0
