"""Names of nodes: ranges, lists of ranges, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.spec.node_names import expand_list, expand_names, fold_names, names_of


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ("n1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("gpu[08-10,12]x", ("gpu08x", "gpu09x", "gpu10x", "gpu12x")),
        ("n[3-1]", None),
        ("n[1-", None),
        ("n[1-999999999]", None),
    ],
)
def test_a_range_stands_for_its_names(text, names):
    assert expand_names(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[1-2],gpu7", ("n1", "n2", "gpu7")),
        ("n[1,3], login", ("n1", "n3", "login")),
        ("n1,n[1-2]", ("n1", "n2")),
        ("n1,,n2", None),
        ("", None),
        ("n 1", None),
        ("-n1", None),
        ("n[1-2]],x", None),
    ],
)
def test_a_list_has_commas_between_ranges(text, names):
    assert expand_list(text) == names


def test_several_texts_are_one_set_of_names():
    assert names_of(["n[1-2]", "n2,m1"]) == ("n1", "n2", "m1")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["n1"], "n1"),
        (["n1", "n2", "n3", "n7"], "n[1-3,7]"),
        (["n3", "n1", "n2"], "n[1-3]"),
        (["login", "n08", "n09", "n10"], "login,n[08-10]"),
        (["rack1-n1", "rack1-n2", "rack2-n1"], "rack1-n[1-2],rack2-n1"),
        (["a1b", "a2b"], "a[1-2]b"),
    ],
)
def test_names_are_folded_for_people(names, text):
    assert fold_names(names) == text


NAMES = st.from_regex(r"[a-z]{1,3}-?[0-9]{0,4}[a-z]?", fullmatch=True)


@given(st.lists(NAMES))
def test_what_was_folded_unfolds(names):
    text = fold_names(names)
    assert set(expand_list(text) or ()) == set(names)
