"""Who starts, who waits and in which order, for each policy."""

from math import inf

import msgspec
import pytest

from jobman.plan.nodes import COPY, ClusterNode
from jobman.sched.planner import Planner
from jobman.sched.queues import Queue, QueueState
from jobman.sched.requests import Placed, Request
from jobman.sched.wishes import Wishes
from jobman.spec.shapes import Part
from tests.sched.clusters import (
    Site,
    alternatives,
    cores,
    equal_nodes,
    everything_is_free,
    node,
    nodes,
    whole,
)


def batch(**more):
    return (Queue(name="batch", **more),)


INTERACTIVE = (Queue(name="batch", policy="interactive"),)


# -- starting ----------------------------------------------------------------------------------------------


def test_what_fits_starts_at_once_and_says_where_and_until_when():
    site = Site(equal_nodes(2))
    site.asks("a", cores(3), limit=60)
    site.asks("b", cores(3), limit=30)
    starts = {start.id: start for start in site.plan().starts}
    assert starts["a"].placed == Placed(0, ({"n1": 1},))
    assert starts["b"].placed == Placed(0, ({"n2": 1},))
    assert (starts["a"].until, starts["b"].until) == (60, 30)


def test_a_request_without_a_limit_starts_where_there_is_room():
    site = Site(equal_nodes(1))
    site.asks("a", cores(2), limit=inf)
    site.asks("b", cores(2), limit=inf)
    site.asks("c", cores(2), limit=inf)
    site.plan()
    assert site.starts == {"a": 0, "b": 0}
    site.now = 10
    site.end("a")
    site.plan()
    assert site.starts["c"] == 10


@pytest.mark.parametrize("depth", [0, 1, None])
def test_somebody_without_a_limit_holds_up_only_those_who_need_its_room(depth):
    site = Site(equal_nodes(2), batch(depth=depth))
    site.asks("endless", cores(4), limit=inf)
    site.asks("small", cores(4), limit=10)
    site.asks("next", cores(4), limit=10)
    site.settle(100)
    assert site.starts == {"endless": 0, "small": 0, "next": 10}


def test_small_ones_fill_up_the_first_nodes():
    site = Site(equal_nodes(3))
    for _ in range(5):
        site.asks("", cores(1))
    site.plan()
    assert [next(iter(placed.places[0])) for placed in site.placed.values()] == ["n1"] * 4 + ["n2"]


def test_the_first_alternative_with_room_is_taken():
    site = Site([node("n1", 8, gpus=1)])
    site.asks("a", Part(slots=1, each={"gpu": 1}), cores(4))
    site.asks("b", Part(slots=1, each={"gpu": 1}), cores(4))
    site.plan()
    assert (site.placed["a"].alternative, site.placed["b"].alternative) == (0, 1)


def test_an_alternative_that_starts_earlier_is_promised():
    site = Site([node("n1", 8, gpus=1)])
    site.asks("a", Part(slots=1, each={"gpu": 1, "core": 4}), limit=200)
    site.asks("b", cores(4), limit=50)
    site.asks("c", Part(slots=1, each={"gpu": 1}), cores(8), cores(4))
    site.plan()
    promise = site.planner.promise("c")
    assert (promise.guaranteed_by, promise.placed.alternative) == (50, 2)  # type: ignore[union-attr]


def test_a_node_with_a_job_of_its_own_takes_nobody_else():
    site = Site(equal_nodes(1))
    site.asks("a", whole(), limit=10)
    site.asks("b", cores(1), limit=10)
    site.settle()
    assert site.starts == {"a": 0, "b": 10}


def test_one_who_needs_nothing_is_kept_from_a_node_that_somebody_has_alone():
    site = Site(equal_nodes(1))
    site.asks("a", whole(), limit=10)
    site.asks("b", Part(slots=1), limit=10)
    site.settle()
    assert site.starts == {"a": 0, "b": 10}


