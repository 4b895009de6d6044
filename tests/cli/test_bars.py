"""Load bars made of letters."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.cli.bars import bar, colour_of, letters_for


@pytest.mark.parametrize(
    ("used", "total", "wanted"),
    [
        (0, 8, "░░░░░░░░░░"),
        (4, 8, "█████░░░░░"),
        (8, 8, "██████████"),
        (1, 1000, "█░░░░░░░░░"),
        (999, 1000, "█████████░"),
        (9, 8, "██████████"),
        (0, 0, ""),
    ],
)
def test_a_bar_is_as_long_as_what_is_in_use(used, total, wanted):
    assert bar(used, total) == wanted


@given(st.floats(0, 1e6), st.floats(0.001, 1e6), st.integers(2, 60))
def test_a_bar_is_never_empty_or_full_without_reason(used, total, width):
    drawn = bar(used, total, width)
    assert len(drawn) == width
    assert ("█" in drawn) == (used > 0)
    assert ("░" in drawn) == (used < total)


def test_letters_are_those_that_a_stream_can_write():
    def stream(encoding):
        return io.TextIOWrapper(io.BytesIO(), encoding)

    assert letters_for(stream("utf-8")) == ("█", "░")
    assert letters_for(stream("latin-1")) == ("#", "-")


def test_a_full_node_is_red():
    assert [colour_of(used, 8) for used in (0, 1, 8)] == ["", "yellow", "red"]
