"""Nodes that change while a planner works, and a pool that is told the same: they never disagree."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.plan.nodes import ClusterNode
from jobman.sched.placement import Pool
from jobman.sched.planner import Planner
from jobman.sched.requests import Request
from jobman.sched.whys import unpromised, why
from jobman.spec.shapes import Part
from tests.sched.clusters import WHOLE, Site, cores, equal_nodes, held, node, nodes, whole

# -- single cases --------------------------------------------------------------------------------------------


def changed(site, new):
    site.nodes[new.name] = new
    site.planner.change_node(new, site.now)


@pytest.mark.parametrize("count", [1, 12])
def test_a_node_that_grows_takes_in_more(count):
    site = Site(equal_nodes(count))
    for number in range(count):
        site.asks(f"x{number}", cores(4), limit=500)
    site.asks("a", cores(6))
    site.plan()
    site.now = 10
    changed(site, node("n1", 10))
    site.plan()
    assert site.starts["a"] == 10


def test_what_was_promised_on_a_node_that_shrinks_moves_and_says_why():
    site = Site(equal_nodes(2))
    site.asks("x", cores(4), limit=50)
    site.asks("y", cores(4), limit=80)
    site.asks("a", cores(4))
    site.plan()
    site.now = 10
    site.planner.change_node(node("n1", 2), 10)  # where something larger runs on
    site.plan()
    assert site.guarantees == {"a": 80}
    assert site.revisions[-1].cause == "node n1 has less than before"


def test_what_was_promised_on_a_node_that_does_not_suit_any_more_moves_and_says_why():
    site = Site([node("n1", zone="a"), node("n2", zone="a")])
    site.asks("x", cores(4), limit=50)
    site.asks("y", cores(4), limit=80)
    site.asks("a", cores(4, zone="a"))
    site.plan()
    site.now = 10
    changed(site, node("n1", zone="b"))
    site.plan()
    assert site.guarantees == {"a": 80}
    assert site.revisions[-1].cause == "node n1 has changed"


def test_a_node_may_get_what_none_had():
    site = Site(equal_nodes(2))
    site.asks("a", nodes(1, gpu=1))
    site.plan()
    changed(site, node("n2", gpus=1))
    site.plan()
    assert site.starts == {"a": 0}


def test_why_one_waits_names_what_others_use():
    site = Site(equal_nodes(2))
    site.planner.set_foreign("n1", {"core": 1}, 0)
    site.planner.set_foreign("n2", {"core": 2.5}, 0)
    site.asks("a", cores(4))
    site.plan()
    words = "others use 1 core of n1, 2.5 cores of n2"
    assert why(site.planner, "a", 0).message == words
    assert unpromised(site.planner, site.planner.entries["a"].request, 0) == words


def test_why_does_not_blame_others_where_they_leave_enough():
    site = Site(equal_nodes(2))
    site.planner.set_foreign("n1", {"core": 1}, 0)
    site.asks("x", cores(4), limit=50)
    site.asks("a", cores(4))
    site.plan()
    assert why(site.planner, "a", 0).kind == "resources"


def test_a_pool_gives_what_others_leave_and_takes_back_what_it_gave():
    pool = Pool([node("n1", 4, gpus=2)])
    pool.set_foreign("n1", {"core": 1.5})
    assert pool.place(((cores(3),),)) is None
    assert pool.could_ever(((cores(3),),))
    found = pool.place(((whole(),),))
    assert found is not None
    assert found.slots[0].amounts == {"core": 2, "gpu": 2}
    pool.set_foreign("n1", {"core": 4, "gpu": 1})
    pool.give_back(found)
    assert pool.free() == {"n1": {"core": 0, "gpu": 1}}
    pool.set_foreign("n1", {})
    assert pool.free() == {"n1": {"core": 4, "gpu": 2}}


def test_a_pool_keeps_what_is_held_of_a_node_that_changes():
    pool = Pool([node("n1", 4)])
    found = pool.place(((cores(4),),))
    assert found is not None
    pool.change(node("n1", 2, gpus=1))
    assert pool.free() == {"n1": {"core": -2, "gpu": 1}}
    assert pool.place(((cores(1),),)) is None
    pool.give_back(found)
    assert pool.free() == {"n1": {"core": 2, "gpu": 1}}
    pool.change(node("n1", 8))
    found = pool.place(((cores(8),),))
    assert found is not None
    assert len(found.slots[0].cores) == 8


# -- all histories -------------------------------------------------------------------------------------------

NAMES = ("n0", "n1", "n2", "n3")
SIZES = st.integers(0, 6)
MADE = st.builds(
    lambda name, count, gpus, zone: ClusterNode(
        name=name, amounts={"core": count, "gpu": gpus}, facts={"zone": zone}
    ),
    st.sampled_from(NAMES),
    SIZES,
    st.integers(0, 2),
    st.sampled_from("ab"),
)
SHAPES = st.sampled_from(
    [
        cores(1),
        cores(2.5),
        cores(1, slots=3),
        cores(3, zone="a"),
        whole(),
        whole(2),
        nodes(1, core=1, gpu=1),
        nodes(2, core=2),
        Part(nodes=1, slots=2, each={"core": 1}),
    ]
)
STEPS = st.one_of(
    st.tuples(st.just("ask"), SHAPES, st.sampled_from([5.0, 20.0, 50.0])),
    st.tuples(st.just("node"), MADE, st.just(0)),
    st.tuples(
        st.just("foreign"),
        st.sampled_from(NAMES),
        st.fixed_dictionaries(
            {}, optional={"core": st.sampled_from([0.5, 1, 3, 6]), "gpu": st.integers(0, 2)}
        ),
    ),
    st.tuples(
        st.just("state"), st.sampled_from(NAMES), st.sampled_from(["up", "down", "draining", "suspect"])
    ),
    st.tuples(st.just("pass"), st.sampled_from([0.0, 3.0, 30.0]), st.just(0)),
)
CAUSES = ("node ", "others use more", "ran longer", "looked at late")


class History:
    """Plays steps on a planner and on a pool, and looks at everything that is started."""

    def __init__(self, made):
        self.nodes = {each.name: each for each in made}
        self.planner = Planner(made)
        self.pool = Pool(made)
        self.foreign = {}
        self.away = set()
        self.now = 0.0
        self.requests = {}
        self.running = {}
        self.guarantees = {}

    def play(self, step, what, more):
        getattr(self, f"do_{step}")(what, more)
        self.plan()

    def do_ask(self, shape, limit):
        number = len(self.requests)
        request = Request(id=f"r{number}", alternatives=((shape,),), limit=limit, number=number)
        self.requests[request.id] = request
        self.planner.submit(request, self.now)

    def do_node(self, new, _):
        known = new.name in self.nodes
        (self.planner.change_node if known else self.planner.add_node)(new, self.now)
        (self.pool.change if known else self.pool.add)(new)
        self.nodes[new.name] = new

    def do_foreign(self, name, amounts):
        if name in self.nodes:
            there = {kind: min(amount, self.nodes[name].amounts[kind]) for kind, amount in amounts.items()}
            self.foreign[name] = there
            self.planner.set_foreign(name, there, self.now)
            self.pool.set_foreign(name, there)

    def do_state(self, name, state):
        if name in self.nodes:
            (self.away.discard if state == "up" else self.away.add)(name)
            self.planner.set_node(name, state, self.now, f"node {name} is {state}")

    def do_pass(self, seconds, _):
        self.now += seconds
        for name, (_, allocation, until) in list(self.running.items()):
            if until <= self.now:
                del self.running[name]
                self.planner.ended(name, self.now)
                self.pool.give_back(allocation)

    def plan(self):
        done = self.planner.plan(self.now)
        for revision in done.revisions:
            before = self.guarantees.get(revision.id)
            if before is not None and (revision.after is None or revision.after > before + 1e-6):
                assert any(each in revision.cause for each in CAUSES)
            self.guarantees[revision.id] = revision.after
        for start in done.starts:
            request = self.requests[start.id]
            parts = request.alternatives[start.placed.alternative]
            allocation = self.pool.settle(0, parts, start.placed.places, request.wishes)
            self.running[start.id] = start.placed, allocation, start.until
            for each in allocation.held:
                assert each.node not in self.away
                assert all(part.requires.items() <= self.nodes[each.node].facts.items() for part in parts)
        for start in done.starts:
            for name, amounts in held(self.requests[start.id], start.placed).items():
                self.look_at(name, amounts)

    def look_at(self, name, needed):
        """Where something has just started, no more is held of what it needs than there is."""
        used: dict[str, float] = {}
        found = [held(self.requests[each], placed).get(name) for each, (placed, _, _) in self.running.items()]
        holders = [each for each in found if each is not None]
        assert len(holders) == 1 or not any(WHOLE in each for each in holders)
        for each in holders:
            for kind, amount in each.items():
                used[kind] = used.get(kind, 0) + amount
        for kind in needed.keys() - {WHOLE}:
            left = self.nodes[name].amounts.get(kind, 0) - self.foreign.get(name, {}).get(kind, 0)
            assert used[kind] <= left + 1e-6


@settings(max_examples=60)
@given(
    st.lists(MADE, min_size=1, max_size=3, unique_by=lambda each: each.name),
    st.lists(STEPS, min_size=1, max_size=30),
)
def test_nothing_is_given_that_is_not_there_and_in_the_end_everybody_runs_who_can(made, steps):
    history = History(made)
    for step in steps:
        history.play(*step)
    for name in history.nodes:
        history.play("foreign", name, {})
        history.play("state", name, "up")
    for _ in range(len(history.requests) + 2):
        history.play("pass", 100.0, 0)
    waiting = [each for each in history.requests if each in history.planner.entries]
    empty = Pool(history.nodes.values())
    assert not [each for each in waiting if empty.could_ever(history.requests[each].alternatives)]
    assert history.pool.free() == empty.free()


def test_nobody_waits_for_ever_for_what_came_back():
    site = Site(equal_nodes(1))
    site.planner.set_node("n1", "down", 0, "node n1 is down")
    site.asks("a", cores(1), limit=inf)
    site.plan()
    changed(site, node("n1", 8))
    site.plan()
    assert not site.starts
    site.planner.set_node("n1", "up", 0)
    site.plan()
    assert site.starts == {"a": 0}