def test_a_node_that_says_nothing_of_itself_takes_one_job_that_wants_it_alone():
    site = Site([ClusterNode(name="n1")])
    site.asks("a", whole(), limit=10)
    site.asks("b", whole(), limit=10)
    site.settle()
    assert site.starts == {"a": 0, "b": 10}


@pytest.mark.parametrize("depth", [0, 1, None])
def test_a_node_that_says_nothing_of_itself_takes_no_cores(depth):
    site = Site([ClusterNode(name="n1")], batch(depth=depth))
    site.asks("a", cores(1))
    site.asks("b", Part(slots=1))
    site.asks("c", Part(slots=1))
    site.plan()
    assert "a" not in site.starts


def test_the_price_of_a_runtime_is_paid_by_each_piece():
    site = Site(equal_nodes(2, 4, memory=4))
    site.asks("a", cores(1, slots=4), overhead={"memory": 2})
    site.plan()
    assert site.placed["a"].places == ({"n1": 2, "n2": 2},)


def test_a_node_takes_no_more_copies_than_it_may_though_it_has_cores_left():
    site = Site([ClusterNode(name="n1", amounts={"core": 8, COPY: 2})])
    for name in "abc":
        site.asks(name, cores(1), overhead={COPY: 1})
    site.plan()
    assert sorted(site.starts) == ["a", "b"]


def test_equal_shapes_with_other_runtimes_are_told_apart():
    shape = alternatives(cores(1))
    planner = Planner(equal_nodes(1, 4, memory=4))
    for number, price in enumerate((1, 4, 3)):
        planner.submit(
            Request(id=f"r{number}", alternatives=shape, number=number, limit=10, overhead={"memory": price}),
            0,
        )
    assert [start.id for start in planner.plan(0).starts] == ["r0", "r2"]


# -- policies ----------------------------------------------------------------------------------------------


def blocked(**policy):
    """A node with 3 of 4 cores in use until 100; the head wants all, others are behind it."""
    site = Site(equal_nodes(1), batch(**policy))
    site.asks("running", cores(3))
    site.asks("head", cores(4))
    site.asks("long", cores(1), limit=150)
    site.asks("short", cores(1), limit=50)
    site.plan()
    return site


def test_in_order_of_coming_nobody_passes_the_first():
    assert blocked(depth=0).starts == {"running": 0}


def test_with_one_reservation_those_may_pass_who_do_not_delay_it():
    site = blocked(depth=1)
    assert site.starts == {"running": 0, "short": 0}
    assert site.guarantees == {"head": 100}


def test_with_two_reservations_the_second_is_kept_too():
    site = blocked(depth=2)
    assert site.starts == {"running": 0, "short": 0}
    assert site.guarantees == {"head": 100, "long": 200}


def test_with_all_reservations_everybody_knows_when():
    site = blocked()
    assert site.guarantees == {"head": 100, "long": 200}
    site.settle()
    assert site.starts == {"running": 0, "short": 0, "head": 100, "long": 200}


@pytest.mark.parametrize(("shortest_first", "passes"), [(False, "middle"), (True, "short")])
def test_those_who_may_pass_are_asked_in_order_or_the_shortest_first(shortest_first, passes):
    site = Site(equal_nodes(1), batch(depth=1, shortest_first=shortest_first))
    site.asks("running", cores(3))
    site.asks("head", cores(4))
    site.asks("middle", cores(1), limit=90)
    site.asks("short", cores(1), limit=10)
    site.plan()
    assert passes in site.starts
    assert len(site.starts) == 2


def test_the_more_weight_the_earlier_but_guarantees_stay():
    site = Site(equal_nodes(1))
    site.asks("running", cores(4))
    site.asks("first", cores(4))
    site.plan()
    site.asks("heavy", cores(4), weight=5)
    site.asks("light", cores(4))
    site.plan()
    assert site.guarantees == {"first": 100, "heavy": 200, "light": 300}
    assert site.planner.promise("heavy").position == 1


