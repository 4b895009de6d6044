"""Explanations: each effective value with the level it came from and the line it stands in."""

# ruff: noqa: E501 - a document stands in one line

import pytest

from jobman.api import loads
from jobman.plan.explanation import explain
from jobman.settings import load_settings

JOB = """\
version: 1
attributes:
  duration: 4h
  environment: {A: document, B: document, C: document}
requires: {fabric: infiniband}
grace: 1m
image: example.org/base:1
resources:
  pair: {type: node, count: 2, requires: {disk: nvme}}
groups:
- name: main
  resources: pair
  attributes:
    environment:
      B: group
      C: group
  signal: USR1
  tasks:
  - name: first
    command: ./first
    retries: 2
    image: example.org/own:1
    attributes:
      environment: {C: task}
      cwd: /tmp
  - name: second
    command: ./second
    resources: {type: node, count: 1}
    requires:
      fabric: ethernet
- name: sum
  tasks:
  - {name: x, command: ./x, resources: {type: node, count: 1}}
  - {name: y, command: ./y, resources: {type: node, count: 1}}
"""


@pytest.fixture(scope="module")
def units():
    spec = loads(JOB)
    assert [problem.code for problem in spec.problems] == ["JS420"]  # `second` asks for another fabric
    assert spec.job is not None
    return {unit.id: unit for unit in explain(spec.job, spec.plan()).units}


def value(unit, key):
    (found,) = [each for each in unit.values if each.key == key]
    return found.value, found.level, found.name, found.line


@pytest.mark.parametrize(
    ("unit", "key", "expected"),
    [
        ("main/first", "duration", (14400.0, "document", "", 3)),
        ("main/first", "environment.A", ("document", "document", "", 4)),
        ("main/first", "environment.B", ("group", "group", "main", 15)),
        ("main/first", "environment.C", ("task", "task", "first", 24)),
        ("main/first", "cwd", ("/tmp", "task", "first", 25)),
        ("main/first", "image", ("example.org/own:1", "task", "first", 22)),
        ("main/second", "image", ("example.org/base:1", "document", "", 7)),
        ("main/first", "grace", (60.0, "document", "", 6)),
        ("main", "environment.C", ("group", "group", "main", 16)),
        ("main", "resources", ("pair", "document", "pair", 9)),
        ("main/first", "resources", ("2 nodes (whole)", "document", "pair", 9)),
        ("main/second", "resources", ("1 node (whole)", "task", "second", 28)),
        ("sum", "resources", ("2 nodes (whole)", "sum", "sum", 31)),
        ("main", "requires.disk", ("nvme", "document", "pair", 9)),
        ("main/second", "requires.fabric", ("ethernet", "task", "second", 30)),
        ("main", "requires.fabric", ("infiniband", "document", "", 5)),
    ],
)
def test_a_value_says_where_it_came_from(units, unit, key, expected):
    assert value(units[unit], key) == expected


def test_policies_of_the_thing_itself_say_so(units):
    retries, level, name, line = value(units["main/first"], "retries")
    assert (retries.limit, level, name, line) == (2, "task", "first", 21)
    assert [each.key for each in units["main/second"].values if each.key == "retries"] == []


def test_inherited_policies_say_who_gave_them(units):
    signal, level, name, line = value(units["main/second"], "signal")
    assert (signal.name, level, name, line) == ("USR1", "group", "main", 17)


def test_units_carry_their_own_line_parent_and_kind(units):
    assert [(unit.id, unit.kind, unit.parent, unit.line) for unit in units.values()] == [
        ("main", "group", None, 11),
        ("main/first", "task", "main", 19),
        ("main/second", "task", "main", 26),
        ("sum", "group", None, 31),
        ("sum/x", "task", "sum", 33),
        ("sum/y", "task", "sum", 34),
    ]


# -- settings -----------------------------------------------------------------------------------------------

SETTINGS = """\
default_flavor: tiny
default_image: example.org/site:1
flavors: [{name: tiny, resources: {requests: {cpu: 1}}}]
profiles: [{name: tools, attributes: {cwd: /tools}, requires: {a: b}, grace: 5s}]
"""


