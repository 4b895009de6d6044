"""How long jobs are thought to run, from how long others ran."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.history import History, Work

HOUR = 3600.0

LIMITS = st.sampled_from([60.0, HOUR, 10 * HOUR, inf])
WORKS = st.builds(
    Work,
    user=st.sampled_from("ab"),
    name=st.sampled_from(["", "train"]),
    shape=st.sampled_from(["core=1", "core=4"]),
    flavor=st.sampled_from(["", "small"]),
    limit=LIMITS,
)
RUNS = st.lists(st.tuples(WORKS, st.floats(0, 1e6)), max_size=40)


def work(user="ann", name="", shape="core=4", flavor="", limit=HOUR):
    return Work(user, name, shape, flavor, limit)


def history(*runs):
    return History.of(runs)


def middle(found, asked, elapsed=0.0):
    return found.spread(asked, elapsed).at(0.5)


def test_the_same_work_is_thought_to_run_as_it_ran():
    found = history(*[(work(), seconds) for seconds in (100, 110, 120)])
    assert middle(found, work()) == 110


def test_what_ran_last_counts_most():
    found = history(*[(work(), 100)] * 5, *[(work(), 1000)] * 5)
    assert middle(found, work()) == 1000


def test_the_same_work_counts_more_than_other_work_of_the_same_user():
    found = history(*[(work(), 100)] * 4, *[(work(shape="core=64"), 3000)] * 10)
    assert middle(found, work()) == 100


def test_work_of_the_same_name_counts_whatever_its_shape():
    found = history(
        *[(work(name="train", shape="core=1"), 500)] * 4, *[(work(name="test", shape="core=1"), 5)] * 20
    )
    assert middle(found, work(name="train", shape="core=8")) == 500


def test_a_new_shape_of_a_known_user_uses_the_same_part_of_its_limit():
    found = history(*[(work(shape="core=1", limit=1000), 500)] * 8)
    assert middle(found, work(shape="core=16", limit=4000)) == 2000


def test_a_user_nobody_knows_is_taken_for_one_of_all():
    found = history(*[(work(user=f"user{number}", limit=1000), 250) for number in range(20)])
    assert middle(found, work(user="stranger", limit=2000)) == 500


def test_without_any_history_half_of_all_end_early_and_nine_in_ten_by_their_limit():
    spread = History().spread(work(limit=HOUR))
    assert 0 < spread.at(0.5) < HOUR
    assert spread.at(0.9) == HOUR


def test_without_history_and_without_a_limit_there_is_still_an_answer():
    spread = History().spread(work(limit=inf))
    assert 0 < spread.at(0.5) < spread.at(0.9) < inf


def test_what_has_run_for_long_is_compared_with_what_ran_longer():
    found = history(*[(work(), seconds) for seconds in (10, 10, 10, 10, 2000)])
    assert middle(found, work()) == 10
    assert found.remaining(work(), 500) == 1500


def test_what_ran_longer_than_everything_known_goes_on():
    found = history(*[(work(limit=inf), 10)] * 5)
    assert 0 < found.remaining(work(limit=inf), 1e6) <= 1e6
    assert 0 < found.remaining(work(limit=1e7), 1e6) <= 9e6


def test_what_should_have_ended_by_its_limit_ends_now():
    assert History().remaining(work(limit=HOUR), 2 * HOUR) == 0


def test_runs_of_no_time_count():
    assert middle(history(*[(work(), 0)] * 5), work()) == 0


def test_only_so_much_is_remembered():
    found = History(keys=50)
    for number in range(1000):
        found.add(work(user=f"user{number}", name=f"job{number}"), 100)
    assert len(found) == 1000
    assert len(found._runs) == 50
    assert middle(found, work(user="user999", name="job999")) == 100


def test_what_was_not_added_to_for_longest_is_forgotten_first():
    found = History(keys=12)
    for _ in range(4):
        found.add(work(user="old", shape="core=1"), 10)
    for number in range(20):
        found.add(work(user="ann"), 100)
        found.add(work(user=f"user{number}"), 3000)
    assert middle(found, work(user="ann")) == 100
    assert middle(found, work(user="old", shape="core=1")) > 10


def test_news_of_a_user_change_the_stamp_of_that_user_only():
    found = history((work(user="ann"), 1), (work(user="bob"), 1))
    ann, bob = found.stamp(work(user="ann")), found.stamp(work(user="bob"))
    found.add(work(user="ann", shape="core=64"), 1)
    assert found.stamp(work(user="ann")) != ann
    assert found.stamp(work(user="bob")) == bob


@given(RUNS, WORKS, st.floats(0, 1e6))
def test_a_spread_lies_between_what_has_run_and_what_may(runs, asked, elapsed):
    spread = History.of(runs).spread(asked, elapsed)
    assert list(spread.seconds) == sorted(spread.seconds)
    assert all(elapsed <= seconds <= max(elapsed, asked.limit) for seconds in spread.seconds)
    assert all(seconds < inf for seconds in spread.seconds)
    assert spread.at(0.0) <= spread.at(0.5) <= spread.at(0.9) <= spread.at(1.0)


@given(RUNS, WORKS, st.floats(0, 1e6), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_remaining_time_is_never_negative(runs, asked, elapsed, share):
    found = History.of(runs)
    assert found.remaining(asked, elapsed, share) >= 0
    assert found.remaining(asked, elapsed, share) <= max(0.0, asked.limit - elapsed) + 1e-6


@given(RUNS, WORKS)
def test_the_same_runs_in_the_same_order_give_the_same_spread(runs, asked):
    assert History.of(runs).spread(asked) == History.of(runs).spread(asked)


@pytest.mark.parametrize("had", [inf, 0.0])
def test_runs_without_a_usable_limit_count_in_seconds(had):
    found = history(*[(work(shape="core=1", limit=had), 0 if had == 0 else 70)] * 8)
    assert middle(found, work(shape="core=2")) == (0 if had == 0 else 70)