def test_of_equal_weight_the_first_who_came_is_first():
    site = Site(equal_nodes(1), batch(depth=0))
    for name in "abc":
        site.asks(name, cores(4), limit=10)
    site.settle()
    assert site.order == ["a", "b", "c"]


def test_new_priorities_change_the_order_of_those_without_a_guarantee():
    weights = {"b": 0.0, "c": 0.0}
    planner = Planner(
        equal_nodes(1), batch(depth=1), priority=lambda request, now: weights.get(request.id, 0.0)
    )
    for number, name in enumerate("abcd"):
        planner.submit(Request(id=name, alternatives=alternatives(cores(4)), limit=10, number=number), 0)
    planner.plan(0)
    weights["d"] = 7.0
    planner.resort(0)
    planner.plan(0)
    assert [planner.promise(name).position for name in "dbc"] == [1, 2, 3]
    assert planner.promise("b").guaranteed_by == 10


# -- interactive -------------------------------------------------------------------------------------------


def test_nobody_passes_in_an_interactive_queue():
    site = Site(equal_nodes(2), INTERACTIVE)
    site.asks("a", cores(4), limit=50)
    site.asks("b", nodes(2, core=4), limit=10)
    site.asks("c", cores(1), limit=1)
    site.settle()
    assert site.starts == {"a": 0, "b": 50, "c": 60}


def test_more_weight_changes_nothing_in_an_interactive_queue():
    site = Site(equal_nodes(2), INTERACTIVE)
    site.asks("a", cores(4))
    site.asks("b", cores(4), limit=500)
    site.asks("c", cores(4))
    site.plan()
    site.now = 10
    site.asks("heavy", nodes(2, core=4), weight=5)
    site.settle()
    assert site.order == ["a", "b", "c", "heavy"]


def test_an_interactive_request_that_can_never_run_holds_nobody_up():
    site = Site(equal_nodes(2), INTERACTIVE)
    site.asks("too wide", nodes(3, core=1))
    site.asks("too large", cores(5))
    site.asks("too many", cores(4, slots=3))
    site.asks("a", cores(1))
    site.plan()
    assert list(site.starts) == ["a"]


def test_those_behind_move_up_when_the_one_ahead_does():
    site = Site([node("n1", kind="a"), node("n2", kind="b")], INTERACTIVE)
    site.asks("x", cores(4, kind="a"), run=50)
    site.asks("a", cores(4, kind="a"))
    site.asks("b", cores(4, kind="b"))
    site.settle()
    assert site.starts == {"x": 0, "a": 50, "b": 50}


def test_those_behind_move_up_when_the_one_ahead_leaves():
    site = Site([node("n1", kind="a"), node("n2", kind="b")], INTERACTIVE)
    site.asks("x", cores(4, kind="a"))
    site.asks("a", cores(4, kind="a"))
    site.asks("b", cores(4, kind="b"))
    site.plan()
    site.now = 10
    site.withdraw("a")
    site.plan()
    assert site.starts["b"] == 10


# -- several queues ----------------------------------------------------------------------------------------


def lender(**more):
    return (
        Queue(name="batch", nodes=("n1",), borrow=("chat",), **more),
        Queue(name="chat", policy="interactive", nodes=("n2", "n3")),
    )


def test_queues_keep_to_their_own_nodes():
    site = Site(equal_nodes(3), (Queue(name="batch"), Queue(name="chat", nodes=("n2",))))
    for _ in range(3):
        site.asks("", cores(4))
        site.asks("", cores(4), queue="chat")
    site.plan()
    assert sorted(name for placed in site.placed.values() for name in placed.places[0]) == ["n1", "n2", "n3"]


def test_batch_borrows_nodes_on_which_nothing_is_promised():
    site = Site(equal_nodes(3), lender())
    site.asks("a", cores(4))
    site.asks("b", cores(4))
    site.plan()
    assert site.placed["b"].places == ({"n2": 1},)


