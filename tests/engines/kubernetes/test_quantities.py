"""Amounts as Kubernetes writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.engines.kubernetes.quantities import (
    format_quantity,
    in_bytes,
    largest,
    named,
    parse_amounts,
    parse_quantity,
    spoken,
    total,
)

WRITTEN = {
    "0": 0,
    "2": 2,
    "500m": Fraction(1, 2),
    "1.5": Fraction(3, 2),
    ".5": Fraction(1, 2),
    "5.": 5,
    "+3": 3,
    "-1": -1,
    "100n": Fraction(1, 10**7),
    "7u": Fraction(7, 10**6),
    "1k": 1000,
    "1M": 10**6,
    "2G": 2 * 10**9,
    "3E": 3 * 10**18,
    "1Ki": 1024,
    "1.5Gi": 3 * 2**29,
    "2Ei": 2**61,
    "12e6": 12 * 10**6,
    "12E6": 12 * 10**6,
    "1e-3": Fraction(1, 1000),
}


@pytest.mark.parametrize(("written", "amount"), WRITTEN.items())
def test_every_way_of_writing_an_amount_is_read_exactly(written, amount):
    assert parse_quantity(written) == amount


def test_numbers_that_stand_in_the_json_are_taken_as_they_are():
    assert parse_quantity(2) == 2
    assert parse_quantity(0.1) == Fraction(1, 10)


@pytest.mark.parametrize("written", ["", "two", "1 Gi", "1gi", "1K", "1e", "0x10", "1Gi2", "--1", "١"])
def test_what_is_no_amount_is_refused_with_an_example(written):
    with pytest.raises(ValueError, match="write a number such as"):
        parse_quantity(written)


@given(st.integers(-(10**21), 10**21))
def test_what_is_written_is_read_back_the_same(nanos):
    amount = Fraction(nanos, 10**9)
    assert parse_quantity(format_quantity(amount)) == amount
    assert parse_quantity(format_quantity(amount, binary=True)) == amount


@pytest.mark.parametrize(
    ("amount", "binary", "written"),
    [
        (Fraction(1, 2), False, "500m"),
        (Fraction(2000), False, "2k"),
        (Fraction(2048), True, "2Ki"),
        (Fraction(3 * 2**29), True, "1536Mi"),
        (Fraction(1000), True, "1000"),
        (Fraction(1, 3 * 10**9), False, "1n"),
        (Fraction(0), True, "0"),
    ],
)
def test_amounts_are_written_with_the_largest_unit_that_loses_nothing(amount, binary, written):
    assert format_quantity(amount, binary=binary) == written


def test_amounts_are_summed_and_compared_resource_by_resource():
    one, other = parse_amounts({"cpu": "500m", "memory": "1Gi"}), parse_amounts({"cpu": "2"})
    assert total([one, other]) == {"cpu": Fraction(5, 2), "memory": 2**30}
    assert largest([one, other]) == {"cpu": 2, "memory": 2**30}
    assert total([]) == {}


def test_people_read_bytes_in_binary_units_and_never_more_than_there_is():
    assert spoken("memory", Fraction(24684100 * 1024)) == "23.5Gi"
    assert spoken("memory", Fraction(1999, 1000) * 2**30) == "1.99Gi"
    assert spoken("requests.ephemeral-storage", Fraction(2**20)) == "1Mi"
    assert spoken("memory", Fraction(512)) == "512"
    assert spoken("cpu", Fraction(1, 2)) == "0.5"
    assert spoken("cpu", Fraction(5, 2)) == "2.5"
    assert spoken("nvidia.com/gpu", Fraction(1234)) == "1234"


def test_amounts_are_named_after_what_they_are_of():
    assert named("cpu", Fraction(1)) == "1 core"
    assert named("requests.cpu", Fraction(3, 2)) == "1.5 cores"
    assert named("limits.memory", Fraction(2**30)) == "1Gi of memory"
    assert named("amd.com/gpu", Fraction(2)) == "2 amd.com/gpu"


def test_bytes_are_told_from_counts_by_the_name_of_the_resource():
    assert all(map(in_bytes, ["memory", "ephemeral-storage", "hugepages-2Mi", "limits.memory", "storage"]))
    assert not any(map(in_bytes, ["cpu", "pods", "nvidia.com/gpu", "requests.cpu"]))
