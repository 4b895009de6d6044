"""A broker behind a socket: tasks go in, results come out, and nothing is lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
import pytest

from jobman.control.store.database import open_database
from jobman.tasks.batches import Status
from jobman.tasks.mapper import Table, TypeLine
from jobman.tasks.model import Orders, Problem, Pull, Report, Submission, Told, Work
from jobman.tasks.quotas import Quota
from jobman.tasks.serving import Service
from jobman.tasks.wire import Answer, Connection, Server

TABLE = Table([TypeLine(type="square", image="squares")])
T = TypeVar("T")


class Somebody:
    """A client or an agent of one tenant."""

    def __init__(self, port: int, tenant: str = "a") -> None:
        self.connection = Connection(("127.0.0.1", port), headers={"x-jobman-tenant": tenant})

    async def ask(self, method: str, path: str, body: object = None) -> Answer:
        return await self.connection.ask(method, path, msgspec.msgpack.encode(body))

    async def get(self, method: str, path: str, body: object, type_: type[T]) -> T:
        answer = await self.ask(method, path, body)
        assert answer.status == 200, answer.body
        return msgspec.msgpack.decode(answer.body, type=type_)

    async def submit(self, *payloads: bytes, **more: Any) -> int:
        asked = Submission(type="square", payloads=list(payloads), **more)
        return (await self.get("POST", "/v1/tasks", asked, dict[str, int]))["batch"]

    async def orders(self, agent: str, wait: float = 0.0, seconds: float = 100.0, **more: Any) -> Orders:
        asked = Pull(image="squares", seconds=seconds, wait=wait, **more)
        path = f"/v1/agents/{agent}/pull"
        answer = await self.ask("POST", path, asked)
        if answer.status == 409 and asked.have is None:
            # It is not known there, and has nothing.
            return await self.get("POST", path, msgspec.structs.replace(asked, have={}), Orders)
        assert answer.status == 200, answer.body
        return msgspec.msgpack.decode(answer.body, type=Orders)

    async def pull(self, agent: str, wait: float = 0.0, seconds: float = 100.0) -> list[Work]:
        return (await self.orders(agent, wait, seconds)).work

    async def execute(self, agent: str, work: Work) -> int:
        """Square numbers, and report it; tells how much of it was taken."""
        indexes = list(range(work.low, work.low + len(work.payloads)))
        results = [str(int(payload) ** 2).encode() for payload in work.payloads]
        report = Report(
            batch=work.batch,
            indexes=indexes,
            status=Status.COMPLETED,
            seconds=[0.001] * len(indexes),
            results=results,
        )
        found = await self.get("POST", f"/v1/agents/{agent}/report", [report], dict[str, int])
        return found["written"]

    async def results(self, after: int = 0, wait: float = 0.0) -> Told:
        return await self.get("GET", f"/v1/tasks/results?after={after}&wait={wait}", None, Told)


@asynccontextmanager
async def broker(url: str, **more: Any) -> AsyncIterator[int]:
    database = open_database(url)
    service = Service(database, TABLE, **more)
    await service.start()
    server = Server(service.handle)
    try:
        yield await server.listen(("127.0.0.1", 0))
    finally:
        await server.close()
        await service.close()
        database.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


def told(found: Told) -> dict[tuple[int, int], bytes]:
    return {
        (batch, index): result
        for batch, ends in found.ends
        for index, result in zip(ends.indexes, ends.results, strict=True)
    }


def test_tasks_go_in_and_results_come_out(url: str) -> None:
    async def scenario() -> None:
        async with broker(url) as port:
            client, agent = Somebody(port), Somebody(port)
            batch = await client.submit(b"2", b"3", b"4")
            (work,) = await agent.pull("x")
            assert await agent.execute("x", work) == 1
            found = await client.results()
            assert told(found) == {(batch, 0): b"4", (batch, 1): b"9", (batch, 2): b"16"}
            assert (await client.results(after=found.place)).ends == []
            assert (await Somebody(port, "b").results()).ends == []

    run(scenario)


def test_who_waits_has_it_at_once(url: str) -> None:
    async def scenario() -> None:
        async with broker(url) as port:
            client, agent = Somebody(port), Somebody(port)
            pulling = asyncio.create_task(agent.pull("x", wait=30.0))
            following = asyncio.create_task(Somebody(port).results(wait=30.0))
            await client.submit(b"7")
            (work,) = await pulling
            await agent.execute("x", work)
            assert list(told(await following).values()) == [b"49"]

    run(scenario)


def test_what_an_agent_had_is_given_to_another_when_its_connection_is_gone(url: str) -> None:
    async def scenario() -> None:
        async with broker(url) as port:
            client, agent, other = (Somebody(port) for _ in range(3))
            await client.submit(b"5")
            (work,) = await agent.pull("x")
            waiting = asyncio.create_task(agent.pull("x", wait=30.0))
            taking = asyncio.create_task(other.pull("y", wait=30.0))
            await client.results()
            waiting.cancel()
            (again,) = await taking
            assert (again.batch, again.attempts) == (work.batch, {0: 2})
            assert (await Somebody(port).ask("POST", "/v1/agents/x/report", [])).status == 409
            await agent.orders("x", have={work.batch: [0]})
            assert await Somebody(port).execute("x", work) == 0
            assert await other.execute("y", again) == 1

    run(scenario)


def test_what_was_accepted_and_what_came_of_it_is_there_after_a_restart(url: str) -> None:
    async def scenario() -> None:
        async with broker(url) as port:
            first = await Somebody(port).submit(b"2", key="one")
            (work,) = await Somebody(port).pull("x")
            await Somebody(port).execute("x", work)
            second = await Somebody(port).submit(b"3", b"4")
            await Somebody(port).pull("x", seconds=0.001)
        async with broker(url) as port:
            client = Somebody(port)
            assert await client.submit(b"2", key="one") == first
            found = await client.results()
            assert told(found) == {(first, 0): b"4"}
            for work in await client.pull("y"):
                await client.execute("y", work)
            assert told(await client.results(after=found.place)) == {(second, 0): b"9", (second, 1): b"16"}

    run(scenario)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/v1/tasks", Submission(type="cube", payloads=[b"1"]), 422, "unmappable"),
        ("POST", "/v1/tasks", Submission(type="square", payloads=[]), 400, "empty"),
        ("POST", "/v1/tasks", Submission(type="square", payloads=[b"x" * 300_000]), 413, "too-large"),
        ("POST", "/v1/tasks", Submission(type="square", payloads=[b"1"] * 9), 429, "quota"),
        ("POST", "/v1/tasks", {"type": 7}, 400, "wrong"),
        ("POST", "/v1/tasks/99/cancel", None, 404, "unknown"),
        ("GET", "/v1/nothing", None, 404, "unknown"),
    ],
)
def test_what_is_wrong_is_refused(
    tmp_path: Any, method: str, path: str, body: object, status: int, code: str
) -> None:
    async def scenario() -> None:
        async with broker(f"sqlite:///{tmp_path}/t.sqlite", quotas={"a": Quota(tasks=8)}) as port:
            answer = await Somebody(port).ask(method, path, body)
            problem = msgspec.msgpack.decode(answer.body, type=Problem)
            assert (answer.status, problem.code) == (status, code)
            assert problem.message
            assert problem.advice

    run(scenario)
