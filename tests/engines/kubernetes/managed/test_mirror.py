"""A mirror shows what a cluster has, and tells every difference once, whatever becomes of its watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobman.engines.kubernetes.api import Api, Listed
from jobman.engines.kubernetes.errors import Expired, ServerFault, Unreachable
from jobman.engines.kubernetes.kinds import CONFIG_MAPS
from jobman.engines.kubernetes.managed import mirror
from jobman.engines.kubernetes.managed.mirror import Mirror
from jobman.engines.kubernetes.objects import Change, ConfigMap, Meta, Status

Told = tuple[str | None, str | None]


class Cluster:
    """Objects by name, and every change there was; what is older than `oldest` is forgotten."""

    def __init__(self) -> None:
        self.there: dict[str, ConfigMap] = {}
        self.changes: list[Change[ConfigMap]] = []
        self.version = 0
        self.oldest = 0
        self.failures: list[Exception] = []
        """What watches fail with, each after the changes that came before."""
        self.lists = 0
        self.since: list[str] = []
        self.is_new = asyncio.Event()

    def put(self, name: str) -> None:
        self.version += 1
        kind = "MODIFIED" if name in self.there else "ADDED"
        self.there[name] = _config_map(name, self.version)
        self._say(kind, self.there[name])

    def delete(self, name: str) -> None:
        if name in self.there:
            self.version += 1
            del self.there[name]
            self._say("DELETED", _config_map(name, self.version))

    def forget(self) -> None:
        """As a cluster that was compacted: nobody can go on from before."""
        self.version += 1
        self.oldest = self.version
        self.fail(Expired(410, Status(message="too old resource version")))

    def fail(self, failure: Exception) -> None:
        self.failures.append(failure)
        self._wake()

    def _say(self, kind: str, found: ConfigMap) -> None:
        self.changes.append(Change(type=kind, object=found))
        self._wake()

    def _wake(self) -> None:
        self.is_new.set()
        self.is_new = asyncio.Event()

    async def list(self, *_: Any, **__: Any) -> Listed[ConfigMap]:
        self.lists += 1
        await asyncio.sleep(0)
        return Listed(list(self.there.values()), str(self.version))

    async def watch(
        self, _kind: Any, since: str, *_: Any, **__: Any
    ) -> AsyncGenerator[Change[ConfigMap], None]:
        self.since.append(since)
        after = int(since)
        while True:
            if after < self.oldest:
                self.failures = [each for each in self.failures if not isinstance(each, Expired)]
                raise Expired(410, Status(message="too old resource version"))
            fresh = [each for each in self.changes if int(each.object.metadata.resource_version) > after]
            for change in fresh:
                after = int(change.object.metadata.resource_version)
                yield change
            if self.failures:
                raise self.failures.pop(0)
            if not fresh:
                await self.is_new.wait()


def _config_map(name: str, version: int) -> ConfigMap:
    return ConfigMap(metadata=Meta(name=name, namespace="here", resource_version=str(version)))


class Scene:
    """A mirror of a cluster, and what it told: versions before and after."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.told: list[Told] = []
        self.mirror = Mirror(cast(Api, self.cluster), CONFIG_MAPS, self._changed)

    def _changed(self, before: ConfigMap | None, now: ConfigMap | None) -> None:
        self.told.append((_version(before), _version(now)))

    @property
    def shown(self) -> dict[str, str]:
        return {name: item.metadata.resource_version for (_, name), item in self.mirror.items.items()}

    @property
    def true(self) -> dict[str, str]:
        return {name: item.metadata.resource_version for name, item in self.cluster.there.items()}

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0)


def _version(item: ConfigMap | None) -> str | None:
    return None if item is None else item.metadata.resource_version


def played(play: Callable[[Scene], Any]) -> Scene:
    async def run() -> Scene:
        scene = Scene()
        following = asyncio.create_task(scene.mirror.follow())
        try:
            await play(scene)
        finally:
            following.cancel()
        return scene

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mirror, "_PAUSE", 0.0)
        return asyncio.run(run())


