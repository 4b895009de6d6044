"""Workers never need more than a machine has, and where they want more it is shared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.tasks.room import USUAL, Amounts, WrongResources, lacking, needs_of, share, times_in, without

GI = 2**30
NEEDS = st.builds(Amounts, st.integers(1, 4000), st.integers(0, 4), st.integers(0, 2))
ROOMS = st.builds(Amounts, st.integers(4000, 16000), st.integers(4, 16), st.integers(2, 4))
"""Every worker has room alone: others are not asked for."""
WANTED = st.lists(st.tuples(st.integers(1, 20), NEEDS), max_size=8)


def total(found: dict[str, int], needs: dict[str, Amounts]) -> Amounts:
    return Amounts(*(sum(found[each] * needs[each][kind] for each in found) for kind in range(3)))


def named(asked: list[tuple[int, Amounts]]) -> tuple[dict[str, int], dict[str, Amounts]]:
    wanted = {str(number): count for number, (count, _) in enumerate(asked)}
    return wanted, {str(number): needs for number, (_, needs) in enumerate(asked)}


# -- what a worker needs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "needs"),
    [
        ({}, USUAL),
        ({"memory": "1Gi"}, Amounts(1000, GI)),
        ({"cpu": "500m", "gpu": "2"}, Amounts(500, 0, 2)),
        ({"cpu": "1.5", "memory": "64M", "nvidia.com/gpu": "1"}, Amounts(1500, 64_000_000, 1)),
    ],
)
def test_resources_are_written_as_at_a_site(resources: dict[str, str], needs: Amounts) -> None:
    assert needs_of(resources) == needs


@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("cores", "2"),
        ("cpu", "two"),
        ("cpu", "0"),
        ("cpu", "-1"),
        ("cpu", "0.0001"),
        ("gpu", "0.5"),
        ("memory", "1GB"),
    ],
)
def test_what_cannot_be_given_is_refused_with_its_place(name: str, amount: str) -> None:
    with pytest.raises(WrongResources) as caught:
        needs_of({name: amount})
    assert caught.value.place == f"{name}={amount}"
    assert f"`{name}={amount}`" in str(caught.value)
    assert "cpu=2" in caught.value.advice


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (Amounts(2000, GI), ""),
        (Amounts(2500), "a worker needs 2.5 cores, and this machine has 2 cores"),
        (Amounts(1000, 3 * GI), "a worker needs 3Gi of memory, and this machine has 1Gi of memory"),
        (Amounts(1000, 0, 1), "a worker needs 1 GPU, and this machine has no GPUs"),
    ],
)
def test_what_is_lacking_is_said(needs: Amounts, words: str) -> None:
    assert lacking(needs, Amounts(2000, GI)) == words


# -- who gets it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "cores", "found"),
    [
        ({"a": 8}, 4, {"a": 4}),
        ({"a": 8, "b": 1}, 4, {"a": 3, "b": 1}),
        ({"a": 3, "b": 3}, 4, {"a": 2, "b": 2}),
        ({"a": 1, "b": 1, "c": 1}, 2, {"a": 1, "b": 1, "c": 0}),
        ({}, 2, {}),
    ],
)
def test_cores_are_shared(wanted: dict[str, int], cores: int, found: dict[str, int]) -> None:
    assert share(wanted, dict.fromkeys(wanted, USUAL), Amounts(cpu=cores * 1000)) == found


def test_who_needs_more_has_fewer() -> None:
    needs = {"large": Amounts(2000), "small": Amounts(500)}
    assert share({"large": 8, "small": 8}, needs, Amounts(4000)) == {"large": 1, "small": 4}


def test_what_nobody_else_wants_is_not_shared() -> None:
    needs = {"computes": Amounts(1000), "draws": Amounts(500, 0, 1)}
    assert share({"draws": 4, "computes": 4}, needs, Amounts(4000, 0, 2)) == {"draws": 2, "computes": 3}


def test_for_who_has_to_wait_is_kept_what_there_is_of_it() -> None:
    needs = {"first": Amounts(1000), "whole": Amounts(4000), "next": Amounts(1000)}
    wanted = {"first": 1, "whole": 1, "next": 1}
    assert share(wanted, needs, Amounts(4000)) == {"first": 1, "whole": 0, "next": 0}
    assert share(wanted, needs, Amounts(4000), idle={"whole"}) == {"first": 1, "whole": 0, "next": 1}


@given(WANTED, ROOMS)
def test_never_more_than_there_is_room_for_nor_than_are_wanted(
    asked: list[tuple[int, Amounts]], room: Amounts
) -> None:
    wanted, needs = named(asked)
    found = share(wanted, needs, room)
    assert all(has >= used for used, has in zip(total(found, needs), room, strict=True))
    assert all(0 <= found[image] <= wanted[image] for image in wanted)
    assert list(found) == list(wanted)


@given(WANTED.filter(bool), ROOMS)
def test_the_first_has_one_and_nobody_who_came_later_takes_it(
    asked: list[tuple[int, Amounts]], room: Amounts
) -> None:
    wanted, needs = named(asked)
    assert share(wanted, needs, room)["0"] >= 1


@given(WANTED, ROOMS)
def test_nothing_lies_idle_that_somebody_wants_where_nobody_has_to_wait(
    asked: list[tuple[int, Amounts]], room: Amounts
) -> None:
    wanted, needs = named(asked)
    found = share(wanted, needs, room)
    left = without(room, total(found, needs))
    if all(found.values()):
        assert not any(found[image] < wanted[image] and times_in(needs[image], left) for image in wanted)


@given(WANTED, ROOMS)
def test_all_that_is_wanted_where_there_is_room(asked: list[tuple[int, Amounts]], room: Amounts) -> None:
    wanted, needs = named(asked)
    enough = total(wanted, needs)
    larger = Amounts(*map(max, room, enough))
    assert share(wanted, needs, larger) == wanted
