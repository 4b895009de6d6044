"""Tenants share an image by weight and by seconds, and every task is given out once, in its order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.tasks.batches import Batch, Span, Status
from jobman.tasks.queues import QUANTUM, Line, Queue

ESTIMATES = st.floats(0.0, 2.0)


def batch(size: int, *, id_: int = 1, tenant: str = "a", seconds: float = 1.0, priority: int = 0) -> Batch:
    return Batch(id_, image="i", tenant=tenant, estimates=seconds, size=size, priority=priority)


def whole(of: Batch) -> Span:
    return Span(of, 0, len(of))


def given_out(spans: Sequence[Span]) -> list[tuple[int, int]]:
    for span in spans:
        span.batch.mark(span.low, span.high, Status.GIVEN)
    return [(span.batch.id, index) for span in spans for index in range(span.low, span.high)]


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    found = []
    for number in range(draw(st.integers(1, 8))):
        size = draw(st.integers(1, 20))
        each: float | list[float] = draw(
            st.one_of(ESTIMATES, st.lists(ESTIMATES, min_size=size, max_size=size))
        )
        found.append(
            Batch(
                number,
                image="i",
                tenant=draw(st.sampled_from("abc")),
                estimates=each,
                size=size,
                priority=draw(st.integers(0, 2)),
            )
        )
    return found


@given(batches(), st.lists(st.tuples(st.floats(0.001, 5), st.integers(1, 9)), max_size=200))
def test_every_task_is_given_out_once_and_in_its_order(
    all_of: list[Batch], takes: list[tuple[float, int]]
) -> None:
    queue = Queue({})
    for each in all_of:
        queue.put(whole(each))
    found: list[tuple[int, int]] = []
    for seconds, most in takes:
        spans = queue.take(seconds, most)
        assert sum(span.size for span in spans) <= most
        found += given_out(spans)
    while queue.count:
        found += given_out(queue.take(1e9))
    assert Counter(found) == Counter((each.id, index) for each in all_of for index in range(len(each)))
    for tenant in "abc":
        own = {each.id: each.priority for each in all_of if each.tenant == tenant}
        order = [(-own[id_], id_, index) for id_, index in found if id_ in own]
        assert order == sorted(order)
    assert queue.seconds == 0


@given(batches(), st.data())
def test_who_was_cancelled_is_passed_over(all_of: list[Batch], data: st.DataObject) -> None:
    queue = Queue({})
    gone = set()
    for each in all_of:
        queue.put(whole(each))
    for each in all_of:
        index = data.draw(st.integers(0, len(each) - 1))
        each.mark(index, index + 1, Status.KILLED)
        queue.lines[each.tenant].forget(Span(each, index, index + 1))
        gone.add((each.id, index))
    found: list[tuple[int, int]] = []
    while queue.count:
        found += given_out(queue.take(0.5))
    assert not gone & set(found)
    assert len(found) + len(gone) == sum(map(len, all_of))
    assert queue.take(1.0) == []


@given(
    st.floats(0.001, 0.5),
    st.floats(0.001, 0.5),
    st.floats(0.1, 10),
    st.lists(st.floats(0.001, 1.0), min_size=1, max_size=60),
)
def test_two_tenants_never_get_far_ahead_of_their_shares(
    one: float, other: float, weight: float, takes: list[float]
) -> None:
    queue = Queue({"a": weight})
    queue.put(whole(batch(100_000, tenant="a", seconds=one)))
    queue.put(whole(batch(100_000, id_=2, tenant="b", seconds=other)))
    given_seconds = {"a": 0.0, "b": 0.0}
    for seconds in takes:
        for span in queue.take(seconds):
            given_out([span])
            given_seconds[span.batch.tenant] += span.seconds
    bound = max((one + QUANTUM) / weight, other + QUANTUM) + 1e-9
    assert abs(given_seconds["a"] / weight - given_seconds["b"]) <= bound


def test_who_comes_late_begins_where_the_others_are() -> None:
    queue = Queue({})
    queue.put(whole(batch(1000, tenant="a")))
    given_out(queue.take(100.0))
    queue.put(whole(batch(1000, id_=2, tenant="b")))
    share = Counter(id_ for id_, _ in given_out(queue.take(100.0)))
    assert share[1] == pytest.approx(50, abs=2)


def test_what_took_longer_than_thought_counts() -> None:
    queue = Queue({})
    queue.put(whole(batch(1000, tenant="a")))
    queue.put(whole(batch(1000, id_=2, tenant="b")))
    given_out(queue.take(20.0))
    queue.charge("a", 30.0)
    assert {id_ for id_, _ in given_out(queue.take(29.0))} == {2}


def test_a_tenant_without_room_lets_others_go() -> None:
    queue = Queue({})
    queue.put(whole(batch(10, tenant="a")))
    queue.put(whole(batch(10, id_=2, tenant="b")))
    found = Counter(id_ for id_, _ in given_out(queue.take(100.0, room={"a": 3, "b": 100}.__getitem__)))
    assert found == {1: 3, 2: 10}


def test_one_that_is_tried_again_may_come_first() -> None:
    line = Line()
    first, second = batch(5), batch(5, id_=2)
    line.put(whole(first))
    line.put(Span(second, 3, 4), first=True)
    assert line.take(1.0, 1) == Span(second, 3, 4)
    assert (line.count, line.seconds) == (5, 5.0)
