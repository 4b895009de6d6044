"""What holds for every history of a planner; `Site` checks it after each step."""

from __future__ import annotations

from math import inf

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.plan.nodes import ClusterNode
from jobman.sched.placement import Pool
from jobman.sched.planner import Planner
from jobman.sched.queues import Queue, QueueState
from jobman.sched.requests import Request
from jobman.sched.wishes import NO_WISHES, Evenly, Neighbours, Wishes
from jobman.spec.shapes import Part
from tests.sched.clusters import (
    Site,
    alternatives,
    cores,
    equal_nodes,
    maintenance,
    node,
    nodes,
    reservation,
    whole,
)

pytestmark = pytest.mark.slow

QUIET = ("submit", "submit", "submit", "end", "withdraw", "passing")
"""What happens on a day without trouble."""
TROUBLE = (*QUIET, "submit", "node", "maintenance", "unblock")
few = settings(max_examples=40)

# -- clusters and requests ---------------------------------------------------------------------------------

CLUSTERS = [
    equal_nodes(1),
    equal_nodes(2, 3),
    [node("n1", 2), node("n2", 4, gpus=1), node("n3", 3, memory=4)],
    [node("n1", 4, rack="a"), node("n2", 2, rack="b"), node("n3", 4, rack="a", cpu="x"), node("n4", 1)],
    equal_nodes(5, 2, memory=3),
    [*equal_nodes(9, 2), node("n10", 4, gpus=2, rack="a"), node("n11", 4, gpus=2, rack="b")],
]


@st.composite
def clusters(draw):
    return draw(st.sampled_from(CLUSTERS))


SLOTS = [Part(slots=count, each={"core": size}) for count in (1, 2, 4) for size in (1, 0.5, 2)]
NODES = [Part(nodes=count, slots=slots, each={"core": 1}) for count in (1, 2, 3) for slots in (0, 2)]
OTHERS = [
    Part(nodes=1, exclusive=True),
    Part(nodes=2, exclusive=True),
    Part(nodes=2),
    Part(slots=2, each={"core": 0.5}, beside={"core": 1}),
    Part(slots=1, each={"core": 1, "gpu": 1}),
    Part(slots=1, each={"core": 1, "memory": 2}),
    Part(slots=2, each={"core": 1}, requires={"rack": "a"}),
    Part(nodes=1, each={"core": 3}),
]
PARTS = SLOTS + NODES + OTHERS
SIMPLE = st.sampled_from(PARTS).map(lambda part: alternatives(part))
SHAPES = (
    SIMPLE
    | SIMPLE
    | st.lists(
        st.lists(st.sampled_from(PARTS), min_size=1, max_size=2).map(tuple), min_size=1, max_size=2
    ).map(tuple)
)
WISHES = st.sampled_from(
    [
        NO_WISHES,
        Wishes(exclusive=True),
        Wishes(near=Neighbours(by="rack", own=True)),
        Wishes(near=Neighbours(nodes=("n1",), by="rack", required=False)),
        Wishes(near=Neighbours(nodes=("n2", "n3"))),
        Wishes(apart=Neighbours(own=True)),
        Wishes(apart=Neighbours(nodes=("n1",), by="rack")),
        Wishes(spread=Evenly("node")),
        Wishes(spread=Evenly("rack", 2, required=False, placed=("n1",))),
    ]
)
SUBMISSION = {
    "shape": SHAPES,
    "limit": st.sampled_from([5, 10, 20, 30, 60]),
    "share": st.sampled_from([1, 0.5]),
}
WISHED = {"wishes": st.just(NO_WISHES) | WISHES}
WEIGHED = {"weight": st.integers(0, 2)}

# -- histories ---------------------------------------------------------------------------------------------

NUMBERS = st.integers(0, 9)
WINDOWS = st.tuples(st.integers(0, 60), st.integers(1, 40), st.lists(NUMBERS, min_size=1, max_size=3))
EVENTS = {
    "end": NUMBERS,
    "withdraw": NUMBERS,
    "passing": st.sampled_from([1, 5, 10, 17]),
    "node": st.tuples(NUMBERS, st.sampled_from(["up", "draining", "down"])),
    "suspect": NUMBERS,
    "maintenance": WINDOWS,
    "reservation": WINDOWS,
    "unblock": NUMBERS,
    "extend": st.tuples(NUMBERS, st.sampled_from([1, 5, 30])),
    "queue": st.tuples(NUMBERS, st.sampled_from(list(QueueState))),
    "resort": st.none(),
    "foreign": st.tuples(NUMBERS, st.integers(0, 2)),
    "another": NUMBERS,
}


