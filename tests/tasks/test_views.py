"""What a broker tells of itself, and to whom."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobman.tasks.batches import Status
from jobman.tasks.mapper import TypeLine
from jobman.tasks.model import HPCTaskRunnable, Report
from jobman.tasks.quotas import Quota
from jobman.tasks.wire import Connection
from tests.tasks.test_serving import Somebody, broker, run

TOKENS = {"for-a": "a", "for-b": "b", "for-all": "operator"}


class Bearer(Somebody):
    """Somebody with a token."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = Connection(("127.0.0.1", port), headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.sqlite"


async def kinds(who: Somebody) -> list[str]:
    return [
        line["kind"] for line in (await who.get("GET", "/v1/tasks/events", None, dict[str, Any]))["events"]
    ]


async def failing(agent: Somebody, reason: str, id_: str = "x") -> None:
    """Have all that waits, and report that it failed."""
    for work in await agent.pull(id_):
        indexes = list(range(work.low, work.low + len(work.payloads)))
        report = Report(
            batch=work.batch,
            indexes=indexes,
            status=Status.FAILED,
            seconds=[0.5] * len(indexes),
            reasons=dict.fromkeys(indexes, reason),
        )
        await agent.get("POST", f"/v1/agents/{id_}/report", [report], dict[str, int])


def test_batches_and_single_tasks_are_told_to_their_tenant(url: str) -> None:
    async def scenario() -> None:
        async with broker(url) as port:
            one, other = Somebody(port), Somebody(port, "b")
            batch = await one.submit(b"2", b"3", key="mine", name="some", parameters={"model": "heston"})
            (row,) = await one.get("GET", "/v1/tasks/batches", None, list[dict[str, Any]])
            assert (row["batch"], row["key"], row["name"], row["left"]) == (batch, "mine", "some", 2)
            assert abs(row["at"] - time.time()) < 60
            assert await other.get("GET", "/v1/tasks/batches", None, list[dict[str, Any]]) == []
            found = await one.get("GET", f"/v1/tasks/{batch}/1", None, HPCTaskRunnable)
            assert (found.image, found.status, found.task.payload) == ("squares", "queued", b"3")
            assert found.task.parameters == {"model": "heston"}
            await one.pull("x")
            found = await one.get("GET", f"/v1/tasks/{batch}/1", None, HPCTaskRunnable)
            assert (found.status, found.agent) == ("running", "x")
            assert (await one.ask("GET", f"/v1/tasks/{batch}/2")).status == 404
            assert (await other.ask("GET", f"/v1/tasks/{batch}/1")).status == 404

    run(scenario)


def test_single_tasks_of_a_batch_are_cancelled(url: str) -> None:
    async def scenario() -> None:
        async with broker(url) as port:
            client = Somebody(port)
            batch = await client.submit(b"1", b"2", b"3")
            path = f"/v1/tasks/{batch}/cancel"
            for wrong in ([0, 3], [-1]):
                # Nothing of what names a task that is not there is done.
                assert (await client.ask("POST", path, wrong)).status == 404
            assert await client.get("POST", path, [0, 2], dict[str, int]) == {"cancelled": 2}
            assert await client.get("POST", path, [0, 2], dict[str, int]) == {"cancelled": 0}
            (work,) = await client.pull("x")
            assert (work.low, work.payloads) == (1, [b"2"])

    run(scenario)


def test_agents_are_told_to_operators(file: str) -> None:
    async def scenario() -> None:
        async with broker(file, tokens=TOKENS) as port:
            client, operator = Bearer(port, "for-a"), Bearer(port, "for-all")
            await client.submit(b"1", b"2")
            await operator.pull("x")
            found = await operator.get("GET", "/v1/agents", None, dict[str, dict[str, Any]])
            assert (found["x"]["image"], found["x"]["held"]) == ("squares", 2)
            assert (await client.ask("GET", "/v1/agents")).status == 403

    run(scenario)


def test_what_happens_is_told_and_is_still_known_after_a_restart(url: str) -> None:
    async def scenario() -> None:
        async with broker(url) as port:
            client = Somebody(port, "default")
            await client.submit(b"1")
            await failing(client, "bad-answer: no HTTP")
            await client.submit(b"1")
            await failing(client, "500: it does not converge")
            await client.submit(b"1", key="away")
            await client.get("POST", f"/v1/tasks/{(await client.submit(b'1'))}/cancel", None, Any)
            assert await kinds(client) == [
                "broker-started",
                "agent-came",
                "bad-answer",
                "failed",
                "cancelled",
            ]
        async with broker(url) as port:
            client = Somebody(port, "default")
            told = await kinds(client)
            assert told.count("broker-started") == 2
            assert told[:4] == ["broker-started", "agent-came", "bad-answer", "failed"]

    run(scenario)


