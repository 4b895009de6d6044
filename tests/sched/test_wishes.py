"""Placements: labels, near, apart, spread and exclusive, with nodes that have names and racks."""

import pytest

from jobman.plan.nodes import ClusterNode
from jobman.sched.placement import Evenly, Neighbours, Pool, Wishes, wishes_for
from jobman.spec.placement import Placement, Relation, Spread
from jobman.spec.shapes import Part

ONE = ((Part(slots=1, each={"core": 1}),),)


def pool_of(cluster):
    return Pool(cluster)


def within(group, cluster):
    return Pool.within(group, cluster)


def racks(*sizes, cores=4):
    """`a0 a1 …` in rack a, `b0 …` in rack b, and so on."""
    return [
        ClusterNode(name=f"{rack}{number}", amounts={"core": cores}, labels={"rack": rack})
        for rack, size in zip("abcdef", sizes, strict=False)
        for number in range(size)
    ]


def slots(count):
    return ((Part(slots=count, each={"core": 1}),),)


def whole_nodes(count):
    return ((Part(nodes=count),),)


def names(pool, alternatives, **wishes):
    found = pool.place(alternatives, Wishes(**wishes))
    return None if found is None else [slot.node for slot in found.slots]


def test_labels_narrow_the_nodes():
    assert names(pool_of(racks(1, 1)), ONE, labels={"rack": "b"}) == ["b0"]
    assert names(pool_of(racks(1, 1)), ONE, labels={"rack": "z"}) is None


# -- near and apart -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "required", "place"),
    [("node", True, "b1"), ("node", False, "b1"), ("rack", True, "b0"), ("rack", False, "b0")],
)
def test_near_is_on_the_same_node_or_in_the_same_rack(by, required, place):
    assert names(pool_of(racks(2, 2)), ONE, near=Neighbours(("b1",), by, required)) == [place]


def test_near_that_is_a_wish_only_gives_way():
    pool = pool_of(racks(1, 1))
    pool.place(whole_nodes(1), Wishes(labels={"rack": "b"}))
    assert names(pool, ONE, near=Neighbours(("b0",))) is None
    assert names(pool, ONE, near=Neighbours(("b0",), required=False)) == ["a0"]


def test_near_to_copies_that_do_not_run_is_anywhere():
    assert names(pool_of(racks(1, 1)), ONE, near=Neighbours()) == ["a0"]


def test_copies_near_each_other_share_a_rack_that_has_room_for_all():
    assert names(pool_of(racks(2, 3, cores=1)), slots(3), near=Neighbours(by="rack", own=True)) == [
        "b0",
        "b1",
        "b2",
    ]
    wish = Neighbours(by="rack", own=True, required=False)
    assert names(pool_of(racks(2, 2, cores=1)), slots(3), near=wish) == ["a0", "a1", "b0"]
    assert names(pool_of(racks(2, 2, cores=1)), slots(3), near=Neighbours(by="rack", own=True)) is None


@pytest.mark.parametrize(("by", "place"), [("node", "a1"), ("rack", "b0")])
def test_apart_is_on_another_node_or_in_another_rack(by, place):
    assert names(pool_of(racks(2, 2)), ONE, apart=Neighbours(("a0",), by)) == [place]


def test_apart_that_is_a_wish_only_gives_way():
    assert names(pool_of(racks(1)), ONE, apart=Neighbours(("a0",))) is None
    assert names(pool_of(racks(1)), ONE, apart=Neighbours(("a0",), required=False)) == ["a0"]


def test_copies_apart_from_each_other_are_one_to_a_node():
    assert names(pool_of(racks(3)), slots(3), apart=Neighbours(own=True)) == ["a0", "a1", "a2"]
    assert names(pool_of(racks(2)), slots(3), apart=Neighbours(own=True)) is None
    assert names(pool_of(racks(2)), slots(3), apart=Neighbours(own=True, required=False)) == [
        "a0",
        "a0",
        "a1",
    ]


def test_nodes_apart_by_rack_are_in_different_racks():
    assert names(pool_of(racks(2, 2)), whole_nodes(2), apart=Neighbours(by="rack", own=True)) == ["a0", "b0"]
    assert names(pool_of(racks(2, 2)), whole_nodes(3), apart=Neighbours(by="rack", own=True)) is None


def test_slots_that_a_shape_keeps_on_one_node_are_not_torn_apart():
    pool = pool_of(racks(2))
    asked = ((Part(nodes=2, slots=2, each={"core": 1}),),)
    assert names(pool, asked, apart=Neighbours(own=True)) == ["a0", "a0", "a1", "a1"]


# -- spread -------------------------------------------------------------------------------------------------


def test_spread_divides_copies_over_racks_of_any_size():
    found = names(pool_of(racks(3, 1)), slots(6), spread=Evenly("rack"))
    assert [sum(name.startswith(rack) for name in found) for rack in "ab"] == [3, 3]


