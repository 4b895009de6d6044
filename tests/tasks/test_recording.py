"""What is acknowledged is on disk, whoever asked and whoever has gone meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.control.store.database import Database, open_database
from jobman.tasks.journal import Journal
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


@pytest.mark.parametrize(("patience", "written"), [(60.0, [[(1, 0), (0, 1)]]), (0.01, [[(1, 0)], [(0, 1)]])])
def test_a_short_task_is_written_with_its_end_unless_that_takes_too_long(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, patience: float, written: list[list[tuple[int, int]]]
) -> None:
    monkeypatch.setattr("jobman.tasks.serving._TOGETHER", patience)

    async def scenario() -> None:
        service = Service(disk.database, TABLE)
        await service.start()
        server = Server(service.handle)
        port = await server.listen(("127.0.0.1", 0))
        client, agent = Somebody(port), Somebody(port)
        pulling = asyncio.create_task(agent.pull("x", wait=30.0))
        await until(lambda: service.broker.leases.agents)
        # What is told of its coming would be written in between.
        service.broker.diary.news()
        disk.written.clear()
        submitting = asyncio.create_task(client.submit(b"3", estimates=[0.001]))
        (work,) = await pulling
        if patience < 1:
            await submitting
        await agent.execute("x", work)
        await submitting
        assert disk.written == written
        await server.close()
        await service.close()

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
