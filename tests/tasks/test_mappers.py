"""Mappers that tasks name: services and entry points."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobman.tasks import mappers
from jobman.tasks.mapper import Executor, Unmappable
from jobman.tasks.mappers import Mappers, Question
from jobman.tasks.submissions import Refusal
from jobman.tasks.wire import Answer, Request, Server
from tests.tasks.test_serving import Somebody, broker, run

PRICE = Question(type="price", version="2", parameters={"region": "eu"})


def by_region(question: Question) -> dict[str, Any] | None:
    region = question.parameters.get("region")
    return None if region is None else {"image": f"price-{region}", "resources": {"cpu": "2"}}


@asynccontextmanager
async def service(*answers: Answer) -> AsyncIterator[tuple[str, list[Request]]]:
    """A mapper that gives these answers, one after the other, and what it was asked."""
    asked: list[Request] = []
    left = list(answers)

    async def handle(request: Request) -> Answer:
        asked.append(request)
        return left.pop(0)

    server = Server(handle)
    port = await server.listen(("127.0.0.1", 0))
    try:
        yield f"http://127.0.0.1:{port}/map", asked
    finally:
        await server.close()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point, as a package would bring it along."""
    point = EntryPoint("regions", f"{__name__}:by_region", mappers.GROUP)

    def found(*, group: str, name: str | None = None) -> list[EntryPoint]:
        return [point] if group == mappers.GROUP and name in (None, point.name) else []

    monkeypatch.setattr(mappers, "entry_points", found)


def test_a_service_is_asked_once_for_the_same() -> None:
    async def scenario() -> None:
        said = Answer(200, b'{"image": "price:eu", "environment": {"REGION": "eu"}}')
        async with service(said) as (url, asked):
            named = Mappers({"site": url})
            for _ in range(2):
                found = await named.map("site", PRICE)
                assert found == Executor(image="price:eu", environment={"REGION": "eu"})
            assert [(each.method, each.path) for each in asked] == [("POST", "/map")]
            assert msgspec.json.decode(asked[0].body, type=Question) == PRICE

    run(scenario)


def test_a_service_that_knows_nobody_says_404() -> None:
    async def scenario() -> None:
        async with service(Answer(404)) as (url, _):
            with pytest.raises(Unmappable, match="knows nobody who executes `price`, version 2"):
                await Mappers({"site": url}).map("site", PRICE)

    run(scenario)


@pytest.mark.parametrize("said", [Answer(500), Answer(200, b"<html>"), Answer(200, b'{"picture": 1}')])
def test_a_service_that_fails_is_asked_again_later(said: Answer) -> None:
    async def scenario() -> None:
        async with service(said, Answer(200, b'{"image": "price"}')) as (url, _):
            named = Mappers({"site": url})
            with pytest.raises(Refusal, match="the mapper `site` fails") as caught:
                await named.map("site", PRICE)
            assert caught.value.retry_after
            assert (await named.map("site", PRICE)).image == "price"

    run(scenario)


def test_an_entry_point_is_a_mapper(installed: None) -> None:
    named = Mappers({"regions": "python:regions"})
    assert asyncio.run(named.map("regions", PRICE)).image == "price-eu"
    with pytest.raises(Unmappable):
        asyncio.run(named.map("regions", Question(type="price")))


@pytest.mark.parametrize("place", ["python:nothing", "ftp://mapper", "nowhere"])
def test_what_is_no_mapper_is_told_at_the_start(installed: None, place: str) -> None:
    with pytest.raises(ValueError, match="the mapper `site`"):
        Mappers({"site": place})


def test_a_task_that_names_a_mapper_gets_its_image_from_there(tmp_path: Path, installed: None) -> None:
    async def scenario() -> None:
        named = Mappers({"regions": "python:regions"})
        async with broker(f"sqlite:///{tmp_path}/tasks.sqlite", mappers=named) as port:
            client = Somebody(port)
            asked: dict[str, Any] = {"type": "price", "payloads": [b"1"], "mapper": "regions"}
            assert (await client.ask("POST", "/v1/tasks", asked)).status == 422
            assert (await client.ask("POST", "/v1/tasks", {**asked, "mapper": "other"})).status == 422
            asked |= {"parameters": {"region": "eu"}}
            assert (await client.ask("POST", "/v1/tasks", asked)).status == 200
            work = await client.get("GET", "/v1/tasks/outstanding", None, dict[str, dict[str, Any]])
            assert work["price-eu"]["resources"] == {"cpu": "2"}

    run(scenario)
