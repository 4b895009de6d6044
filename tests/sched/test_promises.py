"""Guarantees: given once, moved later only with a cause, and kept."""

from math import inf

import pytest

from jobman.sched.queues import Queue, QueueState
from jobman.spec.shapes import Part
from tests.sched.clusters import Site, cores, equal_nodes, maintenance, node, nodes, whole


def batch(**more):
    return (Queue(name="batch", **more),)


INTERACTIVE = (Queue(name="batch", policy="interactive"),)


def revisions_of(site, id_):
    return [(each.before, each.after) for each in site.revisions if each.id == id_]


def causes_of(site, id_):
    return [each.cause for each in site.revisions if each.id == id_]


# -- giving and improving ----------------------------------------------------------------------------------


def test_a_guarantee_is_given_with_the_first_plan():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.plan()
    assert revisions_of(site, "a") == [(None, 100)]


def test_an_early_end_moves_guarantees_earlier_and_says_whose_end_it_was():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4), run=30)
    site.asks("a", cores(4))
    site.asks("b", cores(4))
    site.settle()
    assert revisions_of(site, "b") == [(None, 200), (200, 130)]
    assert "x ended" in causes_of(site, "b")[-1]
    assert site.starts == {"x": 0, "a": 30, "b": 130}


def test_one_who_leaves_makes_room_for_those_behind():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.asks("b", cores(4))
    site.plan()
    site.now = 10
    site.withdraw("a")
    site.plan()
    assert revisions_of(site, "b") == [(None, 200), (200, 100)]
    assert "a left" in causes_of(site, "b")[-1]


def test_compressing_goes_in_order_so_that_nobody_is_overtaken_for_nothing():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), limit=100, run=10)
    site.asks("y", cores(4), limit=200)
    site.asks("wide", nodes(2, core=4), limit=50)
    site.asks("a", cores(4), limit=190)
    site.asks("b", cores(4), limit=190)
    site.plan()
    assert site.guarantees == {"wide": 200, "a": 250, "b": 250}
    site.advance(10)
    assert site.starts["a"] == 10
    assert site.guarantees == {"wide": 200, "b": 250}


# -- nodes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["down", "draining"])
def test_a_lost_node_is_named_by_every_promise_that_moves(state):
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), limit=100)
    site.asks("y", cores(4), limit=150)
    site.asks("a", cores(4))
    site.asks("b", cores(4))
    site.plan()
    assert site.guarantees == {"a": 100, "b": 150}
    site.now = 10
    site.set_node("n1", state)
    site.plan()
    assert sorted(site.guarantees.values()) == [150, 250]
    assert all("n1" in revision.cause for revision in site.revisions if revision.before is not None)


def test_a_promise_that_only_a_lost_node_could_keep_is_taken_back():
    site = Site([node("n1"), node("n2", disk="fast")])
    site.asks("x", cores(4, disk="fast"))
    site.asks("a", cores(4, disk="fast"))
    site.plan()
    site.now = 10
    site.set_node("n2", "draining")
    site.plan()
    assert revisions_of(site, "a") == [(None, 100), (100, None)]
    site.now = 20
    site.set_node("n2", "up")
    site.plan()
    assert revisions_of(site, "a")[-1] == (None, 100)


def test_a_node_that_returns_is_used_at_once():
    site = Site(equal_nodes(2))
    site.set_node("n2", "down")
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.plan()
    site.now = 10
    site.set_node("n2", "up")
    site.plan()
    assert site.starts == {"x": 0, "a": 10}


def test_a_suspect_node_is_not_counted_on_for_a_while():
    site = Site(equal_nodes(1))
    site.set_node("n1", "suspect")
    site.asks("a", cores(1))
    site.plan()
    assert site.guarantees["a"] > 0
    site.now = 20
    site.set_node("n1", "up")
    site.plan()
    assert site.starts == {"a": 20}


