"""What engines say of each feature, and who is told that something cannot be had."""

import pytest

from jobman.api import loads
from jobman.engines.base import Refused
from jobman.engines.features import native, refusals, refused
from jobman.engines.local.features import refusals as local_refusals
from jobman.engines.matrix import MATRIX
from jobman.plan.features import CATALOGUE

ONE = "resources: {type: node, count: 1}"


def plan(text):
    spec = loads(f"version: 1\n{text}")
    assert [problem for problem in spec.problems if problem.severity == "error"] == []
    return spec.plan()


def task(more):
    return plan(f"tasks: [{{name: a, command: ./run, {ONE}, {more}}}, {{name: b, command: ./run, {ONE}}}]\n")


def names(found):
    return [(each.feature, each.units) for each in found]


@pytest.mark.parametrize("engine", list(MATRIX))
def test_an_engine_says_of_every_feature_how_it_realises_it(engine):
    assert list(MATRIX[engine]) == [feature.id for feature in CATALOGUE]


@pytest.mark.parametrize("engine", list(MATRIX))
def test_what_is_not_native_is_explained(engine):
    silent = [name for name, each in MATRIX[engine].items() if each.how != "native" and not each.note]
    assert silent == []


def test_a_refusal_names_the_feature_its_users_and_a_way_out():
    table = {feature.id: native() for feature in CATALOGUE} | {"replicas": refused("once is enough")}
    assert refusals(task("replicas: 3"), table) == [Refused("replicas", ("a",), "once is enough")]
    assert refusals(task("retries: 3"), table) == []


def test_what_the_document_itself_asks_for_has_no_units():
    table = {feature.id: native() for feature in CATALOGUE} | {"owner": refused("nobody owns anything")}
    found = refusals(plan(f"owner: me\ntasks: [{{command: ./run, {ONE}}}]\n"), table)
    assert found == [Refused("owner", (), "nobody owns anything")]


# -- the local engine ---------------------------------------------------------------------------------------


def test_a_plain_document_runs_on_this_machine():
    assert local_refusals(task("retries: 2, ports: 80, placement: {apart: b}")) == []


@pytest.mark.parametrize(
    ("more", "feature"),
    [
        ("scheduler: other", "scheduler"),
        ("runtime: gvisor", "runtime.class"),
        ("identity: robot", "identity"),
        ("devices: [gpu.example.org]", "devices"),
        ("volumes: [{name: v, kind: claim, claim: c, to: /v}]", "volumes.claim"),
        ("volumes: [{name: v, kind: nfs, server: s, path: /a, to: /v}]", "volumes.nfs"),
    ],
)
def test_what_needs_a_cluster_is_refused_here(more, feature):
    assert names(local_refusals(task(more))) == [(feature, ("a",))]


def test_flags_of_other_engines_are_not_in_the_way():
    flags = "{slurm: [--x], flux: [--y], kubernetes: {hostNetwork: true}}"
    assert local_refusals(task(f"attributes: {{flags: {flags}}}")) == []


def test_a_task_that_outgrows_its_group_is_refused():
    text = (
        "groups: [{name: g, resources: {type: node, count: 1}, tasks: [{name: t, command: a, "
        "resources: {type: node, count: 2}}]}]\n"
    )
    assert names(local_refusals(plan(text))) == [("group.grow", ("g/t",))]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("runtime: {os: linux}", []),
        ("runtime: {os: windows}", [("runtime.os", ("a",))]),
        ("volumes: [{name: v, kind: ephemeral, size: 1Gi, to: /v}]", []),
        (
            "volumes: [{name: v, kind: ephemeral, size: 1Gi, class: fast, to: /v}]",
            [("volumes.ephemeral", ("a",))],
        ),
    ],
)
def test_some_values_ask_for_too_much(more, found):
    assert names(local_refusals(task(more))) == found


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("security: {umask: '0027'}", []),
        ("security: {uid: 2147483}", [("security", ("a",))]),
        ("security: {gid: 2147483}", [("security", ("a",))]),
        ("security: {privileged: true}", [("security.privileged", ("a",))]),
        ("security: {uid: 2147483}, image: 'busybox:1'", []),
    ],
)
def test_only_root_becomes_somebody_else_without_a_container(more, found):
    assert names(local_refusals(task(more), root=False)) == found
    assert local_refusals(task(more), root=True) == []


def test_without_containers_an_image_does_not_help():
    asked = task("security: {uid: 2147483}, image: 'busybox:1'")
    assert names(local_refusals(asked, no_container=True, root=False)) == [("security", ("a",))]
