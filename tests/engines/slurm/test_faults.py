"""Faults of a real Slurm under jobs that run or wait: what becomes of them, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conformance.handle import JobHandle
from tests.engines.slurm.ground import PATIENCE, Ground, eventually, on_a_real_slurm
from tests.slurm_lab import lab_slurm, slurm_variant

pytestmark = on_a_real_slurm

WAIT = "until test -e go; do sleep 0.1; done"


@pytest.fixture(scope="module")
def conf() -> Iterator[Path]:
    with slurm_variant("faults") as found:
        yield found


@pytest.fixture
def ground(conf: Path, tmp_path: Path) -> Iterator[Ground]:
    """One for all, since it takes long to come up: only where a test leaves it broken is it made anew."""
    lab_slurm("faults", "up")
    made = Ground("faults", conf, tmp_path)
    try:
        yield made
    finally:
        made.end()


def running(ground: Ground, task: str, command: str, node: str = "n1", more: str = "") -> JobHandle:
    """A job of one task that runs on a node."""
    flags = f'attributes: {{flags: {{slurm: ["--nodelist={node}"]}}}}'
    job = ground.submit(f'- {{name: {task}, command: [sh, -c, "{command}"], {flags}{more}}}')
    job.until(f"{task}.0 started")
    return job


# -- the controller -----------------------------------------------------------------------------------------


def test_a_controller_that_dies_under_a_run_is_not_noticed_by_who_waits(ground: Ground) -> None:
    job = running(ground, "work", f"echo began >>ledger; {WAIT}; echo went on >>ledger")
    ground.save()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ground.client.wait, job.id)
        ground.lab("ctld", "stop")
        ground.let_go()
        eventually(lambda: ground.ran() == ["began", "went on"], "the end of what runs all the while")
        ground.lab("ctld", "start")
        assert waiting.result(PATIENCE).state == "succeeded"
    assert ground.ran() == ["began", "went on"]


def test_a_controller_that_is_restarted_keeps_the_graph(ground: Ground) -> None:
    job = ground.submit(f"""
        - {{name: first, command: [sh, -c, "{WAIT}; echo first >>ledger"]}}
        - {{name: second, depends_on: first, command: [sh, -c, "echo second >>ledger"]}}
    """)
    job.until("first.0 started")
    ground.lab("ctld", "restart")
    ground.let_go()
    assert job.wait().state == "succeeded"
    assert ground.ran() == ["first", "second"]


# -- nodes --------------------------------------------------------------------------------------------------


def test_a_lost_node_is_no_failure_of_the_task_and_costs_no_retry(ground: Ground) -> None:
    own = "echo $JOBMAN_ATTEMPT >>ledger; case $JOBMAN_ATTEMPT in 1|3) exit 1;; 2) sleep 1000;; esac"
    job = running(ground, "work", own, "n2", ", retries: 1")
    eventually(lambda: ground.ran() == ["1", "2"], "its second attempt")
    ground.lab("node", "stop", "n2")
    eventually(lambda: ground.slurm("sinfo", "-hn", "n2", "-p", "main", "-o", "%t") == "down*", "its loss")
    ground.lab("node", "start", "n2")
    outcome = job.wait()
    assert outcome.reasons("work.0") == ["exit", "node-lost", "exit"]
    assert (outcome.state, outcome.exit_code, ground.ran()) == ("failed", 1, ["1", "2", "3"])


def test_the_node_of_any_part_is_lost_to_all_of_it(ground: Ground) -> None:
    job = ground.submit("""
        - name: work
          resources: head&rest
          command: [sh, -c, "test $JOBMAN_RANK != 0 || echo $JOBMAN_NODELIST >>ledger; exec sleep 1000"]
        resources:
          head: {type: node, count: 1, with: [{type: core, count: 1}]}
          rest: {type: node, count: 2, with: [{type: core, count: 2}]}
    """)
    (nodes,) = eventually(ground.ran, "its start")
    lost = nodes.split(",")[-1]
    ground.lab("node", "stop", lost)
    eventually(lambda: len(ground.ran()) == 2, "that it begins again")
    ground.lab("node", "start", lost)
    assert lost not in ground.ran()[1].split(",")
    eventually(lambda: len(job.look().reasons("work.0")) == 2, "that this is told")
    first, last = job.look().reasons("work.0")
    assert (first in ("preempted", "node-lost"), last) == (True, "")
    job.cancel()
    assert job.wait().state == "cancelled"


def test_what_an_administrator_sends_back_to_the_queue_begins_again(ground: Ground) -> None:
    job = running(ground, "work", "echo $JOBMAN_ATTEMPT >>ledger; test $JOBMAN_ATTEMPT = 2 || sleep 1000")
    ground.slurm("scontrol", "requeue", ground.id_of(job, "work"))
    outcome = job.wait()
    first, last = outcome.reasons("work.0")
    # A script that is killed before it could ask why is thought to have lost its node: that counts as little.
    assert (outcome.state, first in ("preempted", "node-lost"), last) == ("succeeded", True, "")
    assert ground.ran() == ["1", "2"]


def test_a_drained_node_is_said_to_who_waits_for_it_and_to_who_runs_there(ground: Ground) -> None:
    runs = running(ground, "runs", WAIT, "n3")
    ground.slurm("scontrol", "update", "node=n3", "state=drain", "reason=bad disk")
    waits = ground.submit("""
        - {name: waits, command: [echo, hi], attributes: {flags: {slurm: ["--nodelist=n3"]}}}
    """)
    assert "n3 is draining: bad disk" in waits.until_blocked("node").message
    assert "n3 is draining: bad disk" in runs.until_blocked("node").message
    ground.let_go()
    assert runs.wait().state == "succeeded"
    ground.slurm("scontrol", "update", "node=n3", "state=resume")
    assert waits.wait().state == "succeeded"


def test_a_full_spool_keeps_a_job_from_its_node_until_somebody_lets_it_go(ground: Ground) -> None:
    ground.lab("node", "fill", "n4")
    job = ground.submit("""
        - name: work
          command: [sh, -c, "echo ran >>ledger"]
          attributes: {flags: {slurm: ["--nodelist=n4"]}}
    """)
    held = job.until_blocked("node")
    assert "could not be launched" in held.message
    assert "jobman release" in held.message
    ground.lab("node", "clear", "n4")
    ground.slurm("scontrol", "update", "node=n4", "state=resume")
    job.release()
    outcome = job.wait()
    assert (outcome.state, ground.ran()) == ("succeeded", ["ran"])
    assert len(outcome.attempts("work.0")) == 1


# -- ends that nobody of ours asked for ---------------------------------------------------------------------


def test_a_task_that_somebody_cancels_skips_what_waits_for_it_and_cleanup_still_runs(ground: Ground) -> None:
    job = ground.submit("""
        - {name: first, command: [sh, -c, "echo first >>ledger; sleep 1000"]}
        - {name: second, depends_on: first, command: [sh, -c, "echo second >>ledger"]}
        - {name: tidy, when: always, command: [sh, -c, "echo tidy >>ledger"]}
    """)
    job.until("first.0 started")
    ground.slurm("scancel", ground.id_of(job, "first"))
    outcome = job.wait()
    assert outcome.outcomes == {"first": "cancelled", "second": "skipped", "tidy": "succeeded"}
    assert (outcome.state, ground.ran()) == ("cancelled", ["first", "tidy"])


def test_a_task_that_is_cancelled_while_it_waits_skips_what_waits_for_it(ground: Ground) -> None:
    job = ground.submit(f"""
        - {{name: first, command: [sh, -c, "{WAIT}"]}}
        - {{name: second, depends_on: first, command: [sh, -c, "echo second >>ledger"]}}
        - {{name: third, depends_on: second, command: [sh, -c, "echo third >>ledger"]}}
        - {{name: tidy, when: always, command: [sh, -c, "echo tidy >>ledger"]}}
    """)
    job.until("first.0 started")
    ground.slurm("scancel", ground.id_of(job, "second"))
    ground.let_go()
    outcome = job.wait()
    assert outcome.outcomes["third"] == "skipped"
    assert ground.ran() == ["tidy"]


def test_slurms_own_limit_is_a_timeout(ground: Ground) -> None:
    """The shortest limit that a job can be given is a minute; of one that runs the end can be moved."""
    job = ground.submit("""
        - name: long
          command: [sh, -c, "echo long >>ledger; sleep 1000"]
          attributes: {flags: {slurm: ["--time=1"]}}
        - {name: next, depends_on: long, command: [sh, -c, "echo next >>ledger"]}
        - {name: alarm, when: failure, command: [sh, -c, "echo alarm >>ledger"]}
    """)
    eventually(ground.ran, "its start")
    ground.slurm("scontrol", "update", f"JobId={ground.id_of(job, 'long')}", "EndTime=now+5")
    outcome = job.wait()
    assert outcome.reasons("long.0") == ["timeout"]
    assert outcome.outcomes == {"long": "failed", "next": "skipped", "alarm": "succeeded"}
    assert ground.ran() == ["long", "alarm"]


def test_a_script_that_is_killed_leaves_no_word_and_is_told_as_failed(ground: Ground) -> None:
    job = ground.submit("""
        - {name: work, command: [sh, -c, "echo $$ >>ledger; sleep 1000"]}
        - {name: next, depends_on: work, command: [sh, -c, "echo next >>ledger"]}
        - {name: alarm, when: failure, command: [sh, -c, "echo alarm >>ledger"]}
    """)
    job.until("work.0 started")
    ground.slurm("scancel", "--batch", "--signal=KILL", ground.id_of(job, "work"))
    outcome = job.wait()
    assert outcome.outcomes == {"work": "failed", "next": "skipped", "alarm": "succeeded"}
    assert "its script was killed" in outcome.reason
    assert ground.ran()[1:] == ["alarm"]