def test_while_a_node_stays_suspect_promises_on_it_move_on_with_a_cause():
    site = Site(equal_nodes(1))
    site.set_node("n1", "suspect")
    site.asks("a", cores(1))
    site.plan()
    site.advance(1000)
    assert site.guarantees["a"] > 1000
    assert all("n1" in cause for cause in causes_of(site, "a")[1:])


def test_a_node_that_drains_and_then_is_lost_did_not_come_back_in_between():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4))
    site.asks("y", cores(4))
    site.asks("a", cores(4))
    site.plan()
    site.now = 10
    site.set_node("n1", "draining")
    site.plan()
    site.now = 20
    site.set_node("n1", "down")
    site.plan()
    assert not any("came back" in revision.cause for revision in site.revisions)


# -- running too long --------------------------------------------------------------------------------------


def test_one_who_runs_too_long_moves_promises_on_its_node_and_is_named():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4), run=140)
    site.asks("a", cores(4))
    site.asks("b", cores(4))
    site.settle()
    assert site.starts == {"x": 0, "a": 140, "b": 240}
    later = [each for each in site.revisions if each.before is not None and each.after > each.before]  # type: ignore[operator]
    assert later
    assert all("x" in each.cause for each in later)


def test_one_who_runs_too_long_does_not_hold_up_those_with_room_elsewhere():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), run=150)
    site.asks("y", cores(4), limit=200, run=105)
    site.asks("a", cores(4))
    site.settle()
    assert site.starts["a"] == 105


def test_a_displaced_promise_beyond_the_reservations_is_planned_anew():
    site = Site(equal_nodes(1), batch(depth=1))
    site.asks("x", cores(4), run=140)
    site.asks("b", cores(4))
    site.plan()
    site.now = 10
    site.asks("a", cores(4), weight=5)
    site.settle()
    assert site.starts.keys() == {"x", "a", "b"}


@pytest.mark.parametrize("queues", [batch(depth=1), batch(depth=2), batch(depth=1, shortest_first=True)])
def test_promises_of_those_who_were_first_once_survive_a_lost_node(queues):
    site = Site(equal_nodes(2), queues)
    site.asks("x", cores(1), limit=60)
    site.asks("b", whole(2), limit=30)
    site.plan()
    site.asks("a", whole(2), weight=1, limit=5)
    site.asks("c", whole(2), weight=2, limit=5)
    site.plan()
    site.set_node("n2", "draining")
    site.plan()
    assert all(site.planner.promise(id_).placed is not None for id_ in site.guarantees)


# -- passes that come late ---------------------------------------------------------------------------------


def test_a_pass_that_is_late_moves_the_promises_behind_it_and_says_so():
    site = Site(equal_nodes(1), is_exact=False)
    for name in "xyz":
        site.asks(name, cores(4))
    site.plan()
    assert site.guarantees == {"y": 100, "z": 200}
    site.now = 100
    site.end("x")
    site.now = 105
    site.planner.plan(105)
    assert site.planner.promise("z").guaranteed_by == 205


def test_a_late_pass_starts_nothing_into_a_window():
    site = Site(equal_nodes(1), is_exact=False)
    site.block(maintenance("repair/1", 200, 300, "n1"))
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.plan()
    assert site.guarantees == {"a": 100}
    site.now = 100
    site.end("x")
    site.now = 105
    site.planner.plan(105)
    assert site.planner.promise("a").guaranteed_by == 300


def test_a_queue_that_was_closed_for_a_while_starts_nothing_into_a_window():
    site = Site(equal_nodes(1), is_exact=False)
    site.block(maintenance("repair/1", 200, 300, "n1"))
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.plan()
    site.set_queue("batch", QueueState.CLOSED)
    site.now = 100
    site.end("x")
    site.plan()
    site.now = 150
    site.set_queue("batch", QueueState.OPEN)
    site.plan()
    assert "a" not in site.starts


def test_a_closed_queue_takes_its_guarantees_back_and_says_why():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.plan()
    site.set_queue("batch", QueueState.CLOSED)
    site.plan()
    assert site.planner.promise("a").guaranteed_by is None
    assert "closed" in causes_of(site, "a")[-1]


