"""Variants that start sooner, each tried."""

from jobman.sched.queues import Queue, QueueState
from jobman.sched.suggestions import suggest
from tests.sched.clusters import Site, cores, equal_nodes, maintenance, nodes


def tried(site, *shape, **more):
    return suggest(site.planner, site.ask("new", *shape, **more), site.now)


def test_fewer_nodes_start_sooner():
    site = Site(equal_nodes(4))
    site.asks("x", nodes(2, core=4), limit=1000)
    site.plan()
    best = tried(site, nodes(4, core=4), limit=100)[0]
    assert (best.words, best.start) == ("with 2 nodes instead of 4", 0)


def test_a_shorter_limit_starts_before_a_window():
    site = Site(equal_nodes(1))
    site.block(maintenance("m/1", 3700, 7200, "n1"))
    best = tried(site, cores(1), limit=7200)[0]
    assert (best.words, best.start) == ("with a time limit of 1 h instead of 2 h", 0)


def test_a_limit_is_told_without_what_is_planned_beside_it():
    site = Site(equal_nodes(1))
    site.block(maintenance("m/1", 3700, 7200, "n1"))
    request = site.ask("new", cores(1), limit=7240)
    best = suggest(site.planner, request, site.now, duration=7200, beside=40)[0]
    assert (best.words, best.start) == ("with a time limit of 1 h instead of 2 h", 0)
    site.block(maintenance("m/1", 3600, 7200, "n1"))
    best = suggest(site.planner, request, site.now, duration=7200, beside=40)[0]
    assert (best.words, best.start) == ("with a time limit of 30 min instead of 2 h", 0)


def test_one_without_a_limit_is_told_which_would_help():
    site = Site(equal_nodes(1))
    site.block(maintenance("m/1", 20_000, 30_000, "n1"))
    request = site.ask("new", cores(1), limit=1e7)
    best = suggest(site.planner, request, site.now, duration=None, beside=40)[0]
    assert (best.words, best.start) == ("with a time limit of 4 h", 0)


def test_in_a_queue_that_is_closed_only_another_queue_helps():
    site = Site(equal_nodes(2), (Queue(name="batch", nodes=("n1",)), Queue(name="night", nodes=("n2",))))
    site.set_queue("batch", QueueState.CLOSED)
    assert [each.words for each in tried(site, cores(4), limit=4000)] == ["in the queue night"]


def test_another_queue_has_room():
    site = Site(equal_nodes(2), (Queue(name="batch", nodes=("n1",)), Queue(name="night", nodes=("n2",))))
    site.asks("x", cores(4), limit=1000)
    site.plan()
    assert [each.words for each in tried(site, cores(4), limit=50)] == ["in the queue night"]


def test_nothing_is_suggested_to_one_who_starts_at_once():
    assert not tried(Site(equal_nodes(2)), nodes(2, core=1))


def test_what_is_suggested_can_be_had():
    site = Site(equal_nodes(4))
    for number in range(6):
        site.asks(f"x{number}", nodes(1 + number % 3, core=3), limit=100 + 40 * number)
    site.plan()
    for each in tried(site, nodes(4, core=2), limit=400):
        assert (
            each.start < site.planner.try_out(site.ask("whole", nodes(4, core=2), limit=400), 0).guaranteed_by
        )


def test_trying_leaves_no_trace():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), limit=1000)
    site.asks("y", cores(4), limit=900)
    site.plan()
    tried(site, nodes(2, core=4), limit=4000)
    assert not site.plan().revisions
    assert list(site.planner.entries) == ["x", "y"]
