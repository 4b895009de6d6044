"""Events and logs as they happen: resumed, kept alive, and ended when it is time."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from jobman.client.sse import Sent, read_events
from jobman.control.api.edge import Exchange
from jobman.control.api.endpoint import EXCHANGE
from jobman.control.api.streams import Stream
from tests.control.api.world import World, until


def follow(caller: httpx.Client, path: str, **headers: str) -> Iterator[Sent]:
    """Server-sent events of a path."""
    with caller.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream"
        yield from read_events(answer.iter_raw())


def data(sent: Sent) -> Any:
    return msgspec.json.decode(sent.data)


def take(source: Iterator[Sent], count: int) -> list[Sent]:
    """The next events that have something to say."""
    found: list[Sent] = []
    while len(found) < count:
        sent = next(source)
        if sent.data:
            found.append(sent)
    return found


def test_events_of_a_job_come_in_pages(world: World) -> None:
    job = world.submit()
    world.let(world.director.happen, job, "noise", 5)
    first = world.http.get(f"/v1/jobs/{job}/events?limit=4").json()
    rest = world.http.get(f"/v1/jobs/{job}/events", params={"limit": 4, "cursor": first["cursor"]}).json()
    assert [event["kind"] for event in first["items"]] == ["submitted", "noise", "noise", "noise"]
    assert [event["number"] for event in rest["items"]] == [5, 6]
    assert rest["cursor"] is None
    assert len(world.http.get(f"/v1/events?job={job}&after=4").json()["items"]) == 2


def test_events_of_a_job_are_followed_from_the_first_to_its_end(world: World) -> None:
    job = world.submit()
    source = follow(world.http, f"/v1/jobs/{job}/events?follow=true")
    assert [sent.event for sent in take(source, 1)] == ["event"]
    world.let(world.director.begin, job)
    world.let(world.director.finish, job, "failed", 3)
    *events, end = take(source, 3)
    assert [data(sent)["kind"] for sent in events] == ["started", "failed"]
    assert (end.event, data(end)["state"], data(end)["exit_code"]) == ("end", "failed", 3)
    assert list(source) == []


def test_events_of_a_job_that_is_over_end_at_once(world: World) -> None:
    job = world.submit()
    world.let(world.director.finish, job)
    kinds = [sent.event for sent in follow(world.http, f"/v1/jobs/{job}/events?follow=true") if sent.data]
    assert kinds == ["event", "event", "end"]
    resumed = follow(world.http, f"/v1/jobs/{job}/events?follow=true", **{"Last-Event-ID": "2"})
    assert [sent.event for sent in resumed if sent.data] == ["end"]


def test_all_events_are_followed_from_now_on_and_resumed_by_number(world: World) -> None:
    world.submit("before")
    source = follow(world.http, "/v1/events?follow=true")
    assert next(source).id == "1", "where to go on is known before anything happens"
    until(lambda: len(world.director.broadcast))
    job = world.submit("after")
    seen = take(source, 1)[0]
    assert (data(seen)["job"], seen.id) == (job, "2")

    resumed = follow(world.http, "/v1/events?follow=true", **{"Last-Event-ID": "0"})
    assert [sent.id for sent in take(resumed, 2)] == ["1", "2"]
    world.let(world.director.happen, job, "noise")
    assert take(resumed, 1)[0].id == "3"


def test_a_reader_that_fell_behind_goes_on_from_the_store(tmp_path: Path) -> None:
    with World(tmp_path, broadcast_limit=10) as world:
        job = world.submit()
        source = follow(world.http, "/v1/events?follow=true&after=0")
        take(source, 1)
        world.let(world.director.happen, job, "noise", 2_000)
        assert [int(sent.id or 0) for sent in take(source, 2_000)] == list(range(2, 2_002))


@pytest.mark.parametrize("wrong", ["x", "-1", "1" * 40])
def test_a_last_event_id_that_is_no_number_is_refused(world: World, wrong: str) -> None:
    answer = world.http.get("/v1/events?follow=true", headers={"Last-Event-ID": wrong})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")


def test_a_silent_stream_is_kept_alive_and_ends_with_its_reader(tmp_path: Path) -> None:
    with World(tmp_path, keep_alive=0.02) as world:
        with world.http.stream("GET", "/v1/events?follow=true") as answer:
            raw = answer.iter_raw()
            assert until(lambda: b":\n\n" in next(raw))
            assert len(world.director.broadcast) == 1
        until(lambda: len(world.director.broadcast) == 0)


def test_those_who_follow_are_told_when_the_service_stops(world: World) -> None:
    source = follow(world.http, "/v1/events?follow=true")
    next(source)
    assert world.caller().post("/v1/stop").status_code == 200
    assert [sent.event for sent in source] == ["stopping"]


def test_a_restart_only_breaks_the_stream(world: World) -> None:
    source = follow(world.http, "/v1/events?follow=true")
    next(source)
    world.caller().post("/v1/stop?restart=true")
    assert list(source) == []


# -- logs ----------------------------------------------------------------------------------------------


def test_logs_that_are_there_come_as_lines_of_json(world: World) -> None:
    job = world.submit()
    world.let(world.director.begin, job)
    world.director.write(job, "one", "two", "three")
    answer = world.http.get(f"/v1/jobs/{job}/logs?tail=2")
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    assert [(line["replica"], line["node"], line["text"]) for line in lines] == [
        ("main.0", "here", "two"),
        ("main.0", "here", "three"),
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("task=main", True),
        ("task=other", False),
        ("replica=main.0", True),
        ("replica=0", True),
        ("replica=1", False),
        ("replica=main.0/0", True),
        ("replica=0/0", True),
        ("replica=main.0/1", False),
        ("node=here", True),
        ("node=there", False),
        ("stream=stdout", True),
        ("stream=stderr", False),
        ("attempt=1", True),
        ("attempt=2", False),
        ("since=1", True),
        ("since=99999999999", False),
    ],
)
def test_logs_are_filtered_by_the_server(world: World, query: str, found: bool) -> None:
    job = world.submit()
    world.let(world.director.begin, job)
    world.director.write(job, "hello")
    world.let(world.director.finish, job)
    assert bool(world.http.get(f"/v1/jobs/{job}/logs?{query}").content) == found


def test_logs_are_followed_from_before_the_first_copy_to_the_end(world: World) -> None:
    job = world.submit()
    source = follow(world.http, f"/v1/jobs/{job}/logs?follow=true")
    world.let(world.director.begin, job)
    world.director.write(job, "one")
    assert data(take(source, 1)[0])["text"] == "one"
    world.director.write(job, "two")
    assert data(take(source, 1)[0])["text"] == "two"
    world.director.write(job, "three")
    world.let(world.director.finish, job, "succeeded")
    line, end = take(source, 2)
    assert data(line)["text"] == "three"
    assert (end.event, data(end)["state"]) == ("end", "succeeded")
    assert list(source) == []


def test_logs_are_resumed_behind_the_last_line_that_was_read(world: World) -> None:
    job = world.submit()
    world.let(world.director.begin, job)
    world.director.write(job, "one", "two")
    source = follow(world.http, f"/v1/jobs/{job}/logs?follow=true&tail=1")
    assert data(take(source, 1)[0])["text"] == "two"
    position = next(sent.id for sent in source if sent.id)
    world.director.write(job, "three")
    world.let(world.director.finish, job)
    resumed = follow(
        world.http, f"/v1/jobs/{job}/logs?follow=true&tail=1", **{"Last-Event-ID": position or ""}
    )
    assert [data(sent).get("text") for sent in resumed if sent.event == "line"] == ["three"]
    again = world.http.get(f"/v1/jobs/{job}/logs", params={"cursor": position})
    assert [msgspec.json.decode(line)["text"] for line in again.content.splitlines()] == ["three"]


def test_a_position_in_logs_that_cannot_be_read_is_refused(world: World) -> None:
    job = world.submit()
    for query in ("cursor=x", "cursor=1x", "follow=true&cursor=1AAAA"):
        answer = world.http.get(f"/v1/jobs/{job}/logs?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")


def test_a_file_that_cannot_be_read_is_told_in_a_note(world: World) -> None:
    job = world.submit()
    world.let(world.director.begin, job)
    world.let(world.director.finish, job)
    world.director.output(job).unlink()
    line = msgspec.json.decode(world.http.get(f"/v1/jobs/{job}/logs").content.splitlines()[0])
    assert line["stream"] == "note"
    assert "cannot be read" in line["text"]


def test_a_source_is_not_asked_for_more_than_its_reader_takes(world: World) -> None:
    asked = 0

    async def source() -> AsyncGenerator[bytes, None]:
        nonlocal asked
        while True:
            asked += 1
            yield b"data"

    async def follow_slowly() -> int:
        taken: asyncio.Queue[object] = asyncio.Queue()
        turn = asyncio.Semaphore(4)

        async def send(message: object) -> None:
            await turn.acquire()
            taken.put_nowait(message)

        async def receive() -> dict[str, str]:
            await asyncio.Event().wait()
            return {}

        scope = {EXCHANGE: Exchange("test")}
        stream = asyncio.ensure_future(Stream(world.desk, source())(scope, receive, send))
        for _ in range(4):
            await taken.get()
        await asyncio.sleep(0)
        stream.cancel()
        await asyncio.wait([stream])
        return asked

    assert asyncio.run_coroutine_threadsafe(follow_slowly(), world.loop).result(20) == 4