@pytest.fixture
def of_site(tmp_path):
    (tmp_path / "settings.yaml").write_text(SETTINGS)

    def explained(text):
        spec = loads(text, settings=load_settings(tmp_path / "settings.yaml"))
        assert spec.problems == []
        assert spec.job is not None
        return explain(spec.job, spec.plan()).units[0]

    return explained


def test_the_default_flavor_is_named_as_the_origin_of_the_shape(of_site):
    unit = of_site("version: 1\ntasks: [{command: a}]\n")
    assert value(unit, "resources") == ("1 core", "default", "tiny", 0)


def test_a_flavor_that_was_asked_for_is_named_too(of_site):
    unit = of_site("version: 1\ntasks:\n- command: a\n  resources: tiny\n")
    assert value(unit, "resources") == ("tiny", "flavor", "tiny", 0)


def test_the_settings_are_named_as_the_origin_of_an_image(of_site):
    assert value(of_site("version: 1\ntasks: [{command: a}]\n"), "image") == (
        "example.org/site:1",
        "settings",
        "",
        0,
    )


@pytest.mark.parametrize(("key", "expected"), [("cwd", "/tools"), ("grace", 5.0), ("requires.a", "b")])
def test_a_profile_is_named_as_the_origin_of_what_it_brings(of_site, key, expected):
    unit = of_site("version: 1\nprofiles: tools\ntasks: [{command: a}]\n")
    assert value(unit, key) == (expected, "profile", "tools", 0)


# -- the whole ----------------------------------------------------------------------------------------------


def whole(text):
    spec = loads(text)
    assert spec.job is not None
    return explain(spec.job, spec.plan())


def test_replicas_count_as_often_as_parallelism_lets_them():
    text = (
        "version: 1\ntasks: [{command: a, replicas: 10, parallelism: 3, resources: {type: node, count: 2}}]\n"
    )
    at_once = whole(text).at_once
    assert at_once.nodes == 6


def test_a_group_counts_its_allocation_and_not_what_runs_inside():
    text = (
        "version: 1\ngroups: [{name: g, replicas: 2, resources: {type: node, count: 4}, "
        "tasks: [{command: a}, {command: b, replicas: 3, resources: {type: node, count: 1}}]}]\n"
    )
    at_once = whole(text).at_once
    assert at_once.nodes == 8


def test_the_preferred_shape_is_counted():
    text = "version: 1\nresources: {x: {type: node, count: 5}, y: {type: node, count: 1}}\ntasks: [{command: a, resources: x|y}]\n"
    explanation = whole(text)
    assert explanation.at_once.nodes == 5
    assert explanation.units[0].copies == (5, 1)


def test_waiting_names_the_condition_unless_it_is_success():
    text = (
        "version: 1\nresources: {one: {type: node, count: 1}}\ntasks:\n- {name: a, command: a, resources: one}\n"
        "- {name: b, command: b, resources: one, depends_on: a}\n"
        "- {name: c, command: c, resources: one, depends_on: [{name: a, when: any}]}\n"
    )
    assert [unit.waits_for for unit in whole(text).units] == [(), ("a",), ("a (any)",)]


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ("local: true", "local task"),
        ("service: true, resources: {type: core, count: 1}", "service"),
        ("when: always", "task"),
    ],
)
def test_kinds_of_tasks_are_told_apart(extra, kind):
    text = f"version: 1\ngroups: [{{name: g, resources: {{type: node, count: 1}}, tasks: [{{command: a, {extra}}}, {{command: b}}]}}]\n"
    assert whole(text).units[1].kind == kind


def test_features_come_with_their_titles():
    explanation = whole("version: 1\ntasks: [{command: a, resources: {type: core, count: 1}}]\n")
    assert [(feature.id, feature.section) for feature in explanation.features] == [
        ("command", 2),
        ("shape.anywhere", 4),
        ("shape.core", 4),
    ]
