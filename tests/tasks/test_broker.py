"""Whatever agents, workers, people and crashes do, every accepted task ends once, and the books add up."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jobman.tasks.batches import ENDED, Status
from jobman.tasks.broker import Broker, Given
from jobman.tasks.entries import ENDS, REVIVED, Entry, StoredBatch
from jobman.tasks.mapper import Table
from jobman.tasks.mapper import TypeLine as Line
from jobman.tasks.model import Ends, Pull, Report, Retries, Some, Submission
from jobman.tasks.quotas import Quota
from jobman.tasks.submissions import LARGEST, Refusal

TABLE = Table([Line(type="t", image="i")])
AGENTS = st.sampled_from("xyz")


def ends_in(entries: list[Entry]) -> Counter[tuple[int, int]]:
    """How often each task has ended; a dead letter that is tried again has not."""
    found: Counter[tuple[int, int]] = Counter()
    for entry in entries:
        if entry.kind == ENDS:
            ends = msgspec.msgpack.decode(entry.body, type=Ends)
            found.update((entry.batch, index) for index in ends.indexes)
        elif entry.kind == REVIVED:
            some = msgspec.msgpack.decode(entry.body, type=Some)
            found.subtract((entry.batch, index) for index in some.indexes)
    return found


def pull(broker: Broker, agent: str, seconds: float, most: int = 100, now: float = 0.0) -> list[Given]:
    have: dict[int, list[int]] | None = None if agent in broker.leases.agents else {}
    return broker.pull(agent, Pull(image="i", seconds=seconds, most=most, have=have), now)


def completed(batch: int, *indexes: int, status: Status = Status.COMPLETED) -> Report:
    return Report(
        batch=batch,
        indexes=list(indexes),
        status=status,
        seconds=[0.5] * len(indexes),
        results=[bytes([index]) for index in indexes],
    )


class Machine(RuleBasedStateMachine):
    """A broker whose journal is a list, with everything that may happen to it, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.starts = 0.0, 1
        self.batches: list[StoredBatch] = []
        self.entries: list[Entry] = []
        self.forgotten: set[tuple[int, int]] = set()
        self.all: set[tuple[int, int]] = set()
        self.broker = self.new()

    def new(self) -> Broker:
        quotas = {"a": Quota(weight=3.0), "b": Quota(slots=4, workers=2)}
        return Broker(TABLE, first=self.starts << 32, quotas=quotas, expiry=100.0)

    @rule(
        tenant=st.sampled_from("ab"),
        size=st.integers(1, 8),
        limit=st.integers(0, 2),
        deadline=st.sampled_from([None, 5.0]),
        estimates=st.sampled_from([None, 1.0]),
    )
    def submit(
        self, tenant: str, size: int, limit: int, deadline: float | None, estimates: float | None
    ) -> None:
        asked = Submission(
            type="t",
            payloads=[b"x"] * size,
            estimates=estimates,
            deadline=deadline,
            retries=Retries(limit=limit, delay=1.0),
        )
        accepted = self.broker.submit(tenant, asked, self.now, self.now)
        assert accepted.stored is not None
        self.batches.append(accepted.stored)
        self.all |= {(accepted.id, index) for index in range(size)}

    @rule(agent=AGENTS, seconds=st.integers(0, 6))
    def pull(self, agent: str, seconds: int) -> None:
        leases = self.broker.leases
        running, workers = leases.running.get("b", 0), leases.workers.get("b", 0)
        pull(self.broker, agent, float(seconds), now=self.now)
        # Those that agents said they have are with them, whatever the limits are.
        assert leases.running.get("b", 0) <= max(running, 4) or leases.has_suspects
        assert leases.workers.get("b", 0) <= max(workers, 2) or leases.has_suspects

    @precondition(lambda self: self.batches)
    @rule(
        agent=AGENTS,
        data=st.data(),
        indexes=st.lists(st.integers(0, 7), unique=True, max_size=8),
        status=st.sampled_from([Status.COMPLETED, Status.FAILED]),
    )
    def report(self, agent: str, data: st.DataObject, indexes: list[int], status: Status) -> None:
        batch = self.broker.batches[data.draw(st.sampled_from(self.batches)).id]
        report = completed(batch.id, *indexes, status=status)
        # As an agent does, which was told with the tasks.
        report = msgspec.structs.replace(report, attempts={index: batch.attempt(index) for index in indexes})
        with suppress(Refusal):
            self.entries += self.broker.report(agent, [report], self.now)

    @precondition(lambda self: self.batches)
    @rule(
        agent=AGENTS,
        data=st.data(),
        indexes=st.lists(st.integers(0, 7), unique=True, max_size=3),
        is_crash=st.booleans(),
    )
    def lose_tasks(self, agent: str, data: st.DataObject, indexes: list[int], is_crash: bool) -> None:
        batch = data.draw(st.sampled_from(self.batches)).id
        with suppress(Refusal):
            if is_crash:
                self.entries += self.broker.crashed(agent, {batch: indexes}, self.now)
            else:
                self.broker.returned(agent, {batch: indexes}, self.now)

    @rule(agent=AGENTS)
    def lose_an_agent(self, agent: str) -> None:
        self.broker.lost(agent)

    @precondition(lambda self: self.batches)
    @rule(agent=AGENTS, data=st.data(), indexes=st.lists(st.integers(0, 9), unique=True, max_size=5))
    def an_agent_tells_what_it_has(self, agent: str, data: st.DataObject, indexes: list[int]) -> None:
        batch = data.draw(st.sampled_from(self.batches)).id
        self.broker.pull(agent, Pull(image="i", seconds=0.0, have={batch: indexes, 7: [1]}), self.now)
        told = self.broker.orders(agent)
        held = {
            (own.id, index) for own, some in self.broker.leases.agents[agent].held.items() for index in some
        }
        assert held | set(told) >= {(batch, index) for index in indexes} | {(7, 1)}
        assert not held & set(told)
        assert held <= {(batch, index) for index in indexes}

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), low=st.integers(0, 7))
    def cancel(self, data: st.DataObject, low: int) -> None:
        batch = data.draw(st.sampled_from(self.batches))
        with suppress(Refusal):
            self.entries += self.broker.cancel(
                batch.tenant, batch.id, range(min(low, batch.size), batch.size)
            )
            assert self.broker.batches[batch.id].states[low:].count(Status.GIVEN) == 0

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.entries += self.broker.tick(self.now)

    @rule(tenant=st.sampled_from("ab"), is_drop=st.booleans())
    def look_after_dead_letters(self, tenant: str, is_drop: bool) -> None:
        if is_drop:
            _, entries = self.broker.drop_dead(tenant, None)
            assert not list(self.broker.dead(tenant))
        else:
            _, entries = self.broker.revive(tenant, None, self.now)
        self.entries += entries

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def fetch(self, data: st.DataObject) -> None:
        batch = data.draw(st.sampled_from(self.batches))
        self.entries += self.broker.fetched(batch.tenant, batch.id)

    @rule()
    def sweep(self) -> None:
        gone = set(self.broker.over(self.now))
        ended = ends_in(self.entries)
        for batch in self.batches:
            if batch.id in gone:
                own = {(batch.id, index) for index in range(batch.size)}
                assert all(ended[each] == 1 for each in own)
                self.forgotten |= own
        self.batches = [batch for batch in self.batches if batch.id not in gone]
        self.entries = [entry for entry in self.entries if entry.batch not in gone]

    @rule(agent=AGENTS)
    def submit_what_cannot_be_written(self, agent: str) -> None:
        accepted = self.broker.submit("a", Submission(type="t", payloads=[b"xx"] * 3), self.now, self.now)
        pull(self.broker, agent, 2.0, 2, self.now)
        self.broker.drop(accepted.id)

    @rule()
    def crash_of_the_broker(self) -> None:
        self.starts += 1
        self.broker = self.new()
        self.broker.restore(self.batches, self.entries, self.now, self.now)

    @invariant()
    def the_books_add_up(self) -> None:
        ended = ends_in(self.entries)
        assert all(count in (0, 1) for count in ended.values())
        assert [each.seq for each in self.entries] == sorted({each.seq for each in self.entries})
        broker = self.broker
        assert broker.batches.keys() == {batch.id for batch in self.batches}
        states = Counter(state for batch in broker.batches.values() for state in batch.states)
        assert sum(states.values()) == sum(each.size for each in self.batches)
        assert {
            (batch.id, index)
            for batch in broker.batches.values()
            for index, state in enumerate(batch.states)
            if state >= ENDED
        } == set(+ended)
        assert sum(queue.count for queue in broker.queues.values()) == states[Status.QUEUED]
        assert sum(agent.count for agent in broker.leases.agents.values()) == states[Status.GIVEN]
        assert sum(batch.left for batch in broker.batches.values()) == broker.open
        assert sum(usage.tasks for usage in broker.usage.values()) == broker.open
        tallies = broker.tallies.all.values()
        assert sum(tally.submitted - sum(tally.ended.values()) for tally in tallies) == broker.open
        for queue in broker.queues.values():
            waiting = sum(
                batch.estimate(index)
                for batch in broker.batches.values()
                for index in batch.where(Status.QUEUED)
            )
            assert queue.seconds == pytest.approx(waiting, abs=1e-6)

    def teardown(self) -> None:
        """Somebody who executes everything comes to an end, and nothing is left of what is fetched."""
        for _ in range(500):
            if not self.broker.open:
                break
            self.now += 60.0
            self.entries += self.broker.tick(self.now)
            for given in pull(self.broker, "last", 5.0, 100, self.now):
                report = completed(given.batch, *range(given.low, given.high))
                self.entries += self.broker.report("last", [report], self.now)
        assert not self.broker.open
        assert set(+ends_in(self.entries)) | self.forgotten == self.all
        assert all((usage.tasks, usage.bytes) == (0, 0) for usage in self.broker.usage.values())
        self.broker.over(self.now)
        self.broker.over(self.now + 101.0)
        assert not self.broker.batches
        assert not self.broker.heads


