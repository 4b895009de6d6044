"""Logs of real machines, on which the start of every single job is known for each policy."""

import os
from pathlib import Path

import pytest

from jobman.sim.cluster import one_node
from jobman.sim.expectations import foresee
from jobman.sim.metrics import summarise
from jobman.sim.policies import policy
from jobman.sim.swf import read_swf
from tests.sim.builders import LOOPS, bare, replayed

pytestmark = [pytest.mark.component("traces"), pytest.mark.slow]

MACHINES = {"KTH-SP2": 100, "SDSC-SP2": 128}
ANSWERS = {"easy": "easy", "easy-sjbf": "pyss-easy_sjbf", "conservative": "pyss-conservative"}
AVERAGES = {
    ("fcfs", "KTH-SP2"): ("353776.4", "6814.973"),
    ("fcfs", "SDSC-SP2"): ("1535568.6", "13823.534"),
    ("conservative", "KTH-SP2"): ("7310.6", "88.997"),
    ("conservative", "SDSC-SP2"): ("21889.3", "89.656"),
    ("easy", "KTH-SP2"): ("6836.9", "92.577"),
    ("easy", "SDSC-SP2"): ("20497.8", "87.870"),
    ("easy-sjbf", "KTH-SP2"): ("5904.1", "69.405"),
    ("easy-sjbf", "SDSC-SP2"): ("20793.6", "84.889"),
}
UTILISATION = {"KTH-SP2": "0.6856", "SDSC-SP2": "0.8229"}


def log(machine, name):
    found = read_swf(Path(os.environ["JOBMAN_TRACES"]) / machine / f"{name}.swf.gz")
    assert (found.processors, found.left_out) == (MACHINES[machine], [])
    return found


def known(found):
    return [job.submit + job.wait for job in found.jobs]


def wrong(starts, found):
    """The first jobs that started at another time, for the message of a test that fails."""
    rows = zip(found.jobs, starts, known(found), strict=True)
    return [(job.number, start, right) for job, start, right in rows if start != right][:5]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ANSWERS)
def test_every_job_starts_when_it_is_known_to(machine, name):
    found = log(machine, ANSWERS[name])
    outcome = replayed(found, name)
    assert wrong(outcome.starts, found) == []
    assert len(outcome.starts) == len(found.jobs) > 28_000
    summary = summarise(outcome)
    assert (f"{summary.average_wait:.1f}", f"{summary.bounded_slowdown:.3f}") == AVERAGES[name, machine]
    assert summary.promises.broken == 0
    if name == "easy":
        assert f"{summary.utilisation:.4f}" == UTILISATION[machine]


@pytest.mark.parametrize("machine", MACHINES)
def test_the_averages_of_fcfs_are_the_known_ones(machine):
    summary = summarise(replayed(log(machine, "easy"), "fcfs"))
    assert (f"{summary.average_wait:.1f}", f"{summary.bounded_slowdown:.3f}") == AVERAGES["fcfs", machine]


@pytest.mark.parametrize("machine", MACHINES)
def test_the_bare_loops_give_the_known_starts_too(machine):
    for name, file in {"fcfs": "pyss-fcfs", **ANSWERS}.items():
        found = log(machine, file)
        assert wrong(LOOPS[name](bare(found), MACHINES[machine]), found) == []


def test_what_is_broken_in_a_log_is_told():
    found = read_swf(Path(os.environ["JOBMAN_TRACES"]) / "KTH-SP2" / "KTH-SP2-1996-2.1-cln.swf.gz")
    assert [(each.line, each.words) for each in found.left_out] == [(27323, "job 27313 has no processors")]
    assert (len(found.jobs), found.processors, found.began) == (28475, 100, 843480031)


@pytest.mark.parametrize("machine", MACHINES)
def test_expectations_are_worth_more_than_a_plan_from_requested_times(machine):
    found = log(machine, "pyss-conservative")
    found.jobs = found.jobs[:12_000]
    outcome = replayed(found, "conservative")
    outcome.expectations = foresee(outcome, one_node(MACHINES[machine]), policy("conservative"))
    told = summarise(outcome).promises
    assert told.expected == told.waiting
    assert (told.expected_within_600 or 0) > 1.5 * (told.guaranteed_within_600 or 1)
    assert 0.85 <= (told.p90_coverage or 0) <= 0.95
