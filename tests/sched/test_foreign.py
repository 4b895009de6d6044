"""What others use of the nodes, and nodes that come at run time."""

import pytest

from jobman.sched.queues import Queue
from tests.sched.clusters import Site, cores, equal_nodes, node, nodes, whole


def test_what_others_use_is_not_given_away():
    site = Site(equal_nodes(1))
    site.planner.set_foreign("n1", {"core": 3}, 0)
    site.asks("a", cores(2))
    site.asks("b", cores(1))
    site.plan()
    assert list(site.starts) == ["b"]
    assert "a" not in site.guarantees


def test_it_is_given_back_when_others_use_less():
    site = Site(equal_nodes(1))
    site.planner.set_foreign("n1", {"core": 3}, 0)
    site.asks("a", cores(2))
    site.plan()
    site.now = 10
    site.planner.set_foreign("n1", {"core": 1}, 10)
    site.plan()
    assert site.starts == {"a": 10}


def test_promises_that_cannot_be_kept_beside_it_move_and_say_why():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), limit=50)
    site.asks("y", cores(4), limit=80)
    site.asks("a", cores(4))
    site.plan()
    assert site.guarantees == {"a": 50}
    site.planner.set_foreign("n1", {"core": 1}, 10)
    site.now = 10
    site.plan()
    assert site.guarantees == {"a": 80}
    assert site.revisions[-1].cause == "others use more of node n1"


def test_promises_that_have_room_beside_it_stay():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4), limit=50)
    site.asks("a", cores(2))
    site.plan()
    site.planner.set_foreign("n1", {"core": 2}, 10)
    site.now = 10
    assert not site.plan().revisions
    site.settle()
    assert site.starts["a"] == 50


def test_a_whole_node_is_what_others_leave_of_it():
    site = Site(equal_nodes(1))
    site.planner.set_foreign("n1", {"core": 1}, 0)
    site.asks("a", whole())
    site.plan()
    assert site.starts == {"a": 0}


@pytest.mark.parametrize("count", [1, 12])
def test_a_node_that_is_added_is_used(count):
    site = Site(equal_nodes(count))
    for number in range(count):
        site.asks(f"x{number}", cores(4), limit=500)
    site.asks("a", cores(4))
    site.plan()
    assert site.guarantees == {"a": 500}
    site.now = 10
    new = node("new")
    site.nodes["new"] = new
    site.planner.add_node(new, 10)
    site.plan()
    assert site.starts["a"] == 10


def test_an_added_node_may_have_what_no_other_has():
    site = Site(equal_nodes(1))
    site.asks("a", nodes(1, gpu=1))
    site.plan()
    assert not site.starts
    site.nodes["new"] = node("new", gpus=2)
    site.planner.add_node(site.nodes["new"], 0)
    site.plan()
    assert site.starts == {"a": 0}


def test_a_share_grows_with_the_nodes():
    site = Site(equal_nodes(1), (Queue(name="batch", share=0.5),))
    site.asks("a", cores(2))
    site.asks("b", cores(2))
    site.plan()
    assert list(site.starts) == ["a"]
    site.nodes["new"] = node("new")
    site.planner.add_node(site.nodes["new"], 0)
    site.plan()
    assert list(site.starts) == ["a", "b"]


def test_a_node_is_added_only_once():
    with pytest.raises(ValueError, match="n1"):
        Site(equal_nodes(1)).planner.add_node(node("n1"), 0)
