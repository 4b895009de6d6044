"""The runner, where the cluster is only pretended: what it does again, and what it never does twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from jobman.engines import base
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import Forbidden, Unreachable
from jobman.engines.kubernetes.managed import runner
from jobman.engines.kubernetes.managed.attempt import Attempt
from jobman.engines.kubernetes.managed.course import Stop
from jobman.engines.kubernetes.managed.releasing import Releaser
from jobman.engines.kubernetes.managed.runner import Limits, Runner
from jobman.engines.kubernetes.objects import Pod, Status
from jobman.engines.kubernetes.roles import Need
from tests.engines.kubernetes.managed.orders_of import order
from tests.engines.kubernetes.managed.pods_of import a_pod
from tests.engines.kubernetes.objects_of import plan_of, task


class Cluster:
    """Remembers what it was asked to do; pods write what is in `streams`, one after the other."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.streams: list[bytes] = []
        self.overlooked: Pod | None = None
        self.refusals: list[Exception] = []
        self.made: dict[base.Address, None] = {}
        self.pause = 0.0
        """Seconds that it takes to make something."""

    async def make(self, attempt: Attempt, _boot_of: Callable[[str], str]) -> None:
        await asyncio.sleep(self.pause)
        self.done.append("make")
        self.made[attempt.address] = None
        if self.refusals:
            raise self.refusals.pop()

    async def find(self, _attempt: Attempt, _copy: int) -> Pod | None:
        self.done.append("find")
        if self.refusals:
            raise self.refusals.pop()
        return self.overlooked

    async def release(self, _attempt: Attempt, _boot_of: Callable[[str], str]) -> None:
        self.done.append("release")

    async def stop(self, pods: Iterable[Pod]) -> None:
        self.done += ["stop" for _ in pods]

    async def logs(self, *_: Any, **__: Any) -> AsyncGenerator[bytes, None]:
        yield self.streams[0] if len(self.streams) == 1 else self.streams.pop(0)


class Nodes:
    """All is well with them."""

    def boot_of(self, node: str) -> str:
        del node
        return "a"

    def lost(self, node: str) -> str:
        del node
        return ""

    def closed(self, node: str) -> str:
        del node
        return ""


class Cordoned(Nodes):
    """None takes anything."""

    def closed(self, node: str) -> str:
        return f"{node} is cordoned"


class Scene:
    """A runner with one attempt, and what it said."""

    def __init__(self, folder: Path, nodes: Nodes | None = None, limits: Limits | None = None) -> None:
        self.cluster = Cluster()
        self.folder = folder
        self.document = task()
        releaser, api = cast(Releaser, self.cluster), cast(Api, self.cluster)
        self.runner = Runner(api, releaser, folder, nodes or Nodes(), limits or Limits())
        self.said: list[base.News] = []

    async def play(self, scene: Callable[[Scene, Attempt], Any]) -> None:
        self.runner.start(self.said.append)
        attempt = self.runner.take_up(order(plan_of(self.document)), is_new=False)
        try:
            async with asyncio.timeout(15):
                await scene(self, attempt)
        finally:
            await self.runner.close()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)

    async def over(self) -> base.Over:
        await self.until(lambda: any(isinstance(each, base.Over) for each in self.said))
        (found,) = [each for each in self.said if isinstance(each, base.Over)]
        return found

    @property
    def out(self) -> bytes:
        found = [path.read_bytes() for path in self.folder.rglob("*.out")]
        return b"".join(found)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PAUSE", "_LONGEST_PAUSE", "_AGAIN"):
        monkeypatch.setattr(runner, name, 0.01)


def test_a_pod_that_was_let_go_before_a_restart_and_vanishes_is_not_made_again(
    tmp_path: Path,
) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        stage.runner.see(attempt, 0, a_pod(started=0))
        stage.runner.see(attempt, 0, None)
        over = await stage.over()
        assert (over.reason, "make" in stage.cluster.done) == ("node-lost", False)

    stage = Scene(tmp_path)
    stage.cluster.streams = [b""]
    asyncio.run(stage.play(scene))


def test_a_pod_that_no_watch_has_shown_is_looked_for_before_its_end_is_told(tmp_path: Path) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        await stage.until(lambda: "make" in stage.cluster.done)
        stage.cluster.overlooked = a_pod(started=0)
        stage.runner.stop(attempt, Stop("preempted", "it was not seen"))
        await stage.until(lambda: "stop" in stage.cluster.done)
        assert not any(isinstance(each, base.Over) for each in stage.said)
        stage.runner.see(attempt, 0, a_pod(started=0, code=143, ended=9, deleted=5))
        assert (await stage.over()).reason == "preempted"

    stage = Scene(tmp_path)
    stage.cluster.streams = [b""]
    asyncio.run(stage.play(scene))