def test_what_is_there_and_what_changes_is_told() -> None:
    async def play(scene: Scene) -> None:
        scene.cluster.put("a")
        await scene.until(lambda: scene.shown == scene.true)
        scene.cluster.put("a")
        scene.cluster.put("b")
        scene.cluster.delete("a")
        await scene.until(lambda: scene.shown == scene.true)

    scene = played(play)
    assert scene.told == [(None, "1"), ("1", "2"), (None, "3"), ("2", None)]
    assert scene.cluster.lists == 1
    found = scene.mirror.get("b", "here")
    assert found is not None
    assert found.metadata.name == "b"
    assert scene.mirror.get("a", "here") is None


def test_after_a_gap_only_the_differences_are_told() -> None:
    async def play(scene: Scene) -> None:
        for name in ("same", "gone", "changed", "another"):
            scene.cluster.put(name)
        await scene.until(lambda: scene.shown == scene.true)
        scene.told.clear()
        changes = scene.cluster.changes
        scene.cluster.changes = []
        scene.cluster.delete("gone")
        scene.cluster.put("changed")
        scene.cluster.delete("another")
        scene.cluster.put("another")
        scene.cluster.put("new")
        scene.cluster.delete("never seen")
        scene.cluster.changes = changes
        scene.cluster.forget()
        await scene.until(lambda: scene.shown == scene.true)

    scene = played(play)
    assert scene.cluster.lists == 2
    assert sorted(scene.told, key=str) == sorted([("2", None), ("3", "6"), ("4", "8"), (None, "9")], key=str)


@pytest.mark.parametrize("failure", [Unreachable("away"), ServerFault(500, Status(message="busy"))])
def test_a_watch_that_fails_goes_on_behind_the_last_change(failure: Exception) -> None:
    async def play(scene: Scene) -> None:
        scene.cluster.put("a")
        await scene.until(lambda: scene.shown == scene.true)
        scene.cluster.put("b")
        scene.cluster.fail(failure)
        await scene.until(lambda: len(scene.cluster.since) == 2)
        scene.cluster.put("c")
        await scene.until(lambda: scene.shown == scene.true)

    scene = played(play)
    assert (scene.cluster.lists, scene.cluster.since) == (1, ["1", "2"])
    assert scene.told == [(None, "1"), (None, "2"), (None, "3")]


def test_one_object_that_nobody_can_read_does_not_hide_the_others() -> None:
    async def play(scene: Scene) -> None:
        tell = scene.mirror._changed

        def stumble(before: ConfigMap | None, now: ConfigMap | None) -> None:
            if now is not None and now.metadata.name == "odd":
                raise ValueError("who would have thought of that")
            tell(before, now)

        scene.mirror._changed = stumble
        scene.cluster.put("a")
        await scene.until(lambda: scene.shown == scene.true)
        scene.cluster.put("odd")
        scene.cluster.put("b")
        await scene.until(lambda: (None, "3") in scene.told)

    assert played(play).told == [(None, "1"), (None, "3")]


def test_a_cluster_that_forgets_at_once_is_not_asked_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    pause = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await pause(0)

    async def run() -> None:
        cluster = Cluster()
        cluster.oldest = 1_000_000
        following = asyncio.create_task(
            Mirror(cast(Api, cluster), CONFIG_MAPS, lambda _before, _now: None).follow()
        )
        while len(cluster.since) < 5:
            await pause(0)
        following.cancel()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    asyncio.run(run())
    assert [each for each in slept if each][:4] == [0.5, 1.0, 2.0, 4.0]


events = some.lists(
    some.tuples(
        some.sampled_from(["put", "put", "delete", "forget", "fail", "look"]), some.sampled_from("abc")
    ),
    max_size=30,
)


@given(events=events)
def test_what_is_told_adds_up_to_what_is_there(events: list[tuple[str, str]]) -> None:
    async def play(scene: Scene) -> None:
        for event, name in events:
            if event in ("put", "delete"):
                getattr(scene.cluster, event)(name)
            elif event == "forget":
                scene.cluster.forget()
            elif event == "fail":
                scene.cluster.fail(Unreachable("away"))
            else:
                await asyncio.sleep(0)
        await scene.until(lambda: scene.shown == scene.true)

    scene = played(play)
    alive: list[str] = []
    for before, now in scene.told:
        if before is not None:
            alive.remove(before)  # Nothing goes that did not come, nor twice.
        if now is not None:
            alive.append(now)
    assert sorted(alive) == sorted(scene.true.values())
