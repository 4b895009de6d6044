"""Every way in which a worker can answer, or not, has its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jobman.tasks.batches import Status
from jobman.tasks.calling import Call, Outcome, Worker, WorkerLost
from jobman.tasks.wire import Answer, Connection, Request, Server
from tests.tasks.test_wire import saying

Handler = Callable[[Request], Awaitable[Answer]]


def call(payload: bytes = b"x", seconds: float = 30.0) -> Call:
    return Call(id="7-1", attempt=2, payload=payload, seconds=seconds)


def with_worker(handler: Handler, scenario: Callable[[Worker], Awaitable[None]], *, most: int = 1000) -> None:
    async def run() -> None:
        server = Server(handler)
        port = await server.listen(("127.0.0.1", 0))
        try:
            await asyncio.wait_for(scenario(Worker(("127.0.0.1", port), most=most)), 30)
        finally:
            await server.close()

    asyncio.run(run())


def outcome_of(handler: Handler, asked: Call | None = None, *, most: int = 1000) -> Outcome:
    found: list[Outcome] = []

    async def scenario(worker: Worker) -> None:
        found.append(await worker.execute(asked or call()))

    with_worker(handler, scenario, most=most)
    return found[0]


def test_done_in_place() -> None:
    async def handler(request: Request) -> Answer:
        said = f"{request.path} {request.headers['x-jobman-task']} {request.headers['x-jobman-attempt']}"
        return Answer(200, said.encode() + b" " + request.body)

    found = outcome_of(handler)
    assert (found.status, found.result) == (Status.COMPLETED, b"/execute 7-1 2 x")


@pytest.mark.parametrize(("status", "code"), [("completed", 200), ("failed", 200), ("killed", 200)])
def test_done_later(tmp_path: Path, status: str, code: int) -> None:
    async def handler(_: Request) -> Answer:
        return Answer(202)

    async def scenario(worker: Worker) -> None:
        agent = Server(worker.handle)
        await agent.listen(tmp_path / "agent")
        calling = asyncio.create_task(worker.execute(call()))
        telling = Connection(tmp_path / "agent")
        path = f"/complete?id=7-1&status={status}"
        # Who is quicker than the own 202 is heard as well.
        while (answer := await telling.ask("POST", path, b"late")).status == 409:
            await asyncio.sleep(0)
        assert answer.status == code
        found = await calling
        assert (found.status.name.lower(), found.result) == (status, b"late")
        assert (await telling.ask("POST", path, b"again")).status == 409
        assert (await telling.ask("POST", "/complete?id=7-1&status=happy")).status == 400
        await agent.close()

    with_worker(handler, scenario)


@pytest.mark.parametrize(
    ("status", "body", "reason"), [(500, b"no such file\n", "500: no such file"), (418, b"", "418")]
)
def test_a_failure_is_told_in_its_own_words(status: int, body: bytes, reason: str) -> None:
    async def handler(_: Request) -> Answer:
        return Answer(status, body)

    found = outcome_of(handler)
    assert (found.status, found.reason) == (Status.FAILED, reason)


def test_a_huge_answer_is_a_bad_one() -> None:
    async def handler(_: Request) -> Answer:
        return Answer(200, b"x" * 1001)

    found = outcome_of(handler)
    assert found.status == Status.FAILED
    assert found.reason.startswith("bad-answer: the answer has more than 1,000 bytes")


def test_garbage_is_a_bad_answer() -> None:
    async def scenario(port: int) -> None:
        found = await Worker(("127.0.0.1", port)).execute(call())
        assert found.status == Status.FAILED
        assert found.reason.startswith("bad-answer: the answer is no HTTP")

    with saying(b"garbage\r\n\r\n") as port:
        asyncio.run(asyncio.wait_for(scenario(port), 30))


def test_who_hangs_up_is_lost() -> None:
    async def scenario(port: int) -> None:
        worker = Worker(("127.0.0.1", port))
        with pytest.raises(WorkerLost):
            await worker.execute(call())
        assert not await worker.ping()

    with saying(b"") as port:
        asyncio.run(asyncio.wait_for(scenario(port), 30))


def test_steps_before_and_after_are_for_those_who_have_them() -> None:
    async def handler(request: Request) -> Answer:
        return Answer(500, b"no licence") if request.path == "/initialize" else Answer(404)

    async def scenario(worker: Worker) -> None:
        assert await worker.prepare("initialize") == "500: no licence"
        assert await worker.prepare("finalize") == ""

    with_worker(handler, scenario)
