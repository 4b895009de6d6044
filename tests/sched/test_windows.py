"""Maintenance windows and advance reservations: who may run there, and until when."""

from math import inf

import pytest

from jobman.sched.blocks import Block
from jobman.sched.queues import Queue
from jobman.spec.shapes import Part
from tests.sched.clusters import Site, cores, equal_nodes, maintenance, node, nodes, reservation, whole

POLICIES = {
    "fcfs": Queue(name="batch", depth=0),
    "easy": Queue(name="batch", depth=1),
    "conservative": Queue(name="batch"),
    "interactive": Queue(name="batch", policy="interactive"),
}
every_policy = pytest.mark.parametrize("policy", POLICIES)


def site_with(policy="conservative", count=1):
    return Site(equal_nodes(count), (POLICIES[policy],))


# -- maintenance -------------------------------------------------------------------------------------------


@every_policy
def test_what_ends_before_a_window_is_admitted_and_the_rest_waits_for_its_end(policy):
    site = site_with(policy)
    site.block(maintenance("repair/1", 50, 80, "n1"))
    site.asks("short", cores(1), limit=50)
    site.asks("long", cores(1), limit=51)
    site.settle()
    assert site.starts == {"short": 0, "long": 80}


@every_policy
def test_a_window_on_one_node_leaves_the_others_alone(policy):
    site = site_with(policy, 2)
    site.block(maintenance("repair/1", 50, 80, "n1"))
    site.asks("a", cores(4))
    site.asks("b", cores(4), limit=50)
    site.plan()
    assert site.placed["a"].places == ({"n2": 1},)
    assert site.placed["b"].places == ({"n1": 1},)


def test_promises_in_a_window_move_and_name_it():
    site = site_with()
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.plan()
    site.now = 10
    site.block(maintenance("repair/1", 150, 160, "n1"))
    site.plan()
    (*_, last) = site.revisions
    assert (last.before, last.after) == (100, 160)
    assert "repair/1" in last.cause


def test_promises_out_of_a_window_stay():
    site = site_with()
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.plan()
    site.block(maintenance("repair/1", 200, 300, "n1"))
    site.plan()
    assert site.guarantees == {"a": 100}


def test_what_runs_already_may_go_on_in_a_window():
    site = site_with()
    site.asks("x", cores(4))
    site.plan()
    site.now = 10
    site.block(maintenance("repair/1", 50, 80, "n1"))
    site.asks("a", cores(1), limit=10)
    site.settle()
    assert site.starts == {"x": 0, "a": 100}


@every_policy
def test_when_a_window_is_not_wanted_any_more_the_nodes_are_used_at_once(policy):
    site = site_with(policy)
    site.block(maintenance("repair/1", 50, inf, "n1"))
    site.asks("a", cores(1))
    site.plan()
    assert not site.starts
    site.now = 20
    site.unblock("repair/1")
    site.plan()
    assert site.starts == {"a": 20}


def test_a_window_that_names_no_node_is_about_all_of_them():
    site = site_with(count=2)
    names = site.block(maintenance("repair/1", 50, 80))
    assert set(names) == {"n1", "n2"}
    site.asks("a", cores(1))
    site.settle()
    assert site.starts == {"a": 80}


def test_nodes_that_are_only_counted_are_chosen_where_nothing_is_planned():
    site = site_with(count=3)
    site.asks("x", cores(4))
    site.plan()
    block = Block(name="course/1", start=50, end=80, kind="reservation", count=2, users=("ada",))
    assert set(site.block(block)) == {"n2", "n3"}


def test_counted_nodes_have_the_facts_that_are_asked_for():
    site = Site([node("n1"), node("n2", disk="fast"), node("n3", disk="fast")])
    block = Block(name="c/1", start=50, end=80, kind="reservation", count=1, requires={"disk": "fast"})
    assert site.block(block) == ("n2",)


def test_a_node_that_is_lost_is_the_last_to_be_counted():
    site = site_with(count=2)
    site.asks("x", cores(4), limit=70)
    site.plan()
    site.set_node("n2", "down")
    block = Block(name="c/1", start=50, end=80, kind="reservation", count=1)
    assert site.block(block) == ("n1",)


