"""Versions are compared as people mean them, and ranges hold what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.tasks.versions import Range, version

NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4)


def text_of(numbers: list[int]) -> str:
    return ".".join(map(str, numbers))


@given(NUMBERS, NUMBERS)
def test_numbers_decide(one: list[int], other: list[int]) -> None:
    width = max(len(one), len(other))
    a, b = (numbers + [0] * (width - len(numbers)) for numbers in (one, other))
    assert (version(text_of(one)) < version(text_of(other))) == (a < b)
    assert (version(text_of(one)) == version(text_of(other))) == (a == b)


@given(NUMBERS, NUMBERS)
def test_a_range_between_two_holds_what_is_between(one: list[int], other: list[int]) -> None:
    low, high = sorted((one, other), key=lambda numbers: version(text_of(numbers)))
    span = Range(f">={text_of(low)},<{text_of(high)}")
    assert (text_of(low) in span) == (version(text_of(low)) < version(text_of(high)))
    assert text_of(high) not in span


@pytest.mark.parametrize(
    ("text", "holds", "lacks"),
    [
        ("*", ["1", "20.3"], []),
        ("2", ["2", "2.0", "v2"], ["2.1", "3"]),
        ("2.x", ["2", "2.0", "2.9.1"], ["3", "1.9", "20"]),
        ("2.0.x", ["2", "2.0.7"], ["2.1"]),
        (">=2.1, <3", ["2.1", "2.10", "2.99"], ["2", "3", "3.0"]),
        ("!=2.3,2.x", ["2.2", "2.4"], ["2.3", "2.3.0"]),
        (">2", ["2.0.1", "10"], ["2", "2.0"]),
    ],
)
def test_what_a_range_holds(text: str, holds: list[str], lacks: list[str]) -> None:
    span = Range(text)
    assert [each for each in (*holds, *lacks) if each in span] == holds


@pytest.mark.parametrize("text", ["", " ", ">=", "2 3", ">=<2", ","])
def test_what_is_no_range_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="range"):
        Range(text)
