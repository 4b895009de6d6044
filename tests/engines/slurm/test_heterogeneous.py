"""Tasks on several parts at once, on a real Slurm: each is one job of several components."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from jobman.engines.slurm.queue import minutes
from tests.conformance.handle import JobHandle
from tests.engines.slurm.ground import Ground, eventually

pytestmark = [pytest.mark.component("slurm"), pytest.mark.slow]
Submit = Callable[[Ground, str], JobHandle]
SHAPES = """
resources:
  head: {type: node, count: 1, with: [{type: core, count: 1}]}
  workers: {type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 2}]}]}
  accelerated: {type: node, count: 1, with: [{type: core, count: 3}, {type: gpu, count: 2}]}
  anywhere: {type: slot, count: 2, with: [{type: core, count: 1}]}
  double: {type: core, count: 2}
  whole: {type: node, count: 1}
  huge: {type: node, count: 1, with: [{type: core, count: 640}]}
"""
PATIENT = """trap "echo bye $JOBMAN_RANK; exit 0" TERM; echo up $JOBMAN_RANK; while :; do sleep 0.1; done"""
GATE = """echo up $JOBMAN_RANK; until test -e go; do sleep 0.1; done; echo done $JOBMAN_RANK"""


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    found = Ground("", Path(os.environ["JOBMAN_LAB_SLURM_CONF"]), tmp_path)
    yield found
    found.end()


def model(ground: Ground, script: str, keys: str = "resources: head&workers", more: str = "") -> JobHandle:
    (ground.folder / "model.sh").write_text(script)
    return ground.submit(f"- {{name: model, command: [sh, model.sh], {keys}}}\n{more}{SHAPES}")


def in_group(
    ground: Ground, script: str, keys: str = "resources: head&workers", group: str = ""
) -> JobHandle:
    (ground.folder / "model.sh").write_text(script)
    task = f"{{name: model, command: [sh, model.sh], {keys}}}"
    document = f"version: 1\ngroups:\n- {{name: g, tasks: [{task}], {group}}}\n{SHAPES}"
    (job,) = ground.client.submit(msgspec.structs.replace(ground.submission(""), document=document)).jobs
    return ground.handle(job.id)


def ups(count: int = 5) -> list[str]:
    return [f"up {rank}" for rank in range(count)]


def test_ranks_cores_gpus_and_nodes_are_those_of_the_parts(ground: Ground) -> None:
    script = "echo $JOBMAN_RANK/$JOBMAN_SIZE $JOBMAN_CORES $JOBMAN_GPUS $JOBMAN_NODE_RANK/$JOBMAN_NNODES"
    outcome = model(ground, script, "resources: head&accelerated&workers").wait()
    assert sorted(outcome.lines()) == [
        "0/6 1 0 0/4",
        "1/6 3 2 1/4",
        "2/6 2 0 2/4",
        "3/6 2 0 2/4",
        "4/6 2 0 3/4",
        "5/6 2 0 3/4",
    ]


def test_nodes_are_listed_in_the_order_of_the_parts(ground: Ground) -> None:
    outcome = model(ground, "echo $JOBMAN_NODELIST", "resources: accelerated&head").wait()
    (nodes,) = set(outcome.lines())
    assert nodes.split(",")[0] in ("n7", "n8")
    assert len(nodes.split(",")) == 2


def test_a_whole_node_and_slots_anywhere_are_parts_as_well(ground: Ground) -> None:
    outcome = model(ground, "echo $JOBMAN_RANK $JOBMAN_CORES", "resources: whole&anywhere").wait()
    assert sorted(outcome.lines()) == ["0 8", "1 1", "2 1"]


def test_it_is_one_job_with_one_id(ground: Ground) -> None:
    job = model(ground, GATE)
    job.until_line("up 4")
    (native,) = [each for each in ground.client._manager.queue() if each.job == job.id]
    assert (native.state, native.id) == ("running", ground.id_of(job, "model"))
    assert native.id in ground.slurm("squeue", "--noheader", "--format=%i|%k").replace("+1", "")
    ground.let_go()
    assert job.wait().state == "succeeded"
    assert [replica.key for replica in job.replicas()] == ["model.0"]


def test_one_that_waits_is_held_released_and_cancelled_as_a_whole(ground: Ground) -> None:
    job, other = (model(ground, "true", "hold: true, resources: head&workers") for _ in range(2))
    job.until_blocked("hold")
    job.release()
    assert job.wait().state == "succeeded"
    other.cancel()
    assert other.wait().state == "cancelled"


def test_a_hold_sends_what_runs_back_to_the_queue(ground: Ground) -> None:
    job = model(ground, GATE, "suspend: requeue, resources: head&workers")
    job.until_line("up 4")
    job.hold()
    ask = ("squeue", "--noheader", f"--jobs={ground.id_of(job, 'model')}", "--format=%T %r")
    waits = ["PENDING job requeued in held state"] * 2
    eventually(lambda: ground.slurm(*ask).splitlines() == waits, "that it is back in the queue")
    assert job.until_blocked("hold")
    ground.let_go()
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert len(outcome.all_attempts) == 2


@pytest.mark.parametrize("place", ["top", "group"])
def test_a_freeze_reaches_the_copies_of_every_part(ground: Ground, place: str) -> None:
    script = 'echo $$ >"pid.$JOBMAN_RANK"; echo up $JOBMAN_RANK; until test -e go; do sleep 0.1; done'
    if place == "top":
        job = model(ground, script, "suspend: freeze, resources: head&workers")
    else:
        job = in_group(ground, script, group="suspend: freeze")
    for line in ups():
        job.until_line(line)
    pids = [(ground.folder / f"pid.{rank}").read_text().strip() for rank in range(5)]
    job.hold()
    eventually(lambda: {state(pid) for pid in pids} == {"T"}, "that all of them stand still")
    job.release()
    eventually(lambda: "T" not in {state(pid) for pid in pids}, "that all of them go on")
    ground.let_go()
    assert job.wait().state == "succeeded"


def state(pid: str) -> str:
    """What a process does, as the kernel says it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_copy_that_fails_ends_the_others_and_is_told(ground: Ground) -> None:
    after = (
        "- {name: after, command: [echo, sorry], resources: head, depends_on: [{name: model, when: failure}]}"
    )
    outcome = model(ground, "test $JOBMAN_RANK != 3 || exit 7; exec sleep 600", more=after).wait()
    assert (outcome.state, outcome.job.exit_code) == ("failed", 7)
    assert "sorry" in outcome.lines()


