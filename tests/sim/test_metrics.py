"""What replays come to in numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.forecast import Expectation
from jobman.sim.fairness import fairness
from jobman.sim.metrics import summarise
from jobman.sim.numbers import average, jain, percentile
from jobman.sim.outcome import Moved, recorded
from jobman.sim.starts import COLUMNS, starts_csv
from tests.sim.builders import outcome, replayed, trace


def test_the_numbers_of_a_replay():
    found = summarise(outcome((0, 100, 8), (10, 100, 4), (20, 5, 4), starts=[0, 100, 100]), seconds=0.5)
    assert (found.jobs, found.average_wait, found.median_wait, found.longest_wait) == (3, 170 / 3, 80, 90)
    assert (found.makespan, found.utilisation) == (200, (800 + 400 + 20) / (8 * 200))
    assert found.jobs_per_second == 6


def test_a_short_job_counts_as_ten_seconds_in_its_slowdown():
    assert summarise(outcome((0, 1, 1), starts=[19])).bounded_slowdown == 2
    assert summarise(outcome((0, 20, 1), starts=[20])).bounded_slowdown == 2
    assert summarise(outcome((0, 1, 1), starts=[0])).bounded_slowdown == 1


def test_percentiles_are_values_that_occur():
    values = list(range(1, 101))
    assert [percentile(values, part) for part in (0.0, 0.5, 0.95, 1.0)] == [1, 50, 95, 100]
    assert (percentile([], 0.5), average([])) == (0, 0)


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=30))
def test_jains_index_is_one_for_equals_and_less_for_others(values):
    assert 1 / len(values) - 1e-9 <= jain(values) <= 1 + 1e-9
    assert jain([values[0]] * 5) == pytest.approx(1)


def test_a_replay_of_nothing_has_numbers():
    assert summarise(outcome(starts=[])).average_wait == 0
    assert fairness(outcome(starts=[])).users == []


# -- promises -------------------------------------------------------------------------------------------


def promised(**fields):
    """Four jobs: the first starts at once, the others have to wait."""
    jobs = [(0, 10, 8), (0, 10, 8), (0, 10, 8), (0, 10, 8)]
    return summarise(outcome(*jobs, starts=[0, 1000, 2000, 3000], **fields)).promises


def test_a_guarantee_is_broken_where_the_job_starts_after_it():
    found = promised(guarantees=[None, 1000, 1999, None])
    assert (found.waiting, found.guaranteed, found.broken) == (3, 2, 1)


@pytest.mark.parametrize("after", [2500, None])
def test_a_guarantee_that_moved_to_later_or_was_taken_back_is_broken(after):
    moved = [Moved(3, 500, 2000, after, "")]
    assert promised(guarantees=[None, 1000, 2000, 3000], moved=moved).broken == 1


def test_shares_are_of_the_jobs_that_had_to_wait():
    found = promised(guarantees=[None, 1060, 2500, None])
    assert found.guaranteed_within_60 == pytest.approx(1 / 3)
    assert found.guaranteed_within_600 == pytest.approx(2 / 3)


def test_expectations_are_judged_by_their_middle_and_covered_by_their_p90():
    expectations = [None, Expectation(1050, 1100), Expectation(1500, 1999), Expectation(2000, 3000)]
    found = promised(expectations=expectations)
    assert (found.expected, found.median_error) == (3, 500)
    assert found.expected_within_60 == pytest.approx(1 / 3)
    assert found.expected_within_600 == pytest.approx(2 / 3)
    assert found.p90_coverage == pytest.approx(2 / 3)


def test_where_nobody_was_told_anything_there_are_no_shares():
    found = promised()
    assert (found.guaranteed_within_60, found.expected_within_600, found.p90_coverage) == (None, None, None)


# -- fairness -------------------------------------------------------------------------------------------


def test_users_stand_side_by_side_those_with_the_most_work_first():
    found = fairness(
        outcome((0, 100, 8), (0, 100, 4), (0, 100, 4), starts=[0, 100, 100], users=["1", "2", "3"])
    )
    assert [row.user for row in found.users] == ["1", "2", "3"]
    assert [row.average_wait for row in found.users] == [0, 100, 100]
    assert [row.work for row in found.users] == [0.5, 0.25, 0.25]


def test_shares_of_capacity_count_only_while_somebody_waits():
    found = fairness(outcome((0, 100, 8), (50, 100, 8), starts=[0, 100], users=["1", "2"]))
    # From 50 to 100 the first had everything, and both asked for the same.
    assert [row.received for row in found.users] == [1, 0]
    assert [row.demanded for row in found.users] == [0.5, 0.5]


def test_where_nobody_waits_nothing_is_scarce():
    found = fairness(outcome((0, 100, 4), (50, 100, 4), starts=[0, 50], users=["1", "2"]))
    assert [row.received for row in found.users] == [0, 0]
    assert (found.jain_wait, found.jain_slowdown, found.jain_received) == (1, 1, 1)


def test_the_spread_tells_how_far_users_are_apart():
    found = fairness(outcome((0, 10, 8), (0, 10, 8), starts=[0, 10], users=["1", "2"]))
    assert (found.wait.p10, found.wait.most) == (0, 10)
    assert found.jain_wait == 0.5


# -- as it was, and as CSV ------------------------------------------------------------------------------


def test_what_really_happened_is_taken_from_the_trace():
    from jobman.sim.trace import TraceJob

    found = replayed(trace(TraceJob(1, 5, 10, 8, 10, wait=7), TraceJob(2, 6, 10, 8, 10, wait=20)))
    real = recorded(found, "as it was")
    assert real is not None
    assert (real.policy, real.starts, found.starts) == ("as it was", [12, 26], [5, 15])
    assert recorded(replayed(trace((0, 1, 1))), "as it was") is None


def test_starts_are_written_as_csv():
    found = outcome(
        (0, 10, 8),
        (1, 10.5, 8),
        starts=[0, 10],
        guarantees=[None, 10],
        expectations=[None, Expectation(8, 12.25)],
    )
    assert starts_csv([found]).splitlines() == [
        ",".join(COLUMNS),
        "easy,1,,8,0,0,10,0,,,",
        "easy,2,,8,1,10,20.500,9,10,8,12.250",
    ]
