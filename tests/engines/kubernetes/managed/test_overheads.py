"""What a runtime costs beside the copies it runs, in the units of the planner."""

import pytest

from jobman.engines.kubernetes.managed.overheads import overhead
from jobman.plan.nodes import COPY
from tests.engines.kubernetes.objects_of import plan_of, task

CLASSES = {"kata": {"cpu": "250m", "memory": "160Mi"}, "plain": {}}
KATA = {"core": 250, "memory": 160 * 2**20, COPY: 1}


def of(text, unit):
    plan = plan_of(text)
    return overhead(CLASSES, plan, plan.unit(unit))


def group(shape, *tasks):
    written = ", ".join(tasks)
    return f"version: 1\ngroups: [{{name: g, resources: {shape}, tasks: [{written}]}}]\n"


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("runtime: kata", KATA),
        ("runtime: plain", {COPY: 1}),
        ("runtime: unknown", {COPY: 1}),
        ("runtime: {os: linux}", {COPY: 1}),
        ("", {COPY: 1}),
    ],
)
def test_a_copy_costs_what_its_runtime_class_says(runtime, expected):
    assert of(task(runtime), "a") == expected


def test_parts_of_thousandths_are_rounded_up():
    plan = plan_of(task("runtime: odd"))
    assert overhead({"odd": {"cpu": "100u"}}, plan, plan.unit("a")) == {"core": 1, COPY: 1}


def test_a_group_costs_as_much_as_its_tasks_can():
    shape = "{type: node, count: 2, with: [{type: core, count: 4}]}"
    inner = "{name: t, command: [echo], runtime: kata, replicas: 100, resources: {type: core, count: 1}}"
    assert of(group(shape, inner), "g") == {kind: amount * 4 for kind, amount in KATA.items()}


def test_a_group_whose_tasks_are_few_costs_no_more_than_they_do():
    shape = "{type: node, count: 1, with: [{type: core, count: 4}]}"
    inner = "{name: t, command: [echo], runtime: kata, resources: {type: core, count: 1}}"
    assert of(group(shape, inner), "g") == KATA


def test_a_group_without_such_tasks_costs_a_pod():
    assert of(group("{type: node, count: 1}", "{name: t, command: [echo]}"), "g") == {COPY: 1}


def test_of_tasks_that_follow_each_other_no_more_are_counted_than_find_a_core():
    shape = "{type: node, count: 1, with: [{type: core, count: 2}]}"
    inner = "{name: t%s, command: [echo], resources: {type: core, count: 1}}"
    assert of(group(shape, *(inner % number for number in range(9))), "g") == {COPY: 3}