def test_batch_borrows_only_until_the_next_promise_there():
    site = Site(equal_nodes(3), lender())
    site.asks("x", cores(4), queue="chat", limit=60)
    site.plan()
    site.asks("y", nodes(2, core=4), queue="chat")
    site.plan()
    site.asks("own", cores(4), limit=500)
    site.asks("long", cores(4), limit=61)
    site.asks("short", cores(4), limit=60)
    site.plan()
    assert site.starts.keys() == {"x", "own", "short"}
    assert site.guarantees == {"y": 60, "long": 500}
    site.settle()
    assert site.starts["y"] == 60


def test_what_suits_only_borrowed_nodes_gets_no_promise_and_starts_when_they_are_free():
    site = Site([node("n1"), node("n2", 8), node("n3", 8)], lender())
    site.asks("x", nodes(2, core=1), queue="chat", limit=30)
    site.plan()
    site.asks("big", cores(8), limit=10)
    site.plan()
    assert site.planner.promise("big").guaranteed_by is None
    site.settle()
    assert site.starts == {"x": 0, "big": 30}


def test_a_closed_queue_starts_nothing_until_it_is_opened():
    site = Site(equal_nodes(1))
    site.set_queue("batch", QueueState.CLOSED)
    site.asks("a", cores(1))
    site.plan()
    assert not site.starts
    site.now = 5
    site.set_queue("batch", QueueState.OPEN)
    site.plan()
    assert site.starts == {"a": 5}


def test_a_draining_queue_still_starts_what_waits():
    site = Site(equal_nodes(1))
    site.asks("a", cores(1))
    site.set_queue("batch", QueueState.DRAINING)
    site.plan()
    assert site.starts == {"a": 0}


# -- those who cannot be planned ---------------------------------------------------------------------------


def with_a_head_that_cannot_be_planned(depth):
    """The head wants a node that is down; x runs until 1000; big wants all of the other node."""
    site = Site([node("n1"), node("n2", disk="fast")], batch(depth=depth))
    site.set_node("n2", "down")
    site.asks("x", cores(2), limit=1000)
    site.asks("head", cores(1, disk="fast"))
    site.asks("big", cores(4))
    site.plan()
    return site


def test_a_head_that_cannot_be_planned_does_not_use_up_the_reservations():
    site = with_a_head_that_cannot_be_planned(1)
    site.asks("small", cores(2), limit=2000)
    site.plan()
    assert site.guarantees == {"big": 1000}
    assert "small" not in site.starts


def test_a_head_above_its_bound_does_not_use_up_the_reservations():
    site = Site(equal_nodes(1), batch(depth=1), bounds={"ada": {"core": 1}})
    site.asks("x", cores(2), limit=500)
    site.asks("head", cores(2), user="ada")
    site.asks("big", cores(4))
    site.plan()
    assert site.guarantees == {"big": 500}


@pytest.mark.parametrize("depth", [0, 1, 2, None])
def test_a_request_that_can_never_run_holds_nobody_up(depth):
    site = Site(equal_nodes(2), batch(depth=depth))
    site.asks("too large", cores(5))
    site.asks("too wide", nodes(3, core=1))
    site.asks("a", cores(1))
    site.plan()
    assert list(site.starts) == ["a"]


# -- leaving -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queues", [batch(depth=0), batch(depth=1), batch(), INTERACTIVE])
def test_when_the_head_leaves_the_next_may_start_at_once(queues):
    site = Site(equal_nodes(1), queues)
    site.asks("x", cores(2), limit=1000)
    site.asks("big", cores(4))
    site.asks("next", cores(2), limit=2000)
    site.plan()
    assert "next" not in site.starts
    site.now = 10
    site.withdraw("big")
    site.plan()
    assert site.starts["next"] == 10