def test_a_tenant_sees_what_happened_to_its_own_tasks_alone(file: str) -> None:
    async def scenario() -> None:
        async with broker(file, tokens=TOKENS) as port:
            a, b, operator = (Bearer(port, token) for token in TOKENS)
            await a.submit(b"1")
            await failing(operator, "500: secret of a")
            assert await kinds(a) == ["failed"]
            assert await kinds(b) == []
            assert await kinds(operator) == ["broker-started", "agent-came", "failed"]

    run(scenario)


def test_what_agents_say_of_their_workers_is_told(file: str) -> None:
    async def scenario() -> None:
        async with broker(file) as port:
            client = Somebody(port, "default")
            await client.pull("x")
            note = {"kind": "worker-silent", "words": "no answer to three pings"}
            await client.get("POST", "/v1/agents/x/notes", [note], Any)
            found = await client.get("GET", "/v1/tasks/events?wait=5", None, dict[str, Any])
            line = found["events"][-1]
            assert (line["kind"], line["agent"], line["words"]) == ("worker-silent", "x", note["words"])

    run(scenario)


def test_types_that_operators_add_are_known_at_once_and_after_a_restart(url: str) -> None:
    line = TypeLine(type="cube", versions="2.x", image="cubes:2", resources={"cpu": "2"})
    asked = {"type": "cube", "payloads": [b"3"], "version": "2.1"}

    async def scenario() -> None:
        async with broker(url, tokens=TOKENS) as port:
            client, operator = Bearer(port, "for-a"), Bearer(port, "for-all")
            assert (await client.ask("POST", "/v1/tasks/types", line)).status == 403
            await operator.get("POST", "/v1/tasks/types", line, Any)
            assert (await client.ask("POST", "/v1/tasks", asked)).status == 200
            wrong = {"type": "cube", "versions": ">=", "image": "x"}
            assert (await operator.ask("POST", "/v1/tasks/types", wrong)).status == 400
        async with broker(url, tokens=TOKENS) as port:
            client, operator = Bearer(port, "for-a"), Bearer(port, "for-all")
            work = await operator.get("GET", "/v1/tasks/outstanding", None, dict[str, dict[str, Any]])
            assert work["cubes:2"]["resources"] == {"cpu": "2"}
            assert (await client.ask("POST", "/v1/tasks", asked)).status == 200
            gone = {"type": "cube", "versions": "2.x"}
            await operator.get("POST", "/v1/tasks/types/remove", gone, Any)
            assert (await operator.ask("POST", "/v1/tasks/types/remove", gone)).status == 404
            assert (await client.ask("POST", "/v1/tasks", asked)).status == 422

    run(scenario)


def test_what_a_tenant_used_is_told_with_its_price(url: str) -> None:
    async def scenario() -> None:
        async with broker(url, price=2.0) as port:
            client = Somebody(port)
            await client.submit(*[b"1"] * 3600, estimates=0.01)
            await failing(client, "500: never mind")
        # Slices that are not over end with their broker.
        async with broker(url, price=2.0) as port:
            (used,) = await Somebody(port).get("GET", "/v1/tasks/usage", None, list[dict[str, Any]])
            assert used == {"tenant": "a", "image": "squares", "seconds": 1800.0, "units": 1.0}
            assert await Somebody(port, "b").get("GET", "/v1/tasks/usage", None, list[Any]) == []
            later = f"/v1/tasks/usage?since={time.time() + 60}"
            assert await Somebody(port).get("GET", later, None, list[Any]) == []

    run(scenario)


def test_quotas_are_per_tenant(file: str) -> None:
    async def scenario() -> None:
        async with broker(file, quotas={"a": Quota(tasks=2)}) as port:
            asked = {"type": "square", "payloads": [b"1", b"2"]}
            assert (await Somebody(port).ask("POST", "/v1/tasks", asked)).status == 200
            refused = await Somebody(port).ask("POST", "/v1/tasks", asked)
            assert refused.status == 429
            assert float(refused.headers["retry-after"]) >= 1
            assert (await Somebody(port, "b").ask("POST", "/v1/tasks", asked)).status == 200

    run(scenario)


def test_people_are_answered_in_json(file: str) -> None:
    async def scenario() -> None:
        async with broker(file) as port:
            connection = Connection(("127.0.0.1", port), headers={"accept": "application/json"})
            answer = await connection.ask("GET", "/healthz")
            assert msgspec.json.decode(answer.body)["open"] == 0

    run(scenario)
