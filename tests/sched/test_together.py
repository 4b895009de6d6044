"""Requests that must run at the same time start at once, or not at all."""

import msgspec
import pytest

from jobman.sched.queues import Queue
from tests.sched.clusters import Site, cores, equal_nodes, maintenance, node


def ask(site, id_, *shape, with_=(), **more):
    site.submit(msgspec.structs.replace(site.ask(id_, *shape, **more), together=tuple(with_)))


def pair(site, *, of=4, limit=100):
    ask(site, "a", cores(of), with_=("b",), limit=limit)
    ask(site, "b", cores(of), with_=("a",), limit=limit)


def test_both_start_where_there_is_room_for_both():
    site = Site(equal_nodes(2))
    pair(site)
    site.plan()
    assert site.starts == {"a": 0, "b": 0}


def test_neither_starts_while_there_is_room_for_one_only():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), limit=60)
    pair(site)
    site.plan()
    assert site.guarantees == {"a": 60, "b": 60}
    site.settle()
    assert site.starts == {"x": 0, "a": 60, "b": 60}


def test_nobody_is_planned_until_all_are_there():
    site = Site(equal_nodes(2))
    ask(site, "a", cores(1), with_=("b",))
    site.settle(50)
    assert not site.starts
    ask(site, "b", cores(1))
    site.plan()
    assert set(site.starts) == {"a", "b"}


def test_they_share_a_node_where_it_has_room_for_both():
    site = Site(equal_nodes(1))
    pair(site, of=2)
    site.plan()
    assert set(site.starts) == {"a", "b"}


def test_what_never_fits_together_is_never_promised():
    site = Site(equal_nodes(1))
    pair(site, of=3)
    site.plan()
    assert not site.guarantees


def test_both_move_up_when_something_ends_early():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), limit=60, run=20)
    pair(site)
    site.settle()
    assert site.starts == {"x": 0, "a": 20, "b": 20}


def test_both_are_planned_anew_when_one_loses_its_place():
    site = Site([node("n1", kind="a"), node("n2", kind="b")])
    site.asks("x", cores(4, kind="a"), limit=60)
    ask(site, "a", cores(4, kind="a"), with_=("b",))
    ask(site, "b", cores(4, kind="b"), with_=("a",))
    site.plan()
    site.block(maintenance("m/1", 100, 200, "n2"))
    site.plan()
    assert site.guarantees == {"a": 200, "b": 200}
    site.settle()
    assert (site.starts["a"], site.starts["b"]) == (200, 200)


def test_they_may_wait_in_different_queues():
    queues = (Queue(name="batch", nodes=("n1",)), Queue(name="other", nodes=("n2",)))
    site = Site(equal_nodes(2), queues)
    site.asks("x", cores(4), limit=60, queue="other")
    ask(site, "a", cores(4), with_=("b",), queue="batch")
    ask(site, "b", cores(4), with_=("a",), queue="other")
    site.settle()
    assert site.starts == {"x": 0, "a": 60, "b": 60}


def test_all_of_a_backfill_pass_together():
    site = Site(equal_nodes(3), (Queue(name="batch", depth=1),))
    site.asks("x", cores(4), limit=1000)
    site.asks("head", cores(4), cores(4), limit=1000)
    site.plan()
    pair(site, limit=50)
    site.plan()
    assert site.starts.get("a") == site.starts.get("b")


def test_one_who_was_promised_a_place_alone_is_planned_together_with_who_joins_it():
    site = Site(equal_nodes(3))
    site.asks("x", cores(4), limit=60)
    site.asks("y", cores(4), limit=70)
    site.asks("z", cores(4), limit=80)
    ask(site, "a", cores(4), limit=30)
    site.plan()
    assert site.guarantees["a"] == 60
    ask(site, "b", cores(4), with_=("a",), limit=100)
    site.plan()
    assert (site.guarantees["a"], site.guarantees["b"]) == (70, 70)
    assert [each.cause for each in site.revisions if each.id == "a"] == ["planned", "b joins it"]
    site.settle()
    assert (site.starts["a"], site.starts["b"]) == (70, 70)


@pytest.mark.parametrize("depth", [1, 0, None])
def test_one_who_joins_from_behind_others_does_not_break_a_promise_in_silence(depth):
    site = Site(equal_nodes(2), [Queue(name="batch", depth=depth)])
    site.asks("x", cores(4), limit=60)
    ask(site, "a", cores(4, slots=2), limit=30)
    site.asks("c", cores(4, slots=2), limit=30)
    site.plan()
    ask(site, "b", cores(2), with_=("a",), limit=30)
    site.settle()
    assert {"x", "c"} <= set(site.starts)
    assert not {"a", "b"} & set(site.starts)


def test_who_leaves_is_not_waited_for():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), limit=60)
    pair(site)
    site.plan()
    site.withdraw("b")
    site.plan()
    assert site.starts == {"x": 0, "a": 0}


def late_pair(*blocks):
    """Two who were promised 60 and are looked at 7 s later, with one behind them."""
    site = Site(equal_nodes(2))
    site.is_exact = False
    for block in blocks:
        site.block(block)
    site.asks("x", cores(4, slots=2), limit=60)
    pair(site, limit=30)
    site.asks("next", cores(4), limit=10)
    site.plan()
    assert (site.guarantees["a"], site.guarantees["b"]) == (60, 60)
    site.now = 67
    site.end("x")
    site.plan()
    return site


def test_all_have_all_of_their_time_when_they_start_late():
    site = late_pair()
    assert (site.starts["a"], site.starts["b"]) == (67, 67)
    assert site.guarantees["next"] == 97
    site.settle()
    assert site.starts["next"] == 97


def test_all_are_planned_anew_when_they_are_late_for_a_window():
    site = late_pair(maintenance("m", 95, 120, "n2"))
    assert (site.guarantees["a"], site.guarantees["b"]) == (120, 120)
    assert "it was late for maintenance m" in {each.cause for each in site.revisions}
    site.settle()
    assert (site.starts["a"], site.starts["b"]) == (120, 120)


@pytest.mark.parametrize("policy", ["batch", "interactive"])
def test_nothing_is_promised_to_those_who_could_start_together_too_far_ahead_only(policy):
    site = Site(equal_nodes(2), [Queue(name="batch", policy=policy)], firm=50)
    site.asks("x", cores(4, slots=2), limit=100)
    pair(site, limit=30)
    site.plan()
    assert site.guarantees == {}
    site.settle()
    assert site.starts == {"x": 0, "a": 100, "b": 100}
