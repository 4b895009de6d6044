"""Blocks: which nodes they take, when, and who may run in them."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.blocks import Block, clash, difference, give_way, on_nodes


def window(start=100.0, end=200.0, nodes=(), name="repair/2026-11-16"):
    return Block(name=name, start=start, end=end, nodes=tuple(nodes), kind="maintenance")


def reservation(start=100.0, end=200.0, nodes=(), name="course/2026-11-16", **more):
    return Block(name=name, start=start, end=end, nodes=tuple(nodes), kind="reservation", **more)


def test_a_block_knows_what_it_is_an_occurrence_of():
    assert window().definition == "repair"


def test_without_names_and_count_every_node_is_taken():
    assert window().takes_all
    assert on_nodes(window(), ["n1", "n2"]) == ("n1", "n2")


def test_named_nodes_are_taken_as_far_as_they_are_there():
    assert on_nodes(window(nodes=["n2", "n9"]), ["n1", "n2"]) == ("n2",)


def test_of_counted_nodes_none_is_known_by_name():
    block = reservation(count=2)
    assert not block.takes_all
    assert on_nodes(block, ["n1", "n2", "n3"]) == ()


@pytest.mark.parametrize(("moment", "holds"), [(99.9, False), (100.0, True), (199.9, True), (200.0, False)])
def test_the_end_is_free_again(moment, holds):
    assert window().holds_at(moment) is holds


@pytest.mark.parametrize(
    ("start", "end", "meets"), [(0, 100, False), (0, 101, True), (199, 300, True), (200, 300, False)]
)
def test_spans_that_only_touch_do_not_meet(start, end, meets):
    assert window().meets(start, end) is meets


def test_a_block_may_have_no_end():
    block = window(end=inf)
    assert block.is_open_ended
    assert block.holds_at(10.0**12)


# -- who may run in a reservation ----------------------------------------------------------------------------


def test_those_it_was_made_for_are_admitted_by_name():
    block = reservation(users=("ada",))
    assert block.admits("course", "ada")
    assert block.admits("course/2026-11-16", "ada")
    assert not block.admits("course", "bob")


def test_those_of_its_accounts_are_admitted():
    block = reservation(accounts=("physics",))
    assert block.admits("course", "bob", "physics")
    assert not block.admits("course", "bob", "")
    assert not block.admits("course", "bob", "chemistry")


def test_nobody_is_admitted_who_does_not_ask_for_it():
    assert not reservation(users=("ada",)).admits("", "ada")
    assert not reservation(users=("ada",)).admits("other", "ada")
    assert not reservation(users=("ada",)).admits("course/2026-11-17", "ada")


def test_maintenance_admits_nobody():
    assert not window().admits("repair", "ada")


# -- clashes -------------------------------------------------------------------------------------------------


def test_the_same_node_at_the_same_time_is_a_clash():
    assert clash(window(nodes=["n1", "n2"]), reservation(nodes=["n2"]))
    assert not clash(window(nodes=["n1"]), reservation(nodes=["n2"]))
    assert not clash(window(nodes=["n1"]), reservation(200.0, 300.0, nodes=["n1"]))


def test_what_takes_all_nodes_clashes_with_everything_of_its_time():
    assert clash(window(), reservation(nodes=["n1"]))
    assert clash(reservation(count=1), window())


def test_counted_nodes_may_be_others():
    assert not clash(reservation(count=1), reservation(nodes=["n1"]))


# -- reservations give way to maintenance --------------------------------------------------------------------

KNOWN = ("n1", "n2", "n3")


def left(block, *windows):
    return [
        (piece.name[-2:], piece.start, piece.end, piece.nodes) for piece in give_way(block, windows, KNOWN)
    ]


def test_without_maintenance_a_reservation_stays_as_it_is():
    block = reservation(nodes=["n1"])
    assert give_way(block, [], KNOWN) == [block]
    assert give_way(block, [window(200.0, 300.0), window(nodes=["n2"])], KNOWN) == [block]


def test_maintenance_of_all_its_nodes_cuts_a_reservation_in_two():
    assert left(reservation(nodes=["n1", "n2"]), window(120.0, 130.0)) == [
        ("16", 100.0, 120.0, ("n1", "n2")),
        ("+1", 130.0, 200.0, ("n1", "n2")),
    ]


def test_maintenance_of_some_of_its_nodes_leaves_it_the_others():
    assert left(reservation(nodes=["n1", "n2"]), window(0.0, 150.0, nodes=["n1"])) == [
        ("16", 100.0, 150.0, ("n2",)),
        ("+1", 150.0, 200.0, ("n1", "n2")),
    ]


def test_maintenance_all_the_time_leaves_nothing():
    assert left(reservation(nodes=["n1"]), window(0.0, inf)) == []
    assert left(reservation(count=2), window(0.0, 300.0)) == []


def test_counted_nodes_are_still_counted_in_what_is_left():
    pieces = give_way(reservation(count=2), [window(120.0, 130.0)], KNOWN)
    assert [(piece.start, piece.end, piece.count, piece.nodes) for piece in pieces] == [
        (100.0, 120.0, 2, ()),
        (130.0, 200.0, 2, ()),
    ]
    assert give_way(reservation(count=2), [window(120.0, 130.0, nodes=["n1"])], KNOWN) == [
        reservation(count=2)
    ]


def test_a_reservation_of_all_nodes_names_those_that_are_left():
    assert left(reservation(), window(150.0, 300.0, nodes=["n2"])) == [
        ("16", 100.0, 150.0, KNOWN),
        ("+1", 150.0, 200.0, ("n1", "n3")),
    ]


def test_those_who_may_use_it_may_use_every_piece():
    pieces = give_way(reservation(users=("ada",)), [window(120.0, 130.0)], KNOWN)
    assert all(piece.admits("course", "ada") for piece in pieces)
    assert all(piece.admits("course/2026-11-16", "ada") for piece in pieces)


SPANS = st.tuples(st.integers(0, 40), st.integers(1, 20)).map(lambda span: (span[0], span[0] + span[1]))
SOME = st.lists(st.sampled_from(KNOWN), unique=True, min_size=1)


@given(SPANS, SOME, st.lists(st.tuples(SPANS, SOME)))
def test_every_node_is_reserved_at_every_moment_unless_it_is_maintained(span, nodes, maintained):
    block = reservation(float(span[0]), float(span[1]), nodes)
    windows = [window(float(a), float(b), some) for (a, b), some in maintained]
    pieces = give_way(block, windows, KNOWN)
    assert all(early.end <= late.start for early, late in pairwise(pieces))
    for moment in range(70):
        for node in KNOWN:
            is_held = any(piece.holds_at(moment) and piece.covers(node) for piece in pieces)
            is_free = not any(each.holds_at(moment) and each.covers(node) for each in windows)
            assert is_held is (block.holds_at(moment) and node in nodes and is_free)


# -- what changes --------------------------------------------------------------------------------------------


def test_the_difference_names_what_goes_and_what_comes():
    same, old, new = window(name="a/1"), window(name="b/1"), window(name="b/1", end=300.0)
    gone, come = difference({"a/1": same, "b/1": old, "c/1": window(name="c/1")}, [same, new])
    assert (gone, come) == (["b/1", "c/1"], [new])


def test_without_a_change_there_is_no_difference():
    assert difference({"a/1": window(name="a/1")}, [window(name="a/1")]) == ([], [])