def histories(*kinds, size=20, **submission):
    """What happens, one thing after the other."""
    asked = st.fixed_dictionaries(SUBMISSION | submission)
    known = {"submit": asked, "pair": st.tuples(asked, asked), **EVENTS}
    return st.lists(
        st.sampled_from(kinds).flatmap(lambda kind: st.tuples(st.just(kind), known[kind])),
        min_size=size // 2,
        max_size=size,
    )


class Player:
    """Plays a history on a site; an event that means nothing now is left out."""

    def __init__(self, site):
        self.site = site
        self.blocks = 0

    def play(self, history):
        for kind, what in history:
            getattr(self, kind)(what)
            self.site.plan()
        return self.site

    def pair(self, whats):
        """Two who must run at the same time."""
        number = self.site.ask.number
        names = [f"r{number + 1}", f"r{number + 2}"]
        for what, other in zip(whats, reversed(names), strict=True):
            self.submit({**what, "together": (other,)})

    def submit(self, what):
        site = self.site
        request = site.ask(
            "",
            *what["shape"],
            limit=what["limit"],
            wishes=what.get("wishes", NO_WISHES),
            weight=what.get("weight", 0),
            user=what.get("user", ""),
            queue=what.get("queue", ""),
            earliest=site.now + what["wait"] if "wait" in what else -inf,
            latest=site.now + what["patience"] if "patience" in what else inf,
            together=what.get("together", ()),
            job=what.get("job", ""),
            reservation=what.get("reservation", ""),
        )
        run = what["limit"] * what["share"]
        site.submit(request, run if run == inf else max(1, run // 1))

    def end(self, number):
        if self.site.running:
            self.site.end(_pick(self.site.running, number))

    def withdraw(self, number):
        if self.site.waiting:
            self.site.withdraw(_pick(self.site.waiting, number))

    def passing(self, seconds):
        self.site.plan()
        self.site.advance(self.site.now + seconds)

    def node(self, what):
        number, state = what
        self.site.set_node(_pick(self.site.nodes, number), state)

    def suspect(self, number):
        self.site.set_node(_pick(self.site.nodes, number), "suspect")

    def maintenance(self, what):
        self._block(maintenance, what)

    def reservation(self, what):
        self._block(reservation, what)

    def _block(self, build, what):
        after, length, numbers = what
        self.blocks += 1
        start = self.site.now + after
        names = dict.fromkeys(_pick(self.site.nodes, number) for number in numbers)
        self.site.block(build(f"b{self.blocks}/1", start, start + length, *names))

    def unblock(self, number):
        if self.site.blocks:
            self.site.unblock(_pick(self.site.blocks, number))

    def extend(self, what):
        number, seconds = what
        if self.site.running:
            self.site.extend(_pick(self.site.running, number), seconds)

    def queue(self, what):
        number, state = what
        self.site.set_queue(_pick(self.site.queues, number), state)

    def foreign(self, what):
        number, count = what
        name = _pick(self.site.nodes, number)
        self.site.set_foreign(name, core=min(count, self.site.nodes[name].amounts["core"]))

    def another(self, number):
        like = self.site.nodes[_pick(self.site.nodes, number)]
        self.site.add_node(msgspec.structs.replace(like, name=f"n{len(self.site.nodes) + 1}x"))

    def resort(self, _):
        self.site.planner.resort(self.site.now)


def _pick(names, number):
    return list(names)[number % len(names)]


def play(cluster, history, queue=None, **more):
    return Player(Site(cluster, (queue or Queue(name="batch"),), **more)).play(history)


QUEUES = {
    "fcfs": Queue(name="batch", depth=0),
    "easy": Queue(name="batch", depth=1),
    "sjbf": Queue(name="batch", depth=1, shortest_first=True),
    "hybrid": Queue(name="batch", depth=3),
    "conservative": Queue(name="batch"),
    "interactive": Queue(name="batch", policy="interactive"),
}
every_policy = pytest.mark.parametrize("policy", QUEUES)


def moved_later(site):
    return [
        each
        for each in site.revisions
        if each.before is not None and (each.after is None or each.after > each.before)
    ]


# -- what must hold ----------------------------------------------------------------------------------------


@every_policy
@few
@given(data=st.data())
def test_on_a_quiet_day_nothing_is_given_twice_and_no_guarantee_moves_later(policy, data):
    site = play(data.draw(clusters()), data.draw(histories(*QUIET, **WISHED)), QUEUES[policy])
    assert not moved_later(site)
    site.clear()


@every_policy
@few
@given(data=st.data())
def test_on_a_bad_day_every_move_has_its_cause_and_everything_is_free_in_the_end(policy, data):
    play(data.draw(clusters()), data.draw(histories(*TROUBLE, **WEIGHED)), QUEUES[policy]).clear()


@every_policy
@few
@given(data=st.data())
def test_whoever_may_not_start_yet_or_runs_too_long_moves_nobody_without_a_cause(policy, data):
    history = histories(
        *TROUBLE, share=st.sampled_from([1, 0.5, 1.5]), limit=st.sampled_from([5, 10, 30]), wait=NUMBERS
    )
    play(data.draw(clusters()), data.draw(history), QUEUES[policy]).clear()


@every_policy
@few
@given(data=st.data())
def test_bounds_are_kept(policy, data):
    bounds = {"ada": {"job": 2}, "bob": {"core": 3}, "eve": {"node": 2, "gpu": 1}}
    history = histories(*QUIET, "extend", "node", user=st.sampled_from(list(bounds)))
    play(data.draw(clusters()), data.draw(history), QUEUES[policy], bounds=bounds).clear()


@every_policy
@few
@given(data=st.data())
def test_extensions_move_no_guarantee(policy, data):
    site = play(data.draw(clusters()), data.draw(histories(*QUIET, "extend", "extend")), QUEUES[policy])
    assert not moved_later(site)
    site.clear()


@every_policy
@few
@given(data=st.data())
def test_reservations_are_honoured(policy, data):
    history = histories(
        *TROUBLE,
        "reservation",
        "reservation",
        reservation=st.sampled_from(["", "", "b1", "b2"]),
        user=st.just("ada"),
    )
    play(data.draw(clusters()), data.draw(history), QUEUES[policy]).clear()


@few
@given(data=st.data())
def test_several_queues_borrow_without_breaking_a_promise(data):
    cluster = data.draw(clusters().filter(lambda nodes: len(nodes) > 1))
    chat = tuple(each.name for each in cluster[: len(cluster) // 2])
    queues = (
        Queue(name="batch", depth=data.draw(st.sampled_from([0, 1, None])), borrow=("chat",)),
        Queue(name="chat", policy="interactive", nodes=chat, factor=data.draw(st.sampled_from([0.5, 2]))),
        Queue(name="other", depth=2, factor=0.7),
    )
    history = data.draw(histories(*TROUBLE, "extend", queue=st.sampled_from(["batch", "chat", "other"])))
    Player(Site(cluster, queues)).play(history).clear()


@every_policy
@few
@given(data=st.data())
def test_queues_may_be_closed_and_priorities_may_change(policy, data):
    history = data.draw(histories(*QUIET, "queue", "resort", **WEIGHED))
    play(data.draw(clusters()), history, QUEUES[policy]).clear()


@every_policy
@few
@given(data=st.data())
def test_the_same_calls_give_the_same_decisions(policy, data):
    cluster, history = data.draw(clusters()), data.draw(histories(*TROUBLE, **WISHED, **WEIGHED))
    one, other = (play(cluster, history, QUEUES[policy]) for _ in range(2))
    assert (one.order, one.placed, one.revisions) == (other.order, other.placed, other.revisions)


# -- order and progress ------------------------------------------------------------------------------------


@few
@given(clusters(), histories(*QUIET, **WISHED))
def test_an_interactive_queue_starts_in_the_order_of_coming(cluster, history):
    site = play(cluster, history, QUEUES["interactive"])
    site.settle()
    numbers = [int(id_[1:]) for id_ in site.order]
    assert numbers == sorted(numbers)


def fits_alone(cluster, request):
    """Whether it would start on the empty cluster."""
    return Planner(cluster).try_out(request, 0).guaranteed_by is not None


@pytest.mark.parametrize("policy", ["conservative", "interactive", "easy", "hybrid", "sjbf", "fcfs"])
@few
@given(data=st.data())
def test_whatever_fits_the_cluster_starts_some_time(policy, data):
    cluster = data.draw(clusters())
    site = play(cluster, data.draw(histories(*QUIET, **WISHED)), QUEUES[policy])
    site.settle()
    assert not [id_ for id_, request in site.waiting.items() if fits_alone(cluster, request)]


@given(clusters(), SHAPES, st.just(NO_WISHES) | WISHES)
def test_what_a_pool_could_place_can_be_planned(cluster, shape, wishes):
    request = Request(id="it", alternatives=shape, wishes=wishes.lasting, limit=10)
    if Pool(cluster).could_ever(shape, wishes.lasting):
        assert fits_alone(cluster, request)


@few
@given(clusters(), st.integers(1, 4), histories(*QUIET, **WEIGHED))
def test_the_first_of_those_who_wait_have_guarantees(cluster, depth, history):
    site = Player(Site(cluster, (Queue(name="batch", depth=depth),))).play(history)
    waiting = sorted(site.waiting, key=lambda id_: site.planner.promise(id_).position)
    plannable = [id_ for id_ in waiting if fits_alone(cluster, site.waiting[id_])]
    assert all(site.planner.promise(id_).guaranteed_by is not None for id_ in plannable[:depth])


# -- trying out --------------------------------------------------------------------------------------------


def state_of(planner, kinds):
    """All that decides about what comes next, of so many kinds of resources."""
    rows = [
        (
            row.free[:kinds],
            row.is_open,
            row.profile.times[:],
            [column[:] for column in row.profile.columns[:kinds]],
        )
        for row in planner.timeline.rows
    ]
    entries = {
        id_: (
            entry.guaranteed,
            entry.spot,
            entry.end,
            entry.is_running,
            entry.tested,
            entry.cause,
            entry.window,
        )
        for id_, entry in planner.entries.items()
    }
    lanes = [
        (
            [entry.request.id for entry in lane.waiting],
            list(lane.reserved),
            lane.seen,
            lane.is_stale,
            lane.barrier,
        )
        for lane in planner.lanes
    ]
    bounds = [
        (bound.profile.times[:], [column[:] for column in bound.profile.columns]) for bound in planner._bounds
    ]
    return (
        rows,
        entries,
        lanes,
        bounds,
        planner.schedule.news,
        planner.schedule.releases.count,
        planner.next_due(0),
    )


@few
@given(clusters(), histories(*TROUBLE, **WISHED), SHAPES, WISHES)
def test_trying_out_changes_nothing_and_says_what_will_be_promised(cluster, history, shape, wishes):
    site = play(cluster, history)
    request = site.ask("", *shape, limit=15, wishes=wishes)
    kinds = len(site.planner.timeline.kinds)
    before = state_of(site.planner, kinds)
    tried = site.planner.try_out(request, site.now)
    assert state_of(site.planner, kinds) == before
    site.submit(request)
    site.plan()
    if request.id in site.starts:
        assert (tried.guaranteed_by, tried.placed) == (site.now, site.placed[request.id])
    else:
        promise = site.planner.promise(request.id)
        assert (tried.guaranteed_by, tried.placed) == (promise.guaranteed_by, promise.placed)


# -- beside bare loops -------------------------------------------------------------------------------------

JOBS = st.lists(
    st.tuples(
        st.integers(0, 12), st.integers(1, 8), st.sampled_from([2, 5, 10, 20]), st.sampled_from([1, 0.5])
    ),
    min_size=2,
    max_size=14,
)
CORES = 8


class Bare:
    """FCFS and EASY on one machine that has nothing but processors; one pass at each moment."""

    def __init__(self, jobs, depth):
        self.depth = depth
        self.coming = jobs
        self.waiting: list = []  # type: ignore[type-arg]
        self.running: list = []  # type: ignore[type-arg]
        self.free = CORES
        self.starts: dict = {}  # type: ignore[type-arg]

    def play(self):
        while self.coming or self.running:
            self.now = min([job[0] for job in self.coming] + [end for _, end, _ in self.running])
            for job in [each for each in self.running if each[1] <= self.now]:
                self.running.remove(job)
                self.free += job[2]
            self.waiting += [job for job in self.coming if job[0] <= self.now]
            self.coming = [job for job in self.coming if job[0] > self.now]
            self.serve()
        return self.starts

    def serve(self):
        while self.waiting and self.waiting[0][2] <= self.free:
            self.start(self.waiting[0])
        if not self.waiting or not self.depth:
            return
        shadow, spare = self.now, self.free
        for limit, _, size in sorted(self.running):
            if spare >= self.waiting[0][2] and limit > shadow:
                break
            shadow, spare = limit, spare + size
        spare -= self.waiting[0][2]
        for job in self.waiting[1:]:
            _, _, size, limit, _ = job
            is_short = self.now + limit <= shadow
            if size <= self.free and (is_short or size <= spare):
                spare -= 0 if is_short else size
                self.start(job)

    def start(self, job):
        _, number, size, limit, run = job
        self.waiting.remove(job)
        self.free -= size
        self.starts[f"r{number}"] = self.now
        self.running.append((self.now + limit, self.now + run, size))


@pytest.mark.parametrize("depth", [0, 1])
@given(JOBS)
def test_one_machine_with_one_kind_goes_like_a_bare_loop(depth, asked):
    moments, jobs = 0, []
    for number, (gap, size, limit, share) in enumerate(asked, 1):
        moments += gap
        jobs.append((moments, number, size, limit, max(1, int(limit * share))))
    site = Site([ClusterNode(name="n1", amounts={"core": CORES})], (Queue(name="batch", depth=depth),))
    for moment in sorted({job[0] for job in jobs}):
        site.advance(moment - 0.5)
        site.now = moment
        site.end_what_is_over()
        for _, number, size, limit, run in (job for job in jobs if job[0] == moment):
            site.asks(f"r{number}", Part(slots=size, each={"core": 1}), limit=limit, run=run)
        site.plan()
    site.settle()
    assert site.starts == Bare(jobs, depth).play()


def with_many(most, play_it):
    """What comes of it where those who wait are put together by what they ask for, if they are so many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobman.sched.lanes._MANY", most)
        return play_it()


@pytest.mark.parametrize("policy", ["easy", "hybrid"])
@few
@given(cluster=clusters(), history=histories(*TROUBLE, size=30))
def test_those_who_are_alike_are_served_as_if_each_were_looked_at(policy, cluster, history):
    one, other = (with_many(most, lambda: play(cluster, history, QUEUES[policy])) for most in (1, 1000))
    assert one.starts == other.starts
    assert one.placed == other.placed
    assert one.revisions == other.revisions


@pytest.mark.parametrize("most", [1, 1000])
@pytest.mark.parametrize("few_nodes", [0, 8])
def test_one_who_has_but_one_node_is_not_thought_to_need_more(most, few_nodes, monkeypatch):
    monkeypatch.setattr("jobman.sched.timeline.FEW", few_nodes)
    site = with_many(most, lambda: Site([node("n1"), node("n2", 1), node("n3", 1)], (QUEUES["easy"],)))
    asked = [
        ("running", cores(2), 20, 20),
        ("wide", whole(3), 60, 60),
        ("pair", nodes(2, core=1), 10, 2),
        ("short", cores(2), 10, 5),
        ("next", cores(2), 20, 20),
    ]
    for name, part, limit, run in asked:
        site.asks(name, part, limit=limit, run=run)
        with_many(most, site.plan)
    site.block(maintenance("window", 45, 79, "n3"))
    with_many(most, site.settle)
    assert site.starts == {"running": 0, "pair": 0, "short": 2, "next": 7, "wide": 79}


@pytest.mark.parametrize("most", [1, 1000])
def test_those_behind_one_who_moves_up_may_have_its_place(most):
    asked = [
        {"shape": alternatives(cores(1)), "limit": 30, "share": 1},
        {"shape": alternatives(Part(nodes=1)), "limit": 10, "share": 3},
        {"shape": alternatives(Part(nodes=2, slots=2, each={"core": 1})), "limit": 20, "share": 0.5},
        {"shape": alternatives(cores(3, slots=2)), "limit": 30, "share": 1, "weight": 2},
        {"shape": alternatives(cores(1)), "limit": 60, "share": 1},
    ]
    first, second, third, fourth, last = (("submit", each) for each in asked)
    windows = [("maintenance", (22, 13, [9])), ("maintenance", (40, 15, [8, 9]))]
    history = [first, second, windows[0], ("passing", 10), third, windows[1], fourth, last]
    cluster = [node("n1", 5, memory=2), node("n2", 5, memory=2), node("n3")]
    site = with_many(most, lambda: play(cluster, history, QUEUES["easy"]))
    with_many(most, lambda: site.settle(5000))
    assert (site.starts["r3"], site.starts["r5"]) == (30, 30)
