"""Finding room for gangs: now, and the first moment in the future."""

from itertools import count
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.plan.nodes import ClusterNode
from jobman.sched.placement import Pool
from jobman.sched.planner import Planner
from jobman.sched.requests import Request
from jobman.sched.wishes import NO_WISHES, Evenly, Neighbours, Wishes
from jobman.spec.shapes import Part
from tests.sched.clusters import Site, alternatives, cores, equal_nodes, node, nodes, whole

RACKS = [
    ClusterNode(name="a1", amounts={"core": 4}, facts={"rack": "a"}),
    ClusterNode(name="b1", amounts={"core": 4}, facts={"rack": "b"}),
    ClusterNode(name="a2", amounts={"core": 4}, facts={"rack": "a"}),
    ClusterNode(name="b2", amounts={"core": 4}, facts={"rack": "b"}),
    ClusterNode(name="c1", amounts={"core": 4}, facts={"rack": "c"}),
]


def placed_on(cluster, *shapes, wishes=NO_WISHES, busy=()):
    """Where a request goes now, with so many cores in use on some nodes; None where it has to wait."""
    site = Site(cluster)
    for name, in_use in busy:
        labels = {"host": name}
        taken = Part(slots=1, each={"core": in_use}, requires=labels)
        site.asks("", taken, limit=1000)
    site.plan()
    site.asks("it", *shapes, wishes=wishes)
    site.plan()
    return site.placed["it"].places if "it" in site.placed else None


def hosts(*cluster):
    """The same nodes, each with its name as a fact."""
    return [
        ClusterNode(name=each.name, amounts=each.amounts, facts={**each.facts, "host": each.name})
        for each in cluster
    ]


# -- shapes ------------------------------------------------------------------------------------------------


def test_slots_go_wherever_there_is_room():
    assert placed_on(equal_nodes(2), cores(3, slots=2)) == ({"n1": 1, "n2": 1},)
    assert placed_on(equal_nodes(2), cores(1, slots=6)) == ({"n1": 4, "n2": 2},)


def test_slots_with_something_beside_them_stay_on_one_node():
    part = Part(slots=3, each={"core": 1}, beside={"core": 1})
    assert placed_on(hosts(*equal_nodes(2)), part, busy=[("n1", 1)]) == ({"n2": 1},)


def test_nodes_are_distinct():
    assert placed_on(equal_nodes(2), nodes(2, core=1)) == ({"n1": 1, "n2": 1},)
    assert placed_on(equal_nodes(1), nodes(2, core=1)) is None


def test_parts_with_nodes_of_their_own_do_not_share_them():
    assert placed_on(equal_nodes(2), (nodes(1, core=1), nodes(1, core=1))) == ({"n1": 1}, {"n2": 1})


def test_slots_may_share_the_nodes_of_another_part():
    assert placed_on(equal_nodes(1), (nodes(1, core=2), cores(2))) == ({"n1": 1}, {"n1": 1})


def test_a_whole_node_is_not_shared_within_a_request():
    assert placed_on(equal_nodes(1), (whole(), cores(1))) is None
    assert placed_on(equal_nodes(2), (whole(), cores(1))) == ({"n1": 1}, {"n2": 1})


def test_a_whole_node_must_be_empty():
    assert placed_on(hosts(*equal_nodes(2)), whole(), busy=[("n1", 0.5)]) == ({"n2": 1},)


def test_a_whole_node_is_the_smallest_that_will_do_for_the_others():
    cluster = [node("n1", 6), node("n2", 3)]
    assert placed_on(cluster, (whole(), cores(2, slots=3))) == ({"n2": 1}, {"n1": 3})
    assert placed_on(cluster, (cores(2, slots=3), whole())) == ({"n1": 3}, {"n2": 1})


def test_parts_of_cores_add_up_exactly():
    site = Site(equal_nodes(1, 1))
    for _ in range(11):
        site.asks("", cores(0.1))
    site.plan()
    assert len(site.starts) == 10


def test_what_a_node_does_not_count_is_not_there():
    cluster = [node("n1"), node("n2", memory=4)]
    assert placed_on(cluster, Part(slots=1, each={"core": 1, "memory": 1})) == ({"n2": 1},)