Machine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestBroker = Machine.TestCase


def test_a_key_that_came_before_is_the_same_batch() -> None:
    broker = Broker(TABLE)
    asked = Submission(type="t", payloads=[b"x"], key="mine")
    first = broker.submit("a", asked, 0.0, 0.0)
    again = broker.submit("a", asked, 0.0, 0.0)
    other = broker.submit("b", asked, 0.0, 0.0)
    assert (again.id, again.stored) == (first.id, None)
    assert other.id != first.id


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"type": "u"}, "unmappable"),
        ({"payloads": []}, "empty"),
        ({"payloads": [b"x" * (LARGEST + 1)]}, "too-large"),
        ({"estimates": [1.0, 2.0]}, "wrong"),
        ({"sizes": [1.0, 2.0]}, "wrong"),
        ({"payloads": [b"x"] * 11}, "quota"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(changed: dict[str, object], code: str) -> None:
    broker = Broker(TABLE, quotas={"a": Quota(tasks=10)})
    asked = msgspec.structs.replace(Submission(type="t", payloads=[b"x"]), **changed)
    with pytest.raises(Refusal) as told:
        broker.submit("a", asked, 0.0, 0.0)
    assert (told.value.code, bool(told.value.advice)) == (code, True)
    assert not broker.batches
    assert not broker.queues


def test_a_suspect_has_its_worker_to_itself() -> None:
    broker = Broker(TABLE)
    broker.submit("a", Submission(type="t", payloads=[b"x"] * 4, estimates=1.0), 0.0, 0.0)
    (given,) = pull(broker, "x", 2.0)
    broker.crashed("x", {given.batch: [0, 1]}, 0.0)
    (alone,) = pull(broker, "x", 10.0)
    assert (alone.low, alone.high, alone.attempts) == (0, 1, {0: 2})
    assert pull(broker, "x", 10.0) == []
    broker.report("x", [completed(given.batch, 0)], 0.0)
    (alone,) = pull(broker, "x", 10.0)
    assert (alone.low, alone.high) == (1, 2)


def test_another_tenant_cannot_cancel_it() -> None:
    broker = Broker(TABLE)
    accepted = broker.submit("a", Submission(type="t", payloads=[b"x"]), 0.0, 0.0)
    with pytest.raises(Refusal, match="there is no batch"):
        broker.cancel("b", accepted.id)


def test_what_ended_out_of_order_is_known_after_a_restart() -> None:
    broker = Broker(TABLE)
    accepted = broker.submit("a", Submission(type="t", payloads=[b"x"] * 9, estimates=1.0), 0.0, 0.0)
    assert accepted.stored is not None
    pull(broker, "x", 9.0)
    entries = broker.report("x", [completed(accepted.id, 4, 2, 6)], 0.0)
    again = Broker(TABLE, first=1 << 32)
    again.restore([accepted.stored], entries, 0.0, 0.0)
    assert again.batches[accepted.id].where(Status.COMPLETED) == [2, 4, 6]


def test_what_was_learned_by_sizes_is_known_after_a_restart() -> None:
    broker = Broker(TABLE)
    sizes = [float(1 + 5 * index % 16) for index in range(16)]
    accepted = broker.submit("a", Submission(type="t", payloads=[b"x"] * 16, sizes=sizes), 0.0, 0.0)
    assert accepted.stored is not None
    pull(broker, "x", 100.0)
    reports = [
        msgspec.structs.replace(completed(accepted.id, index), seconds=[2 * size])
        for index, size in enumerate(sizes)
    ]
    entries = broker.report("x", reports, 0.0)
    again = Broker(TABLE, first=1 << 32)
    again.restore([accepted.stored], entries, 0.0, 0.0)
    (kind,) = broker.estimator.histories
    for each in (broker, again):
        assert each.estimator.estimate(kind, size=16.0) == pytest.approx(32.0)
