"""What is acknowledged is on disk, whoever asked and whoever has gone meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobman.control.store.database import Database, open_database
from jobman.tasks.journal import Journal
from jobman.tasks.model import Acceptance, Ends, Submission, Work
from jobman.tasks.serving import Service
from jobman.tasks.wire import Server
from tests.tasks.test_serving import TABLE, Somebody, run


class Disk:
    """A database whose writes wait, or fail, as long as somebody says so."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free = threading.Event()
        self.free.set()
        self.is_full = False
        self.written: list[list[tuple[int, int]]] = []
        """Batches and entries of each who had something written, for each transaction."""
        real = Journal._write

        def write(journal: Journal, cursor: Any, items: list[Any]) -> None:
            self.free.wait(60)
            if self.is_full:
                raise OSError("no space left on device")
            real(journal, cursor, items)
            self.written.append([(len(item.batches), len(item.entries)) for item in items])

        monkeypatch.setattr(Journal, "_write", write)
        self.database = database


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    database = open_database(f"sqlite:///{tmp_path}/tasks.sqlite")
    yield Disk(database, monkeypatch)
    database.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def test_who_submits_the_same_again_is_answered_when_it_is_on_disk(disk: Disk) -> None:
    async def scenario() -> None:
        service = Service(disk.database, TABLE)
        await service.start()
        server = Server(service.handle)
        port = await server.listen(("127.0.0.1", 0))
        disk.free.clear()
        first = asyncio.create_task(Somebody(port).submit(b"3", key="one"))
        await until(lambda: service.broker.batches)
        second = asyncio.create_task(Somebody(port).submit(b"3", key="one"))
        done, _ = await asyncio.wait([first, second], timeout=0.3)
        assert not done
        disk.free.set()
        assert await first == await second
        await server.close()
        await service.close()

    run(scenario)


class Idle:
    """A service with an agent that waits for work."""

    def __init__(self, service: Service, port: int, disk: Disk) -> None:
        self.service = service
        self.port = port
        self.disk = disk
        self.client, self.agent = Somebody(port), Somebody(port)

    async def submitted(self, query: str = "") -> tuple[asyncio.Task[Acceptance], Work]:
        """A short task whose acceptance may wait, and the same as its agent has it."""
        pulling = asyncio.create_task(self.agent.pull("x", wait=30.0))
        await until(lambda: self.service._pulls.count)
        # What is told of an agent's coming would be written in between: nothing is on its way to the disk.
        self.service.broker.diary.add("quiet")
        await self.service._recorder.begin([], [])
        self.disk.written.clear()
        asked = Submission(type="square", payloads=[b"3"], estimates=[0.001])
        submitting = asyncio.create_task(self.client.get("POST", f"/v1/tasks{query}", asked, Acceptance))
        (work,) = await pulling
        return submitting, work


@asynccontextmanager
async def idle(disk: Disk) -> AsyncIterator[Idle]:
    service = Service(disk.database, TABLE)
    await service.start()
    server = Server(service.handle)
    found = Idle(service, await server.listen(("127.0.0.1", 0)), disk)
    await found.agent.orders("x")
    yield found
    await server.close()
    await service.close()


TOGETHER, APART = [[(1, 0), (0, 1)]], [[(1, 0)], [(0, 1)]]


@pytest.mark.parametrize(("patience", "written"), [(60.0, TOGETHER), (0.01, APART)])
def test_a_short_task_is_written_with_its_end_unless_that_takes_too_long(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, patience: float, written: list[list[tuple[int, int]]]
) -> None:
    monkeypatch.setattr("jobman.tasks.serving._TOGETHER", patience)

    async def scenario() -> None:
        async with idle(disk) as there:
            submitting, work = await there.submitted()
            if patience < 1:
                await submitting
            await there.agent.execute("x", work)
            await submitting
            assert disk.written == written

    run(scenario)


def test_the_patience_with_one_task_does_not_hurry_the_next(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with idle(disk) as there:
            for patience in (0.1, 60.0):
                monkeypatch.setattr("jobman.tasks.serving._TOGETHER", patience)
                submitting, work = await there.submitted()
                if patience > 1:
                    await asyncio.sleep(0.2)
                await there.agent.execute("x", work)
                await submitting
            assert disk.written == TOGETHER

    run(scenario)


@pytest.mark.parametrize("others", [False, True])
def test_who_asks_for_it_is_told_the_end_of_a_short_task_with_its_acceptance_and_others_soon_after(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, *, others: bool
) -> None:
    monkeypatch.setattr("jobman.tasks.serving._TOGETHER", 60.0)

    async def scenario() -> None:
        async with idle(disk) as there:
            other = Somebody(there.port)
            following = asyncio.create_task(other.results(wait=30.0 if others else 0.0))
            submitting, work = await there.submitted("?ends=1")
            await there.agent.execute("x", work)
            accepted = await submitting
            (ends,) = [msgspec.msgpack.decode(each, type=Ends) for each in accepted.ends]
            assert (accepted.batch, ends.indexes, ends.results) == (work.batch, [0], [b"9"])
            assert [batch for batch, _ in (await following).ends] == [work.batch] * others
            assert [batch for batch, _ in (await other.results()).ends] == [work.batch]
            assert (await other.results(after=accepted.place)).ends == []
            assert disk.written == TOGETHER

    run(scenario)


def test_who_does_not_ask_for_it_or_comes_too_early_is_told_the_acceptance_alone(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with idle(disk) as there:
            for patience, query in ((60.0, ""), (0.01, "?ends=1")):
                monkeypatch.setattr("jobman.tasks.serving._TOGETHER", patience)
                submitting, work = await there.submitted(query)
                if patience < 1:
                    await submitting
                await there.agent.execute("x", work)
                assert (await submitting).ends == []
                # Nobody was told: whoever follows hears of it at once.
                assert [batch for batch, _ in (await there.client.results()).ends][-1] == work.batch

    run(scenario)


def test_what_was_fetched_is_told_with_the_next_submission(disk: Disk) -> None:
    async def scenario() -> None:
        async with idle(disk) as there:
            submitting, work = await there.submitted()
            await there.agent.execute("x", work)
            batch = (await submitting).batch
            _, work = await there.submitted(f"?fetched={batch},77")
            assert [each.id for each in there.service.broker.batches.values()] == [work.batch]

    run(scenario)


def test_what_the_disk_refuses_is_not_there_though_nobody_waited_for_the_answer(disk: Disk) -> None:
    async def scenario() -> None:
        service = Service(disk.database, TABLE)
        await service.start()
        server = Server(service.handle)
        port = await server.listen(("127.0.0.1", 0))
        disk.is_full = True
        disk.free.clear()
        gone = Somebody(port)
        asking = asyncio.create_task(gone.submit(b"3", key="one"))
        await until(lambda: service.broker.batches)
        asking.cancel()
        gone.connection.close()
        disk.free.set()
        await until(lambda: not service.broker.batches)
        refused = await Somebody(port).ask(
            "POST", "/v1/tasks", {"type": "square", "payloads": [b"3"], "key": "one"}
        )
        assert refused.status == 507
        disk.is_full = False
        assert await Somebody(port).submit(b"3", key="one")
        assert service.broker.open == 1
        await server.close()
        await service.close()

    run(scenario)
