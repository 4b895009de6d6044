"""Where not every image has room for a worker all have their turns."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.tasks.room import Amounts, share
from jobman.tasks.turns import Turns

ROOM = Amounts(4000)
LOOK, TURN = 0.5, 2.0


def played(needs: dict[str, Amounts], looks: int) -> list[set[str]]:
    """Who has workers at each look, where all always have work and workers come and go at once."""
    turns, found = Turns(TURN), []
    for look in range(looks):
        now = look * LOOK
        order = turns.order(needs, needs, now)
        shares = share(dict.fromkeys(order, 9), needs, ROOM)
        served = {image for image, count in shares.items() if count}
        turns.note(needs, served, served, now)
        found.append(served)
    return found


def test_nobody_loses_a_place_before_the_turn_is_over() -> None:
    turns = Turns(TURN)
    turns.note(["a", "b"], {"a"}, {"a"}, 0.0)
    assert turns.order(["a", "b"], ["a", "b"], 1.9) == ["a", "b"]
    assert turns.order(["a", "b"], ["a", "b"], 2.0) == ["b", "a"]


def test_a_turn_begins_with_the_first_worker() -> None:
    turns = Turns(TURN)
    turns.note(["a", "b"], {"a"}, set(), 0.0)
    turns.note(["a", "b"], {"a"}, {"a"}, 50.0)
    assert turns.order(["a", "b"], ["a", "b"], 51.0) == ["a", "b"]


def test_who_waits_longest_is_next_and_who_has_no_work_last() -> None:
    turns = Turns(TURN)
    turns.note(["a", "c"], {"a"}, {"a"}, 0.0)
    turns.note(["a", "b", "c"], {"a"}, {"a"}, 1.0)
    assert turns.order(["idle", "a", "b", "c"], ["a", "b", "c"], 9.0) == ["c", "b", "a", "idle"]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 8), min_size=1))
def test_everybody_comes_to_their_turn_again_and_again(sizes: dict[str, int]) -> None:
    needs = {image: Amounts(size * 500) for image, size in sizes.items()}
    # Each may have to wait for a turn of all others.
    rounds = int((len(needs) + 1) * TURN / LOOK)
    found = played(needs, 3 * rounds)
    for begin in range(0, 3 * rounds, rounds):
        assert set().union(*found[begin : begin + rounds]) == set(needs)
