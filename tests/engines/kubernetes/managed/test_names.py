"""Names follow from an address, fit everywhere, and never stand for two things."""

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from jobman.engines.kubernetes.managed import names
from jobman.spec.names import NAME_PATTERN
from tests.engines.kubernetes.managed.orders_of import ID, order
from tests.engines.kubernetes.objects_of import plan_of, task

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
TASK_NAMES = st.from_regex(NAME_PATTERN, fullmatch=True) | st.sampled_from(
    ["a", "a-1", "1", "a.1", "A", "a-"]
)
STEPS = st.tuples(TASK_NAMES, st.integers(0, 99_999))
KEYS = st.lists(STEPS, min_size=1, max_size=4).map(
    lambda steps: "/".join(f"{name}.{index}" for name, index in steps)
)


def test_a_key_can_be_read_in_the_names_made_of_it():
    assert names.attempt_name_of((ID, "train.0/test-it.3", 2)) == f"train-0-test-it-3-{ID}-2"
    assert names.host_name(ID, "train.0/test-it.3", 1) == f"train-0-test-it-3-1.jobman-{ID}"


def test_the_name_of_an_attempt_is_that_of_its_order():
    first = order(plan_of(task()), attempt=3)
    assert names.attempt_name(first) == names.attempt_name_of(first.address) == f"a-0-{ID}-3"


def test_a_copy_keeps_its_host_name_from_attempt_to_attempt():
    plan = plan_of(task())
    assert len({names.host_label(order(plan, attempt=number).key, 0) for number in (1, 2, 3)}) == 1


def test_a_host_is_known_in_the_whole_cluster_by_its_full_name():
    found = names.full_host_name(ID, "a.0", 0, "lab", "cluster.local")
    assert found == f"a-0-0.jobman-{ID}.lab.svc.cluster.local"


@given(KEYS, st.integers(1, 99_999), st.integers(0, 9_999))
def test_names_are_labels_that_a_cluster_takes(key, attempt, copy):
    name = names.attempt_name_of((ID, key, attempt))
    assert len(name) <= 52
    assert LABEL.fullmatch(names.pod_name(name, copy))
    assert LABEL.fullmatch(names.host_label(key, copy))


@given(KEYS, KEYS, st.integers(0, 99), st.integers(0, 99))
def test_two_copies_never_have_one_name(key, other, copy, another):
    if (key, copy) != (other, another):
        assert names.host_label(key, copy) != names.host_label(other, another)
        one, two = (names.attempt_name_of((ID, each, 1)) for each in (key, other))
        assert names.pod_name(one, copy) != names.pod_name(two, another)


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("a-0.0", "a.0/0.0"),
        ("a_b.0", "a-b.0"),
        ("A.0", "a.0"),
        ("a.1.0", "a-1.0"),
        ("run-2.0", "run.2/0.0"),
        ("x" * 63 + ".1", "x" * 63 + ".2"),
    ],
)
def test_keys_that_look_alike_are_told_apart(key, other):
    assert names.host_label(key, 0) != names.host_label(other, 0)
    assert names.attempt_name_of((ID, key, 1)) != names.attempt_name_of((ID, other, 1))


def test_tasks_that_look_alike_are_exposed_by_different_names():
    found = {names.exposed_name(ID, unit) for unit in ("web", "Web", "g/web", "g-web", "w" * 60, "w" * 61)}
    assert len(found) == 6
    assert all(len(name) <= 63 and LABEL.fullmatch(name) for name in found)


def test_the_partners_of_a_pod_are_changed_by_its_labels():
    labels = {"a": "b", **names.connections(["one", "two"])}
    assert names.relabelled(labels, ["two", "three"]) == {
        "connect.jobman.io/one": None,
        "connect.jobman.io/three": "yes",
    }
    assert names.relabelled(labels, ["one", "two"]) == {}
