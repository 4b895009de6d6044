"""Real faults of a real node: what is said of it, and what becomes of what ran there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.engines import base
from jobman.engines.kubernetes.managed import nodes, releasing
from jobman.engines.kubernetes.managed.nodes import Pool
from tests.engines.kubernetes.cluster import kubectl, on_a_real_cluster
from tests.engines.kubernetes.managed.frail import DEVICE, POOL, Frail, a_frail_node
from tests.engines.kubernetes.managed.ground import eventually

pytestmark = [on_a_real_cluster, pytest.mark.slow]


@pytest.fixture
def frail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Frail]:
    monkeypatch.setattr(nodes, "_AWAY", 6.0)
    with a_frail_node(tmp_path, lost_after=3.0) as made:
        yield made


def test_a_node_that_does_not_answer_is_suspect_then_down_and_what_ran_there_is_lost(frail: Frail) -> None:
    ground, order = frail.ground, frail.running("sleep 600; true")
    frail.stop()
    over = ground.over(order)
    assert (over.reason, over.message) == ("node-lost", f"its node {frail.name} does not answer any more")
    assert frail.until_it_is("down").reason == f"node {frail.name} does not answer"
    assert frail.states == ["up", "suspect", "down"]
    ground.settle(order)
    eventually(lambda: not ground.pods(order), "that its pod is gone, though its node does not answer")
    assert frail.runs
    frail.start()
    frail.until_it_is("up")
    eventually(lambda: not frail.runs, "the end of what nobody wants any more")
    assert frail.ran == ["ran"]
    assert len(ground.heard(order, base.Over)) == 1


def test_a_kubelet_that_is_restarted_changes_nothing(frail: Frail) -> None:
    ground, order = frail.ground, frail.running("for i in $(seq 30); do echo $i; sleep 0.5; done")
    frail.stop()
    frail.start()
    eventually(lambda: "25" in ground.out(order).split(), "what it writes later, while it runs")
    assert not ground.heard(order, base.Over)
    over = ground.over(order)
    assert (over.reason, over.notes) == ("", ())
    assert ground.out(order).split() == [str(number) for number in range(1, 31)]
    assert len(ground.heard(order, base.Running)) == 1
    assert frail.ran == ["ran"]


def test_a_node_that_comes_back_in_time_has_kept_what_it_ran(tmp_path: Path) -> None:
    with a_frail_node(tmp_path, lost_after=300.0) as frail:
        ground, order = frail.ground, frail.running("until test -e /ledger/go; do sleep 0.2; done; echo gone")
        frail.stop()
        frail.until_it_is("suspect")
        frail.tell("go")
        eventually(lambda: not frail.runs, "its end, which nobody hears of")
        assert not ground.heard(order, base.Over)
        frail.start()
        assert ground.over(order).reason == ""
        assert (ground.out(order), frail.ran) == ("gone\n", ["ran"])
        frail.until_it_is("up")


def test_a_gang_that_loses_a_node_is_lost_as_a_whole(tmp_path: Path) -> None:
    anywhere = Pool(tolerations=POOL.tolerations)
    with a_frail_node(tmp_path, lost_after=2.0, pool=anywhere) as frail:
        ground, order = frail.ground, frail.running("sleep 600; true", beside=frail.ground.nodes[:1])
        frail.stop()
        over = ground.over(order)
        assert (over.reason, over.exit_code) == ("node-lost", None)
        words = f"copy 1 on {frail.name}: its node {frail.name} does not answer any more"
        assert over.message == words
        phases = [pod["status"]["phase"] for pod in ground.pods(order)]
        assert phases == ["Failed", "Running"]
        assert frail.ran == ["ran", "ran"]


def test_what_ran_on_a_node_that_restarts_is_lost_and_not_run_again(tmp_path: Path) -> None:
    with a_frail_node(tmp_path, lost_after=300.0) as frail:
        ground, order = frail.ground, frail.running("trap 'exit 0' TERM; while true; do sleep 0.1; done")
        frail.reboot()
        over = ground.over(order)
        assert (over.reason, over.message) == ("node-lost", f"its node {frail.name} restarted")
        ground.settle(order)
        frail.until_it_is("up")
        eventually(lambda: not ground.pods(order), "that its pod is gone")
        assert not frail.runs
        assert frail.ran == ["ran"]


def test_a_node_that_restarts_while_nobody_looks_has_lost_what_ran_there(tmp_path: Path) -> None:
    with a_frail_node(tmp_path, lost_after=300.0) as frail:
        ground, order = frail.ground, frail.running("sleep 600; true")
        ground.wait(ground.engine.close())
        frail.reboot()
        eventually(lambda: ground.pods(order)[0]["status"]["phase"] == "Failed", "that its node says so")
        ground.open(order)
        over = ground.over(order)
        assert over.reason == "node-lost"
        assert frail.ran == ["ran"]


def test_what_ended_before_its_node_restarted_has_ended_so(frail: Frail) -> None:
    ground, order = frail.ground, frail.running("exit 0")
    assert ground.over(order).reason == ""
    ground.wait(ground.engine.close())
    frail.reboot()
    ground.open(order)
    assert ground.over(order).reason == ""
    assert frail.ran == ["ran"]


def test_a_node_that_is_cordoned_takes_nothing_and_keeps_what_it_has(frail: Frail) -> None:
    ground, order = frail.ground, frail.running("sleep 8; echo done")
    kubectl("cordon", frail.name)
    assert frail.until_it_is("drained").reason == f"node {frail.name} is cordoned"
    late = ground.run(frail.order("true"))
    assert (late.reason, late.message, late.started_at) == (
        "preempted",
        f"node {frail.name} is cordoned",
        None,
    )
    assert ground.over(order).reason == ""
    kubectl("uncordon", frail.name)
    frail.until_it_is("up")
    assert frail.ran == ["ran"]


def test_a_gang_starts_as_a_whole_though_a_node_is_cordoned_while_its_gates_come_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_frail_node(tmp_path, lost_after=300.0, pool=Pool(tolerations=POOL.tolerations)) as frail:

        def cordon(name: str) -> None:
            if name == "release.all-seen":
                kubectl("cordon", frail.name)

        monkeypatch.setattr(releasing, "failpoint", cordon)
        order = frail.running("until test -e /ledger/go; do sleep 0.2; done", beside=frail.ground.nodes[:1])
        frail.until_it_is("drained")
        frail.tell("go")
        assert frail.ground.over(order).reason == ""
        assert frail.ran == ["ran", "ran"]
        kubectl("uncordon", frail.name)
        frail.until_it_is("up")


def test_what_ran_on_a_node_that_is_deleted_is_lost(frail: Frail) -> None:
    ground, order = frail.ground, frail.running("sleep 600; true")
    kubectl("delete", "node", frail.name)
    over = ground.over(order)
    assert (over.reason, over.message) == ("node-lost", f"its node {frail.name} is gone")
    assert frail.until_it_is("down").reason == f"node {frail.name} is gone"
    ground.settle(order)
    eventually(lambda: not ground.pods(order), "that its pod is gone")
    frail.stop()
    frail.start()
    frail.until_it_is("up")
    eventually(lambda: not frail.runs, "the end of what nobody wants any more")
    assert frail.ran == ["ran"]


def test_a_device_that_is_lost_is_taken_until_it_is_back(frail: Frail) -> None:
    def known(number: int) -> bool:
        return frail.seen[-1].foreign.get(DEVICE, 0) == number

    frail.devices(2)
    eventually(lambda: frail.seen[-1].node.amounts.get(DEVICE) == 2, "its devices")
    frail.devices(1)
    eventually(lambda: known(1), "that one is lost")
    assert frail.seen[-1].node.amounts[DEVICE] == 2
    frail.devices(2)
    eventually(lambda: known(0), "that it is back")
    frail.devices(0)
