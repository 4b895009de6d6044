"""What holds of every policy, whatever the trace: order, sizes, time itself, and the sums over users."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.sim.cluster import cluster, one_node
from jobman.sim.fairness import fairness
from jobman.sim.generate import generate
from jobman.sim.metrics import summarise
from jobman.sim.policies import POLICIES
from jobman.sim.trace import TraceJob
from tests.sim.builders import PROCESSORS, nodes, replayed, trace

EVERY = [*POLICIES, "hybrid:1", "hybrid:3"]
few = settings(max_examples=20)
JOBS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, PROCESSORS), st.integers(0, 6)),
    min_size=1,
    max_size=20,
).map(lambda rows: [(submit, run, size, run + spare + 1) for submit, run, size, spare in sorted(rows)])


def moved(jobs, by):
    return [(submit + by, *rest) for submit, *rest in jobs]


def doubled(jobs):
    return [(submit, run, 2 * size, requested) for submit, run, size, requested in jobs]


@few
@given(JOBS)
def test_a_reservation_for_the_first_is_easy(jobs):
    assert replayed(trace(*jobs), "hybrid:1").starts == replayed(trace(*jobs), "easy").starts


@pytest.mark.parametrize("seed", range(3))
def test_a_reservation_for_very_many_is_conservative(seed):
    found = generate(seed, jobs=300, processors=32)
    assert replayed(found, "hybrid:100000").starts == replayed(found, "conservative").starts


@few
@given(JOBS)
def test_without_reservations_everybody_starts_in_the_order_of_coming(jobs):
    starts = replayed(trace(*jobs), "fcfs").starts
    assert starts == sorted(starts)


@pytest.mark.parametrize("name", EVERY)
@few
@given(jobs=JOBS, by=st.integers(1, 10**9))
def test_it_does_not_matter_when_a_trace_begins(name, jobs, by):
    starts = replayed(trace(*jobs), name).starts
    assert replayed(trace(*moved(jobs, by)), name).starts == [start + by for start in starts]


@pytest.mark.parametrize("name", EVERY)
@few
@given(jobs=JOBS)
def test_a_machine_of_twice_the_size_serves_jobs_of_twice_the_size_alike(name, jobs):
    large = trace(*doubled(jobs), processors=2 * PROCESSORS)
    assert replayed(large, name).starts == replayed(trace(*jobs), name).starts


@pytest.mark.parametrize("name", ["fcfs", "easy", "easy-sjbf"])
@few
@given(jobs=JOBS)
def test_borders_between_nodes_cost_single_processors_nothing(name, jobs):
    single = [(submit, run, 1, requested) for submit, run, _, requested in jobs]
    on_nodes = replayed(trace(*single, processors=4), name, cluster(nodes(2, core=2)))
    assert on_nodes.starts == replayed(trace(*single, processors=4), name, one_node(4)).starts


@pytest.mark.parametrize("name", EVERY)
@few
@given(jobs=JOBS)
def test_a_machine_that_is_never_full_lets_nobody_wait(name, jobs):
    roomy = trace(*jobs, processors=sum(size for _, _, size, _ in jobs))
    assert replayed(roomy, name).starts == [submit for submit, *_ in jobs]


@pytest.mark.parametrize("name", EVERY)
@few
@given(jobs=JOBS)
def test_numbers_of_a_replay_agree_with_each_other(name, jobs):
    found = summarise(replayed(trace(*jobs), name))
    assert 0 <= found.utilisation <= 1
    assert found.median_wait <= found.p95_wait <= found.longest_wait
    assert found.average_wait <= found.longest_wait <= found.makespan
    assert found.bounded_slowdown >= 1
    assert found.promises.broken == 0
    assert found.promises.guaranteed <= len(jobs)


@few
@given(JOBS, st.lists(st.sampled_from("abc"), min_size=20, max_size=20))
def test_the_parts_of_users_are_parts_of_one_whole(jobs, names):
    plain = trace(*jobs)
    plain.jobs[:] = [
        TraceJob(job.number, job.submit, job.run, job.processors, job.requested, name)
        for job, name in zip(plain.jobs, names, strict=False)
    ]
    found = fairness(replayed(plain, "easy"))
    assert sum(row.jobs for row in found.users) == len(jobs)
    for sums in zip(*((row.work, row.demanded, row.received) for row in found.users), strict=True):
        assert sum(sums) == pytest.approx(1) or sum(sums) == 0
    for index in (found.jain_wait, found.jain_slowdown, found.jain_received):
        assert 0 < index <= 1 + 1e-9