def test_reservations_of_a_closed_queue_keep_nobody_else_waiting():
    site = Site(equal_nodes(1), (Queue(name="batch"), Queue(name="other")))
    site.asks("x", cores(4), limit=10, queue="other")
    site.plan()
    site.asks("a", cores(4))
    site.plan()
    site.set_queue("batch", QueueState.CLOSED)
    site.asks("b", cores(4), queue="other")
    site.settle(50)
    assert site.starts == {"x": 0, "b": 10}


# -- strict order ------------------------------------------------------------------------------------------


def test_when_the_one_ahead_loses_its_plan_those_behind_lose_theirs_with_the_cause():
    site = Site(equal_nodes(2), INTERACTIVE)
    site.asks("x", cores(4))
    site.asks("y", cores(4))
    site.asks("a", nodes(2, core=4))
    site.asks("b", cores(1))
    site.plan()
    assert site.guarantees == {"a": 100, "b": 200}
    site.now = 10
    site.set_node("n2", "down")
    site.plan()
    assert not site.guarantees
    assert "n2" in causes_of(site, "b")[-1]
    site.now = 20
    site.set_node("n2", "up")
    site.settle()
    assert site.order == ["x", "y", "a", "b"]


def test_when_the_one_ahead_moves_later_those_behind_move_with_it():
    site = Site([node("n1", kind="a"), node("n2", kind="b")], INTERACTIVE)
    site.asks("x", cores(4, kind="a"), run=140)
    site.asks("y", cores(4, kind="b"))
    site.asks("a", cores(4, kind="a"))
    site.asks("b", cores(4, kind="b"))
    site.settle()
    assert site.starts["a"] == site.starts["b"] == 140
    assert site.order == ["x", "y", "a", "b"]


def test_new_priorities_break_no_promise_of_an_interactive_queue():
    site = Site(equal_nodes(2), INTERACTIVE)
    for name in "abcdef":
        site.asks(name, cores(4), limit=10)
    site.plan()
    weights = {"f": 9.0, "e": 8.0}
    site.planner._priority = lambda request, now: weights.get(request.id, 0.0)
    site.planner.resort(0)
    site.settle()
    assert site.order == list("abcdef")


# -- who gives way -----------------------------------------------------------------------------------------


def test_one_who_is_displaced_does_not_gain_at_the_cost_of_others():
    site = Site(equal_nodes(3), batch(depth=1))
    site.asks("wide", whole(3), limit=20, earliest=23)
    site.plan()
    site.asks("heavy", cores(1), limit=30, weight=2)
    site.plan()
    assert site.guarantees == {"wide": 23, "heavy": 43}
    site.now = 20
    site.block(maintenance("repair/1", 52, 66, "n1"))
    site.settle()
    assert site.starts["wide"] == 23


def test_what_is_freed_behind_a_start_may_still_help():
    site = Site([node("n1", 2), node("n2", 2), node("n3", 1)])
    site.block(maintenance("repair/1", 31, 59, "n1", "n3"))
    site.now = 10
    site.asks("wide", nodes(2, core=2), limit=30)
    site.asks("a", cores(1), limit=60)
    site.plan()
    assert site.guarantees == {"wide": 59, "a": 59}
    site.withdraw("wide")
    site.plan()
    assert site.starts == {"a": 10}


@pytest.mark.parametrize("depth", [1, 2, None])
def test_room_of_those_who_are_displaced_is_used_at_once(depth):
    site = Site(equal_nodes(1), batch(depth=depth))
    site.asks("x", cores(1), limit=21)
    site.asks("wide", whole(), limit=60)
    site.asks("a", cores(1), limit=30)
    site.plan()
    assert site.starts == {"x": 0}
    site.now = 1
    site.block(maintenance("repair/1", 40, 90, "n1"))
    site.plan()
    assert site.guarantees["wide"] == 90
    assert site.starts["a"] == 1


