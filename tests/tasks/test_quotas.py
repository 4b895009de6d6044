"""A tenant has at most what it may have, and is told when to come again."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from jobman.tasks.quotas import Quota, Usage

ASKED = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 500)), max_size=40)


@given(ASKED, st.integers(1, 200), st.integers(1, 2000))
def test_limits_are_never_exceeded_and_what_is_refused_takes_nothing(
    asked: list[tuple[int, int]], tasks: int, size: int
) -> None:
    usage, quota, taken = Usage(), Quota(tasks=tasks, bytes=size), [0, 0]
    for more in asked:
        refused = usage.admit(*more, quota)
        if refused is None:
            taken = [taken[0] + more[0], taken[1] + more[1]]
        else:
            assert refused.would_be > refused.most
            assert refused.is_hopeless == (more[0] > tasks if refused.limit == "tasks" else more[1] > size)
        assert [usage.tasks, usage.bytes] == taken
        assert taken[0] <= tasks
        assert taken[1] <= size


def test_who_is_refused_is_told_when_there_may_be_room() -> None:
    usage = Usage()
    assert usage.admit(100, 0, Quota(tasks=100)) is None
    early = usage.admit(20, 0, Quota(tasks=100))
    assert early is not None
    assert early.retry_after == 1.0
    usage.rate = 5.0
    refused = usage.admit(20, 0, Quota(tasks=100))
    assert refused is not None
    assert refused.retry_after == 4.0
    assert refused.message == "120 tasks in the queue would be more than the 100 you may have"


def test_what_never_fits_need_not_come_again() -> None:
    refused = Usage().admit(101, 0, Quota(tasks=100))
    assert refused is not None
    assert refused.retry_after == inf
