"""Shapes of several parts: which of them are components of a job, and which are steps side by side."""

from __future__ import annotations

import pytest

from jobman.api import loads
from jobman.engines.base import Refused
from jobman.engines.slurm.components import NO_ARRAYS, NO_STEPS
from jobman.engines.slurm.features import refusals
from jobman.plan.model import Plan
from jobman.settings.slurm import SlurmSite
from tests.engines.scripts.running import scripts_of
from tests.engines.slurm.test_compile import check, header

SHAPES = """
resources:
  head: {type: node, count: 1, with: [{type: core, count: 1}]}
  workers: {type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 2}]}]}
  fast: {type: node, count: 1, with: [{type: core, count: 3}, {type: gpu, count: 2}], requires: {disk: ssd}}
  whole: {type: node, count: 1}
  one: {type: core, count: 1}
  two: {type: slot, count: 2, with: [{type: core, count: 2}]}
  lean: {type: slot, count: 1, with: [{type: memory, count: 1Gi}]}
  accelerated: {type: slot, count: 1, with: [{type: core, count: 1}, {type: gpu, count: 1}]}
"""
TASK = "name: model, command: ['true']"


def plan_of(text: str) -> Plan:
    return loads(f"version: 1\n{text}{SHAPES}", name="job.yaml").plan()


def task(resources: str, more: str = "") -> Plan:
    return plan_of(f"tasks:\n- {{{TASK}, resources: {resources}{more}}}")


def in_group(resources: str, more: str = "", group: str = "") -> Plan:
    return plan_of(f"groups:\n- {{name: g, tasks: [{{{TASK}, resources: {resources}{more}}}]{group}}}")


def asked(plan: Plan, site: SlurmSite | None = None) -> list[list[str]]:
    """What each component of the only job asks for, without what is said of the job."""
    (script,) = scripts_of(plan, "/j", site)
    about = ("--job-name", "--comment", "--output", "--open-mode", "--chdir", "--requeue")
    found: list[list[str]] = [[]]
    for line in header(script):
        if line == "hetjob":
            found.append([])
        elif not line.startswith(about):
            found[-1].append(line)
    return found


def step(plan: Plan) -> str:
    (script,) = scripts_of(plan, "/j")
    (line,) = [line for line in script.text.splitlines() if line.startswith("    DIRECT= step=(")]
    return line.partition("step=(")[2].rstrip(")")


def test_each_part_is_a_component() -> None:
    assert asked(task("head&workers")) == [
        ["--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1"],
        ["--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=2"],
    ]


def test_a_component_is_told_where_it_waits_and_who_pays_for_it() -> None:
    site = SlurmSite(account="phys", partition="main", qos="normal", reservation="r1", default_time=600.0)
    first, second = asked(task("head&workers"), site)
    for word in ("--account=phys", "--partition=main", "--qos=normal", "--reservation=r1"):
        assert word in first
        assert word in second
    assert [word for word in first if "--time" in word] == [word for word in second if "--time" in word]


def test_facts_are_those_of_the_part_that_requires_them() -> None:
    first, second = asked(task("head&fast"))
    assert not any("--constraint" in word for word in first)
    assert "--constraint=ssd" in second
    assert "--gres=gpu:2" in second


def test_what_the_document_gives_is_for_every_component() -> None:
    flags = ", attributes: {flags: {slurm: [--partition=long, --cpus-per-task=4]}}"
    for component in asked(task("head&workers", flags), SlurmSite(partition="main")):
        assert [word for word in component if "partition" in word] == ["--partition=long"]
        assert [word for word in component if "cpus-per-task" in word] == ["--cpus-per-task=4"]


def test_a_step_has_a_group_for_each_part_and_knows_their_copies() -> None:
    words = step(task("whole&fast&workers"))
    assert words.startswith("together 0:1::0 1:1:3:2 2:4:2:0 -- ")
    assert words.endswith(" --")
    assert [f"--het-group={number}" in part for number, part in enumerate(words.split(" : "))] == [True] * 3


def test_a_task_of_one_part_is_no_such_thing() -> None:
    assert len(asked(task("workers"))) == 1
    assert step(task("workers")).startswith("srun ")


def test_two_parts_of_plain_slots_share_an_allocation() -> None:
    assert asked(task("one&two")) == [["--ntasks=3", "--cpus-per-task=2"]]
    # The larger are placed first, and ranks are as they are written.
    assert step(task("one&two")).startswith("beside 1:2:2:0 0:1:1:0 -- ")


@pytest.mark.parametrize("resources", ["one&accelerated", "one&lean", "one&head", "one&two&accelerated"])
def test_slots_that_could_take_the_place_of_others_do_not_share_one(resources: str) -> None:
    assert len(asked(task(resources))) == resources.count("&") + 1


def test_a_group_has_nodes_of_one_kind() -> None:
    assert asked(in_group("head&workers")) == [["--nodes=3", "--ntasks-per-node=1", "--cpus-per-task=4"]]
    assert step(in_group("head&workers")).startswith("beside 1:4:2:0 0:1:1:0 -- ")


def test_a_group_of_nothing_but_a_script_has_its_components() -> None:
    plan = plan_of("groups:\n- {name: g, resources: head&workers, tasks: [{" + TASK + ", local: true}]}")
    assert len(asked(plan)) == 2


@pytest.mark.parametrize(
    "plan",
    [
        task("head&workers&fast"),
        task("one&two", ", replicas: 3"),
        in_group("head&workers"),
        task("head&workers", ", steps: [{name: stage, path: a, to: b}]"),
    ],
)
def test_a_shell_reads_what_is_made_of_parts(plan: Plan) -> None:
    check(plan)


# -- what cannot be had -------------------------------------------------------------------------------------


def refused(plan: Plan) -> list[Refused]:
    return [each for each in refusals(plan, SlurmSite()) if each.feature == "shape.both"]


def test_replicas_of_a_heterogeneous_job_are_refused_with_what_to_do() -> None:
    assert refused(task("head&workers", ", replicas: 2")) == [Refused("shape.both", ("model",), NO_ARRAYS)]
    assert refused(in_group("head&workers", ", replicas: 2")) == []
    assert refused(task("one&two", ", replicas: 2")) == []


def test_parts_that_may_get_in_each_others_way_in_a_group_are_refused() -> None:
    assert refused(in_group("head&one")) == [Refused("shape.both", ("g/model",), NO_STEPS)]
    assert refused(in_group("head&workers|one&two")) == []
    assert refused(task("head&one")) == []


def test_tasks_of_different_shapes_may_be_in_one_group() -> None:
    both = f"{{{TASK}, resources: head}}, {{name: other, command: ['true'], resources: two}}"
    plan = plan_of(f"groups:\n- {{name: g, tasks: [{both}]}}")
    assert refused(plan) == []
    assert len(asked(plan)) == 1


def test_tasks_of_a_group_that_require_different_nodes_are_refused() -> None:
    fast = f"{{{TASK}, resources: fast}}"
    slow = "{name: slow, command: ['true'], resources: head, requires: {disk: hdd}}"
    (found,) = refusals(plan_of(f"groups:\n- {{name: g, tasks: [{fast}, {slow}]}}"), SlurmSite())
    assert (found.feature, found.units) == ("requires", ("g",))
    assert "differ in disk; put them into groups of their own" in found.note
    assert refusals(plan_of(f"tasks: [{fast}, {slow}]"), SlurmSite()) == []