def test_sockets_are_asked_for_only_where_they_are_counted():
    cluster = [ClusterNode(name="n1", amounts={"core": 4}), node("n2")]
    cluster[1] = ClusterNode(name="n2", amounts={"core": 4, "socket": 1})
    assert placed_on(cluster, Part(nodes=2, each={"core": 1, "socket": 1})) == ({"n1": 1, "n2": 1},)
    assert placed_on(cluster, Part(nodes=2, each={"socket": 2})) is None
    assert placed_on(equal_nodes(1), Part(nodes=1, each={"core": 1, "socket": 2})) == ({"n1": 1},)


def test_an_unknown_resource_is_nowhere():
    assert placed_on(equal_nodes(1), Part(slots=1, each={"core": 1, "license": 1})) is None


# -- wishes ------------------------------------------------------------------------------------------------


def test_near_to_itself_keeps_a_gang_in_one_place():
    wishes = Wishes(near=Neighbours(by="rack", own=True))
    assert placed_on(RACKS, nodes(2, core=1), wishes=wishes) == ({"a1": 1, "a2": 1},)
    assert placed_on(RACKS, nodes(3, core=1), wishes=wishes) is None


def test_a_wish_to_be_near_gives_way():
    wishes = Wishes(near=Neighbours(by="rack", own=True, required=False))
    assert len(placed_on(RACKS, nodes(3, core=1), wishes=wishes)[0]) == 3


def test_near_to_others_goes_where_they_are():
    wishes = Wishes(near=Neighbours(nodes=("b1",), by="rack"))
    assert placed_on(RACKS, nodes(2, core=1), wishes=wishes) == ({"b1": 1, "b2": 1},)


def test_apart_from_others_goes_elsewhere():
    wishes = Wishes(apart=Neighbours(nodes=("a1", "c1"), by="rack"))
    assert placed_on(RACKS, nodes(2, core=1), wishes=wishes) == ({"b1": 1, "b2": 1},)
    assert placed_on(RACKS, nodes(3, core=1), wishes=wishes) is None


def test_apart_from_itself_takes_one_place_each():
    wishes = Wishes(apart=Neighbours(by="rack", own=True))
    assert placed_on(RACKS, nodes(3, core=1), wishes=wishes) == ({"a1": 1, "b1": 1, "c1": 1},)
    assert placed_on(RACKS, cores(1, slots=4), wishes=wishes) is None


def test_spread_divides_evenly():
    wishes = Wishes(spread=Evenly("rack"))
    (places,) = placed_on(RACKS, cores(1, slots=6), wishes=wishes)
    racks = {"a": 0, "b": 0, "c": 0}
    for name, pieces in places.items():
        racks[name[0]] += pieces
    assert racks == {"a": 2, "b": 2, "c": 2}


def test_spread_waits_for_room_in_every_place():
    wishes = Wishes(spread=Evenly("rack"))
    cluster = hosts(*RACKS)
    assert placed_on(cluster, cores(1, slots=4), wishes=wishes, busy=[("c1", 4)]) is None
    assert placed_on(cluster, cores(1, slots=3), wishes=Wishes(spread=Evenly("rack", 2)), busy=[("c1", 4)])


def test_exclusive_slots_have_their_nodes_alone():
    wishes = Wishes(exclusive=True)
    assert placed_on(hosts(*equal_nodes(3)), cores(2, slots=4), wishes=wishes, busy=[("n1", 1)]) == (
        {"n2": 2, "n3": 2},
    )


def test_parts_of_an_exclusive_request_share_its_nodes():
    wishes = Wishes(exclusive=True)
    assert placed_on(equal_nodes(1), (cores(1), cores(2)), wishes=wishes) == ({"n1": 1}, {"n1": 1})
    busy = placed_on(hosts(*equal_nodes(2)), (cores(1), cores(2)), wishes=wishes, busy=[("n1", 1)])
    assert busy == ({"n2": 1}, {"n2": 1})


def test_a_whole_node_is_not_shared_within_an_exclusive_request_either():
    wishes = Wishes(exclusive=True)
    assert placed_on(equal_nodes(1), (whole(), cores(1)), wishes=wishes) is None
    assert placed_on(equal_nodes(2), (whole(), cores(1)), wishes=wishes) == ({"n1": 1}, {"n2": 1})
    assert placed_on(equal_nodes(1), (cores(3), cores(2)), wishes=wishes) is None


