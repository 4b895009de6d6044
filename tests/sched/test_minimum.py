"""The least that a shape holds, beside every way there is to place it."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from jobman.plan.satisfy import piece_of
from jobman.sched.minimum import least_amounts
from jobman.sched.planner import Planner
from jobman.sched.wishes import Wishes
from jobman.spec.shapes import Part
from tests.sched.clusters import Asking, cores, equal_nodes, node, nodes, whole

EXCLUSIVE = Wishes(exclusive=True)
MIXED = [node("n1", 8, gpus=2), node("n2", 4), node("n3", 6, gpus=1), node("n4", 4)]


def test_what_a_shape_names_is_held_wherever_it_goes():
    assert least_amounts((cores(2, slots=3), nodes(2, core=1)), []) == {"core": 8, "node": 2}
    assert least_amounts((cores(0.5),), [], overhead={"core": 250, "memory": 3}) == {
        "core": 0.75,
        "memory": 3,
    }


def test_whole_nodes_are_the_smallest_there_are():
    assert least_amounts((whole(),), MIXED) == {"core": 4, "node": 1}
    assert least_amounts((whole(3),), MIXED) == {"core": 14, "gpu": 1, "node": 3}
    assert least_amounts((Part(nodes=1, each={"gpu": 1}, exclusive=True),), MIXED) == {
        "core": 6,
        "gpu": 1,
        "node": 1,
    }


def test_slots_that_have_their_nodes_alone_hold_all_of_them():
    assert least_amounts((cores(1),), MIXED, EXCLUSIVE) == {"core": 4}
    assert least_amounts((cores(3, slots=2),), MIXED, EXCLUSIVE) == {"core": 6}
    assert least_amounts((cores(1, slots=9),), MIXED, EXCLUSIVE) == {"core": 10, "gpu": 1}


def test_slots_of_a_request_share_the_nodes_it_has_alone():
    assert least_amounts((cores(1), cores(2)), MIXED, EXCLUSIVE) == {"core": 4}
    assert least_amounts((nodes(1, core=1), nodes(1, core=1), cores(1)), MIXED, EXCLUSIVE) == {
        "core": 8,
        "node": 2,
    }


def test_there_is_no_least_where_no_nodes_suit():
    assert least_amounts((whole(5),), MIXED) is None
    assert least_amounts((whole(1, rack="a"),), MIXED) is None
    assert least_amounts((cores(9),), MIXED, EXCLUSIVE) is None


def test_very_many_slots_are_never_said_to_hold_too_much():
    cluster = [node("big", 3000), *equal_nodes(400, 4)]
    assert least_amounts((cores(1, slots=1500),), cluster, EXCLUSIVE) == {"core": 1500}


@given(
    amounts=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=5),
    part=st.builds(Part, slots=st.integers(1, 6), each=st.fixed_dictionaries({"core": st.integers(1, 3)}))
    | st.builds(Part, nodes=st.integers(1, 3), each=st.fixed_dictionaries({"core": st.integers(1, 3)})),
)
def test_no_nodes_hold_less(amounts, part):
    cluster = [node(f"n{number}", has, gpus=gpus) for number, (has, gpus) in enumerate(amounts)]
    piece = piece_of(part)
    rooms = {each.name: int(each.amounts["core"] // piece.need["core"]) for each in cluster}
    if part.nodes is not None:
        rooms = {name: min(room, 1) for name, room in rooms.items()}
    enough = [
        chosen
        for count in range(1, len(cluster) + 1)
        for chosen in combinations(cluster, count)
        if sum(rooms[each.name] for each in chosen) >= piece.wanted
    ]
    least = least_amounts((part,), cluster, EXCLUSIVE)
    if not enough:
        assert least is None
        return
    assert least is not None
    for kind in ("core", "gpu"):
        smallest = min(sum(each.amounts.get(kind, 0) for each in chosen) for chosen in enough)
        assert least.get(kind, 0) == smallest
    assert Planner(cluster).try_out(Asking()("it", part, wishes=EXCLUSIVE), 0).guaranteed_by == 0
