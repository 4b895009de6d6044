"""The replay beside bare loops: the same start for every single job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sim.cluster import cluster, machine_of, one_node
from jobman.sim.generate import generate
from jobman.sim.policies import POLICIES, policy
from jobman.sim.trace import TraceError, TraceJob
from tests.sim.builders import LOOPS, PROCESSORS, bare, nodes, replayed, trace

EVERY = [*POLICIES, "hybrid:2", "hybrid:64"]


@st.composite
def tied(draw):
    """Small traces in which many things happen in one second."""
    span = draw(st.sampled_from([3, 12, 40]))
    longest = draw(st.sampled_from([3, 8, 30]))
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, span),
                st.integers(1, longest),
                st.integers(1, PROCESSORS),
                st.one_of(st.just(1.0), st.floats(0.0, 1.0)),
            ),
            max_size=25,
        )
    )
    jobs = sorted((submit, int(limit * part), size, limit) for submit, limit, size, part in rows)
    return trace(*sorted(jobs, key=lambda job: job[0]))


@pytest.mark.parametrize("name", LOOPS)
@given(found=tied())
def test_every_start_is_that_of_a_bare_loop(name, found):
    assert replayed(found, name).starts == LOOPS[name](bare(found), PROCESSORS)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("seed", range(3))
def test_every_start_of_a_generated_trace_is_that_of_a_bare_loop(name, seed):
    found = generate(seed, jobs=300, processors=32)
    assert replayed(found, name).starts == LOOPS[name](bare(found), 32)


@pytest.mark.parametrize("name", EVERY)
@given(found=tied())
def test_no_guarantee_is_broken_and_no_processor_given_twice(name, found):
    outcome = replayed(found, name)
    assert outcome.moved == []
    for start, guarantee in zip(outcome.starts, outcome.guarantees, strict=True):
        assert guarantee is None or start <= guarantee
    assert_never_too_full(outcome)


def assert_never_too_full(outcome):
    changes = []
    for job, start in zip(outcome.jobs, outcome.starts, strict=True):
        assert start >= job.submit
        changes += [(start, 1, job.processors), (start + job.run, 0, -job.processors)]
    used = 0
    for _, _, change in sorted(changes):
        used += change
        assert used <= outcome.processors


@pytest.mark.parametrize("name", EVERY)
@given(found=tied())
def test_on_nodes_everything_starts_and_nothing_is_broken(name, found):
    machine = cluster(nodes(4, core=2))
    outcome = replayed(found, name, machine)
    assert (outcome.left_out, outcome.moved) == ([], [])
    assert_never_too_full(outcome)


def test_one_may_pass_the_first_where_that_does_not_delay_it():
    found = trace((0, 10, 6), (1, 10, 4), (2, 5, 2), (3, 20, 2))
    assert replayed(found, "fcfs").starts == [0, 10, 10, 10]
    assert replayed(found, "easy").starts == [0, 10, 2, 7]


def test_everybody_who_waits_has_a_guarantee_under_conservative():
    found = trace((0, 10, 8), (1, 10, 8), (2, 10, 8))
    assert replayed(found, "conservative").guarantees == [None, 10, 20]
    assert replayed(found, "easy").guarantees == [None, 10, 20]
    assert replayed(found, "fcfs").guarantees == [None, None, None]


def test_a_guarantee_is_the_first_that_was_given():
    found = trace((0, 4, 8, 10), (1, 10, 8))
    outcome = replayed(found, "conservative")
    assert (outcome.guarantees[1], outcome.starts[1]) == (10, 4)


def test_what_the_machine_could_never_take_is_left_out_with_the_reason():
    outcome = replayed(trace((0, 5, 9), (1, 5, 8)), machine=one_node(8))
    assert [job.number for job in outcome.jobs] == [2]
    assert "job 1 could never start" in outcome.left_out[0].words


def test_memory_counts_where_the_trace_and_the_nodes_have_it():
    jobs = [TraceJob(number, 0, 10, 1, 10, memory=3 * 2**30) for number in (1, 2)]
    tight, roomy, silent = ({"core": 4, "memory": 4 * 2**30}, {"core": 4, "memory": 8 * 2**30}, {"core": 4})
    starts = [
        replayed(trace(*jobs), machine=cluster(nodes(1, **amounts))).starts
        for amounts in (tight, roomy, silent)
    ]
    assert starts == [[0, 10], [0, 0], [0, 0]]


def test_where_a_job_ran_is_kept_on_demand():
    found = trace((0, 5, 6))
    outcome = replayed(found, machine=cluster(nodes(2)), keep_places=True)
    placed = outcome.places[0]
    assert placed is not None
    assert sum(placed.places[0].values()) == 6
    assert replayed(found).places == []


def test_whoever_watches_hears_how_far_it_is():
    heard: list[int] = []
    replayed(generate(1, jobs=600), tell=heard.append)
    assert heard == [256, 512]


def test_a_trace_without_a_machine_is_refused_with_advice():
    with pytest.raises(TraceError, match="how many processors") as caught:
        machine_of(trace((0, 1, 1), processors=None))
    assert "--processors" in caught.value.advice


def test_nodes_without_cores_are_refused():
    with pytest.raises(TraceError, match="n0 has no cores"):
        cluster(nodes(1, gpu=4))


@pytest.mark.parametrize("name", ["hybrid:", "hybrid:0", "hybrid:x", "EASY", "sjf", "hybrid:9999999999"])
def test_a_policy_that_there_is_not_is_refused(name):
    with pytest.raises(TraceError, match="is not one of fcfs, easy"):
        policy(name)


def test_policies_are_queues_of_the_scheduler():
    assert [policy(name).depth for name in ("fcfs", "easy", "hybrid:16", "conservative")] == [0, 1, 16, None]
    assert policy("easy-sjbf").shortest_first
