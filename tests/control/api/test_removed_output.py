"""What is answered when output is asked for that is kept no longer."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from jobman.client import Refused
from jobman.control.retention import Retention
from jobman.control.store.records import Changes, LogRecord
from tests.control.api.world import DEADLINE, World

DAY = 86400.0
LATER = time.time() + 31 * DAY
WORDS = f"its output was removed on {time.strftime('%Y-%m-%d', time.localtime(LATER))}"
KEPT = "output is kept for 30 days"


def finished(world: World, *lines: str) -> str:
    """A job that wrote lines and is over."""
    job = world.submit()
    world.let(world.director.begin, job)
    world.let(world.director.write, job, *lines)
    world.let(world.director.finish, job)
    return job


def sweep(world: World) -> int:
    """Let a month pass."""
    retention = Retention(world.director.store, world.folder, 30 * DAY, None, lambda: LATER)
    world.director.retention = retention  # type: ignore[attr-defined]
    return asyncio.run_coroutine_threadsafe(retention.sweep(), world.loop).result(DEADLINE)


def own_file(world: World, job: str, path: Path) -> None:
    """Let the job also have written to a file that its document names."""
    path.write_text("mine\n")
    key = (job, "main.0", 1, 1, "stdout")
    record = LogRecord(
        job=job, key="main.0", attempt=1, copy=1, stream="stdout", path=str(path), size=5, ended=True
    )
    world.let(world.director.store.write, Changes(logs={key: record}))


def texts(answer: httpx.Response) -> list[tuple[str, str]]:
    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    return [(line["stream"], line["text"]) for line in lines]


def condition(world: World, job: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = world.http.get(f"/v1/jobs/{job}").json()["conditions"]
    return next(each for each in found if each["type"] == "OutputRemoved")


def test_output_is_there_long_after_whatever_wrote_it(world: World) -> None:
    job = finished(world, "one", "two")
    assert texts(world.http.get(f"/v1/jobs/{job}/logs")) == [("stdout", "one"), ("stdout", "two")]
    assert not condition(world, job)["status"]


@pytest.mark.parametrize("query", ["", "?follow=true", "?tail=1", "?stream=stdout", "?task=main"])
def test_a_reader_of_what_was_removed_is_told_when_and_why(world: World, query: str) -> None:
    job = finished(world, "one")
    assert sweep(world) == 1
    answer = world.http.get(f"/v1/jobs/{job}/logs{query}")
    assert answer.status_code == 410
    failure = answer.json()
    assert (failure["code"], failure.get("exit", 1)) == ("output-removed", 1)
    assert failure["message"] == f"{WORDS}: {KEPT}"
    assert f"jobman details {job}" in failure["advice"]


def test_what_was_never_written_was_not_removed(world: World) -> None:
    job = finished(world, "one")
    sweep(world)
    answer = world.http.get(f"/v1/jobs/{job}/logs?task=other")
    assert (answer.status_code, answer.content) == (200, b"")


def test_our_own_client_raises_it(world: World) -> None:
    job = finished(world, "one")
    sweep(world)
    with pytest.raises(Refused, match=KEPT):
        list(world.client().logs(job))


def test_the_job_says_that_its_output_was_removed(world: World) -> None:
    job = finished(world, "one")
    sweep(world)
    assert condition(world, job) == {
        "type": "OutputRemoved",
        "status": True,
        "since": LATER,
        "message": f"{WORDS}: {KEPT}",
    }
    assert [each["attempt"] for each in world.http.get(f"/v1/jobs/{job}/attempts").json()["items"]] == [1]
    assert len(world.http.get(f"/v1/jobs/{job}/events").json()["items"]) > 1


@pytest.mark.parametrize("follow", [False, True])
def test_files_of_the_user_are_read_and_the_rest_is_said_to_be_gone(
    world: World, tmp_path: Path, follow: bool
) -> None:
    job = finished(world, "one")
    own_file(world, job, tmp_path / "mine.log")
    sweep(world)
    lines = list(world.client().logs(job, follow=follow))
    said = ("note", f"the rest of {WORDS}: {KEPT}")
    assert {(line.stream, line.text) for line in lines} == {("stdout", "mine"), said}


def test_output_that_goes_while_it_is_read_is_said_to_be_removed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobman.control.api import logs

    job = finished(world, "one")
    real = logs._merged

    def late(*arguments: Any) -> Any:
        monkeypatch.undo()
        assert sweep(world) == 1
        return real(*arguments)

    monkeypatch.setattr(logs, "_merged", late)
    assert texts(world.http.get(f"/v1/jobs/{job}/logs")) == [("note", f"the rest of {WORDS}: {KEPT}")]


def test_a_service_that_keeps_everything_by_now_does_not_know_why(world: World) -> None:
    job = finished(world, "one")
    sweep(world)
    world.director.retention = Retention(world.director.store, world.folder, None, None)  # type: ignore[attr-defined]
    assert world.http.get(f"/v1/jobs/{job}/logs").json()["message"] == WORDS
