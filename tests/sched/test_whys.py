"""What blocks a request that waits, and that asking for it changes nothing."""

from math import inf

import msgspec
import pytest

from jobman.sched.queues import Queue, QueueState
from jobman.sched.whys import in_the_way, unpromised, why
from tests.sched.clusters import Site, cores, equal_nodes, maintenance, node, nodes, reservation


def blocked(site, id_):
    return why(site.planner, id_, site.now)


def waiting(site, id_, *shape, **more):
    site.asks(id_, *shape, **more)
    site.plan()
    return blocked(site, id_)


def test_too_little_is_free():
    site = Site(equal_nodes(4))
    for number in range(2):
        site.asks(f"x{number}", cores(4))
    found = waiting(site, "a", nodes(4, core=1))
    assert (found.kind, found.message) == ("resources", "2 of 4 nodes find room now")


def test_of_one_node_it_is_told_as_of_one():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4))
    assert waiting(site, "a", nodes(2, core=1)).message == "1 of 2 nodes finds room now"
    assert waiting(site, "b", cores(3, slots=2)).message.startswith("1 of 2 slots finds room now")


def test_what_no_node_has_is_told():
    site = Site(equal_nodes(1))
    site.asks("x", cores(2))
    assert waiting(site, "a", cores(3)).message == "no node has 3 cores free"


def test_others_are_before_it():
    site = Site(equal_nodes(1))
    site.asks("x", cores(4))
    site.asks("y", cores(4))
    found = waiting(site, "a", cores(4))
    assert found.kind == "resources"
    assert "1 request is before it in the queue batch" in found.message


def test_what_is_free_was_promised_to_others():
    site = Site(equal_nodes(1))
    site.asks("x", cores(2))
    site.asks("y", cores(4))
    found = waiting(site, "a", cores(2), limit=500)
    assert found.kind == "priority"
    assert "promised" in found.message


def test_strict_order_lets_nobody_pass():
    site = Site(equal_nodes(1), (Queue(name="batch", policy="interactive"),))
    site.asks("x", cores(2))
    site.asks("y", cores(4))
    found = waiting(site, "a", cores(2), limit=10)
    assert (found.kind, found.message) == ("priority", "1 request is before it in the queue batch")


def test_it_would_run_into_a_window():
    site = Site(equal_nodes(1))
    site.block(maintenance("m/1", 600, 900, "n1"))
    found = waiting(site, "a", cores(1), limit=1000)
    assert (found.kind, found.message) == (
        "maintenance",
        "it would run into maintenance m/1, which begins in 10 min",
    )


def test_a_window_is_under_way():
    site = Site(equal_nodes(1))
    site.block(reservation("course/1", 0, 900, "n1"))
    assert waiting(site, "a", cores(1)).kind == "reservation"


def test_a_limit_is_reached():
    site = Site(equal_nodes(2), bounds={"ada": {"core": 4}})
    site.asks("x", cores(3), user="ada")
    found = waiting(site, "a", cores(2), user="ada")
    assert (found.kind, found.message) == (
        "limit",
        "the limit ada of 4 cores is reached: 3 in use, and this needs 2",
    )


def test_the_share_of_a_queue_is_used_up():
    site = Site(equal_nodes(2), (Queue(name="batch", share=0.5),))
    site.asks("x", cores(4))
    found = waiting(site, "a", cores(1))
    assert (found.kind, found.message) == (
        "limit",
        "the share of 4 cores of the queue batch is reached: 4 in use, and this needs 1",
    )


def test_a_limit_of_jobs_is_reached():
    site = Site(equal_nodes(2), bounds={"ada": {"job": 1}})
    site.asks("x", cores(1), user="ada")
    found = waiting(site, "a", cores(1), user="ada")
    assert (found.kind, found.message) == ("limit", "the limit ada of 1 running job is reached")


def test_others_were_promised_what_a_limit_leaves():
    site = Site(equal_nodes(2), bounds={"ada": {"core": 4}})
    site.asks("x", cores(3), user="ada", limit=100)
    site.asks("y", cores(4), user="ada", limit=100)
    found = waiting(site, "a", cores(1), user="ada", limit=200)
    assert found.kind == "limit"
    assert (
        found.message == "the limit ada of 4 cores would be exceeded, since others before it were promised it"
    )


def test_its_queue_is_closed():
    site = Site(equal_nodes(1))
    site.set_queue("batch", QueueState.CLOSED)
    assert waiting(site, "a").kind == "queue"


def test_it_is_not_to_start_yet():
    found = waiting(Site(equal_nodes(1)), "a", earliest=600)
    assert (found.kind, found.message) == ("start", "it is not to start before 10 min have passed")


def test_its_nodes_are_away():
    site = Site([node("n1"), node("n2", gpu="yes")])
    site.set_node("n2", "draining")
    found = waiting(site, "a", cores(1, gpu="yes"))
    assert (found.kind, found.message) == ("node", "n2 is draining")


def test_nodes_that_could_be_borrowed_do_not_make_up_for_its_own():
    lender, borrower = (
        Queue(name="lender", nodes=("n1",)),
        Queue(name="batch", nodes=("n2", "n3"), borrow=("lender",)),
    )
    site = Site(equal_nodes(3), (lender, borrower))
    site.asks("x", cores(4), queue="lender")
    site.set_node("n2", "draining")
    found = waiting(site, "a", nodes(2, core=1))
    assert (found.kind, found.message) == ("node", "n2 is draining")


