"""Names and labels: what a cluster takes, and no two things called the same."""

import re

from hypothesis import given
from hypothesis import strategies as st

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.names import Naming
from tests.engines.kubernetes.objects_of import ID, SMALL, plan_of

HOST = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def plan(*tasks, name=None):
    top = f"name: {name}\n" if name else ""
    listed = "".join(f"- {{name: '{task}', command: [echo], resources: {SMALL}}}\n" for task in tasks)
    return plan_of(f"version: 1\n{top}tasks:\n{listed}")


def test_a_job_is_called_by_its_name_and_the_beginning_of_its_id():
    assert Naming(plan("a", "b", name="climate"), ID).job == "climate-012345"


def test_a_job_without_a_name_is_called_by_its_only_task():
    assert Naming(plan("fit"), ID).job == "fit-012345"
    assert Naming(plan("a", "b"), ID).job == "job-012345"


def test_a_task_stands_between_the_name_and_the_id():
    found = plan("fit", "plot", name="climate")
    assert Naming(found, ID).task(found.units[1]) == "climate-plot-012345"
    assert Naming(found, ID).task(found.units[0], 3, 1) == "climate-fit-012345-3-1"


def test_names_that_a_cluster_does_not_tell_apart_get_a_digest():
    found = plan("a.b", "a-b", "A_B", "c")
    called = [Naming(found, ID).task(unit) for unit in found.units]
    assert len(set(called)) == 4
    assert called[3] == "job-c-012345"


def test_a_long_name_leaves_room_for_what_follows():
    found = plan("t" * 63, "u", name="n" * 63)
    called = Naming(found, ID).task(found.units[0], 99999)
    assert len(called) <= names.LONGEST_NAME
    assert HOST.fullmatch(called)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True))
def test_every_name_of_the_language_becomes_the_name_of_a_host(name):
    found = plan(name, "other", name="7")
    called = Naming(found, ID).task(found.units[0], 7)
    assert HOST.fullmatch(called)
    assert len(f"{called}-99999-abcde") <= 63


@given(st.text(max_size=200))
def test_every_text_becomes_a_label(text):
    assert names.is_label_value(names.label_value(text))


@given(st.text(max_size=80), st.text(max_size=80))
def test_labels_of_different_texts_differ(one, other):
    assert (names.label_value(one) == names.label_value(other)) is (one == other)


def test_what_is_a_label_already_stays_as_it_is():
    assert names.label_value("ada.l_1-x") == "ada.l_1-x"
    assert (
        names.label_value("ada@example.org") == "ada-example.org-" + names.label_value("ada@example.org")[-6:]
    )


def test_objects_of_a_cluster_have_small_letters():
    assert names.is_object_name("fast.storage-1")
    assert not names.is_object_name("Fast")
    assert not names.is_object_name("fast_one")
    assert not names.is_object_name("")
