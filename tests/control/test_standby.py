"""A server that takes turns, in this process and without a cluster: who leads is what a test says."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobman.control import leading
from jobman.control.leading import LeaseOptions, _Lead
from jobman.control.places import Places
from jobman.control.serving import ServeOptions
from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.managed.leadership import NotLeading
from tests.control.api.director import ScriptedDirector

ME, OTHER = "me_1", "other_2"


class ScriptedLeadership:
    """Keeps the contract of a leadership; a test says what becomes of it."""

    identity = ME
    namespace = "here"
    trouble = ""
    time_left = 60.0

    def __init__(self) -> None:
        self.leader = OTHER
        self.has_won = self.leads = self.has_left = False
        self.failure: Exception | None = None
        self.epoch: int | None = None
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_lost(self) -> bool:
        return self.has_won and not self.leads and not self.has_left

    def check(self) -> None:
        if not self.leads:
            raise NotLeading

    def start(self) -> None: ...

    def leave(self) -> None:
        self.has_left = True

    def win(self) -> None:
        self.leader, self.has_won, self.leads = ME, True, True
        self.on_change()

    def lose(self) -> None:
        self.leader, self.leads = OTHER, False
        self.on_change()

    def fail(self, error: Exception) -> None:
        self.failure = error
        self.on_change()


class Scene:
    """One server while a test talks with it."""

    def __init__(self, folder: Path) -> None:
        self.leadership = ScriptedLeadership()
        self.options = ServeOptions(
            Places(folder / "state"), listen="127.0.0.1:0", lease=LeaseOptions("jobman", "here")
        )
        self.options.places.make()
        self.directors: list[ScriptedDirector] = []
        self.given: list[ServeOptions] = []
        self.url = ""
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.stopped = 0

    async def build(self, options: ServeOptions) -> Any:
        self.given.append(options)
        director = ScriptedDirector(options.places.state)
        stop, start = director.stop, director.start

        async def counted() -> None:
            assert not self.leadership.has_left, "the Lease is given back when nothing acts any more"
            self.stopped += 1
            await stop()

        async def delayed() -> None:
            await self.may_start.wait()
            await start()

        director.stop, director.start = counted, delayed  # type: ignore[method-assign]
        self.directors.append(director)
        return director

    def announce(self, url: str) -> None:
        self.url = url

    async def ask(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient() as client:
            return await client.get(f"{self.url}{path}")

    async def ready(self) -> bool:
        return (await self.ask("/readyz")).status_code == 200


def play(folder: Path, act: Callable[[Scene], Awaitable[None]]) -> tuple[int, Scene]:
    """Let a server live while somebody acts; its exit code."""

    async def scenario() -> tuple[int, Scene]:
        scene = Scene(folder)
        lead = _Lead(scene.options, scene.leadership, Access(server="https://none.example"))  # type: ignore[arg-type]
        living = asyncio.ensure_future(lead.live(scene.build, scene.announce))
        async with asyncio.timeout(60):
            while not scene.url:
                await asyncio.sleep(0.01)
            await act(scene)
            return await living, scene

    return asyncio.run(scenario())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():
        await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def hard_ends(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Instead of ending this very process: when it would have been ended."""
    found: list[float] = []
    monkeypatch.setattr(leading, "_end_within", found.append)
    return found


def test_nothing_is_opened_and_everybody_is_sent_away_while_another_leads(tmp_path):
    async def act(scene: Scene) -> None:
        assert (await scene.ask("/healthz")).text == "alive\n"
        for path in ("/readyz", "/v1/jobs", "/v1/nowhere"):
            answer = await scene.ask(path)
            assert (answer.status_code, answer.json()["code"]) == (503, "standby")
            assert answer.json()["message"] == f"Another server leads: {OTHER}."
        scene.leadership.leader, scene.leadership.trouble = "", "the cluster does not answer"
        assert "the cluster does not answer" in (await scene.ask("/readyz")).json()["message"]
        os.kill(os.getpid(), signal.SIGTERM)

    code, scene = play(tmp_path, act)
    assert code == 0
    assert scene.given == [], "the store was not touched"
    assert scene.leadership.has_left


def test_it_is_alive_and_not_ready_while_it_takes_over(tmp_path):
    async def act(scene: Scene) -> None:
        scene.may_start.clear()
        scene.leadership.win()
        await until(lambda: _true(bool(scene.directors)))
        assert (await scene.ask("/healthz")).status_code == 200
        assert "takes over" in (await scene.ask("/readyz")).json()["message"]
        scene.may_start.set()
        await until(scene.ready)
        os.kill(os.getpid(), signal.SIGTERM)

    code, scene = play(tmp_path, act)
    assert (code, scene.stopped) == (0, 1)


async def _true(value: bool) -> bool:
    return value


def test_the_leader_answers_and_writes_its_epoch_down(tmp_path):
    async def act(scene: Scene) -> None:
        scene.leadership.win()
        await until(scene.ready)
        assert (await scene.ask("/v1/jobs")).json()["code"] == "unauthenticated"
        assert scene.leadership.epoch == 1
        (given,) = scene.given
        assert given.guard is not None
        given.guard()
        os.kill(os.getpid(), signal.SIGTERM)

    code, scene = play(tmp_path, act)
    assert (code, scene.stopped) == (0, 1)
    scene.leadership.lose()
    with pytest.raises(NotLeading):
        scene.leadership.check()


@pytest.mark.parametrize("is_busy", [False, True], ids=["leading", "taking over"])
def test_who_loses_the_lease_stops_and_ends_with_1(tmp_path, hard_ends, is_busy):
    async def act(scene: Scene) -> None:
        if is_busy:
            scene.may_start.clear()
        scene.leadership.win()
        await until(lambda: _true(bool(scene.directors)))
        if not is_busy:
            await until(scene.ready)
        scene.leadership.lose()

    code, scene = play(tmp_path, act)
    assert (code, scene.stopped) == (1, 1)
    assert hard_ends, "and it would have been ended by force in time"
    assert hard_ends[0] == 60.0


def test_a_director_that_breaks_gives_the_lease_back(tmp_path):
    async def act(scene: Scene) -> None:
        scene.leadership.win()
        await until(scene.ready)
        scene.directors[0].failed.set()

    code, scene = play(tmp_path, act)
    assert (code, scene.stopped) == (1, 1)
    assert scene.leadership.has_left


def test_a_lease_that_can_never_be_had_ends_it_with_the_reason(tmp_path):
    async def act(scene: Scene) -> None:
        scene.leadership.fail(PermissionError("you may not"))

    with pytest.raises(PermissionError, match="you may not"):
        play(tmp_path, act)


def test_one_that_is_told_to_stop_while_it_takes_over_does(tmp_path):
    async def act(scene: Scene) -> None:
        scene.may_start.clear()
        scene.leadership.win()
        await until(lambda: _true(bool(scene.directors)))
        os.kill(os.getpid(), signal.SIGTERM)

    code, scene = play(tmp_path, act)
    assert (code, scene.stopped) == (0, 1)
    assert scene.leadership.has_left
