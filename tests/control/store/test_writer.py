"""Group commit: what is acknowledged is committed, and what fails fails for all that waited for it."""

import asyncio
import threading

import pytest

from jobman.control.store.errors import Fenced, StoreError
from jobman.control.store.writer import Writer
from jobman.engines import failpoints
from tests.control.store.builders import allocation, changes, event, job, replica


@pytest.fixture
def fail(monkeypatch):
    """Makes points of the store fail."""
    return lambda text: monkeypatch.setattr(failpoints, "_points", failpoints.parsed(text))


class Transactions:
    """Counts the transactions of a store, and holds the first until it is let go."""

    def __init__(self, store, monkeypatch):
        self.sizes = []
        self._gate = threading.Event()
        self._write = store.write_batch
        monkeypatch.setattr(store, "write_batch", self._write_batch)

    def _write_batch(self, batch):
        self._gate.wait(timeout=60)
        self.sizes.append(len(batch))
        self._write(batch)

    def let_go(self):
        self._gate.set()


def led(store, scene):
    """Run a scene with a writer."""

    async def act():
        writer = Writer(store)
        try:
            return await scene(writer)
        finally:
            await writer.close()

    return asyncio.run(act())


def test_what_is_acknowledged_is_committed(store):
    async def scene(writer):
        await writer.write(changes(job(1), event(1, job(1))))
        assert store.job(job(1).id) is not None
        assert store.events() == [event(1, job(1))]

    led(store, scene)


def test_writes_that_wait_share_a_transaction(store, monkeypatch):
    transactions = Transactions(store, monkeypatch)

    async def scene(writer):
        writes = [asyncio.ensure_future(writer.write(changes(event(n)))) for n in range(1, 51)]
        await asyncio.sleep(0)
        transactions.let_go()
        await asyncio.gather(*writes)

    led(store, scene)
    assert [one.number for one in store.events()] == list(range(1, 51))
    assert len(transactions.sizes) <= 2
    assert sum(transactions.sizes) == 50


def test_later_writes_win_within_a_transaction(store, monkeypatch):
    transactions = Transactions(store, monkeypatch)
    a = job(1)
    history = [
        changes(a, replica(a, state="starting")),
        changes(job(1, state="running"), replica(a, state="running"), new=False),
        changes(job(1, state="failed", document="", plan=b""), replica(a, state="failed"), new=False),
    ]

    async def scene(writer):
        writes = [asyncio.ensure_future(writer.write(each)) for each in (changes(event(1)), *history)]
        await asyncio.sleep(0)
        transactions.let_go()
        await asyncio.gather(*writes)

    led(store, scene)
    assert store.job(a.id).state == "failed"
    assert store.replicas(a.id).items == [replica(a, state="failed")]
    assert store.document(a.id) == (a.document, a.plan)


def test_what_is_deleted_is_gone_whatever_was_written_before_in_the_same_rush(store, monkeypatch):
    transactions = Transactions(store, monkeypatch)
    a, b = job(1), job(2)

    async def scene(writer):
        rush = [
            changes(a),
            changes(event(1, a), allocation(a)),
            changes(deleted=[a.id]),
            changes(b, event(2, b)),
        ]
        writes = [asyncio.ensure_future(writer.write(each)) for each in rush]
        await asyncio.sleep(0)
        transactions.let_go()
        await asyncio.gather(*writes)

    led(store, scene)
    assert [one.id for one in store.jobs().items] == [b.id]
    assert store.events() == [event(2, b)]
    assert store.allocations() == []


def test_records_are_written_as_they_were_when_they_were_handed_over(store):
    async def scene(writer):
        a = job(1, counts={"running": 1})
        write = asyncio.ensure_future(writer.write(changes(a)))
        await asyncio.sleep(0)
        a.state = "failed"
        a.counts["running"] = 7
        await write

    led(store, scene)
    assert (store.job(job(1).id).state, store.job(job(1).id).counts) == ("waiting", {"running": 1})


def test_a_full_disk_is_told_to_all_who_wait_and_nothing_is_written(store, fail):
    fail("store.before-commit=disk-full")

    async def scene(writer):
        writes = [writer.write(changes(event(n))) for n in range(1, 21)]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        assert {str(answer) for answer in answers} == {
            f"The disk of the store {store._database.place} is full."
        }
        assert all(isinstance(answer, StoreError) and answer.passing for answer in answers)
        assert store.events() == []
        fail("")
        await writer.write(changes(event(1)))

    led(store, scene)
    assert store.events() == [event(1)]


def test_what_was_committed_though_the_answer_was_lost_can_be_written_again(store, fail):
    fail("store.after-commit=error@1")
    a = job(1)
    made = changes(a, replica(a), event(1, a))

    async def scene(writer):
        with pytest.raises(StoreError, match="on purpose"):
            await writer.write(made)
        await writer.write(made)

    led(store, scene)
    assert store.events() == made.events
    assert store.job(a.id) is not None


def test_a_writer_that_lost_the_store_says_so(url, opened):
    old, new = opened(url), opened(url)
    old.claim("old")

    async def scene(writer):
        await writer.write(changes(event(1)))
        new.claim("new")
        with pytest.raises(Fenced):
            await writer.write(changes(event(2)))

    led(old, scene)
    assert new.events() == [event(1)]


def test_a_cancelled_caller_takes_nothing_from_the_others(store, monkeypatch):
    transactions = Transactions(store, monkeypatch)

    async def scene(writer):
        writes = [asyncio.ensure_future(writer.write(changes(event(n)))) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        writes[1].cancel()
        transactions.let_go()
        await asyncio.gather(writes[0], writes[2])

    led(store, scene)
    assert [one.number for one in store.events()] == [1, 2, 3]


def test_closing_writes_what_waits_and_refuses_what_comes_later(store):
    async def scene():
        writer = Writer(store)
        waiting = asyncio.ensure_future(writer.write(changes(event(1))))
        await asyncio.sleep(0)
        await writer.close()
        await waiting
        with pytest.raises(StoreError, match="closed"):
            await writer.write(changes(event(2)))
        await writer.close()

    asyncio.run(scene())
    assert store.events() == [event(1)]


def test_nothing_to_write_is_written_at_once(store):
    led(store, lambda writer: writer.write(changes()))