def test_nobody_else_is_on_the_nodes_that_parts_of_an_exclusive_request_share():
    site = Site(equal_nodes(2))
    site.asks("first", (cores(1), cores(1)), wishes=Wishes(exclusive=True), limit=100)
    site.asks("other", cores(1), limit=10)
    site.asks("second", (cores(1), nodes(1, core=1)), wishes=Wishes(exclusive=True), limit=100)
    site.settle()
    assert site.placed["other"].places == ({"n2": 1},)
    assert site.starts == {"first": 0, "other": 0, "second": 10}


def test_labels_narrow_the_nodes():
    cluster = [*equal_nodes(1), ClusterNode(name="x", amounts={"core": 4}, labels={"pool": "gold"})]
    assert placed_on(cluster, cores(1), wishes=Wishes(labels={"pool": "gold"})) == ({"x": 1},)


# -- carrying out ------------------------------------------------------------------------------------------

SOME = st.one_of(
    st.builds(Part, slots=st.integers(1, 4), each=st.fixed_dictionaries({"core": st.integers(1, 3)})),
    st.builds(Part, nodes=st.integers(1, 2), each=st.fixed_dictionaries({"core": st.integers(1, 2)})),
    st.builds(Part, slots=st.integers(1, 2), each=st.just({"core": 1, "memory": 1})),
    st.builds(Part, nodes=st.just(1), exclusive=st.just(True)),
    st.builds(Part, slots=st.integers(1, 2), each=st.just({"core": 1}), beside=st.just({"core": 1})),
)


@given(
    cluster=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=4),
    asked=st.lists(
        st.tuples(st.lists(SOME, min_size=1, max_size=3), st.booleans(), st.integers(1, 3)), max_size=8
    ),
)
def test_what_is_planned_can_be_had_of_a_pool(cluster, asked):
    known = [node(f"n{number}", has, memory=memory) for number, (has, memory) in enumerate(cluster)]
    site, pool = Site(known), Pool(known)
    for parts, exclusive, limit in asked:
        site.asks("", tuple(parts), wishes=Wishes(exclusive=exclusive), limit=limit)
    held: dict[str, Any] = {}
    for now in range(30):
        site.now = now
        for id_ in [id_ for id_, run in site.running.items() if run.ends <= now]:
            pool.give_back(held.pop(id_))
            site.end(id_)
        for start in site.plan().starts:
            request = site.running[start.id].request
            number, places = start.placed.alternative, start.placed.places
            held[start.id] = pool.settle(number, request.alternatives[number], places, request.wishes)
    for id_, request in site.waiting.items():
        assert not pool.could_ever(request.alternatives, request.wishes), id_


# -- the first moment --------------------------------------------------------------------------------------

PARTS = st.one_of(
    st.builds(Part, slots=st.integers(1, 4), each=st.fixed_dictionaries({"core": st.integers(1, 3)})),
    st.builds(Part, nodes=st.integers(1, 3), each=st.fixed_dictionaries({"core": st.integers(1, 3)})),
    st.builds(Part, nodes=st.integers(1, 2), exclusive=st.just(True)),
    st.builds(
        Part,
        slots=st.integers(1, 2),
        each=st.fixed_dictionaries({"core": st.just(1)}),
        beside=st.just({"core": 1}),
    ),
)
SHAPES = st.lists(PARTS, min_size=1, max_size=2).map(lambda parts: alternatives(*parts))


def earliest_by_trying(build, shape, limit, horizon):
    """The first second at which the request starts, where plans stay as they are and it is tried at each."""
    for second in range(horizon):
        planner = build()
        request = Request(id="it", alternatives=shape, limit=limit, number=99, earliest=second)
        promise = planner.try_out(request, 0)
        if promise.guaranteed_by == second:
            return second
    return None


@pytest.mark.parametrize("few", [0, 8])
@given(
    running=st.lists(st.tuples(PARTS, st.integers(1, 12)), max_size=5),
    shape=SHAPES,
    limit=st.integers(1, 12) | st.just(inf),
)
def test_the_first_moment_is_the_first_at_which_it_could_start(few, running, shape, limit):
    """Starting no earlier than each second in turn gives the same answer as asking once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobman.sched.timeline.FEW", few)

        def build():
            planner = Planner(equal_nodes(3, 3))
            numbers = count()
            for part, length in running:
                number = next(numbers)
                planner.submit(
                    Request(id=str(number), alternatives=alternatives(part), limit=length, number=number), 0
                )
            planner.plan(0)
            return planner

        planner = build()
        request = Request(id="it", alternatives=shape, limit=limit, number=99)
        assert planner.try_out(request, 0).guaranteed_by == earliest_by_trying(build, shape, limit, 64)
