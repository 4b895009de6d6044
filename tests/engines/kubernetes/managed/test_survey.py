"""The survey of nodes: what is told of them, when, and what is given up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from jobman.engines import base
from jobman.engines.kubernetes.api import Api, Listed
from jobman.engines.kubernetes.kinds import NODES
from jobman.engines.kubernetes.managed import nodes
from jobman.engines.kubernetes.managed.nodes import Pool
from jobman.engines.kubernetes.managed.survey import Survey
from jobman.engines.kubernetes.objects import (
    Change,
    Condition,
    Container,
    Meta,
    Node,
    NodeInfo,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    Resources,
    Taint,
)

FPGA = "example.org/fpga"


def a_node(
    name: str = "n1", *, away: float | None = None, boot: str = "a", fpgas: int = 0, **spec: Any
) -> Node:
    """A node that answers, or is `away` since so many seconds."""
    ready = Condition(type="Ready", status="True")
    if away is not None:
        since = datetime.fromtimestamp(time.time() - away, UTC)
        ready = Condition(type="Ready", status="Unknown", last_transition_time=since)
    allocatable: dict[str, str | int | float] = {"cpu": "4", "memory": "8Gi"}
    if fpgas:
        allocatable[FPGA] = fpgas
    return Node(
        metadata=Meta(name=name, labels={"pool": "jobs"}),
        spec=NodeSpec(**spec),
        status=NodeStatus(allocatable=allocatable, conditions=[ready], node_info=NodeInfo(boot_id=boot)),
    )


class Cluster:
    """Nodes, and those who are told of them."""

    def __init__(self, *found: Node) -> None:
        self.version = 1
        self.nodes = {each.metadata.name: self._numbered(each) for each in found}
        self.news: asyncio.Queue[Change[Node]] = asyncio.Queue()
        self.patches: list[dict[str, Any]] = []

    def _numbered(self, node: Node) -> Node:
        self.version += 1
        node.metadata.resource_version = str(self.version)
        return node

    def put(self, node: Node) -> None:
        self.news.put_nowait(Change(type="MODIFIED", object=self._numbered(node)))

    def delete(self, node: Node) -> None:
        self.news.put_nowait(Change(type="DELETED", object=self._numbered(node)))

    async def list(self, kind: Any, *_: Any, **__: Any) -> Listed[Any]:
        return Listed(list(self.nodes.values()) if kind is NODES else [], "1")

    async def watch(self, kind: Any, *_: Any, **__: Any) -> AsyncGenerator[Change[Node], None]:
        while kind is NODES:
            yield await self.news.get()
        await asyncio.Event().wait()

    async def merge_patch(self, _kind: Any, name: str, patch: dict[str, Any]) -> None:
        self.patches.append({name: patch})


class Scene:
    """A survey that is alive, and what it told."""

    def __init__(self, *found: Node, **given: Any) -> None:
        self.cluster = Cluster(*found)
        self.survey = Survey(cast(Api, self.cluster), Pool(labels={"pool": "jobs"}), **given)
        self.told: list[base.NodeSeen] = []
        self.looks = 0

    def _report(self, news: base.News) -> None:
        assert isinstance(news, base.NodesChanged)
        self.told += news.nodes

    def _look(self, names: Collection[str]) -> None:
        assert set(names) <= {"n1", "ours", "theirs"}
        self.looks += 1

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(each.state, each.reason) for each in self.told]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(15):
            while not holds():
                await asyncio.sleep(0.01)

    async def has_told(self, number: int) -> None:
        await self.until(lambda: len(self.told) == number)

    async def run(self, play: Callable[[Scene], Any]) -> None:
        await self.survey.fill()
        following = asyncio.create_task(self.survey.follow(self._report, self._look))
        try:
            await play(self)
            assert not following.done()
        finally:
            following.cancel()


def played(scene: Scene, play: Callable[[Scene], Any]) -> Scene:
    asyncio.run(scene.run(play))
    return scene


def test_a_suspect_node_is_down_when_its_time_is_up_though_nobody_says_anything_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nodes, "_AWAY", 0.5)

    async def play(scene: Scene) -> None:
        await scene.until(lambda: len(scene.told) == 2)

    words = "node n1 does not answer"
    assert played(Scene(a_node(away=0)), play).states == [("suspect", words), ("down", words)]


def test_what_runs_on_a_node_that_does_not_answer_is_given_up_in_time() -> None:
    async def play(scene: Scene) -> None:
        await scene.until(lambda: bool(scene.told))
        looks = scene.looks
        assert scene.survey.lost("n1") == ""
        await scene.until(lambda: scene.looks > looks)
        assert scene.survey.lost("n1") == "its node n1 does not answer any more"

    played(Scene(a_node(away=0), lost_after=0.7), play)


def test_a_node_that_answers_again_is_up_and_nothing_of_it_is_lost() -> None:
    async def play(scene: Scene) -> None:
        await scene.until(lambda: len(scene.told) == 1)
        scene.cluster.put(a_node())
        await scene.until(lambda: len(scene.told) == 2)
        assert (scene.survey.lost("n1"), scene.survey.closed("n1")) == ("", "")

    assert [state for state, _ in played(Scene(a_node(away=0), lost_after=300), play).states] == [
        "suspect",
        "up",
    ]


def test_a_node_that_is_gone_is_down_and_what_ran_there_is_lost() -> None:
    async def play(scene: Scene) -> None:
        await scene.until(lambda: len(scene.told) == 1)
        scene.cluster.delete(a_node())
        await scene.until(lambda: len(scene.told) == 2)
        assert scene.survey.lost("n1") == "its node n1 is gone"
        assert scene.survey.closed("n1") == "there is no node n1"
        scene.cluster.put(a_node(boot="b"))
        await scene.until(lambda: len(scene.told) == 3)
        assert (scene.survey.lost("n1"), scene.survey.boot_of("n1")) == ("", "b")

    told = played(Scene(a_node()), play).states
    assert told == [("up", ""), ("down", "node n1 is gone"), ("up", "")]


def test_a_node_that_leaves_the_pool_is_down_for_us_but_what_runs_there_is_not_lost() -> None:
    async def play(scene: Scene) -> None:
        await scene.until(lambda: len(scene.told) == 1)
        elsewhere = a_node()
        elsewhere.metadata.labels = {"pool": "web"}
        scene.cluster.put(elsewhere)
        await scene.until(lambda: len(scene.told) == 2)
        assert scene.survey.lost("n1") == ""

    assert [state for state, _ in played(Scene(a_node()), play).states] == ["up", "down"]


def test_a_node_that_is_out_of_service_is_lost_at_once() -> None:
    async def play(scene: Scene) -> None:
        taint = Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")
        scene.cluster.put(a_node(away=1, taints=[taint]))
        await scene.until(lambda: scene.survey.lost("n1") != "")
        assert scene.survey.lost("n1") == "its node n1 is out of service"

    played(Scene(a_node()), play)


def test_a_device_that_failed_counts_as_used_by_others_until_it_is_back() -> None:
    async def play(scene: Scene) -> None:
        for fpgas in (1, 2):
            await scene.has_told(fpgas)
            scene.cluster.put(a_node(fpgas=fpgas))
        await scene.until(lambda: len(scene.told) == 3)

    told = played(Scene(a_node(fpgas=2)), play).told
    assert [each.node.amounts[FPGA] for each in told] == [2, 2, 2]
    assert [each.foreign for each in told] == [{}, {FPGA: 1.0}, {}]


def test_what_others_use_is_told_and_what_is_ours_is_not() -> None:
    def pod(name: str) -> Pod:
        wants = Container(resources=Resources(requests={"cpu": "2"}))
        return Pod(metadata=Meta(name=name), spec=PodSpec(node_name="n1", containers=[wants]))

    async def play(scene: Scene) -> None:
        await scene.until(lambda: len(scene.told) == 1)
        scene.survey.pod_changed(None, pod("theirs"), is_ours=False)
        scene.survey.pod_changed(None, pod("ours"), is_ours=True)
        await scene.until(lambda: len(scene.told) == 2)
        scene.survey.pod_changed(pod("theirs"), None, is_ours=False)
        await scene.until(lambda: len(scene.told) == 3)

    assert [each.foreign for each in played(Scene(a_node()), play).told] == [{}, {"core": 2.0}, {}]


def test_a_node_is_closed_by_us_once_and_opened_only_if_we_closed_it() -> None:
    async def play(scene: Scene) -> None:
        await scene.survey.drain("n1", drained=True)
        await scene.survey.drain("theirs", drained=True)
        await scene.survey.drain("theirs", drained=False)
        await scene.survey.drain("ours", drained=False)
        await scene.survey.drain("nowhere", drained=True)

    ours = a_node("ours", unschedulable=True)
    ours.metadata.annotations = {nodes.DRAINED: "yes"}
    scene = played(Scene(a_node(), a_node("theirs", unschedulable=True), ours), play)
    marks = [(name, patch["spec"]) for each in scene.cluster.patches for name, patch in each.items()]
    assert marks == [("n1", {"unschedulable": True}), ("ours", {"unschedulable": None})]