@pytest.mark.parametrize("depth", [1, None])
def test_when_a_head_without_a_plan_leaves_the_next_gets_the_reservation(depth):
    site = with_a_head_that_cannot_be_planned(depth)
    site.withdraw("head")
    site.plan()
    assert site.guarantees == {"big": 1000}


def test_requests_with_equal_numbers_are_told_apart_when_one_leaves():
    planner = Planner(equal_nodes(1))
    for name in "abc":
        planner.submit(Request(id=name, alternatives=alternatives(cores(4)), limit=10), 0)
    planner.plan(0)
    planner.withdraw("c", 0)
    planner.ended("a", 5)
    assert [start.id for start in planner.plan(5).starts] == ["b"]


# -- bounds ------------------------------------------------------------------------------------------------


def test_a_user_runs_no_more_jobs_than_allowed():
    site = Site(equal_nodes(2), bounds={"ada": {"job": 2}})
    for _ in range(5):
        site.asks("", cores(1), user="ada", limit=10)
    site.asks("other", cores(1), user="bob")
    site.plan()
    assert len(site.starts) == 3
    assert sorted(site.guarantees.values()) == [10, 10, 20]
    site.settle()


def test_a_bound_counts_the_alternative_that_is_taken():
    site = Site([node("n1", 16, gpus=1)], bounds={"ada": {"core": 8}})
    for _ in range(3):
        site.asks("", Part(slots=1, each={"core": 1, "gpu": 1}), cores(8), user="ada", limit=10)
    site.settle()
    assert len(site.starts) == 3


def test_a_bound_counts_whole_nodes_with_all_they_have():
    site = Site(equal_nodes(2, 8), bounds={"ada": {"core": 8}})
    site.asks("a", whole(), user="ada", limit=10)
    site.asks("b", whole(), user="ada", limit=10)
    site.settle()
    assert site.starts == {"a": 0, "b": 10}


UNEQUAL = [
    *(node(name, 8, gpus=2, size="large") for name in ("n1", "n2")),
    *(node(name, 4, size="small") for name in ("n3", "n4")),
]
SMALL = Part(nodes=2, each={"core": 1}, requires={"size": "small"})


def test_whole_nodes_are_chosen_within_a_bound():
    site = Site(UNEQUAL, bounds={"ada": {"gpu": 1}})
    site.asks("it", whole(2), user="ada")
    site.plan()
    assert site.placed["it"].places == ({"n3": 1, "n4": 1},)


@pytest.mark.parametrize(
    ("bound", "chosen"),
    [({"gpu": 2, "core": 16}, {"n1", "n3", "n4"}), ({"gpu": 0, "core": 17}, {"n3", "n4", "n5"})],
)
def test_whole_nodes_are_chosen_within_several_bounds(bound, chosen):
    site = Site([*UNEQUAL, node("n5", 9)], bounds={"ada": bound})
    site.asks("it", whole(3), user="ada")
    site.plan()
    assert site.placed["it"].places[0].keys() == chosen


def test_slots_that_have_their_nodes_alone_are_placed_within_a_bound():
    site = Site(UNEQUAL, bounds={"ada": {"core": 4}})
    site.asks("it", cores(2), user="ada", wishes=Wishes(exclusive=True))
    site.plan()
    assert site.placed["it"].places == ({"n3": 1},)


def test_one_is_promised_the_first_nodes_that_are_within_its_bound():
    site = Site(UNEQUAL, bounds={"ada": {"gpu": 1}})
    site.asks("small", SMALL, limit=50)
    site.asks("it", whole(2), user="ada", limit=10)
    site.plan()
    assert site.guarantees["it"] == 50
    site.settle()
    assert site.placed["it"].places == ({"n3": 1, "n4": 1},)


