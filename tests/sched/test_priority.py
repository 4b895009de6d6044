"""Priority: what each factor adds, that all of it can be shown, and who goes first."""

from math import inf, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.priority import FULL_CLASS, place, priority
from jobman.sched.queues import Queue, Weights
from jobman.sched.requests import Request

DAY = 86400.0
NO_WEIGHTS = Weights(priority=0.0, age=0.0, size=0.0, fair_share=0.0, queue=0.0)


def request(id="r", **rest):
    return Request(id=id, alternatives=(), **rest)


def queue(factor=1.0, **weights):
    return Queue(name="batch", factor=factor, weights=Weights(**weights))


def factors(of=None, in_=None, now=0.0, fair=0.0, size=0.0):
    return priority(of or request(), in_ or queue(), now, fair=fair, size_fraction=size)


def order(requests, in_, now=0.0, fair=None):
    """The ids as they would be looked at."""
    fair = fair or {}

    def by(one):
        return place(one, factors(one, in_, now, fair=fair.get(one.user, 0.0)))

    return [one.id for one in sorted(requests, key=by)]


# -- each factor


def test_every_factor_is_shown_with_its_weight_and_what_it_adds():
    found = factors(
        request(weight=1000, submitted=0.0),
        queue(0.5, priority=10_000, age=1000, size=200, fair_share=5000, queue=100, longest_age=DAY),
        now=DAY / 4,
        fair=0.8,
        size=0.1,
    )
    shown = {name: (part.raw, part.weight, part.contribution) for name, part in found.parts.items()}
    assert shown == {
        "priority": (1.0, 10_000, 10_000.0),
        "age": (0.25, 1000, 250.0),
        "size": (0.1, 200, 20.0),
        "fair share": (0.8, 5000, 4000.0),
        "queue": (0.5, 100, 50.0),
    }
    assert found.total == 14_320.0


@pytest.mark.parametrize(
    ("weight", "raw"),
    [(-1000, -1.0), (0, 0.0), (1000, 1.0), (250, 0.25), (5000, 5.0), (-(10**9), -(10.0**6))],
)
def test_a_priority_class_counts_in_proportion_and_is_not_cut_off(weight, raw):
    assert factors(request(weight=weight)).priority.raw == raw


@pytest.mark.parametrize(
    ("waited", "raw"), [(-5.0, 0.0), (0.0, 0.0), (DAY, 1 / 7), (7 * DAY, 1.0), (70 * DAY, 1.0)]
)
def test_age_grows_until_it_counts_fully(waited, raw):
    assert factors(request(submitted=1000.0), now=1000.0 + waited).age.raw == pytest.approx(raw)


def test_nobody_grows_old_before_the_time_they_asked_for():
    early = request(submitted=0.0, earliest=2 * DAY)
    assert factors(early, now=2 * DAY).age.raw == 0.0
    assert factors(early, now=9 * DAY).age.raw == 1.0


def test_age_can_be_made_to_count_fully_at_once_or_never():
    assert factors(in_=queue(longest_age=0.0)).age.raw == 1.0
    assert factors(in_=queue(longest_age=inf), now=DAY).age.raw == 0.0


def test_large_requests_go_first_or_last_by_the_sign_of_the_weight():
    large, small = (factors(in_=queue(size=100.0), size=size).total for size in (0.5, 0.1))
    assert large > small
    large, small = (factors(in_=queue(size=-100.0), size=size).total for size in (0.5, 0.1))
    assert large < small


def test_what_is_larger_than_the_cluster_counts_as_all_of_it():
    assert factors(size=3.0).size.raw == 1.0


# -- who goes first


def test_without_weights_they_go_in_the_order_of_submission():
    everything = Queue(name="batch", weights=NO_WEIGHTS)
    requests = [request(str(number), number=number, weight=-number * 100.0) for number in range(5)]
    assert order(reversed(requests), everything, now=DAY) == ["0", "1", "2", "3", "4"]


def test_of_equals_the_one_submitted_first_goes_first():
    assert order([request("later", number=8), request("sooner", number=7)], queue()) == ["sooner", "later"]


def test_a_class_goes_before_age_and_fair_share_with_the_weights_that_are_given():
    old = request("old", number=1, submitted=0.0, user="anna")
    urgent = request("urgent", number=2, submitted=30 * DAY, weight=1000, user="bert")
    yielding = request("yielding", number=0, submitted=0.0, weight=-1000, user="anna")
    found = order([old, urgent, yielding], queue(), now=30 * DAY, fair={"anna": 1.0, "bert": 0.01})
    assert found == ["urgent", "old", "yielding"]


def test_fair_share_goes_before_age_with_the_weights_that_are_given():
    greedy = request("greedy", number=1, submitted=0.0, user="anna")
    modest = request("modest", number=2, submitted=30 * DAY, user="bert")
    assert order([greedy, modest], queue(), now=30 * DAY, fair={"anna": 0.1, "bert": 1.0})[0] == "modest"


# -- for all requests

PARTS = st.floats(0.0, 1.0)
WEIGHTS = st.builds(
    Weights,
    priority=st.floats(-1e5, 1e5),
    age=st.floats(-1e5, 1e5),
    size=st.floats(-1e5, 1e5),
    fair_share=st.floats(-1e5, 1e5),
    queue=st.floats(-1e5, 1e5),
    longest_age=st.floats(1.0, 1e7),
)
REQUESTS = st.builds(
    Request,
    id=st.just("r"),
    alternatives=st.just(()),
    weight=st.integers(-(10**9), 10**9).map(float),
    submitted=st.floats(0.0, 1e9),
    earliest=st.just(-inf) | st.floats(0.0, 1e9),
    number=st.integers(0, 10**6),
)


@given(REQUESTS, WEIGHTS, PARTS, PARTS, PARTS, st.floats(0.0, 2e9))
def test_the_total_is_what_the_shown_factors_add_up_to(one, weights, factor, fair, size, now):
    in_ = Queue(name="batch", factor=factor, weights=weights)
    found = priority(one, in_, now, fair=fair, size_fraction=size)
    contributions = [part.contribution for part in found.parts.values()]
    assert isclose(found.total, sum(contributions), rel_tol=1e-12, abs_tol=1e-6)
    assert all(part.contribution == part.raw * part.weight for part in found.parts.values())
    assert found.priority.raw == one.weight / FULL_CLASS
    others = [part.raw for name, part in found.parts.items() if name != "priority"]
    assert all(0.0 <= raw <= 1.0 for raw in others)


@given(REQUESTS, PARTS, st.floats(0.0, 2e9), st.floats(0.0, 1e8))
def test_waiting_never_makes_a_request_less_urgent(one, fair, now, longer):
    assert factors(one, now=now + longer, fair=fair).total >= factors(one, now=now, fair=fair).total


@given(REQUESTS, PARTS, PARTS)
def test_a_better_fair_share_never_makes_a_request_less_urgent(one, fair, other):
    worse, better = sorted((fair, other))
    assert factors(one, fair=better).total >= factors(one, fair=worse).total


@given(st.lists(REQUESTS, unique_by=lambda one: one.number, min_size=2), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_how_requests_come_in(requests, random):
    shuffled = list(requests)
    random.shuffle(shuffled)

    def numbers(some):
        return [one.number for one in sorted(some, key=lambda one: place(one, factors(one, now=1e9)))]

    assert numbers(shuffled) == numbers(requests)
