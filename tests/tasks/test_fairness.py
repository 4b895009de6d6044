"""Tenants share workers by seconds and weights, whatever their tasks are like and they say of them."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.tasks.agent import CREDIT
from jobman.tasks.batches import Status
from jobman.tasks.broker import Broker
from jobman.tasks.mapper import Table, TypeLine
from jobman.tasks.model import Pull, Report, Submission
from jobman.tasks.quotas import Quota
from jobman.tasks.submissions import Refusal

TABLE = Table([TypeLine(type=name, image="i") for name in ("t", "u", "v")])
_CALL = 0.05
_TICK = 0.25


class Agent:
    """One slot: executes what it has in order, several short tasks in one call, by its credit."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[tuple[int, int, float]] = deque()
        """Batch, index, and how long the broker thinks that it takes."""
        self.executing: list[tuple[int, int]] = []
        self.executing_seconds = 0.0
        self.is_known = False

    @property
    def credit(self) -> float:
        return CREDIT - sum(seconds for *_, seconds in self.waiting) - self.executing_seconds


class Simulation:
    """A broker and agents on a clock that only counts what tasks take; nothing else takes time."""

    def __init__(self, quotas: dict[str, Quota], agents: int = 2) -> None:
        self.broker = Broker(TABLE, quotas=quotas)
        self.now = 0.0
        self.used: list[tuple[float, float, str]] = []
        """Begin, end and tenant of all that was executed."""
        self.order: list[tuple[str, int, int]] = []
        self._agents = [Agent(f"agent-{number}") for number in range(agents)]
        self._took: dict[int, float] = {}
        self._events: list[tuple[float, int, Agent]] = []
        self._numbers = count()
        self._ticked = 0.0

    def submit(
        self,
        tenant: str,
        tasks: int,
        takes: float,
        says: float | None,
        priority: int = 0,
        type_: str = "t",
    ) -> int:
        asked = Submission(type=type_, payloads=[b"x"] * tasks, estimates=says, priority=priority)
        id_ = self.broker.submit(tenant, asked, self.now, self.now).id
        self._took[id_] = takes
        self._feed()
        return id_

    def run(self, until: float) -> None:
        self._feed()
        while self._events and self._events[0][0] <= until:
            self.now, _, agent = heappop(self._events)
            self._finish(agent)
            self._pull(agent)
            while self._ticked + _TICK < self.now:
                self._ticked += _TICK
                self.broker.tick(self._ticked)
        self.now = until

    def _feed(self) -> None:
        for agent in self._agents:
            self._pull(agent)

    def _pull(self, agent: Agent) -> None:
        if agent.credit > 0:
            asked = Pull(image="i", seconds=agent.credit, have=None if agent.is_known else {})
            agent.is_known = True
            for work in self.broker.pull(agent.name, asked, self.now):
                agent.waiting.extend(
                    (work.batch, index, work.seconds) for index in range(work.low, work.high)
                )
        if agent.waiting and not agent.executing:
            self._execute(agent)

    def _execute(self, agent: Agent) -> None:
        took = 0.0
        agent.executing, agent.executing_seconds = [], 0.0
        while agent.waiting and took < _CALL:
            batch, index, seconds = agent.waiting.popleft()
            agent.executing.append((batch, index))
            agent.executing_seconds += seconds
            took += self._took[batch]
        heappush(self._events, (self.now + took, next(self._numbers), agent))

    def _finish(self, agent: Agent) -> None:
        at = self.now - sum(self._took[batch] for batch, _ in agent.executing)
        by_batch: dict[int, list[int]] = {}
        for batch, index in agent.executing:
            tenant = self.broker.batches[batch].tenant
            self.used.append((at, at + self._took[batch], tenant))
            self.order.append((tenant, batch, index))
            at += self._took[batch]
            by_batch.setdefault(batch, []).append(index)
        agent.executing, agent.executing_seconds = [], 0.0
        reports = [
            Report(
                batch=batch,
                indexes=indexes,
                status=Status.COMPLETED,
                seconds=[self._took[batch]] * len(indexes),
                results=[b""] * len(indexes),
            )
            for batch, indexes in by_batch.items()
        ]
        self.broker.report(agent.name, reports, self.now)

    def shares(self, since: float, until: float) -> dict[str, float]:
        """The part of all seconds in a window that each tenant had."""
        found: dict[str, float] = {}
        for low, high, tenant in self.used:
            inside = min(high, until) - max(low, since)
            if inside > 0:
                found[tenant] = found.get(tenant, 0.0) + inside
        whole = sum(found.values())
        return {tenant: seconds / whole for tenant, seconds in found.items()}


def weights(**given: float) -> dict[str, Quota]:
    return {tenant: Quota(weight=weight) for tenant, weight in given.items()}


SAID = {
    "right": (0.002, 0.2),
    "not said": (None, None),
    "short ones called long": (0.2, 0.2),
    "long ones called short": (0.002, 0.002),
    "the wrong way round": (0.2, 0.002),
}


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("heavy", ["short", "long"])
def test_weights_are_kept_by_seconds_whatever_is_said_of_the_tasks(said: str, heavy: str) -> None:
    short_says, long_says = SAID[said]
    site = Simulation(weights(short=3.0 if heavy == "short" else 1.0, long=3.0 if heavy == "long" else 1.0))
    site.submit("short", 30_000, 0.002, short_says)
    site.submit("long", 400, 0.2, long_says, type_="u")
    site.run(36.0)
    # Before the first of them is reported nobody knows better: agents have a credit of what was said.
    shares = site.shares(12.0, 36.0)
    assert shares[heavy] == pytest.approx(0.75, rel=0.05)