@pytest.mark.parametrize("depth", [0, 1])
def test_one_starts_as_soon_as_nodes_within_its_bound_are_free(depth):
    site = Site(UNEQUAL, batch(depth=depth), bounds={"ada": {"gpu": 1}})
    site.asks("small", SMALL, limit=50, run=20)
    site.asks("it", whole(2), user="ada", limit=10)
    site.settle()
    assert site.starts == {"small": 0, "it": 20}


def test_one_that_is_too_large_for_its_bound_on_any_node_is_promised_nothing():
    site = Site(UNEQUAL, bounds={"ada": {"core": 7}})
    site.asks("it", whole(2), user="ada")
    site.asks("other", whole(4))
    site.plan()
    assert site.starts == {"other": 0}
    assert "it" not in site.guarantees


def test_a_bound_holds_while_somebody_runs_longer_than_it_may():
    site = Site([node("n1", kind="a"), node("n2", kind="b")], bounds={"ada": {"job": 1}})
    site.asks("a", cores(1, kind="a"), user="ada", run=150)
    site.asks("b", cores(1, kind="b"), user="ada")
    site.settle()
    assert site.starts == {"a": 0, "b": 150}


def test_somebody_at_a_bound_does_not_hold_up_others():
    site = Site(equal_nodes(1), bounds={"ada": {"job": 1}})
    site.asks("a", cores(1), user="ada", limit=50)
    site.asks("b", cores(1), user="ada", limit=50)
    site.asks("c", cores(1), user="bob", limit=50)
    site.plan()
    assert site.starts == {"a": 0, "c": 0}


def test_requests_of_one_job_count_as_one_job():
    site = Site(equal_nodes(2), bounds={"ada": {"job": 1}})
    site.asks("a", cores(1), user="ada", job="one", limit=30)
    site.asks("b", cores(1), user="ada", job="one", limit=10)
    site.asks("c", cores(1), user="ada", job="two", limit=10)
    site.settle()
    assert site.starts == {"a": 0, "b": 0, "c": 30}
    site.clear()


def test_requests_of_one_job_may_end_at_the_same_moment():
    site = Site(equal_nodes(1), bounds={"ada": {"job": 3}})
    site.asks("x", cores(4), limit=10)
    site.asks("a", cores(2), user="ada", job="one", limit=20, earliest=10)
    site.plan()
    site.advance(20)
    site.asks("b", cores(2), user="ada", job="one", limit=10)
    site.settle()
    assert site.starts == {"x": 0, "a": 10, "b": 20}
    site.clear()


# -- start windows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("queues", [batch(depth=0), batch(depth=1), batch(), INTERACTIVE])
def test_a_request_starts_at_its_earliest_moment_although_nothing_ends_then(queues):
    site = Site(equal_nodes(1), queues)
    site.asks("a", cores(1), earliest=50)
    site.plan()
    assert site.planner.next_due(0) == 50
    site.advance(60)
    assert site.starts == {"a": 50}


def test_one_behind_the_reservations_starts_at_its_earliest_moment():
    site = Site(equal_nodes(1), batch(depth=1))
    site.asks("x", cores(3), limit=1000)
    site.asks("head", cores(4))
    site.asks("later", cores(1), limit=10, earliest=50)
    site.plan()
    site.advance(60)
    assert site.starts["later"] == 50


def test_nothing_is_promised_after_its_latest_start():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4))
    site.submit(msgspec.structs.replace(site.ask("a", cores(4)), latest=50))
    site.plan()
    assert site.planner.promise("a").guaranteed_by is None


def test_connected_requests_start_together():
    site = Site(equal_nodes(1))
    site.asks("x", cores(3))
    site.submit(msgspec.structs.replace(site.ask("a", cores(1)), together=("b",)))
    site.submit(msgspec.structs.replace(site.ask("b", cores(1)), together=("a",)))
    site.plan()
    assert site.starts.keys() == {"x"}
    site.settle()
    assert site.starts["a"] == site.starts["b"] == 100


# -- several parts -----------------------------------------------------------------------------------------