def test_two_windows_on_one_node_are_both_kept():
    site = site_with()
    site.block(maintenance("one/1", 50, 80, "n1"))
    site.block(maintenance("two/1", 70, 120, "n1"))
    site.asks("a", cores(1), limit=60)
    site.plan()
    site.now = 10
    site.unblock("one/1")
    site.plan()
    assert site.starts == {"a": 10}
    site.now = 20
    site.asks("b", cores(1), limit=60)
    site.settle()
    assert site.starts["b"] == 120


def test_a_window_that_is_set_again_under_its_name_takes_its_nodes_once():
    site = site_with()
    site.block(maintenance("repair/1", 10, 20, "n1"))
    site.block(maintenance("repair/1", 10, 30, "n1"))
    site.unblock("repair/1")
    site.clear()


def test_a_window_on_a_lost_node_leaves_nothing_behind():
    site = site_with(count=2)
    site.set_node("n1", "down")
    site.block(maintenance("repair/1", 10, 40, "n1"))
    site.asks("a", cores(1), limit=5)
    site.advance(20)
    site.set_node("n1", "up")
    site.plan()
    site.asks("b", nodes(2, core=4), limit=5)
    site.settle()
    assert site.starts["b"] == 40
    site.clear()


# -- reservations ------------------------------------------------------------------------------------------


@every_policy
def test_reserved_nodes_are_kept_for_those_who_reserved_them(policy):
    site = site_with(policy, 2)
    site.block(reservation("course/1", 0, 500, "n1"))
    site.asks("other", cores(4), user="bob", limit=50)
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.plan()
    assert site.placed["other"].places == ({"n2": 1},)
    assert site.placed["mine"].places == ({"n1": 1},)


@every_policy
def test_a_request_waits_for_its_reservation_to_begin(policy):
    site = site_with(policy, 2)
    site.block(reservation("course/1", 70, 500, "n1"))
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.settle(600)
    assert site.starts == {"mine": 70}


@every_policy
def test_a_request_for_a_reservation_does_not_wait_for_those_who_want_other_nodes(policy):
    site = site_with(policy, 2)
    site.block(reservation("course/1", 0, 500, "n1"))
    site.asks("x", cores(4))
    site.asks("head", cores(4))
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.plan()
    if policy == "interactive":
        return
    assert "mine" in site.starts


@every_policy
def test_others_do_not_wait_for_a_request_for_a_reservation(policy):
    site = site_with(policy, 2)
    site.block(reservation("course/1", 300, 500, "n1"))
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.asks("other", cores(4))
    site.plan()
    if policy == "interactive":
        return
    assert site.starts == {"other": 0}


def test_what_does_not_end_before_its_reservation_does_is_not_started_in_it():
    site = site_with()
    site.block(reservation("course/1", 0, 50, "n1"))
    site.block(reservation("course/2", 200, 400, "n1"))
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.settle(600)
    assert site.starts == {"mine": 200}


def test_an_occurrence_may_be_asked_for_by_its_full_name():
    site = site_with()
    site.block(reservation("course/1", 0, 500, "n1"))
    site.block(reservation("course/2", 600, 900, "n1"))
    site.asks("second", cores(4), user="ada", reservation="course/2")
    site.asks("first", cores(4), user="ada", reservation="course/1")
    site.settle(1000)
    assert site.starts == {"first": 0, "second": 600}


def test_nobody_else_runs_in_a_reservation():
    site = site_with()
    site.block(reservation("course/1", 0, 500, "n1", users=("ada",)))
    site.asks("strange", cores(4), user="bob", reservation="course")
    site.settle(400)
    assert not site.starts


@pytest.mark.parametrize("state", ["down", "draining"])
def test_nothing_starts_in_a_reservation_on_a_node_that_cannot_be_used(state):
    site = site_with(count=2)
    site.block(reservation("course/1", 100, 500, "n1"))
    site.asks("mine", cores(1), user="ada", reservation="course")
    site.plan()
    site.now = 50
    site.set_node("n1", state)
    site.plan()
    site.advance(200)
    assert not site.starts
    site.set_node("n1", "up")
    site.plan()
    assert site.starts == {"mine": 200}