def test_an_earlier_start_may_lie_before_what_was_freed():
    site = Site([node("n1"), node("n2", kind="other")])
    site.asks("y", cores(4, kind="other"), limit=1000)
    site.asks("a", cores(4), limit=20)
    site.asks("w", cores(4), limit=50, earliest=50)
    site.asks("x", cores(4), limit=30, earliest=100)
    site.asks("z", cores(4), limit=80)
    site.plan()
    assert site.guarantees == {"w": 50, "x": 100, "z": 130}
    site.withdraw("w")
    site.plan()
    assert site.guarantees["z"] == 20


def test_waiting_for_one_whose_time_is_over_does_not_cost_more_with_every_pass():
    site = Site(equal_nodes(2), is_exact=False)
    site.asks("x", nodes(2, core=4))
    site.asks("a", nodes(2, core=4))
    site.plan()
    site.now = 100
    for _ in range(12):
        site.plan()
    assert len(site.planner.schedule.dues) + len(site.planner.lanes[0].due) < 12
    site.end("x")
    site.plan()
    assert site.starts["a"] == 100


@pytest.mark.parametrize("queues", [batch(depth=1), batch(), INTERACTIVE])
def test_one_who_is_long_overdue_is_told_when_its_node_is_lost(queues):
    site = Site(equal_nodes(1), queues, is_exact=False)
    site.asks("x", cores(4), limit=10)
    site.asks("a", cores(4), limit=5)
    site.plan()
    assert site.guarantees == {"a": 10}
    site.now = 20
    site.end("x")
    site.set_node("n1", "draining")
    site.plan()
    assert not site.guarantees
    assert "n1" in causes_of(site, "a")[-1]


# -- together ----------------------------------------------------------------------------------------------


def test_those_who_must_run_together_are_displaced_together():
    site = Site(equal_nodes(2))
    site.asks("x", nodes(2, core=4), limit=50)
    site.asks("a", nodes(1, core=3), limit=30, together=("b",))
    site.asks("b", nodes(1, core=3), limit=40, together=("a",))
    site.plan()
    assert site.guarantees == {"a": 50, "b": 50}
    site.now = 10
    site.block(maintenance("repair/1", 60, 100, "n2"))
    site.plan()
    assert site.guarantees == {"a": 100, "b": 100}
    site.settle()
    assert site.starts == {"x": 0, "a": 100, "b": 100}
    site.clear()


def test_those_who_must_run_together_and_can_start_elsewhere_start_once():
    site = Site(equal_nodes(3))
    site.asks("x", nodes(3, core=4), limit=50, run=20)
    site.asks("a", nodes(1, core=3), limit=30, together=("b",))
    site.asks("b", nodes(1, core=3), limit=40, together=("a",))
    site.plan()
    site.now = 10
    site.set_node("n1", "draining")
    site.settle()
    assert site.starts == {"x": 0, "a": 20, "b": 20}
    site.clear()


def test_those_who_must_run_together_give_way_together():
    site = Site([node("n1"), node("n2", kind="other"), node("n3", kind="other")])
    site.asks("x", nodes(2, core=4), limit=30)
    site.asks("heavy", cores(4), limit=60, earliest=30, weight=5)
    site.plan()
    site.asks("a", cores(4, kind="other"), limit=20, together=("b",))
    site.asks("b", cores(1, kind="other"), limit=20, together=("a",))
    site.plan()
    promised = dict(site.guarantees)
    assert promised["a"] == promised["b"]
    site.now = 10
    site.block(maintenance("repair/1", 40, 200, "n1"))
    site.plan()
    assert site.guarantees.get("a") == site.guarantees.get("b")
    site.settle()
    assert site.starts["a"] == site.starts["b"]
    site.clear()


# -- how far ahead -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("queues", [batch(depth=1), batch(), INTERACTIVE])
def test_nothing_is_promised_farther_ahead_than_is_firm(queues):
    site = Site(equal_nodes(1), queues, firm=50)
    site.asks("x", cores(4), limit=60)
    site.asks("a", cores(4), limit=20)
    site.asks("b", cores(4), limit=20)
    site.plan()
    assert not site.guarantees
    site.advance(30)
    site.asks("c", cores(4), limit=20)
    site.settle()
    assert site.starts == {"x": 0, "a": 60, "b": 80, "c": 100}