def test_parts_that_compete_for_nodes_are_shared_out():
    site = Site([node("n1", x="1", z="1"), node("n2", x="1"), node("n3", y="1", z="1"), node("n4", y="1")])
    parts = tuple(Part(nodes=1, each={"core": 1}, requires={fact: "1"}) for fact in "xyz")
    site.asks("a", parts)
    site.plan()
    assert site.starts == {"a": 0}


def test_whole_nodes_leave_the_others_to_parts_that_need_them():
    site = Site([node("n1", 5, memory=3), node("n2", 5, memory=3), node("n3", 1)])
    site.asks("a", (Part(slots=2, each={"core": 1, "memory": 1}), whole(2)))
    site.plan()
    assert site.starts == {"a": 0}


# -- after a restart ---------------------------------------------------------------------------------------


def busy_site(**more):
    site = Site(equal_nodes(2), **more)
    site.asks("a", cores(4), limit=100)
    site.asks("b", cores(2), limit=60)
    site.asks("wide", nodes(2, core=3), limit=30)
    site.asks("c", cores(2), limit=80)
    site.asks("d", whole(), limit=10)
    site.plan()
    return site


def test_promises_are_the_same_after_a_restart():
    site = busy_site()
    site.advance(5)
    other = site.restarted()
    done = other.plan()
    assert not done.revisions
    assert other.guarantees == site.guarantees
    site.settle()
    other.settle()
    assert other.starts == site.starts
    other.clear()


def test_what_runs_is_over_at_the_same_time_after_a_restart():
    site = busy_site()
    site.advance(5)
    other = site.restarted()
    other.plan()
    other.advance(59)
    assert other.running.keys() == site.running.keys()
    everything = set(other.running)
    for id_ in everything:
        other.end(id_)
    for id_ in list(other.waiting):
        other.withdraw(id_)
    everything_is_free(other.planner, other.now)


def test_a_promise_on_a_node_that_is_gone_is_not_kept_with_a_part_of_the_gang():
    site = Site(equal_nodes(2))
    request = site.ask("a", nodes(2, core=1))
    site.waiting["a"] = request
    site.guarantees["a"] = 50.0
    site.planner.keep(request, Placed(0, ({"n1": 1, "gone": 1},)), 50.0, 0.0)
    site.settle(100)
    assert len(site.placed["a"].places[0]) == 2


def test_a_promise_that_cannot_be_kept_after_a_restart_says_why():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4))
    site.plan()
    request = site.ask("a", cores(4))
    site.planner.keep(request, Placed(0, ({"n1": 1},)), 50.0, 0.0)
    revision = site.planner.plan(0).revisions[0]
    assert (revision.before, revision.after) == (50, 100)
    assert revision.cause.strip()


def test_a_promise_may_be_kept_although_others_wait_already():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4))
    site.asks("y", cores(4))
    site.plan()
    request = site.ask("kept", cores(4))
    site.waiting["kept"] = request
    site.guarantees["kept"] = 300.0
    site.planner.keep(request, Placed(0, ({"n1": 1},)), 300.0, 0.0)
    site.plan()
    site.clear()


# -- trying out --------------------------------------------------------------------------------------------


def test_trying_out_says_what_would_be_promised():
    site = busy_site()
    request = site.ask("new", nodes(2, core=2), limit=20)
    tried = site.planner.try_out(request, site.now)
    site.submit(request)
    site.plan()
    assert site.planner.promise("new").guaranteed_by == tried.guaranteed_by
    assert site.planner.promise("new").placed == tried.placed


def test_trying_out_knows_of_nodes_that_can_be_borrowed_now():
    site = Site(equal_nodes(3), lender())
    site.asks("x", cores(4))
    site.plan()
    request = site.ask("new", cores(4))
    tried = site.planner.try_out(request, 0)
    site.submit(request)
    site.plan()
    assert site.starts["new"] == tried.guaranteed_by == 0
