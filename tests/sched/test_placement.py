"""Placing shapes: which nodes, cores and GPUs a copy gets, what is refused and why."""

import msgspec
import pytest

from jobman.plan.nodes import ClusterNode
from jobman.sched.placement import Allocation, Held, PlacementError, Pool, Slot
from jobman.spec.shapes import Part, copies

GI = 2**30


def pool_of(cluster):
    return Pool(cluster)


def within(group, cluster):
    return Pool.within(group, cluster)


def node(name, facts=None, labels=None, **amounts):
    return ClusterNode(name=name, amounts=amounts, facts=facts or {}, labels=labels or {})


def nodes(count, **what):
    return [node(f"n{number}", **what) for number in range(count)]


def cores(count, slots=1):
    """So many slots with so many cores each, anywhere."""
    return ((Part(slots=slots, each={"core": count}),),)


def whole(count=1):
    return ((Part(nodes=count),),)


def seats(allocation):
    return [(slot.node, slot.cores) for slot in allocation.slots]


# -- cores and GPUs -----------------------------------------------------------------------------------------


def test_cores_are_given_from_the_lowest():
    pool = pool_of(nodes(1, core=4))
    assert [seats(pool.place(cores(count))) for count in (1, 2, 1)] == [
        [("n0", (0,))],
        [("n0", (1, 2))],
        [("n0", (3,))],
    ]
    assert pool.place(cores(1)) is None


def test_cores_stand_side_by_side_where_that_is_possible():
    pool = pool_of(nodes(1, core=8))
    kept = [pool.place(cores(1)) for _ in range(4)]
    pool.give_back(kept[1])
    pool.give_back(kept[3])
    assert seats(pool.place(cores(3))) == [("n0", (3, 4, 5))]
    assert seats(pool.place(cores(3))) == [("n0", (1, 6, 7))]


def test_nodes_that_are_in_use_are_filled_first():
    pool = pool_of(nodes(3, core=4))
    assert [seats(pool.place(cores(3)))[0][0] for _ in range(3)] == ["n0", "n1", "n2"]
    assert [seats(pool.place(cores(1)))[0][0] for _ in range(3)] == ["n0", "n1", "n2"]


def test_parts_of_cores_are_shared_and_not_pinned():
    pool = pool_of(nodes(1, core=1))
    halves = [pool.place(cores(0.5)) for _ in range(2)]
    assert [seats(each) for each in halves] == [[("n0", ())], [("n0", ())]]
    assert pool.place(cores(0.1)) is None
    pool.give_back(halves[0])
    assert pool.free() == {"n0": {"core": 0.5}}


def test_ten_tenths_are_one_core():
    pool = pool_of(nodes(1, core=1))
    assert len([pool.place(cores(0.1)) for _ in range(10)]) == 10
    assert pool.free() == {"n0": {"core": 0}}
    assert pool.place(cores(0.001)) is None


def test_a_part_of_a_core_leaves_the_others_whole():
    pool = pool_of(nodes(1, core=2))
    pool.place(cores(0.5))
    assert seats(pool.place(cores(1))) == [("n0", (0,))]
    assert pool.place(cores(1)) is None


def test_gpus_have_numbers_and_memory_is_counted():
    pool = pool_of(nodes(1, core=8, gpu=4, memory=16 * GI))
    asked = ((Part(slots=2, each={"core": 1, "gpu": 2, "memory": 4 * GI}),),)
    found = pool.place(asked)
    assert [slot.gpus for slot in found.slots] == [(0, 1), (2, 3)]
    assert pool.free() == {"n0": {"core": 6, "gpu": 0, "memory": 8 * GI}}


def test_memory_that_nobody_mentions_is_not_taken():
    pool = pool_of(nodes(1, core=2, memory=GI))
    pool.place(cores(2))
    assert pool.free() == {"n0": {"core": 0, "memory": GI}}
    assert pool.place(((Part(each={"memory": GI}),),)) is not None


def test_a_node_has_only_what_it_says_but_for_sockets():
    pool = pool_of(nodes(1, core=2))
    assert pool.place(((Part(each={"gpu": 1}),),)) is None
    assert pool.place(((Part(each={"socket": 2, "core": 1}),),)) is not None