def test_who_joins_late_has_its_share_at_once_and_nothing_saved_up() -> None:
    site = Simulation(weights(a=3.0, b=1.0, c=1.0))
    site.submit("a", 60_000, 0.002, 0.002)
    site.submit("b", 1000, 0.2, 0.2, type_="u")
    site.run(15.0)
    site.submit("c", 60_000, 0.01, 0.01, type_="v")
    site.run(40.0)
    for since, until, nearly in ((15.5, 19.5, 0.1), (20.0, 40.0, 0.05)):
        shares = site.shares(since, until)
        assert shares["c"] == pytest.approx(0.2, rel=nearly)
        assert shares["a"] == pytest.approx(0.6, rel=nearly)


def test_who_comes_again_after_a_pause_has_nothing_saved_up() -> None:
    site = Simulation(weights(a=1.0, b=1.0))
    site.submit("b", 100, 0.01, 0.01)
    site.submit("a", 60_000, 0.005, 0.005)
    site.run(20.0)
    assert site.shares(10.0, 20.0) == {"a": pytest.approx(1.0)}
    site.submit("b", 60_000, 0.01, 0.01)
    site.run(30.0)
    assert site.shares(20.5, 24.5)["b"] == pytest.approx(0.5, rel=0.05)


def test_who_may_not_have_more_slots_saves_up_nothing_for_those_who_come() -> None:
    """A tenant at its limit stands far behind the others; who comes then must not begin there."""
    site = Simulation({"limited": Quota(weight=10.0, slots=1)}, agents=4)
    site.submit("limited", 1000, 0.2, 0.2)
    site.submit("b", 60_000, 0.01, 0.01)
    site.run(20.0)
    site.submit("c", 60_000, 0.01, 0.01)
    site.run(30.0)
    shares = site.shares(20.5, 30.0)
    assert shares["c"] == pytest.approx(shares["b"], rel=0.05)
    assert shares["limited"] <= 0.26


def test_what_is_given_back_is_not_paid_for() -> None:
    broker = Broker(TABLE, quotas=weights(a=1.0, b=1.0))
    broker.submit("a", Submission(type="t", payloads=[b"x"] * 10, estimates=1.0), 0.0, 0.0)
    broker.submit("b", Submission(type="t", payloads=[b"x"] * 10, estimates=1.0), 0.0, 0.0)
    before = {tenant: line.clock for tenant, line in broker.queues["i"].lines.items()}
    broker.pull("x", Pull(image="i", seconds=6.0, have={}), 0.0)
    broker.lost("x")
    after = {tenant: line.clock for tenant, line in broker.queues["i"].lines.items()}
    assert after == pytest.approx(before)


def test_the_highest_priority_of_a_tenant_is_first_and_takes_nothing_from_others() -> None:
    site = Simulation(weights(a=1.0, b=1.0), agents=1)
    low = site.submit("a", 2000, 0.01, 0.01, priority=-10)
    site.submit("b", 4000, 0.01, 0.01)
    site.run(5.0)
    high = site.submit("a", 200, 0.01, 0.01, priority=10)
    begun = len(site.order)
    site.run(20.0)
    mine = [batch for tenant, batch, _ in site.order[begun:] if tenant == "a"]
    # What was at the agent before is executed first: a credit of it, and what one call holds.
    assert mine.index(high) <= (CREDIT + _CALL) / 0.01 + 1
    assert low not in mine[mine.index(high) : mine.index(high) + 200]
    assert site.shares(5.0, 20.0)["a"] == pytest.approx(0.5, rel=0.05)


def test_a_tenant_at_its_quota_is_told_when_to_come_again_and_others_are_not() -> None:
    site = Simulation({"a": Quota(tasks=100)}, agents=1)
    site.submit("a", 100, 0.01, 0.01)
    site.run(0.5)
    with pytest.raises(Refusal) as refused:
        site.submit("a", 100, 0.01, 0.01)
    assert refused.value.code == "quota"
    assert refused.value.retry_after is not None
    assert 1.0 <= refused.value.retry_after <= 60.0
    site.submit("b", 1000, 0.01, 0.01)
    site.run(1.2)
    assert site.shares(0.6, 1.2)["b"] > 0.4


@settings(max_examples=8)
@given(
    tenants=st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from([0.005, 0.02, 0.2]), st.sampled_from([0.1, 1.0, 10.0])),
        min_size=2,
        max_size=3,
    )
)
def test_any_weights_lengths_and_errors_come_out_fair(tenants: list[tuple[int, float, float]]) -> None:
    names = "abc"[: len(tenants)]
    site = Simulation(weights(**{name: float(each[0]) for name, each in zip(names, tenants, strict=True)}))
    for name, (_, takes, error) in zip(names, tenants, strict=True):
        site.submit(name, int(80 / takes), takes, takes * error)
    site.run(36.0)
    shares = site.shares(6.0, 36.0)
    whole = sum(weight for weight, *_ in tenants)
    # Where the window begins and where it ends a task more or less may be in it.
    edges = 2 * max(takes for _, takes, _ in tenants) / (2 * 30.0)
    for name, (weight, *_) in zip(names, tenants, strict=True):
        assert shares[name] == pytest.approx(weight / whole, abs=0.05 * weight / whole + edges)
