"""From a resolved job to a plan, and back from its JSON form."""

import json
from pathlib import Path

import msgspec
import pytest

from jobman.api import loads
from jobman.plan.features import users
from jobman.plan.model import Coordinator, PlanError, digest, plan_from_json
from jobman.plan.replicas import for_replica, replica_values
from jobman.spec.load import load_jobs
from jobman.spec.networks import Network
from jobman.spec.placement import Relation
from jobman.spec.problems import Problems
from jobman.spec.site import Site
from jobman.spec.source import Source
from jobman.spec.steps import Write

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
JOB = """\
version: 1
name: study
labels: {team: ocean}
queue: batch
max_failed: 3
attributes: {duration: 4h, environment: {A: 1, B: 2}}
groups:
- name: main
  resources: {type: node, count: 2}
  grace: 1m
  retries: 1
  attributes: {duration: 2h, environment: {B: 3}}
  tasks:
  - {name: prepare, local: true, command: ./prepare}
  - name: solve
    command: ./solve --fast
    matrix: {rate: [0.10, 0.01], model: [a, b]}
    retries: 5
    image: "example.org/solve:1"
  - {name: tidy, command: ./tidy, when: always}
- name: report
  depends_on: main
  resources: {type: node, count: 1}
  tasks: [{command: ./report}]
"""


@pytest.fixture
def plan():
    return loads(JOB).plan()


def test_units_stand_in_the_order_written_each_group_before_its_tasks(plan):
    assert [(unit.id, unit.kind, unit.parent) for unit in plan.units] == [
        ("main", "group", None),
        ("main/prepare", "task", "main"),
        ("main/solve", "task", "main"),
        ("main/tidy", "task", "main"),
        ("report", "group", None),
        ("report/task-1", "task", "report"),
    ]


def test_a_unit_carries_the_line_it_was_written_in(plan):
    assert [unit.line for unit in plan.units] == [8, 14, 15, 20, 21, 24]


def test_the_document_gives_the_plan_its_name_labels_queue_and_policies(plan):
    assert (plan.name, plan.labels, plan.queue) == (
        "study",
        {"team": "ocean"},
        "batch",
    )
    assert plan.policies.max_failed == 3


def test_the_nearest_value_wins(plan):
    solve = plan.unit("main/solve")
    assert (solve.duration, solve.environment) == (7200.0, {"A": "1", "B": "3"})


def test_policies_of_a_thing_are_not_inherited_and_settings_are(plan):
    assert (plan.unit("main").policies.retries.limit, plan.unit("main/solve").policies.retries.limit) == (
        1,
        5,
    )
    assert plan.unit("main/tidy").policies.retries is None
    assert {plan.unit(name).policies.grace for name in ("main", "main/solve", "main/tidy")} == {60.0}


def test_a_matrix_is_counted_and_its_values_are_kept_as_typed(plan):
    solve = plan.unit("main/solve")
    assert (solve.replicas, list(solve.matrix)) == (4, ["model", "rate"])
    assert [replica_values(solve, number) for number in range(4)] == [
        {"model": "a", "rate": "0.10"},
        {"model": "a", "rate": "0.01"},
        {"model": "b", "rate": "0.10"},
        {"model": "b", "rate": "0.01"},
    ]
    assert replica_values(plan.unit("report"), 0) == {}


def test_a_local_task_has_neither_image_nor_resources(plan):
    local = plan.unit("main/prepare")
    assert (local.local, local.image, local.alternatives, local.copies) == (True, None, (), (1,))


def test_edges_say_who_waits_for_whom(plan):
    edges = {(edge.unit, edge.after, edge.when) for edge in plan.edges}
    assert edges == {("report", "main", "success")}
    assert plan.unit("main/tidy").when == "always"


def test_a_unit_that_is_not_there_is_a_key_error(plan):
    with pytest.raises(KeyError):
        plan.unit("nobody")


def test_children_are_those_of_a_group_or_of_the_top(plan):
    assert [unit.id for unit in plan.children()] == ["main", "report"]
    assert [unit.name for unit in plan.children("main")] == ["prepare", "solve", "tidy"]


# -- digest and JSON ----------------------------------------------------------------------------------------


def test_the_digest_is_of_the_meaning_and_not_of_the_layout(plan):
    moved = loads("# a comment\n\n" + JOB.replace("{team: ocean}", "{ 'team': \"ocean\" }"))
    assert moved.plan().digest == plan.digest
    assert moved.plan().units != plan.units  # The lines differ.


@pytest.mark.parametrize(
    ("old", "new"), [("count: 2", "count: 3"), ("0.10", "0.1"), ("--fast", "--slow"), ("study", "studies")]
)
def test_another_meaning_has_another_digest(plan, old, new):
    assert loads(JOB.replace(old, new)).plan().digest != plan.digest


def test_the_same_document_always_makes_the_same_plan(plan):
    assert loads(JOB).plan() == plan
    assert loads(JOB).plan().to_json() == plan.to_json()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_plan_of_an_example_survives_its_json_form(path):
    from jobman.plan.build import build

    for job in load_jobs(Source(path.name, path.read_text(encoding="utf-8")), Site(), Problems()):
        assert job is not None
        made = build(job)
        again = plan_from_json(made.to_json())
        assert again == made
        assert again.to_json() == made.to_json()
        assert digest(again) == made.digest


def test_a_plan_of_another_version_is_refused(plan):
    with pytest.raises(PlanError, match="a plan of version 2; version 1 is understood"):
        plan_from_json(plan.to_json().replace(b'"version":1', b'"version":2'))


