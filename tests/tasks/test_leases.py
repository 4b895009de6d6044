"""A task is with one agent at most and recorded once, whatever agents say, and however they go."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jobman.tasks.batches import ENDED, Batch, Span, Status
from jobman.tasks.leases import DEATHS, Leases, spans_of
from jobman.tasks.queues import Queue

SIZE = 12


class Machine(RuleBasedStateMachine):
    """Agents that pull, report, report again, crash and disappear, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.leases, self.queue = Leases(10.0), Queue({})
        self.batches = [
            Batch(number, image="i", tenant="ab"[number % 2], estimates=1.0, size=SIZE) for number in range(3)
        ]
        for batch in self.batches:
            self.queue.put(Span(batch, 0, SIZE))
        self.recorded: list[tuple[int, int]] = []
        self.attempts: dict[tuple[int, int], int] = {}

    @rule(agent=st.sampled_from("xyz"), seconds=st.integers(1, 6))
    def pull(self, agent: str, seconds: int) -> None:
        spans = self.queue.take(float(seconds))
        self.leases.give(self.leases.hear(agent, "i", 0.0), spans)
        for span in spans:
            for index in range(span.low, span.high):
                key = span.batch.id, index
                assert span.batch.attempt(index) > self.attempts.get(key, 0)
                self.attempts[key] = span.batch.attempt(index)

    @precondition(lambda self: self.leases.agents)
    @rule(
        data=st.data(),
        status=st.sampled_from([Status.COMPLETED, Status.FAILED]),
        indexes=st.sets(st.integers(0, SIZE - 1)),
    )
    def report(self, data: st.DataObject, status: Status, indexes: set[int]) -> None:
        agent = data.draw(st.sampled_from(sorted(self.leases.agents.values(), key=lambda each: each.id)))
        batch = data.draw(st.sampled_from(self.batches))
        held = set(agent.held.get(batch, ()))
        found = self.leases.end(agent, batch, indexes, status)
        assert found == sorted(held & indexes)
        self.recorded += [(batch.id, index) for index in found]

    @precondition(lambda self: self.leases.agents)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        agent = data.draw(st.sampled_from(sorted(self.leases.agents.values(), key=lambda each: each.id)))
        for span in self.leases.lose(agent):
            self.queue.put(span, first=True)

    @precondition(lambda self: self.leases.agents)
    @rule(data=st.data(), indexes=st.sets(st.integers(0, SIZE - 1)))
    def crash(self, data: st.DataObject, indexes: set[int]) -> None:
        agent = data.draw(st.sampled_from(sorted(self.leases.agents.values(), key=lambda each: each.id)))
        batch = data.draw(st.sampled_from(self.batches))
        alone, given_up = self.leases.crash(agent, batch, sorted(indexes))
        assert all(span.size == 1 and self.leases.is_suspect(batch, span.low) for span in alone)
        self.recorded += [(batch.id, index) for index in given_up]
        for span in alone:
            self.queue.put(span, first=True)

    @invariant()
    def everything_is_somewhere_once(self) -> None:
        held = [
            (batch.id, index)
            for agent in self.leases.agents.values()
            for batch, indexes in agent.held.items()
            for index in indexes
        ]
        assert len(held) == len(set(held))
        states = {
            (batch.id, index): state for batch in self.batches for index, state in enumerate(batch.states)
        }
        assert {key for key, state in states.items() if state == Status.GIVEN} == set(held)
        assert sorted(self.recorded) == sorted(key for key, state in states.items() if state >= ENDED)
        assert self.queue.count == sum(state == Status.QUEUED for state in states.values())
        for batch in self.batches:
            assert batch.left == sum(state < ENDED for state in batch.states)
        assert sum(self.leases.running.values()) == len(held)


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLeases = Machine.TestCase


def test_a_task_that_kills_workers_is_given_up() -> None:
    leases, batch = Leases(10.0), Batch(1, image="i", tenant="a", estimates=1.0, size=2)
    agent = leases.hear("x", "i", 0.0)
    for death in range(1, DEATHS + 1):
        leases.give(agent, [Span(batch, 0, 1)])
        alone, given_up = leases.crash(agent, batch, [0])
        assert (len(alone), given_up) == ((1, []) if death < DEATHS else (0, [0]))
    assert batch.states[0] == Status.FAILED


def test_one_that_was_only_near_is_cleared_by_its_success() -> None:
    leases, batch = Leases(10.0), Batch(1, image="i", tenant="a", estimates=1.0, size=2)
    agent = leases.hear("x", "i", 0.0)
    leases.give(agent, [Span(batch, 0, 2)])
    alone, _ = leases.crash(agent, batch, [0, 1])
    leases.give(agent, alone[:1])
    leases.end(agent, batch, [0], Status.COMPLETED)
    assert [leases.is_suspect(batch, index) for index in (0, 1)] == [False, True]


def test_who_is_silent_too_long_is_lost() -> None:
    leases = Leases(10.0)
    leases.hear("x", "i", 0.0)
    leases.hear("y", "i", 5.0)
    assert [agent.id for agent in leases.silent(12.0)] == ["x"]


def test_indexes_become_spans() -> None:
    batch = Batch(1, image="i", tenant="a", estimates=1.0, size=9)
    assert [(low, high) for _, low, high in spans_of(batch, [0, 1, 4, 6, 7, 8])] == [(0, 2), (4, 5), (6, 9)]


def test_indexes_out_of_order_become_the_same_spans() -> None:
    batch = Batch(1, image="i", tenant="a", estimates=1.0, size=9)
    assert [(low, high) for _, low, high in spans_of(batch, [4, 2, 6])] == [(2, 3), (4, 5), (6, 7)]