class TestUnpromised:
    """Why nobody can say by when it starts."""

    def words(self, site, id_, *shape, **more):
        site.asks(id_, *shape, **more)
        site.plan()
        return unpromised(site.planner, site.planner.entries[id_].request, site.now)

    def test_something_has_no_limit(self):
        site = Site(equal_nodes(1), firm=1000)
        site.asks("x", cores(4), limit=1e6)
        assert self.words(site, "a", cores(4)) == "something in its way has no time limit"

    @pytest.mark.parametrize(
        ("depth", "words"),
        [
            (0, "nobody in the queue batch is promised a start"),
            (1, "in the queue batch only the first is promised a start"),
            (2, "in the queue batch only the first 2 are promised a start"),
        ],
    )
    def test_it_is_not_among_the_first(self, depth, words):
        site = Site(equal_nodes(1), (Queue(name="batch", depth=depth),))
        for number in range(3):
            site.asks(f"x{number}", cores(4))
        assert self.words(site, "a", cores(4)) == words

    def test_its_queue_is_closed(self):
        site = Site(equal_nodes(1))
        site.set_queue("batch", QueueState.CLOSED)
        assert self.words(site, "a", cores(1)) == "the queue batch is closed"

    def test_it_can_never_start(self):
        assert "no node" in self.words(Site(equal_nodes(1)), "a", cores(9))

    def test_its_nodes_are_away(self):
        site = Site(equal_nodes(1))
        site.set_node("n1", "down")
        assert self.words(site, "a", cores(1)) == "n1 is down"

    def test_its_reservation_has_no_room(self):
        site = Site(equal_nodes(1))
        site.block(reservation("course/1", 0, 50, "n1"))
        words = self.words(site, "a", cores(1), user="ada", reservation="course", limit=100)
        assert words == "it does not fit into what is left of the reservation course"
        site.block(reservation("later/1", 1000, 1050, "n1"))
        words = self.words(site, "b", cores(1), user="ada", reservation="later", limit=100)
        assert words == "it does not fit into what is left of the reservation later"


class TestInTheWay:
    """Who keeps what runs from running longer."""

    def test_one_who_was_promised_its_nodes(self):
        site = Site(equal_nodes(1))
        site.asks("x", cores(4), limit=100)
        for number in range(2):
            site.asks(f"a{number}", cores(4), limit=100)
        site.plan()
        assert in_the_way(site.planner, ["x"], 500, 40) == "job a0 was promised these nodes in 60 s"
        assert in_the_way(site.planner, ["x"], 0, 40) == ""

    def test_a_window(self):
        site = Site(equal_nodes(1))
        site.asks("x", cores(4), limit=100)
        site.plan()
        site.block(maintenance("disks/1", 160, 900, "n1"))
        assert (
            in_the_way(site.planner, ["x"], 500, 100) == "maintenance disks/1 begins on these nodes in 60 s"
        )


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (cores(5), "no node of the queue batch has what it asks for"),
        (nodes(3, core=1), "it asks for 3 nodes, and 2 are there that suit it"),
        (cores(3, slots=3), "it finds no room even when all nodes are empty"),
    ],
)
def test_it_can_never_start(shape, words):
    found = waiting(Site(equal_nodes(2)), "a", shape)
    assert (found.kind, found.message) == ("never", words)


def test_its_reservation_has_not_begun():
    site = Site(equal_nodes(1))
    site.block(reservation("course/1", 1200, 1800, "n1"))
    found = waiting(site, "a", cores(1), user="ada", reservation="course")
    assert (found.kind, found.message) == ("reservation", "the reservation course begins in 20 min")


def test_asking_changes_nothing():
    site = Site(equal_nodes(3), bounds={"ada": {"core": 8}})
    site.block(maintenance("m/1", 50, 70, "n1"))
    for number in range(8):
        site.asks(f"r{number}", nodes(2, core=3), user="ada" if number % 2 else "bob", limit=30 + number)
    site.plan()
    before = [
        (row.free[:], row.profile.times[:], [each[:] for each in row.profile.columns]) for row in rows(site)
    ]
    promised = {id_: site.planner.promise(id_) for id_ in site.waiting}
    for id_ in site.waiting:
        blocked(site, id_)
    assert {id_: site.planner.promise(id_) for id_ in site.waiting} == promised
    assert before == [
        (row.free[:], row.profile.times[:], [each[:] for each in row.profile.columns]) for row in rows(site)
    ]
    site.settle()
    assert len(site.starts) == 8


def rows(site):
    return site.planner.timeline.rows


def test_one_who_waits_for_another_says_so():
    site = Site(equal_nodes(1))
    site.submit(msgspec.structs.replace(site.ask("a", cores(1)), together=("b",)))
    site.plan()
    found = blocked(site, "a")
    assert found.kind == "start"
    assert "b" in found.message
    assert site.planner.promise("a").guaranteed_by is None
    assert site.planner.next_due(0) in (None, inf)
