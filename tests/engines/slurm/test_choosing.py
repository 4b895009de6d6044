"""Of alternatives the leftmost that Slurm could ever run, and a word on it."""

from __future__ import annotations

import pytest

from jobman.engines.scripts.alternatives import leftmost
from jobman.engines.scripts.commands import Failed, Said
from jobman.engines.scripts.site import Job
from jobman.engines.slurm.choosing import choose
from jobman.plan.model import Plan
from jobman.settings.slurm import SlurmSite
from tests.engines.scripts.running import plan_of

JOB = Job(id="ab", name="job", folder="/j")
HEAD = (
    "resources:\n  fast: {type: node, count: 1, with: [{type: gpu, count: 1}]}\n"
    "  slow: {type: node, count: 4, with: [{type: core, count: 1}]}\n"
)
TASK = "- {name: a, command: ['true'], resources: fast|slow}"
NO = Said(1, "", "sbatch: error: Requested node configuration is not available")
YES = Said(0, "", "")


def settled(plan: Plan, *, gpus: bool) -> tuple[Plan, list[str]]:
    return choose(plan, JOB, SlurmSite(), lambda text: NO if "gpu" in text and not gpus else YES)


def nodes(plan: Plan) -> list[int | None]:
    return [unit.alternatives[0][0].nodes for unit in plan.units]


@pytest.mark.parametrize("gpus", [True, False])
def test_the_leftmost_that_is_feasible_is_taken(gpus: bool) -> None:
    plan, notes = settled(plan_of(TASK, head=HEAD), gpus=gpus)
    assert (nodes(plan), len(plan.units[0].alternatives)) == ([1 if gpus else 4], 1)
    assert notes == (
        [] if gpus else ["a: alternative 2 of 2 is asked for; those before it can never be had here"]
    )


def test_the_tasks_of_a_group_have_the_alternative_of_the_group() -> None:
    group = f"{HEAD}groups:\n- {{name: g, resources: fast|slow, tasks: [{{name: a, command: ['true']}}]}}\n"
    plan, _ = settled(plan_of("- {group: g}", head=group), gpus=False)
    assert set(nodes(plan)) == {4}


def test_a_plan_that_leaves_no_choice_is_not_asked_for() -> None:
    plan = plan_of(TASK.replace("fast|slow", "fast"), head=HEAD)
    assert settled(plan, gpus=False) == (plan, [])


def test_where_none_is_feasible_slurm_says_why() -> None:
    with pytest.raises(Failed, match="node configuration is not available"):
        choose(plan_of(TASK, head=HEAD), JOB, SlurmSite(), lambda _: NO)


def test_where_nobody_can_be_asked_the_first_is_taken() -> None:
    plan = leftmost(plan_of(TASK, head=HEAD))
    assert nodes(plan) == [1]
    assert plan.digest != plan_of(TASK, head=HEAD).digest