@pytest.mark.parametrize(("skew", "count"), [(1, 3), (2, 4)])
def test_spread_stops_where_the_difference_would_be_too_large(skew, count):
    nodes = [*racks(1, cores=8), ClusterNode(name="b0", amounts={"core": 1}, labels={"rack": "b"})]
    assert len(names(pool_of(nodes), slots(count), spread=Evenly("rack", skew))) == count
    assert names(pool_of(nodes), slots(count + 1), spread=Evenly("rack", skew)) is None
    assert len(names(pool_of(nodes), slots(9), spread=Evenly("rack", required=False))) == 9


def test_spread_counts_copies_that_are_there_already():
    assert names(pool_of(racks(1, 1)), ONE, spread=Evenly("rack", placed=("a0",))) == ["b0"]


def test_spread_needs_nodes_that_say_where_they_are():
    nowhere = [ClusterNode(name="n0", amounts={"core": 4})]
    assert names(pool_of(nowhere), ONE, spread=Evenly("rack")) is None
    assert names(pool_of(nowhere), ONE, spread=Evenly("rack", required=False)) == ["n0"]
    assert names(pool_of(nowhere), slots(2), spread=Evenly("node")) == ["n0", "n0"]


def test_nodes_with_several_slots_are_spread_as_nodes():
    asked = ((Part(nodes=2, slots=2, each={"core": 1}),),)
    assert names(pool_of(racks(2, 2)), asked, spread=Evenly("rack")) == ["a0", "a0", "b0", "b0"]


def test_parts_of_one_allocation_are_spread_together():
    parts = ((Part(nodes=1, each={"core": 1}), Part(nodes=1, each={"core": 2})),)
    assert names(pool_of(racks(2, 2)), parts, spread=Evenly("rack")) == ["a0", "b0"]


# -- exclusive ----------------------------------------------------------------------------------------------


def test_exclusive_copies_have_their_nodes_to_themselves():
    pool = pool_of(racks(3))
    pool.place(ONE)
    found = pool.place(slots(5), Wishes(exclusive=True))
    assert [(held.node, held.whole) for held in found.held] == [("a1", True), ("a2", True)]
    assert [slot.cores for slot in found.slots] == [(0,), (1,), (2,), (3,), (0,)]
    assert names(pool, slots(4)) is None
    pool.give_back(found)
    assert names(pool, slots(4)) == ["a0", "a0", "a0", "a1"]


def test_parts_of_an_exclusive_allocation_may_share_a_node():
    pool = pool_of(racks(1))
    parts = ((Part(nodes=1, each={"core": 1}), Part(slots=1, each={"core": 3})),)
    assert names(pool, parts, exclusive=True) == ["a0", "a0"]


def test_inside_a_group_nobody_else_is_to_be_kept_away():
    cluster = racks(1)
    group = pool_of(cluster).place(whole_nodes(1), Wishes(exclusive=True))
    inner = within(group, cluster)
    assert [names(inner, ONE, exclusive=True) for _ in range(2)] == [["a0"], ["a0"]]


# -- from a document's placement ----------------------------------------------------------------------------


def test_wishes_are_made_from_a_placement_and_where_copies_are():
    placement = Placement(
        labels={"disk": "nvme"},
        near=Relation(tasks=("store", "other"), by="rack", required=False),
        apart=Relation(),
        spread=Spread(by="rack", skew=2),
        exclusive=True,
    )
    where = {"store": ["a0", "a0", "b1"], "worker": ["c0", "c0"]}
    assert wishes_for(placement, "worker", where) == Wishes(
        {"disk": "nvme"},
        True,
        Neighbours(("a0", "b1"), "rack", False),
        Neighbours(("c0",), own=True),
        Evenly("rack", 2, placed=("c0", "c0")),
    )
    assert wishes_for(None, "worker", where) == Wishes()


# -- why not ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "wishes", "words"),
    [
        (
            ONE,
            {"apart": Neighbours(("a0", "b0"))},
            "not now: `placement.apart` leaves too little room",
        ),
        (
            slots(3),
            {"apart": Neighbours(own=True)},
            "never, even when everything is free: `placement.apart` leaves too little room",
        ),
        (
            ONE,
            {"spread": Evenly("zone")},
            "never, even when everything is free: `placement.spread` leaves too little room",
        ),
        (
            slots(5),
            {"near": Neighbours(by="rack", own=True)},
            "never, even when everything is free: `placement.near` leaves too little room",
        ),
        (
            ONE,
            {"labels": {"rack": "c"}},
            "never, even when everything is free: on a0 rack is a, not c",
        ),
    ],
)
def test_the_wish_that_is_in_the_way_is_named(asked, wishes, words):
    pool = pool_of(racks(1, 1))
    assert pool.place(asked, Wishes(**wishes)) is None
    assert pool.why_not(asked, Wishes(**wishes)) == words


def test_a_node_in_use_is_in_the_way_of_exclusive_copies():
    pool = pool_of(racks(1))
    pool.place(ONE)
    assert pool.why_not(ONE, Wishes(exclusive=True)) == "not now: a0 is in use"
