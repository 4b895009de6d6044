"""Running longer: granted if no guarantee moves, and otherwise the most that could be."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.queues import Queue
from tests.sched.clusters import Site, cores, equal_nodes, maintenance, node, nodes, reservation

INTERACTIVE = (Queue(name="batch", policy="interactive"),)


def test_more_time_is_granted_where_nothing_is_planned():
    site = Site(equal_nodes(1))
    site.asks("a", cores(4))
    site.plan()
    answer = site.extend("a", 500)
    assert (answer.granted, answer.largest) == (True, 500)
    site.asks("b", cores(4))
    site.plan()
    assert site.guarantees == {"b": 600}
    site.settle()
    site.clear()


def test_a_guarantee_is_not_moved_and_the_time_until_it_is_offered():
    site = Site(equal_nodes(1))
    site.asks("a", cores(2), limit=60)
    site.asks("x", cores(2), limit=100)
    site.asks("b", cores(4))
    site.plan()
    answer = site.extend("a", 50)
    assert (answer.granted, answer.largest) == (False, 40)
    assert site.extend("a", 40).granted
    assert site.extend("a", 1) == type(answer)(granted=False, largest=0)
    site.settle()
    assert site.starts["b"] == 100


def test_a_window_is_not_run_into():
    site = Site(equal_nodes(1))
    site.block(maintenance("repair/1", 130, 200, "n1"))
    site.asks("a", cores(2))
    site.plan()
    assert site.extend("a", 31).largest == 30
    assert site.extend("a", 30).granted


def test_a_reservation_of_others_is_not_run_into():
    site = Site(equal_nodes(1))
    site.block(reservation("course/1", 130, 200, "n1"))
    site.asks("a", cores(2))
    site.plan()
    assert site.extend("a", 31).largest == 30


def test_what_runs_in_a_reservation_may_run_until_it_ends():
    site = Site(equal_nodes(1))
    site.block(reservation("course/1", 0, 150, "n1"))
    site.asks("a", cores(2), user="ada", reservation="course")
    site.plan()
    assert site.extend("a", 51).largest == 50
    assert site.extend("a", 50).granted


def test_those_without_a_guarantee_do_not_count():
    site = Site(equal_nodes(1), (Queue(name="batch", depth=0),))
    site.asks("a", cores(4))
    site.asks("b", cores(4))
    site.plan()
    assert site.extend("a", 50).granted


def test_a_promise_makes_way_where_it_starts_no_later_elsewhere():
    site = Site([node("n1"), node("n2"), node("n3", disk="fast")])
    site.asks("a", cores(4))
    site.asks("x", cores(4))
    site.asks("y", cores(4, disk="fast"), limit=50)
    site.asks("b", cores(4))
    site.plan()
    assert site.guarantees == {"b": 50}
    site.asks("c", cores(4))
    site.plan()
    assert site.guarantees == {"b": 50, "c": 100}
    assert site.extend("a", 70).granted
    site.plan()
    assert site.guarantees == {"b": 50, "c": 100}
    site.settle()
    assert site.starts["c"] == 100


def test_the_offer_counts_those_who_could_make_way():
    """c is on n1 at 100 and could be on n2 as well, until 150; so 50 more could be granted, if not 500."""
    site = Site(equal_nodes(2))
    site.asks("a", cores(4), limit=100)
    site.asks("x", cores(4), limit=100)
    site.asks("c", cores(4), limit=10)
    site.asks("all", nodes(2, core=4), limit=10, earliest=150)
    site.plan()
    assert site.guarantees == {"c": 100, "all": 150}
    answer = site.extend("a", 500)
    assert not answer.granted
    assert answer.largest == 50
    assert site.extend("a", 50).granted


def test_an_extension_keeps_to_the_bounds():
    site = Site(equal_nodes(3), bounds={"ada": {"job": 1}})
    site.asks("a", cores(4), user="ada")
    site.asks("b", cores(4), user="ada")
    site.asks("x", cores(4), limit=80)
    site.asks("y", cores(4), limit=90)
    site.asks("c", cores(4))
    site.plan()
    assert site.guarantees == {"b": 100, "c": 80}
    assert not site.extend("a", 50).granted
    site.settle()
    assert site.starts["b"] == 100


def test_an_interactive_promise_that_makes_way_stays_in_order():
    site = Site([node("n1"), node("n2"), node("n3", disk="fast")], INTERACTIVE)
    site.asks("a", cores(4), limit=10)
    site.asks("x", cores(4, disk="fast"), limit=30)
    site.asks("first", cores(4, disk="fast"), limit=20)
    site.asks("second", cores(4), limit=20)
    site.plan()
    site.extend("a", 15)
    site.plan()
    site.settle()
    assert site.order == ["a", "x", "first", "second"]


def test_one_who_waits_cannot_be_extended():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.plan()
    assert not site.planner.extend("a", 10, 0).granted
    site.settle()
    site.clear()


def test_one_without_a_limit_has_all_the_time_it_wants():
    site = Site(equal_nodes(1))
    site.asks("a", cores(4), limit=inf)
    site.plan()
    assert site.planner.extend("a", 10, 0).granted
    site.clear()


@pytest.mark.parametrize("queue", [Queue(name="batch"), Queue(name="batch", depth=2), *INTERACTIVE])
@given(
    sizes=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([10, 20, 30]), st.booleans()), min_size=3, max_size=10
    ),
    wanted=st.integers(1, 60),
    who=st.integers(0, 9),
)
def test_the_offer_can_be_had_at_once_and_nothing_more(queue, sizes, wanted, who):
    def built():
        site = Site(equal_nodes(2), (queue,))
        for cores_, limit, wide in sizes:
            site.asks("", nodes(2, core=cores_) if wide else cores(cores_), limit=limit)
        site.plan()
        site.advance(5)
        return site, list(site.running)[who % len(site.running)]

    site, id_ = built()
    promised = dict(site.guarantees)
    answer = site.extend(id_, wanted)
    if answer.granted:
        assert answer.largest == wanted
    else:
        assert 0 <= answer.largest < wanted
        if answer.largest:
            assert site.extend(id_, answer.largest).granted
        other, _ = built()
        assert not other.extend(id_, answer.largest + 1).granted
    site.plan()
    assert all(site.guarantees.get(id_, -1) <= promised[id_] for id_ in promised)
    site.settle()
    assert len(site.starts) == len(sizes)
    site.clear()