# -- nodes and slots ----------------------------------------------------------------------------------------


def test_nodes_of_a_part_are_different_nodes_and_ranks_go_node_by_node():
    pool = pool_of(nodes(3, core=4))
    found = pool.place(((Part(nodes=2, slots=2, each={"core": 1}, beside={"core": 1}),),))
    assert seats(found) == [("n0", (0,)), ("n0", (1,)), ("n1", (0,)), ("n1", (1,))]
    assert found.held == (Held("n0", (0, 1, 2), (), {"core": 3}), Held("n1", (0, 1, 2), (), {"core": 3}))


def test_slots_go_wherever_there_is_room():
    pool = pool_of([node("a", core=3), node("b", core=1), node("c", core=4)])
    assert [slot.node for slot in pool.place(cores(2, slots=3)).slots] == ["a", "c", "c"]


def test_slots_that_share_something_beside_them_stay_together():
    pool = pool_of([node("a", core=3, memory=GI), node("b", core=4, memory=GI)])
    found = pool.place(((Part(slots=4, each={"core": 1}, beside={"memory": GI}),),))
    assert {slot.node for slot in found.slots} == {"b"}


def test_ranks_follow_the_parts_as_they_are_written():
    pool = pool_of(nodes(2, core=4))
    anywhere = Part(slots=2, each={"core": 1})
    on_nodes = Part(nodes=2, each={"core": 3})
    found = pool.place(((anywhere, on_nodes),))
    assert seats(found) == [("n0", (3,)), ("n1", (3,)), ("n0", (0, 1, 2)), ("n1", (0, 1, 2))]
    assert [(held.node, held.cores) for held in found.held] == [("n0", (0, 1, 2, 3)), ("n1", (0, 1, 2, 3))]


def test_parts_that_compete_get_the_nodes_that_suit_them():
    pool = pool_of([node("a", core=8, gpu=1), node("b", core=8), node("c", core=2)])
    some, fast = Part(nodes=2, each={"core": 1}), Part(nodes=1, each={"gpu": 1})
    found = pool.place(((some, fast),))
    assert [slot.node for slot in found.slots] == ["b", "c", "a"]


def test_a_node_part_leaves_the_large_node_to_slots_that_need_it():
    pool = pool_of([node("large", core=8), node("small", core=1)])
    found = pool.place(((Part(nodes=1, each={"core": 1}), Part(slots=1, each={"core": 8})),))
    assert [slot.node for slot in found.slots] == ["small", "large"]


def test_the_first_alternative_with_room_is_taken():
    pool = pool_of(nodes(1, core=4))
    either = (*cores(64), *cores(3), *cores(1))
    assert [pool.place(either).alternative for _ in range(2)] == [1, 2]
    assert pool.place(either) is None


# -- whole nodes --------------------------------------------------------------------------------------------


def test_a_whole_node_is_given_with_everything_in_it():
    pool = pool_of(nodes(2, core=4, gpu=2, memory=GI))
    found = pool.place(whole())
    everything: dict[str, int | float] = {"core": 4, "gpu": 2, "memory": GI}
    assert found.slots == (Slot("n0", (0, 1, 2, 3), (0, 1), everything),)
    assert found.held == (Held("n0", (0, 1, 2, 3), (0, 1), everything, True),)


def test_a_whole_node_must_be_empty():
    pool = pool_of(nodes(2, core=4))
    pool.place(cores(1))
    assert seats(pool.place(whole())) == [("n1", (0, 1, 2, 3))]
    assert pool.place(whole()) is None


def test_nothing_goes_to_a_node_that_is_held_as_a_whole_not_even_what_needs_nothing():
    pool = pool_of([node("n0"), node("n1", core=1)])
    nothing = ((Part(slots=3),),)
    pool.place(whole())
    assert {slot.node for slot in pool.place(nothing).slots} == {"n1"}
    assert pool.place(whole()) is None