def test_more_time_is_for_all_of_it(ground: Ground) -> None:
    job = model(ground, GATE, "resources: head&workers, attributes: {duration: 10m}")
    job.until_line("up 4")
    ask = ("squeue", "--noheader", f"--jobs={ground.id_of(job, 'model')}", "--format=%l")
    before, _ = map(minutes, ground.slurm(*ask).split())
    job.extend(600)
    assert [minutes(limit) for limit in ground.slurm(*ask).split()] == [before + 10] * 2
    ground.let_go()
    assert job.wait().state == "succeeded"


def test_files_reach_the_nodes_of_every_part(ground: Ground) -> None:
    (ground.folder / "data").write_text("hello\n")
    steps = "steps: [{name: stage, path: data, to: there/data}]"
    outcome = model(ground, "cat there/data", f"resources: head&workers, {steps}").wait()
    assert (outcome.state, outcome.lines()) == ("succeeded", ["hello"] * 5)


def test_of_alternatives_the_leftmost_that_can_be_had_is_asked_for(ground: Ground) -> None:
    outcome = model(
        ground, "echo $JOBMAN_RANK $JOBMAN_CORES", "resources: huge&head|head&(huge|accelerated)"
    ).wait()
    assert sorted(outcome.lines()) == ["0 1", "1 3"]


def test_a_script_of_several_components_runs_in_them(ground: Ground) -> None:
    """As `jobman convert` writes one: a group of nothing but the script."""
    script = "srun --het-group=0,1 printenv SLURM_PROCID"
    outcome = in_group(ground, script, "local: true", "resources: head&workers").wait()
    assert sorted(outcome.lines()) == ["0", "1", "2", "3", "4"]


# -- in the nodes of a group ---------------------------------------------------------------------------------


def test_parts_in_a_group_are_steps_that_begin_together(ground: Ground) -> None:
    outcome = in_group(ground, "echo $JOBMAN_RANK/$JOBMAN_SIZE $JOBMAN_CORES $JOBMAN_NNODES").wait()
    assert sorted(outcome.lines()) == ["0/5 1 3", "1/5 2 3", "2/5 2 3", "3/5 2 3", "4/5 2 3"]
    assert len(outcome.nodes("g.0/model.0")) == 3


def test_replicas_that_need_all_of_a_group_do_not_block_each_other(ground: Ground) -> None:
    outcome = in_group(ground, "true", "replicas: 6, resources: whole&workers").wait()
    assert outcome.state == "succeeded"
    assert len(outcome.all_attempts) == 7


@pytest.mark.parametrize("submit", [model, in_group])
def test_all_copies_of_a_cancelled_one_may_end_in_peace(ground: Ground, submit: Submit) -> None:
    job = submit(ground, PATIENT)
    for line in ups():
        job.until_line(line)
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert sorted(line for line in outcome.lines() if "bye" in line) == [f"bye {rank}" for rank in range(5)]


def test_a_part_in_a_group_that_fails_ends_the_others(ground: Ground) -> None:
    outcome = in_group(ground, "test $JOBMAN_RANK != 3 || exit 7; exec sleep 600").wait()
    assert (outcome.state, outcome.job.exit_code) == ("failed", 7)


def test_what_waits_for_room_in_its_group_can_be_cancelled(ground: Ground) -> None:
    job = in_group(ground, PATIENT, "replicas: 2, resources: whole&workers")
    job.until_line("up 4")
    job.cancel()
    assert job.wait().state == "cancelled"


def test_two_parts_of_slots_share_an_allocation_and_may_be_an_array(ground: Ground) -> None:
    keys = "replicas: 2, resources: anywhere&double"
    outcome = model(ground, "echo $JOBMAN_REPLICA $JOBMAN_RANK $JOBMAN_CORES", keys).wait()
    assert sorted(outcome.lines()) == [
        f"{replica} {copy}" for replica in range(2) for copy in ("0 1", "1 1", "2 2")
    ]