def test_a_pod_that_is_alone_is_not_made_where_its_node_would_not_take_it(tmp_path: Path) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        over = await stage.over()
        assert (over.reason, over.message) == ("preempted", "n0 is cordoned")
        assert "make" not in stage.cluster.done

    stage = Scene(tmp_path, Cordoned())
    asyncio.run(stage.play(scene))


def test_what_started_and_ended_unseen_is_not_given_up_for_its_time(tmp_path: Path) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        del attempt
        assert (await stage.over()).reason == ""
        assert "find" in stage.cluster.done

    stage = Scene(tmp_path, limits=Limits(bind=0.05))
    stage.cluster.streams = [b""]
    stage.cluster.overlooked = a_pod(started=0, code=0, ended=2)
    stage.cluster.refusals = [Unreachable("nobody is there") for _ in range(5)]
    asyncio.run(stage.play(scene))


def test_the_time_of_the_cluster_does_not_run_while_nobody_has_come_to_an_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        del attempt
        plan = plan_of(stage.document)
        others = [stage.runner.take_up(order(plan, job=f"job{n}"), is_new=True) for n in range(3)]
        await stage.until(lambda: all(each.address in stage.cluster.made for each in others))

    monkeypatch.setattr(runner, "WORKERS", 1)
    stage = Scene(tmp_path, limits=Limits(bind=0.4))
    stage.cluster.pause = 0.3
    asyncio.run(stage.play(scene))


def test_what_is_new_comes_before_what_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        plan = plan_of(stage.document)
        old = [stage.runner.take_up(order(plan, job=f"old{n}"), is_new=False) for n in range(3)]
        new = stage.runner.take_up(order(plan, job="new"), is_new=True)
        await stage.until(lambda: len(stage.cluster.made) == 5)
        assert list(stage.cluster.made) == [each.address for each in (new, attempt, *old)]

    monkeypatch.setattr(runner, "WORKERS", 1)
    asyncio.run(Scene(tmp_path).play(scene))


def test_what_ended_in_time_was_in_time_whenever_it_is_seen(tmp_path: Path) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        stage.runner.see(attempt, 0, a_pod(started=0, code=0, ended=2))
        assert (await stage.over()).reason == ""

    stage = Scene(tmp_path)
    stage.document = task("attributes: {duration: 3s}")
    stage.cluster.streams = [b""]
    asyncio.run(stage.play(scene))


def test_a_right_that_is_missing_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        await stage.until(lambda: stage.cluster.done.count("make") == 3)
        stage.runner.see(attempt, 0, a_pod(started=0, code=0, ended=2))
        assert (await stage.over()).reason == ""

    stage = Scene(tmp_path)
    stage.cluster.streams = [b""]
    stage.cluster.refusals = [forbidden(), forbidden()]
    asyncio.run(stage.play(scene))


@pytest.mark.slow
def test_a_right_that_is_never_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        del attempt
        over = await stage.over()
        assert (over.reason, "may not" in over.message) == ("launch-failed", True)

    monkeypatch.setattr(runner, "_FORBIDDEN", 0.1)
    stage = Scene(tmp_path)
    stage.cluster.refusals = [forbidden() for _ in range(1000)]
    asyncio.run(stage.play(scene))


def forbidden() -> Forbidden:
    refused = Forbidden(403, Status(code=403, message="User jobman may not create pods."))
    refused.need = Need(verb="create", resource="pods")
    return refused


def test_output_whose_stream_ends_before_its_container_is_followed_on(tmp_path: Path) -> None:
    async def scene(stage: Scene, attempt: Attempt) -> None:
        stage.runner.see(attempt, 0, a_pod(started=0))
        await stage.until(lambda: stage.out == b"one\ntwo\n")
        assert not any(isinstance(each, base.Over) for each in stage.said)
        stage.runner.see(attempt, 0, a_pod(started=0, code=0, ended=9))
        assert (await stage.over()).reason == ""
        assert stage.out == b"one\ntwo\nend"

    one = b"2030-05-01T12:00:00.000000001Z one\n"
    two = b"2030-05-01T12:00:00.000000002Z two\n"
    end = b"2030-05-01T12:00:00.000000003Z end"
    stage = Scene(tmp_path)
    stage.cluster.streams = [one, one + two[:33], one + two + end]
    asyncio.run(stage.play(scene))


def test_an_end_that_could_not_be_told_is_told_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials: list[None] = []
    right = Runner._events

    async def stumble(self: Runner, attempt: Attempt) -> Any:
        trials.append(None)
        if len(trials) < 3:
            raise ValueError("who would have thought of that")
        return await right(self, attempt)

    async def scene(stage: Scene, attempt: Attempt) -> None:
        stage.runner.see(attempt, 0, a_pod(started=0, code=3, ended=9))
        over = await stage.over()
        assert (over.reason, over.exit_code, len(trials)) == ("exit", 3, 3)

    monkeypatch.setattr(Runner, "_events", stumble)
    stage = Scene(tmp_path)
    stage.cluster.streams = [b""]
    asyncio.run(stage.play(scene))
