"""What goes wrong has the outcome that the page on short tasks says, one fault at a time."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobman.tasks.agent import Agent, NameTaken
from jobman.tasks.batches import Status
from jobman.tasks.broker import Broker
from jobman.tasks.calling import Call, Outcome, Worker, WorkerLost
from jobman.tasks.entries import ENDS
from jobman.tasks.handles import Handle
from jobman.tasks.model import Ends, Problem, Pull, Report, Retries, Submission
from jobman.tasks.wire import Answer, Connection, Request, Server
from tests.tasks.test_agent import url_of
from tests.tasks.test_broker import TABLE, completed, pull
from tests.tasks.test_serving import Somebody, broker, run

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"
OFFENCES = {
    b"garbage": (b"what?\r\n\r\n", "bad-answer"),
    b"huge": (HEAD % (5 * 2**20, b"x" * 5 * 2**20), "bad-answer"),
    b"half": (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of", "worker-died"),
    b"nothing": (b"", "worker-died"),
}
"""What a worker says to a payload before it hangs up, and what becomes of the task."""


async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A worker that squares numbers, and does something wrong where it is told to."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        lines = head.decode().lower().split("\r\n")
        size = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length")), 0)
        body = await reader.readexactly(size)
        if body in OFFENCES:
            writer.write(OFFENCES[body][0])
            break
        result = str(int(body) ** 2).encode() if body.isdigit() else b""
        writer.write(HEAD % (len(result), result))
    writer.close()


@asynccontextmanager
async def odd_worker(place: Path) -> AsyncIterator[None]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await odd(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_unix_server(serve, str(place))
    try:
        yield
    finally:
        server.close()


def agent_of(port: int, worker: Path, name: str = "x", **more: Any) -> Agent:
    here = ("127.0.0.1", port)
    return Agent(
        name, "squares", Worker(worker), pulling=Connection(here), reporting=Connection(here), **more
    )


@asynccontextmanager
async def working(*agents: Agent) -> AsyncIterator[None]:
    running = [asyncio.create_task(agent.run()) for agent in agents]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def ends_of(client: Somebody, count: int) -> dict[int, Ends]:
    """What became of so many tasks, by index; none may end twice."""
    found: dict[int, Ends] = {}
    place = 0
    while len(found) < count:
        told = await client.results(after=place, wait=5.0)
        for _, ends in told.ends:
            assert not found.keys() & set(ends.indexes)
            found |= dict.fromkeys(ends.indexes, ends)
        place = told.place
    return found


def reason(ends: Ends, index: int) -> str:
    return ends.reasons.get(index, ends.reason)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


# -- workers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offence", OFFENCES)
def test_a_worker_that_answers_wrong_costs_its_own_task_alone(tmp_path: Path, offence: bytes) -> None:
    async def scenario() -> None:
        async with broker(url_of(tmp_path)) as port, odd_worker(tmp_path / "worker"):
            client = Somebody(port)
            await client.submit(b"2", offence, b"3", estimates=0.001)
            async with working(agent_of(port, tmp_path / "worker")):
                found = await ends_of(client, 3)
            assert {found[index].status for index in (0, 2)} == {Status.COMPLETED}
            assert found[1].status == Status.FAILED
            assert reason(found[1], 1).startswith(OFFENCES[offence][1])

    run(scenario)


def test_a_worker_that_hangs_is_killed_at_the_deadline_and_the_next_is_executed(tmp_path: Path) -> None:
    async def scenario() -> None:
        hanging = asyncio.Event()
        killed = asyncio.Event()

        async def worker(request: Request) -> Answer:
            if request.path == "/execute" and request.body == b"hang":
                hanging.set()
                await killed.wait()
            return Answer(200, b"done") if request.path in ("/ping", "/execute") else Answer(404)

        server = Server(worker)
        await server.listen(tmp_path / "worker")
        async with broker(url_of(tmp_path)) as port:
            client = Somebody(port)
            await client.submit(b"hang", estimates=0.001, deadline=1.0)
            async with working(agent_of(port, tmp_path / "worker", kill=killed.set, grace=0.1)):
                found = await ends_of(client, 1)
                assert (found[0].status, reason(found[0], 0)) == (Status.KILLED, "deadline")
                await killed.wait()
                batch = await client.submit(b"1", estimates=0.001)
                told: set[int] = set()
                place = 0
                while batch not in told:
                    some = await client.results(place, 5.0)
                    told, place = told | {number for number, _ in some.ends}, some.place
            assert hanging.is_set()
        await server.close()

    run(scenario)


async def answering_later(tmp_path: Path, scenario: Callable[[Worker, Connection], Awaitable[None]]) -> None:
    """A worker that says `later` to everything, and the way on which it completes."""

    async def handler(request: Request) -> Answer:
        return Answer(202 if request.path == "/execute" else 200)

    server, agent, worker = Server(handler), None, Worker(tmp_path / "worker")
    await server.listen(tmp_path / "worker")
    agent = Server(worker.handle)
    await agent.listen(tmp_path / "agent")
    try:
        await scenario(worker, Connection(tmp_path / "agent"))
    finally:
        await agent.close()
        await server.close()


def call(id_: str = "7-0-1-1") -> Call:
    return Call(id=id_, attempt=1, payload=b"x")


def test_who_completes_twice_or_another_task_is_not_heard(tmp_path: Path) -> None:
    async def later(worker: Worker, telling: Connection) -> None:
        calling = asyncio.create_task(worker.execute(call()))
        path = "/complete?id=%s&status=completed"
        assert (await telling.ask("POST", path % "8-0-1-1", b"of nobody")).status == 409
        while (await telling.ask("POST", path % "7-0-1-1", b"first")).status == 409:
            await asyncio.sleep(0)
        assert (await telling.ask("POST", path % "7-0-1-1", b"second")).status == 409
        assert await calling == Outcome(
            status=Status.COMPLETED, seconds=(await calling).seconds, result=b"first"
        )

    run(lambda: answering_later(tmp_path, later))


def test_what_was_to_be_completed_later_is_lost_with_its_worker(tmp_path: Path) -> None:
    async def later(worker: Worker, _: Connection) -> None:
        calling = asyncio.create_task(worker.execute(call()))
        await worker.ping()
        # Its process has ended, and the next one answers already.
        await until(lambda: worker.is_waiting)
        worker.ended("by signal 9")
        with pytest.raises(WorkerLost):
            await calling

    run(lambda: answering_later(tmp_path, later))


def test_somebody_elses_worker_that_is_gone_is_noticed_while_it_was_to_complete(tmp_path: Path) -> None:
    async def scenario() -> None:
        async def handler(_: Request) -> Answer:
            return Answer(202)

        server, worker = Server(handler), Worker(tmp_path / "worker")
        await server.listen(tmp_path / "worker")
        calling = asyncio.create_task(worker.execute(call()))
        await until(lambda: worker.is_waiting)
        await server.close()
        (tmp_path / "worker").unlink(missing_ok=True)
        with pytest.raises(WorkerLost):
            await calling

    run(scenario)


def test_who_lets_go_of_a_task_need_not_complete_it(tmp_path: Path) -> None:
    async def later(worker: Worker, _: Connection) -> None:
        calling = asyncio.create_task(worker.execute(call()))
        await until(lambda: worker.is_waiting)
        await worker.cancel("7-0-1-1")
        assert (await calling).status == Status.KILLED

    run(lambda: answering_later(tmp_path, later))


# -- agents --------------------------------------------------------------------------------------------------


def test_what_a_lost_agent_says_late_is_not_taken_and_it_hears_what_it_has_no_longer() -> None:
    now = Broker(TABLE, lease=10.0)
    batch = now.submit("a", Submission(type="t", payloads=[b"x"] * 2, estimates=1.0), 0.0, 0.0).id
    assert pull(now, "cut off", 2.0)
    now.tick(11.0)
    (given,) = pull(now, "other", 1.0, now=11.0)
    with pytest.raises(Exception, match="there is no agent cut off"):
        now.report("cut off", [completed(batch, 0, 1)], 12.0)
    # It says what it has: the one that nobody else has it keeps, without executing it again.
    now.pull("cut off", Pull(image="i", seconds=0.0, have={batch: [0, 1]}), 12.0)
    assert now.orders("cut off") == [(batch, given.low)]
    (entry,) = now.report("cut off", [completed(batch, 0, 1)], 12.0)
    assert msgspec.msgpack.decode(entry.body, type=Ends).indexes == [1 - given.low]
    assert len(now.report("other", [completed(batch, given.low)], 12.0)) == 1
    assert now.open == 0


def test_of_two_agents_with_one_name_one_ends_and_nothing_is_stuck(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with broker(url_of(tmp_path)) as port, odd_worker(tmp_path / "worker"):
            client = Somebody(port)
            await client.submit(*(str(number).encode() for number in range(50)), estimates=0.001)
            both = [asyncio.create_task(agent_of(port, tmp_path / "worker").run()) for _ in range(2)]
            done, left = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            assert len(done) == 1
            error = done.pop().exception()
            assert isinstance(error, ExceptionGroup)
            assert isinstance(error.exceptions[0], NameTaken)
            await ends_of(client, 50)
            for task in left:
                task.cancel()

    run(scenario)


def test_a_task_that_failed_and_comes_again_before_its_report_is_answered_is_executed(tmp_path: Path) -> None:
    """A disk that is slow answers a report late, and the same agent may have the next attempt by then."""

    async def scenario() -> None:
        tries: list[bytes] = []

        async def worker(request: Request) -> Answer:
            if request.path == "/execute":
                tries.append(request.body)
                return Answer(500, b"no") if len(tries) < 4 else Answer(200, b"yes")
            return Answer(200)

        server = Server(worker)
        await server.listen(tmp_path / "worker")
        async with broker(url_of(tmp_path)) as port:
            client = Somebody(port)
            await client.submit(b"x", estimates=0.001, retries=Retries(limit=5))
            agent = agent_of(port, tmp_path / "worker")
            asking = agent._reporting.ask

            async def slowly(*words: Any) -> Answer:
                answer = await asking(*words)
                if len(tries) < 4:
                    await asyncio.sleep(0.6)
                return answer

            agent._reporting.ask = slowly  # type: ignore[method-assign,assignment]
            async with working(agent):
                found = await ends_of(client, 1)
            assert (found[0].status, len(tries)) == (Status.COMPLETED, 4)
        await server.close()

    run(scenario)


def test_an_agent_that_cannot_report_takes_no_more_than_it_may_keep(tmp_path: Path) -> None:
    async def scenario() -> None:
        agent = agent_of(1, tmp_path / "worker")
        assert agent._credit > 0
        many = [Outcome(status=Status.COMPLETED, seconds=0.1, result=b"x" * 2**20)] * 65
        agent._done([object()] * 65, many)  # type: ignore[list-item]
        assert agent._credit == 0.0
        agent._some()
        assert agent._credit > 0

    run(scenario)


def test_a_suspect_has_its_turn_where_there_is_always_more_to_do() -> None:
    now = Broker(TABLE)
    now.submit("a", Submission(type="t", payloads=[b"x"] * 1000, estimates=1.0), 0.0, 0.0)
    (given,) = pull(now, "x", 1.0)
    now.crashed("x", {given.batch: [0]}, 0.0)
    held: list[tuple[int, int]] = []
    for _ in range(20):
        # An agent that asks for more before it has nothing.
        for work in pull(now, "x", 2.0):
            held += [(work.batch, index) for index in range(work.low, work.high)]
        if (given.batch, 0) in held:
            break
        now.report("x", [completed(*held.pop(0))], 0.0)
    assert held == [(given.batch, 0)]


# -- the broker and its machine ------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
def test_a_clock_of_the_wall_that_jumps_moves_no_deadline_and_no_lease(jump: float) -> None:
    now = Broker(TABLE, lease=10.0)
    asked = Submission(type="t", payloads=[b"x"] * 2, estimates=1.0, deadline=60.0)
    now.submit("a", asked, 0.0, 1e9)
    pull(now, "x", 1.0)
    now.submit("a", asked, 1.0, 1e9 + jump)
    assert now.tick(9.0) == []
    assert now.leases.agents.keys() == {"x"}
    assert len(now.tick(62.0)) == 2


def test_after_a_restart_a_deadline_is_what_the_wall_says_and_no_age_is_less_than_nothing() -> None:
    now = Broker(TABLE, first=1 << 32)
    stored = now.submit("a", Submission(type="t", payloads=[b"x"], deadline=60.0), 0.0, 1e9).stored
    assert stored is not None
    late, early = Broker(TABLE, first=2 << 32), Broker(TABLE, first=2 << 32)
    late.restore([stored], [], 5.0, 1e9 + 86_400)
    assert len(late.tick(5.1)) == 1
    early.restore([stored], [], 5.0, 1e9 - 86_400)
    assert early.tick(70.0) == []
    assert early.batches[stored.id].since <= 5.0


def test_a_failure_that_is_told_again_after_a_restart_counts_once() -> None:
    before = Broker(TABLE)
    asked = Submission(type="t", payloads=[b"x"], retries=Retries(limit=1))
    stored = before.submit("a", asked, now=0.0, wall=0.0).stored
    assert stored is not None
    wanted = Pull(image="i", seconds=1.0, have={})
    (given,) = before.pull("x", wanted, now=0.0)

    def failed(attempt: int) -> Report:
        attempts = {0: attempt} if attempt > 1 else {}
        return Report(batch=stored.id, indexes=[0], status=Status.FAILED, seconds=[0.1], attempts=attempts)

    entries = before.report("x", [failed(1)], now=0.0)
    # It is written, and the broker ends before the agent hears of it.
    after = Broker(TABLE, first=1 << 32)
    after.restore([stored], entries, now=0.0, wall=0.0)
    after.pull("x", Pull(image="i", seconds=0.0, have={given.batch: [0]}), now=0.0)
    assert after.report("x", [failed(1)], now=0.0) == []
    (again,) = after.pull("x", Pull(image="i", seconds=1.0), now=0.0)
    assert again.attempts[0] > 1
    (end,) = after.report("x", [failed(again.attempts[0])], now=0.0)
    assert end.kind == ENDS


def test_a_broker_that_is_restarted_waits_for_agents_that_have_its_tasks() -> None:
    first = Broker(TABLE, first=1 << 32)
    stored = first.submit("a", Submission(type="t", payloads=[b"x"] * 4, estimates=1.0), 0.0, 0.0).stored
    assert stored is not None
    again = Broker(TABLE, first=2 << 32, grace=3.0)
    again.restore([stored], [], 100.0, 100.0)
    assert pull(again, "quick", 10.0, now=100.1) == []
    again.pull("keeps", Pull(image="i", seconds=1.0, have={stored.id: [0, 1]}), 101.0)
    (given,) = pull(again, "quick", 10.0, now=103.1)
    assert (given.low, given.high) == (2, 4)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A real one of 6 MiB."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (2**16, 2**9, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")
def test_a_full_disk_refuses_submissions_and_keeps_reports_until_there_is_room(tmp_path: Path) -> None:
    async def scenario(disk: Path) -> None:
        async with broker(url_of(disk)) as port:
            client, agent = Somebody(port), Somebody(port)
            batch = await client.submit(b"2", b"3")
            (work,) = await agent.pull("x")
            fill(disk / "filler")
            telling = asyncio.create_task(agent.execute("x", work))
            # Those that come while the report waits are refused as well, and leave nothing behind.
            for _ in range(2):
                asked = Submission(type="square", payloads=[b"x" * 200_000] * 5)
                answer = await client.ask("POST", "/v1/tasks", asked)
                problem = msgspec.msgpack.decode(answer.body, type=Problem)
                assert (answer.status, problem.code) == (507, "not-written")
            assert not telling.done()
            assert (await client.results()).ends == []
            (disk / "filler").unlink()
            assert await telling == 1
            found = await client.results(wait=5.0)
            assert [number for number, _ in found.ends] == [batch]
            await client.submit(b"4")

    with small_disk(tmp_path / "disk") as disk:
        run(lambda: scenario(disk))


def test_who_reads_no_results_costs_a_bounded_memory_and_holds_up_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with broker(url_of(tmp_path)) as port:
            client, agent = Somebody(port), Somebody(port)
            await client.submit(*[b"1"] * 40, estimates=0.001)
            (work,) = await agent.pull("x")
            await agent.get("POST", "/v1/agents/x/report", [large(work.batch, 40)], dict[str, int])
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**10)
            # 100 answers of 10 MB, none of which is read.
            ask = b"GET /v1/tasks/results?after=0 HTTP/1.1\r\nx-jobman-tenant: a\r\n\r\n"
            writer.write(ask * 100)
            for _ in range(20):
                assert len((await client.results()).ends) == 1
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 2**10
            writer.close()

    run(scenario)


def large(batch: int, count: int) -> Report:
    return Report(
        batch=batch,
        indexes=list(range(count)),
        status=Status.COMPLETED,
        seconds=[0.1] * count,
        results=[b"x" * 250_000] * count,
    )


# -- programs ------------------------------------------------------------------------------------------------


def test_a_handle_may_be_cancelled_twice_and_while_its_result_comes() -> None:
    handle = Handle(b"", bytes)
    assert handle.cancel()
    assert handle.cancel()
    handle.settle(b"late")
    assert handle.cancelled()
    for _ in range(200):
        raced = Handle(b"", bytes)
        thread = threading.Thread(target=raced.cancel)
        thread.start()
        raced.settle(b"x")
        thread.join()
        assert raced.done()