@pytest.mark.parametrize("queues", [batch(depth=1), batch(), INTERACTIVE])
def test_one_too_far_ahead_to_be_promised_does_not_start_into_a_window(queues):
    site = Site(equal_nodes(1), queues, firm=35)
    site.block(maintenance("repair/1", 41, 48, "n1"))
    site.asks("a", cores(1), limit=60)
    site.settle()
    assert site.starts == {"a": 48}


def test_nobody_behind_one_too_far_ahead_is_promised_anything():
    site = Site(equal_nodes(2), INTERACTIVE, firm=35)
    site.asks("x", cores(2), limit=60)
    site.asks("wide", nodes(2, core=4), limit=5)
    site.plan()
    site.asks("small", cores(1), limit=5)
    site.settle()
    assert site.order == ["x", "wide", "small"]


def test_one_who_never_ends_does_not_take_the_place_of_one_too_far_ahead():
    site = Site(equal_nodes(1), batch(depth=1), firm=35)
    site.asks("x", cores(2), limit=60)
    site.asks("wide", cores(4), limit=5)
    site.asks("endless", cores(2), limit=inf)
    site.asks("short", cores(2), limit=30)
    site.settle(1000)
    assert site.starts == {"x": 0, "short": 0, "wide": 60, "endless": 65}


def test_one_too_far_ahead_to_be_promised_stays_so_when_others_move_up():
    cluster = [node("n1"), node("n2", 5, memory=2), node("n3", 5, memory=2)]
    site = Site(cluster, batch(depth=1, shortest_first=True), firm=35)
    for name, part, limit in (
        ("first", Part(slots=4, each={"core": 2, "memory": 1}), 60),
        ("second", Part(slots=3, each={"core": 0.5}, beside={"core": 1}), 30),
        ("third", cores(2), 5),
    ):
        site.asks(name, part, limit=limit)
        site.plan()
    site.block(maintenance("m", 39, 63, "n1"))
    site.asks("far", nodes(3, core=3), limit=30, weight=2)
    site.plan()
    site.end("first")
    site.settle()
    assert site.starts["far"] == 63


def test_one_who_is_displaced_is_not_promised_a_place_too_far_ahead():
    queues = (Queue(name="batch", depth=2), Queue(name="other", factor=2))
    site = Site([node("n1", 2, gpus=2)], queues, firm=35)
    shared = Part(slots=1, each={"core": 0.5}, beside={"core": 1})
    for name, part, limit, run, queue, earliest in (
        ("wide", cores(2), 20, 20, "batch", 15),
        ("slow", shared, 5, 7.5, "other", 0),
        ("long", Part(slots=1, each={"core": 0.5, "gpu": 1}), 60, 60, "batch", 0),
        ("next", cores(1), 10, 15, "other", 0),
    ):
        site.asks(name, part, limit=limit, run=run, queue=queue, earliest=earliest)
        site.plan()
    site.advance(20)
    assert (15, None) in revisions_of(site, "wide")


# -- late passes -------------------------------------------------------------------------------------------


def test_one_of_another_queue_who_gives_way_to_one_who_starts_late_is_told_at_once():
    queues = (
        Queue(name="quick", policy="interactive", nodes=("n1",), factor=2),
        Queue(name="other", nodes=("n1",), factor=2),
        Queue(name="batch"),
    )
    site = Site(equal_nodes(2), queues, bounds={"ada": {"job": 1}})
    site.is_exact = False
    site.asks("first", queue="batch", user="ada", limit=30)
    site.plan()
    site.asks("late", queue="other", user="ada", limit=30)
    site.plan()
    site.asks("last", queue="quick", user="ada", limit=5)
    site.plan()
    assert (site.guarantees["late"], site.guarantees["last"]) == (30, 60)
    site.now = 37
    site.end("first")
    site.plan()
    assert site.starts["late"] == 37
    assert site.guarantees["last"] == 67
    assert causes_of(site, "last")[-1] == "late ran longer than planned: it started late"