def test_a_reservation_made_on_a_node_that_is_down_starts_nothing_there():
    site = site_with(count=2)
    site.set_node("n1", "down")
    site.block(reservation("course/1", 10, 500, "n1", "n2"))
    site.asks("mine", cores(1), user="ada", reservation="course")
    site.settle(400)
    assert site.placed["mine"].places == ({"n2": 1},)


def test_maintenance_of_a_reserved_node_is_kept_free_too():
    site = site_with(count=2)
    site.block(reservation("course/1", 100, 500, "n1"))
    site.asks("mine", cores(1), user="ada", reservation="course")
    site.plan()
    site.now = 50
    site.block(maintenance("repair/1", 150, 200, "n1"))
    site.settle(600)
    assert site.starts == {"mine": 200}


def test_a_reservation_of_nodes_in_maintenance_waits_for_its_end():
    site = site_with()
    site.block(maintenance("repair/1", 100, 200, "n1"))
    site.block(reservation("course/1", 150, 500, "n1"))
    site.asks("mine", cores(1), user="ada", reservation="course")
    site.settle(600)
    assert site.starts == {"mine": 200}


def test_what_runs_on_when_a_reservation_begins_is_waited_for():
    site = site_with()
    site.asks("x", cores(4), limit=200)
    site.plan()
    site.now = 10
    site.block(reservation("course/1", 100, 500, "n1"))
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.plan()
    assert site.guarantees == {"mine": 200}
    site.settle(600)
    assert site.starts["mine"] == 200


def test_one_who_runs_too_long_into_a_reservation_moves_its_promises():
    site = site_with()
    site.block(reservation("course/1", 100, 500, "n1"))
    site.asks("x", cores(4), run=150)
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.settle(600)
    assert site.starts == {"x": 0, "mine": 150}


def test_one_who_runs_too_long_in_a_reservation_moves_promises_after_it():
    site = site_with()
    site.block(reservation("course/1", 0, 100, "n1"))
    site.asks("mine", cores(4), user="ada", reservation="course", run=150)
    site.plan()
    site.asks("a", cores(4))
    site.settle()
    assert site.starts == {"mine": 0, "a": 150}


def test_what_runs_in_a_reservation_that_is_removed_still_has_its_nodes():
    site = site_with()
    site.block(reservation("course/1", 0, 500, "n1"))
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.plan()
    site.now = 10
    site.unblock("course/1")
    site.asks("a", cores(4))
    site.plan()
    assert site.guarantees == {"a": 100}
    site.settle()
    assert site.starts == {"mine": 0, "a": 100}
    site.clear()


def test_promises_in_a_reservation_that_is_removed_are_taken_back():
    site = site_with()
    site.block(reservation("course/1", 100, 500, "n1"))
    site.asks("mine", cores(4), user="ada", reservation="course")
    site.plan()
    assert site.guarantees == {"mine": 100}
    site.unblock("course/1")
    site.plan()
    assert not site.guarantees
    assert "course/1" in site.revisions[-1].cause
    site.clear()


def test_a_reservation_that_comes_again_under_its_name_has_its_new_nodes():
    site = Site([node("n1", 1), node("n2", 8)])
    site.block(reservation("course/1", 0, 50, "n1"))
    site.asks("a", cores(1), user="ada", reservation="course", limit=10)
    site.settle(60)
    site.unblock("course/1")
    site.block(reservation("course/1", 50, 5000, "n2"))
    site.asks("b", cores(1), user="ada", reservation="course", limit=10)
    site.plan()
    assert site.placed["b"].places == ({"n2": 1},)


def test_of_two_windows_at_once_the_one_with_room_first_is_taken():
    site = site_with(count=2)
    site.block(reservation("course/1", 100, 900, "n1"))
    site.block(reservation("course/2", 150, 900, "n2"))
    site.asks("long", cores(4), user="ada", reservation="course", limit=400)
    site.asks("a", cores(4), user="ada", reservation="course")
    site.plan()
    assert site.guarantees == {"long": 100, "a": 150}
    site.settle(1000)
    site.clear()


def test_moving_up_in_one_of_two_windows_leaves_nothing_behind_in_the_other():
    site = site_with(count=2)
    site.block(reservation("course/1", 100, 900, "n1"))
    site.block(reservation("course/2", 150, 900, "n2"))
    site.asks("long", cores(4), user="ada", reservation="course", limit=150)
    site.asks("early", cores(4), user="ada", reservation="course", limit=40, run=5)
    site.asks("a", cores(4), user="ada", reservation="course", limit=200)
    site.asks("b", cores(4), user="ada", reservation="course", limit=200)
    site.settle(1000)
    assert site.starts.keys() == {"long", "early", "a", "b"}
    site.clear()


