"""The number of workers follows outstanding seconds: up at once, down after a while of calm."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobman.tasks.broker import Broker
from jobman.tasks.mapper import Table, TypeLine
from jobman.tasks.model import Pull, Submission
from jobman.tasks.quotas import Quota
from jobman.tasks.scaling import Limits, Scale, to_end
from jobman.tasks.stats import outstanding

LIMITS = Limits(least=1, most=10, slots=2, target=5.0, calm=60.0)
LOADS = st.lists(st.tuples(st.floats(0, 30), st.floats(0, 500), st.integers(0, 30)), min_size=1, max_size=60)


def test_as_many_as_the_work_keeps_busy() -> None:
    assert Scale(LIMITS).wanted(outstanding=35.0, busy=0, now=0.0) == 4


def test_nothing_to_do_is_the_least_and_something_is_one_at_least() -> None:
    idle = Limits(least=0)
    assert Scale(idle).wanted(outstanding=0.0, busy=0, now=0.0) == 0
    assert Scale(idle).wanted(outstanding=0.001, busy=0, now=0.0) == 1


def test_up_at_once_and_down_after_a_while() -> None:
    scale = Scale(LIMITS)
    found = [
        scale.wanted(outstanding=work, busy=0, now=now)
        for now, work in [(0, 10), (1, 100), (2, 0), (60, 0), (61, 0), (62.5, 0)]
    ]
    assert found == [1, 10, 10, 10, 1, 1]


@given(LOADS)
def test_within_limits_never_fewer_than_run_nor_than_the_work_of_the_last_while(
    loads: list[tuple[float, float, int]],
) -> None:
    scale, now, lately = Scale(LIMITS), 0.0, list[tuple[float, int]]()
    for pause, work, running in loads:
        now += pause
        wanted = scale.wanted(work, running, now)
        alone = Scale(LIMITS).wanted(work, running, now)
        lately.append((now, alone))
        assert LIMITS.least <= wanted <= LIMITS.most
        assert wanted == max(each for at, each in lately if at > now - LIMITS.calm)


def test_idle_ones_go_first() -> None:
    assert to_end({"c": 2, "b": 0, "a": 1, "d": 0}, 3) == ["b", "d", "a"]


# -- what a broker says of the work ----------------------------------------------------------------------


def a_broker(tasks: int, estimate: float, **quotas: Quota) -> Broker:
    """With tasks of a tenant `desk`, of the image `i`."""
    broker = Broker(Table([TypeLine(type="t", image="i")]), first=1, quotas=quotas)
    broker.submit("desk", Submission(type="t", payloads=[b""] * tasks, estimates=estimate), 0.0, 0.0)
    return broker


def test_a_tenant_brings_up_no_more_workers_than_it_may_have() -> None:
    many = Limits(most=50, slots=2, target=5.0)
    for quota, wanted in ((Quota(workers=3), 3), (Quota(slots=4), 2), (Quota(), 50)):
        broker = a_broker(1000, 10.0, desk=quota)
        told = outstanding(broker, "i", Scale(many), 0.0)
        assert (told.seconds, told.wanted) == (10_000.0, wanted)


def test_short_tasks_that_wait_at_an_agent_want_no_worker_each() -> None:
    broker = a_broker(500, 0.001)
    broker.pull("agent", Pull(image="i", seconds=0.2, most=1000, slots=2, have={}), 0.0)
    told = outstanding(broker, "i", Scale(Limits(most=50, slots=2)), 0.0)
    assert told.running > 100
    assert (told.busy, told.wanted) == (2, 1)