def test_a_plan_that_was_changed_is_refused(plan):
    with pytest.raises(PlanError, match="changed after it was made"):
        plan_from_json(plan.to_json().replace(b"--fast", b"--slow"))


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b"not json", b'{"version": "1"}', b'{"version": 1}', b"\xff", "{"]
)
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(PlanError, match="this is not a plan"):
        plan_from_json(text)


def test_the_json_form_leaves_out_what_is_not_set():
    plan = loads("version: 1\ntasks: [{command: a, resources: {type: node, count: 1}}]\n").plan()
    assert json.loads(plan.to_json()).keys() == {"version", "units", "features", "digest"}
    assert json.loads(plan.to_json())["units"] == [
        {"id": "task-1", "name": "task-1", "line": 2, "command": ["a"], "alternatives": [[{"nodes": 1}]]}
    ]


def test_a_plan_cannot_be_changed(plan):
    with pytest.raises(AttributeError):
        plan.name = "other"
    assert msgspec.structs.replace(plan, name="other").digest == plan.digest


AXES = """\
version: 1
tasks:
- name: solve
  matrix: {b: [x, y], a: [1, 2, 3]}
  command: ["solve", "{{a}}", "--{{ b }}", "{{.Names}}"]
  image: "solver:{{a}}"
  steps: [{name: write, path: "{{b}}.txt", content: "{{a}}"}]
  hooks: {before: ["mkdir", "{{b}}"]}
  result_file: "out-{{a}}"
  attributes: {environment: {SIZE: "n{{a}}"}, cwd: "/w/{{b}}", stdout: "{{a}}.log"}
  resources: {type: node, count: 1}
"""


def test_a_replica_has_its_axes_filled_in_wherever_they_may_stand():
    unit = for_replica(loads(AXES).plan().unit("solve"), 3)
    assert unit.command == ("solve", "2", "--y", "{{.Names}}")
    assert (unit.image, unit.cwd, unit.stdout) == ("solver:2", "/w/y", "2.log")
    assert unit.steps[0] == Write(path="y.txt", content="2")
    assert unit.policies.hooks is not None
    assert unit.policies.hooks.before == ("mkdir", "y")
    assert unit.policies.result_file == "out-2"
    assert unit.environment == {"a": "2", "b": "y", "SIZE": "n2"}


def test_every_combination_of_a_matrix_is_one_replica():
    unit = loads(AXES).plan().unit("solve")
    combinations = [tuple(replica_values(unit, number).items()) for number in range(unit.replicas)]
    assert combinations[:2] == [(("a", "1"), ("b", "x")), (("a", "1"), ("b", "y"))]
    assert len(set(combinations)) == 6
    with pytest.raises(IndexError, match="replicas 0 to 5"):
        replica_values(unit, 6)


def test_a_unit_without_a_matrix_is_the_same_for_every_replica():
    unit = (
        loads("version: 1\ntasks: [{command: a, replicas: 3, resources: {type: node, count: 1}}]\n")
        .plan()
        .units[0]
    )
    assert for_replica(unit, 2) is unit


NEIGHBOURS = """\
version: 1
coordinator: db
placement: {apart: [db]}
tasks:
- {name: db, command: a, resources: {type: node, count: 1}}
groups:
- name: g
  resources: {type: node, count: 2}
  coordinator: db/1
  network: {isolated: true}
  tasks:
  - {name: db, command: b, replicas: 2}
  - {name: near, command: c, placement: {near: [db]}}
"""


def test_names_in_placements_and_coordinators_are_units_of_the_place_they_were_written_in():
    plan = loads(NEIGHBOURS).plan()
    assert plan.coordinator == Coordinator("db")
    group = plan.unit("g")
    assert (group.coordinator, group.network) == (Coordinator("g/db", 1), Network(isolated=True))
    inherited = plan.unit("g/db").policies.placement
    own = plan.unit("g/near").policies.placement
    assert inherited is not None
    assert inherited.apart == Relation(tasks=("db",))
    assert own is not None
    assert own.near == Relation(tasks=("g/db",))


ORDER = """\
version: 1
groups:
- name: g
  resources: {type: node, count: 1}
  tasks:
  - {name: first, local: true, command: a}
  - {name: seen, command: b, attributes: {watch: true}}
  - {name: plain, command: c}
  - {name: sweep, when: always, local: true, command: d}
  - {name: alarm, when: failure, depends_on: [plain], command: e}
"""


def test_a_plan_says_what_holds_back_its_neighbours_and_what_comes_last():
    units = {unit.name: unit for unit in loads(ORDER).plan().units}
    assert [name for name, unit in units.items() if unit.blocks] == ["first", "seen"]
    assert [name for name, unit in units.items() if unit.cleanup] == ["sweep"]


def test_who_uses_a_feature_can_be_asked():
    plan = loads(ORDER).plan()
    assert [unit.id for unit in users(plan, "watch")] == ["g/seen"]
    assert [unit.id for unit in users(plan, "depends_on.failure")] == ["g/alarm"]
    assert users(plan, "ports") == []
    assert all(users(plan, feature) for feature in plan.features)


def test_a_class_is_called_class_in_a_plan():
    plan = loads(
        "version: 1\nruntime: kata\ntasks: [{command: a, resources: {type: node, count: 1}}]\n"
    ).plan()
    assert b'"runtime":{"class":"kata"}' in plan.to_json()
    assert plan_from_json(plan.to_json()) == plan


def test_a_word_that_no_document_could_hold_is_no_plan():
    text = (
        loads("version: 1\nrestart: never\ntasks: [{command: a, resources: {type: node, count: 1}}]\n")
        .plan()
        .to_json()
    )
    with pytest.raises(PlanError, match="this is not a plan"):
        plan_from_json(text.replace(b"never", b"banana"))
