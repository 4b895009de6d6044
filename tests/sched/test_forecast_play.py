"""The queue played forward, against bare loops of the same policies that know nothing but cores."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.forecast_amounts import Amounts
from jobman.sched.forecast_play import Closure, Play, Rules, Runner, Scene, Waiter
from jobman.sched.queues import Queue

CORES = 8
COUNTED = Amounts({"core": CORES})


def need(cores):
    return COUNTED.packed({"core": cores})


RUNNING = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 50), st.integers(0, 50)), max_size=3).filter(
    lambda jobs: sum(cores for cores, _, _ in jobs) <= CORES
)
"""Cores, seconds that are left, and seconds that are left beyond that by the limit."""
WAITING = st.lists(
    st.tuples(st.integers(1, CORES), st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=12
)


def scene(running, waiting, closures=()):
    held = sum(cores for cores, _, _ in running)
    return Scene(
        0.0,
        COUNTED.marks,
        COUNTED.all - need(held),
        [Runner(seconds, seconds + more, need(cores)) for cores, seconds, more in running],
        [Waiter(need(cores), seconds + more, seconds) for cores, seconds, more in waiting],
        closures,
    )


class Bare:
    """EASY second by second; the head's start by limits is what nobody may delay."""

    def __init__(self, running, waiting):
        self.now = 0
        self.waiting = waiting
        self.holds = [(cores, seconds, seconds + more) for cores, seconds, more in running]
        self.queue = list(range(len(waiting)))
        self.starts = [inf] * len(waiting)

    def free_after(self, moment):
        """Cores that are free when everything has ended whose limit is up by then."""
        return CORES - sum(cores for cores, _, latest in self.holds if latest > moment)

    def fits(self, job):
        return self.waiting[job][0] <= CORES - sum(cores for cores, _, _ in self.holds)

    def start(self, job):
        cores, seconds, more = self.waiting[job]
        self.starts[job] = self.now
        self.holds.append((cores, self.now + seconds, self.now + seconds + more))
        self.queue.remove(job)

    def backfill(self, order):
        head = self.waiting[self.queue[0]][0]
        shadow = min(latest for _, _, latest in self.holds if self.free_after(latest) >= head)
        extra = self.free_after(shadow) - head
        for job in sorted(self.queue[1:], key=order):
            cores, seconds, more = self.waiting[job]
            ends_before = self.now + seconds + more <= shadow
            if self.fits(job) and (ends_before or cores <= extra):
                extra -= 0 if ends_before else cores
                self.start(job)

    def run(self, order):
        while self.queue:
            self.holds = [hold for hold in self.holds if hold[1] > self.now]
            while self.queue and self.fits(self.queue[0]):
                self.start(self.queue[0])
            if self.queue and order:
                self.backfill(order)
            self.now += 1
        return self.starts


def bare(running, waiting, order=lambda job: job):
    return Bare(running, waiting).run(order)


@given(RUNNING, WAITING)
def test_a_play_with_one_reservation_is_easy(running, waiting):
    assert Play(scene(running, waiting), Rules(1)).run() == bare(running, waiting)


@given(RUNNING, WAITING)
def test_those_behind_may_be_looked_at_by_their_limits(running, waiting):
    played = Play(scene(running, waiting), Rules(1, shortest_first=True)).run()
    assert played == bare(running, waiting, lambda job: sum(waiting[job][1:]))


@given(RUNNING, WAITING)
def test_a_play_without_reservations_lets_nobody_pass(running, waiting):
    played = Play(scene(running, waiting), Rules(0)).run()
    assert played == bare(running, waiting, None)
    assert played == sorted(played)


@given(RUNNING, WAITING)
def test_with_a_reservation_for_each_nobody_is_delayed_where_run_times_are_limits(running, waiting):
    exact = [(cores, seconds + more, 0) for cores, seconds, more in waiting]
    held = [(cores, seconds + more, 0) for cores, seconds, more in running]
    alone = [Play(scene(held, exact[: place + 1]), Rules(8)).run()[place] for place in range(len(exact))]
    together = Play(scene(held, exact), Rules(8)).run()
    assert all(found <= bound for found, bound in zip(together[:8], alone[:8], strict=True))


@given(RUNNING, WAITING, st.sampled_from([0, 1, 8]), st.sampled_from([0.0, 0.5, 3.0]), st.integers(1, 12))
def test_never_more_runs_than_there_is_room_for(running, waiting, depth, grain, reach):
    starts = Play(scene(running, waiting), Rules(depth), grain=grain, reach=reach).run()
    assert max(starts) < inf
    spans = [(0, seconds, cores) for cores, seconds, _ in running]
    spans += [(start, start + job[1], job[0]) for start, job in zip(starts, waiting, strict=True)]  # type: ignore[misc]
    for moment, _, _ in spans:
        assert sum(cores for start, end, cores in spans if start <= moment < end) <= CORES


@given(RUNNING, WAITING, st.sampled_from([0, 1, 8]), st.data())
def test_a_play_for_one_stops_at_its_start_and_says_the_same(running, waiting, depth, data):
    target = data.draw(st.integers(0, len(waiting) - 1))
    whole = Play(scene(running, waiting), Rules(depth)).run()
    short = Play(scene(running, waiting), Rules(depth)).run(target)
    assert short[target] == whole[target]
    assert all(start in (inf, whole[place]) for place, start in enumerate(short))


def test_nothing_runs_into_what_is_closed():
    closed = [Closure(100.0, 200.0, need(CORES))]
    waiting = [(1, 50, 0), (1, 10, 100)]
    assert Play(scene([], waiting, closed), Rules(1)).run() == [0.0, 200.0]


def test_what_is_closed_already_opens_again():
    assert Play(scene([], [(8, 5, 0)], [Closure(-10.0, 30.0, need(1))]), Rules(1)).run() == [30.0]
    assert Play(scene([], [(8, 5, 0)], [Closure(-10.0, inf, need(1))]), Rules(1)).run() == [inf]


def test_nobody_starts_before_the_time_it_asked_for():
    found = scene([], [(8, 10, 0), (8, 10, 0)])
    later = [found.waiting[0]._replace(earliest=40.0), found.waiting[1]]
    assert Play(found._replace(waiting=later), Rules(1)).run() == [40.0, 0.0]


def test_rules_follow_the_policy_of_a_queue():
    assert Rules.of(Queue(name="q", depth=1)) == Rules(1)
    assert Rules.of(Queue(name="q", depth=1, shortest_first=True)) == Rules(1, shortest_first=True)
    assert Rules.of(Queue(name="q", depth=None)).depth > 1
    assert Rules.of(Queue(name="q", policy="interactive", depth=None)) == Rules(0)