def test_slots_of_a_whole_node_divide_what_the_shape_does_not_name():
    pool = pool_of(nodes(1, core=7, gpu=4, memory=GI))
    found = pool.place(((Part(nodes=1, slots=2, exclusive=True, each={"gpu": 1}),),))
    assert [(slot.cores, slot.gpus) for slot in found.slots] == [((0, 1, 2), (0,)), ((3, 4, 5), (1,))]
    assert found.slots[0].amounts == {"gpu": 1, "core": 3, "memory": GI // 2}
    assert found.held[0].gpus == (0, 1, 2, 3)


# -- giving back and taking again ---------------------------------------------------------------------------


def test_an_allocation_is_taken_again_from_its_data():
    asked = ((Part(nodes=1), Part(slots=3, each={"core": 1.5})),)
    pool, restarted = pool_of(nodes(3, core=4)), pool_of(nodes(3, core=4))
    data = msgspec.json.encode(pool.place(asked))
    restarted.take(msgspec.json.decode(data, type=Allocation))
    assert restarted.free() == pool.free()
    assert restarted.place(cores(1)) == pool.place(cores(1))


def test_what_is_held_cannot_be_taken_and_nothing_of_it_is():
    pool = pool_of(nodes(2, core=2))
    found = pool.place(((Part(nodes=2, each={"core": 1}),),))
    pool.give_back(found)
    pool.place(((Part(nodes=1), Part(nodes=1, each={"core": 2})),))
    before = pool.free()
    with pytest.raises(PlacementError, match="n0 is held already"):
        pool.take(found)
    assert pool.free() == before


def test_what_was_not_taken_cannot_be_given_back_and_nothing_of_it_is():
    pool = pool_of(nodes(2, core=2))
    first = pool.place(((Part(nodes=2, each={"core": 1}),),))
    pool.give_back(first)
    pool.place(cores(1))
    before = pool.free()
    with pytest.raises(PlacementError, match="n1 was not taken"):
        pool.give_back(first)
    assert pool.free() == before


def test_a_node_that_is_gone_is_said_to_be_gone():
    found = pool_of(nodes(2, core=1)).place(whole(2))
    with pytest.raises(PlacementError, match="n1: no such node"):
        pool_of(nodes(1, core=1)).take(found)
    with pytest.raises(PlacementError, match="n1: no such node"):
        within(found, nodes(1, core=1))


def test_two_nodes_of_one_name_are_refused():
    with pytest.raises(PlacementError, match="same name"):
        pool_of([node("a"), node("a")])


# -- inside a group -----------------------------------------------------------------------------------------


def test_a_task_goes_to_the_cores_its_group_holds():
    cluster = nodes(2, core=8)
    pool = pool_of(cluster)
    pool.place(cores(3))
    group = pool.place(((Part(nodes=2, each={"core": 4}),),))
    inner = within(group, cluster)
    assert inner.capacity == {"n0": {"core": 4}, "n1": {"core": 4}}
    assert seats(inner.place(cores(2, slots=3))) == [("n0", (3, 4)), ("n0", (5, 6)), ("n1", (0, 1))]


def test_a_task_that_inherits_all_of_a_whole_node_gets_all_of_it():
    cluster = nodes(1, core=4, gpu=1)
    group = pool_of(cluster).place(whole())
    inner = within(group, cluster)
    assert inner.place(whole()).slots == group.slots
    assert inner.place(cores(1)) is None


def test_a_whole_node_inside_a_group_is_what_the_group_holds_of_it():
    cluster = nodes(1, core=8)
    group = pool_of(cluster).place(((Part(nodes=1, each={"core": 3}),),))
    assert within(group, cluster).place(whole()).slots[0].cores == (0, 1, 2)


def test_a_group_that_says_nothing_of_memory_does_not_keep_its_tasks_from_asking():
    cluster = nodes(1, core=4, memory=GI)
    group = pool_of(cluster).place(((Part(nodes=1, each={"core": 2}),),))
    inner = within(group, cluster)
    found = inner.place(((Part(each={"core": 1, "memory": GI}),),))
    assert found.slots[0].amounts == {"core": 1, "memory": GI}
    assert found.held[0].amounts == {"core": 1}
    inner.give_back(found)
    assert inner.free() == {"n0": {"core": 2}}


def test_groups_inside_groups_hold_less_and_less():
    cluster = nodes(1, core=8)
    outer = pool_of(cluster).place(((Part(nodes=1, each={"core": 4}),),))
    inner_pool = within(outer, cluster)
    inner_pool.place(cores(1))
    inner = inner_pool.place(((Part(nodes=1, each={"core": 2}),),))
    assert seats(within(inner, cluster).place(cores(1, slots=2))) == [("n0", (1,)), ("n0", (2,))]


def test_copies_in_a_group_of_shared_cores_are_counted_but_not_pinned():
    cluster = nodes(1, core=4)
    group = pool_of(cluster).place(cores(0.5, slots=4))
    inner = within(group, cluster)
    assert [seats(inner.place(cores(1))) for _ in range(2)] == [[("n0", ())], [("n0", ())]]
    assert inner.place(cores(1)) is None


# -- why not ------------------------------------------------------------------------------------------------

CLUSTER = [
    node("small", core=2, memory=GI, facts={"fabric": "ethernet"}),
    node("large", core=8, memory=4 * GI, facts={"fabric": "infiniband"}),
]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (cores(12)[0], "large has 8 of 12 cores (4 short)"),
        (cores(2, slots=6)[0], "6 slots are needed, and there is room for 5"),
        ((Part(nodes=3),), "3 nodes are needed, and there is room for 2"),
        ((Part(each={"gpu": 1}),), "small has none of 1 gpu (1 short)"),
        (
            (Part(nodes=2, each={"core": 4}),),
            "2 nodes are needed, and there is room for 1; small has 2 of 4 cores (2 short)",
        ),
        (
            (Part(each={"core": 9, "memory": 6 * GI}),),
            "large has 8 of 9 cores (1 short) and 4Gi of 6Gi memory (2Gi short)",
        ),
        (
            (Part(each={"core": 4}, requires={"fabric": "ethernet"}),),
            "small has 2 of 4 cores (2 short)",
        ),
        (
            (Part(requires={"fabric": "myrinet"}),),
            "on small fabric is ethernet, not myrinet",
        ),
        ((Part(nodes=1), Part(nodes=1), Part(slots=1)), "the parts compete for the same nodes"),
    ],
)
def test_what_can_never_fit_is_told_with_what_is_short(parts, words):
    pool = pool_of(CLUSTER)
    assert pool.place((parts,)) is None
    assert not pool.could_ever((parts,))
    assert pool.why_not((parts,)) == f"never, even when everything is free: {words}"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (cores(4)[0], "large has 2 of 4 cores free (2 short)"),
        (cores(1, slots=5)[0], "5 slots are needed, and there is room for 4"),
        ((Part(nodes=2),), "2 nodes are needed, and there is room for 1; large is in use"),
        ((Part(each={"memory": 3 * GI}),), "large has 2.5Gi of 3Gi memory free (512Mi short)"),
    ],
)
def test_what_does_not_fit_now_is_told_apart(parts, words):
    pool = pool_of(CLUSTER)
    pool.place(((Part(each={"core": 6, "memory": 3 * GI // 2}),),))
    before = pool.free()
    assert pool.place((parts,)) is None
    assert pool.could_ever((parts,))
    assert pool.why_not((parts,)) == f"not now: {words}"
    assert pool.free() == before


def test_every_alternative_is_told():
    pool = pool_of(nodes(1, core=2))
    pool.place(cores(1))
    assert pool.why_not((*cores(3), *cores(2), *cores(1))) == (
        "alternative 1: never, even when everything is free: n0 has 2 of 3 cores (1 short); "
        "alternative 2: not now: n0 has 1 of 2 cores free (1 short); "
        "alternative 3: there is room now"
    )


def test_without_nodes_nothing_fits():
    assert pool_of([]).place(cores(1)) is None
    assert pool_of([]).why_not(cores(1)) == "never, even when everything is free: there are no nodes"


def test_as_many_copies_as_the_shape_says():
    parts = (Part(nodes=2, slots=3, each={"core": 1}), Part(slots=4), Part(each={"core": 2}), Part(nodes=1))
    found = pool_of(nodes(4, core=8)).place((parts,))
    assert len(found.slots) == copies(parts) == 12
