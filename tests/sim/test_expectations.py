"""What jobs are told to expect, and that only what was known then is used for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sim.cluster import cluster, one_node
from jobman.sim.expectations import foresee
from jobman.sim.generate import generate
from jobman.sim.metrics import summarise
from jobman.sim.policies import policy
from jobman.sim.trace import Trace, TraceJob
from tests.sim.builders import PROCESSORS, nodes, replayed, trace


def foreseen(found, name="easy", machine=None):
    machine = machine or one_node(found.processors)
    outcome = replayed(found, name, machine)
    outcome.expectations = foresee(outcome, machine, policy(name))
    return outcome


def test_whoever_waits_is_told_what_to_expect():
    outcome = foreseen(trace((0, 10, 8), (1, 10, 8), (50, 10, 1)))
    at_once, waits, later = outcome.expectations
    assert (at_once, later) == (None, None)
    assert 1 <= waits.p50 <= waits.p90


def test_no_expectation_is_later_than_a_guarantee():
    found = trace((0, 10, 8, 100), (1, 10, 8, 100), (2, 10, 8, 100))
    outcome = foreseen(found, "conservative")
    for guarantee, expectation in zip(outcome.guarantees, outcome.expectations, strict=True):
        assert expectation is None or expectation.p90 <= guarantee


def test_users_who_always_end_early_are_expected_to():
    """The thirtieth job of a user whose jobs run for a minute of an hour is known to be short."""
    jobs = [TraceJob(number, number * 100, 60, PROCESSORS, 3600, "1") for number in range(1, 30)]
    jobs += [TraceJob(30, 3000, 60, PROCESSORS, 3600, "1"), TraceJob(31, 3001, 60, PROCESSORS, 3600, "1")]
    last = foreseen(Trace(name="t", jobs=jobs, processors=PROCESSORS)).expectations[-1]
    assert last is not None
    assert abs(last.p50 - 3060) <= 30


@given(st.integers(0, 20), st.sampled_from(["fcfs", "easy", "conservative"]), st.integers(1, 50))
def test_what_comes_later_changes_nothing_of_what_was_told(seed, name, kept):
    whole = generate(seed, jobs=60, processors=16)
    part = Trace(name="part", jobs=whole.jobs[:kept], processors=16)
    whole_starts, part_starts = foreseen(whole, name), foreseen(part, name)
    for position in range(kept):
        if part_starts.expectations[position] is not None and whole_starts.expectations[position] is not None:
            assert part_starts.expectations[position] == whole_starts.expectations[position]


def test_jobs_that_run_for_no_time_are_no_trouble():
    outcome = foreseen(trace((0, 5, 8), (1, 0, 8, 1), (1, 0, 8, 1), (5, 0, 8, 1), (5, 1, 8)))
    assert len(outcome.expectations) == 5


@pytest.mark.parametrize("machine", [None, cluster(nodes(8, core=8))], ids=["one node", "nodes"])
def test_expectations_of_a_trace_are_judged(machine):
    found = summarise(foreseen(generate(2, jobs=200), machine=machine)).promises
    assert found.expected == found.waiting > 20
    assert found.expected_within_600 is not None


def test_whoever_watches_hears_how_far_it_is():
    heard: list[int] = []
    found = generate(1, jobs=600)
    foresee(replayed(found), one_node(64), policy("easy"), tell=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] > 500
