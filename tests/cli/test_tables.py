"""Tables that fit the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.cli.tables import Cell, Column, columns_of, cut, fold, render

COLUMNS = (Column("id"), Column("name", least=6), Column("state", rank=1), Column("why", rank=2, folds=True))
ROWS = [
    ("0f3a", "a-long-name-of-a-job", Cell("failed", "red"), "it was not to be, and nobody knows why"),
    ("77c0", "b", Cell("running", "cyan"), ""),
]


def test_with_room_everything_stands_in_one_line_each():
    assert render(COLUMNS, ROWS, None) == [
        "id    name                  state    why",
        "0f3a  a-long-name-of-a-job  failed   it was not to be, and nobody knows why",
        "77c0  b                     running",
    ]


def test_a_long_text_is_folded_between_words():
    assert render(COLUMNS, ROWS, 60) == [
        "id    name                  state    why",
        "0f3a  a-long-name-of-a-job  failed   it was not to be, and",
        "                                     nobody knows why",
        "77c0  b                     running",
    ]


def test_the_least_important_column_goes_first():
    assert render(COLUMNS, ROWS, 40)[0].split() == ["id", "name", "state"]
    assert render(COLUMNS, ROWS, 20)[0].split() == ["id", "name"]


def test_a_column_of_rank_0_stays_and_is_cut():
    lines = render(COLUMNS, ROWS, 12)
    assert lines[0].split() == ["id", "name"]
    assert lines[1] == "0f3a  a-lon…"


def test_a_column_in_which_nothing_stands_is_left_out():
    assert render(COLUMNS, [("1", "a", "", "")], None) == ["id  name", "1   a"]


def test_colours_change_nothing_but_colours():
    plain, painted = render(COLUMNS, ROWS, 80), render(COLUMNS, ROWS, 80, colour=True)
    assert "\x1b[31mfailed\x1b[0m" in painted[1]
    assert "\x1b" not in "".join(plain)


def test_wide_characters_take_two_columns():
    assert columns_of("漢字") == 4
    assert render((Column("a"), Column("b")), [("漢字", "x"), ("abcd", "y")], None)[1:] == [
        "漢字  x",
        "abcd  y",
    ]


def test_control_characters_cannot_play_tricks():
    assert render((Column("a"),), [("one\ntwo\x1b[31m\x07",)], None)[1] == "one⏎two�"


@pytest.mark.parametrize(("width", "wanted"), [(0, ""), (1, "…"), (4, "abc…"), (6, "abcdef"), (9, "abcdef")])
def test_a_text_is_cut_to_a_width(width, wanted):
    assert cut("abcdef", width) == wanted


def test_a_word_that_is_too_long_is_broken():
    assert fold("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]


@given(
    st.lists(st.tuples(*[st.text(max_size=40)] * 4), max_size=5),
    st.integers(min_value=24, max_value=120),
)
def test_no_line_is_wider_than_the_terminal(rows, width):
    for line in render(COLUMNS, rows, width):
        assert columns_of(line) <= width


@given(st.text(max_size=60), st.integers(min_value=2, max_value=20))
def test_folding_loses_nothing_but_spaces(text, width):
    assert "".join(fold(text, width)).replace(" ", "") == text.replace(" ", "")