@every_policy
@pytest.mark.parametrize("count", [3, 12])
def test_nodes_are_seen_to_be_free_again_after_a_reservation(policy, count):
    site = site_with(policy, count)
    names = [f"n{number}" for number in range(1, count + 1)]
    site.asks("x", cores(2), limit=1000, run=3)
    site.plan()
    site.now = 1
    site.block(reservation("course/1", 2, 60, *names))
    site.asks("mine", cores(2), user="ada", reservation="course", limit=50, run=10)
    site.plan()
    site.advance(5)
    site.asks("looks around", cores(1), limit=1000)
    site.plan()
    site.withdraw("looks around")
    site.advance(100)
    assert not site.running
    site.asks("all", whole(count), limit=10)
    site.plan()
    assert site.starts["all"] == 100


def test_gangs_in_a_reservation_are_whole():
    site = site_with(count=12)
    site.block(reservation("course/1", 10, 500, *[f"n{number}" for number in range(1, 11)]))
    site.asks("a", nodes(6, core=4), user="ada", reservation="course", limit=50)
    site.asks("b", nodes(6, core=4), user="ada", reservation="course", limit=50)
    site.asks("c", Part(slots=8, each={"core": 2}), user="ada", reservation="course", limit=50)
    site.settle(600)
    assert site.starts == {"a": 10, "c": 10, "b": 60}


def test_one_who_is_late_for_its_reservation_is_told():
    site = Site(equal_nodes(1), is_exact=False)
    site.block(reservation("course/1", 55, 78, "n1"))
    site.asks("mine", cores(1), user="ada", reservation="course", limit=10)
    site.plan()
    assert site.guarantees == {"mine": 55}
    site.now = 75
    site.plan()
    assert not site.starts
    assert not site.guarantees
    assert "course/1" in site.revisions[-1].cause


# -- what others use ---------------------------------------------------------------------------------------


def test_what_others_use_is_not_given_away():
    site = site_with(count=2)
    site.set_foreign("n1", core=3)
    site.asks("a", cores(2))
    site.asks("b", cores(1))
    site.plan()
    assert site.placed["a"].places == ({"n2": 1},)
    assert site.placed["b"].places == ({"n1": 1},)
    site.clear()


def test_promises_that_cannot_be_kept_beside_others_move_and_say_why():
    site = site_with()
    site.asks("x", cores(4))
    site.asks("a", cores(4), limit=50)
    site.asks("b", cores(2), limit=50)
    site.plan()
    assert site.guarantees == {"a": 100, "b": 150}
    site.set_foreign("n1", core=1)
    site.plan()
    assert site.guarantees == {"b": 100}
    assert "node n1" in next(revision.cause for revision in site.revisions if revision.after is None)
    site.now = 20
    site.set_foreign("n1", core=0)
    site.plan()
    assert site.guarantees == {"b": 100, "a": 150}
    site.settle()
    site.clear()


def test_a_node_taken_whole_stays_whole_when_others_use_less():
    site = Site([node("n1", 4, gpus=2)])
    site.set_foreign("n1", core=4)
    site.asks("alone", whole())
    site.plan()
    site.set_foreign("n1", core=0)
    site.asks("a", cores(1))
    site.plan()
    assert site.starts == {"alone": 0}
    site.settle()
    site.clear()


def test_a_node_that_others_fill_up_is_not_empty():
    site = site_with()
    site.asks("a", cores(4))
    site.plan()
    site.set_foreign("n1", core=4)
    site.asks("alone", whole())
    site.plan()
    assert "alone" not in site.starts


def test_a_node_that_is_added_is_used_at_once():
    site = site_with()
    site.asks("x", cores(4))
    site.asks("a", cores(4))
    site.asks("wide", nodes(2, core=4))
    site.plan()
    site.now = 10
    site.add_node(node("n2", gpus=1))
    site.plan()
    assert site.starts == {"x": 0, "a": 10}
    assert site.guarantees == {"wide": 110}
    site.clear()
