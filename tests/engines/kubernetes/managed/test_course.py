"""The course of an attempt: what comes next, whatever pods, nodes and people do meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobman.engines.kubernetes.managed import course
from jobman.engines.kubernetes.managed.course import Scene, Step, Stop, next_step, reason_to_stop, verdict
from jobman.engines.kubernetes.objects import Condition, Pod, Waiting
from tests.engines.kubernetes.managed.pods_of import a_pod


def a_scene(*pods: Pod, copies: int | None = None, **given: Any) -> Scene:
    return Scene(copies or len(pods), dict(enumerate(pods)), **given)


def decided(scene: Scene) -> Scene:
    """A scene with the stop that follows from it."""
    return scene if scene.stop else scene._replace(stop=reason_to_stop(scene))


GONE = "a pod of it is gone, and nobody knows how it ended"
RUNS = a_pod(started=0)
GATED = a_pod(gated=True)


@pytest.mark.parametrize(
    ("scene", "step"),
    [
        (a_scene(copies=2), Step.MAKE),
        (a_scene(GATED, copies=2), Step.MAKE),
        (a_scene(GATED, GATED), Step.RELEASE),
        (a_scene(a_pod(), GATED), Step.RELEASE),
        (a_scene(RUNS, a_pod(started=0, code=0)), Step.WAIT),
        (a_scene(a_pod(started=0, code=0), a_pod(started=0, code=0)), Step.CONCLUDE),
        (a_scene(a_pod(started=0, code=1), RUNS), Step.STOP),
        (a_scene(a_pod(started=0, code=1), a_pod(started=0, code=143, ended=3, deleted=1)), Step.CONCLUDE),
        (a_scene(RUNS, copies=2), Step.STOP),
        (a_scene(RUNS, lost={0: "its node is gone"}), Step.CONCLUDE),
        (a_scene(RUNS, RUNS, lost={0: "its node is gone"}), Step.STOP),
        (a_scene(copies=2, stop=Stop("")), Step.CONCLUDE),
        (a_scene(GATED, copies=2, stop=Stop("")), Step.STOP),
        (a_scene(a_pod(gated=True, deleted=0), copies=2, stop=Stop("")), Step.CONCLUDE),
        (a_scene(a_pod(deleted=0), stop=Stop("")), Step.STOP),
    ],
)
def test_what_comes_next(scene: Scene, step: Step) -> None:
    assert next_step(decided(scene)) is step


@pytest.mark.parametrize(
    ("scene", "reason", "words"),
    [
        (a_scene(RUNS), None, ""),
        (a_scene(GATED, GATED), None, ""),
        (a_scene(RUNS, copies=2), "node-lost", GONE),
        (
            a_scene(GATED, copies=2, released=True),
            "node-lost",
            GONE,
        ),
        (a_scene(GATED, copies=2), None, ""),
        (a_scene(RUNS, a_pod(gated=True, deleted=5)), "preempted", "somebody else deleted its pod"),
        (a_scene(a_pod(gated=True, deleted=5)), "preempted", "somebody else deleted its pod"),
        (a_scene(a_pod(started=0, deleted=5)), "preempted", "somebody else deleted its pod"),
        (
            a_scene(a_pod(started=0, deleted=5, taken_by="DeletionByTaintManager")),
            "node-lost",
            "its node was lost, or does not take it any more",
        ),
        (a_scene(RUNS, lost={0: "its node n1 restarted"}), "node-lost", "its node n1 restarted"),
        (a_scene(RUNS, a_pod(started=0, code=7)), "exit", ""),
    ],
)
def test_why_the_others_are_stopped(scene: Scene, reason: str | None, words: str) -> None:
    found = reason_to_stop(scene)
    assert (found and found.reason, found.message if found else "") == (reason, words)


def test_a_pod_that_is_deleted_before_it_has_a_node_does_not_count_as_a_failure_of_its_command() -> None:
    scene = decided(a_scene(GATED, a_pod(gated=True, deleted=5)))
    gone = scene._replace(pods={0: a_pod(gated=True, deleted=6), 1: scene.pods[1]})
    assert next_step(scene) is Step.STOP
    assert next_step(gone) is Step.CONCLUDE
    assert (verdict(gone).reason, verdict(gone).message) == ("preempted", "somebody else deleted its pod")


def test_the_first_copy_that_failed_by_itself_tells_how_all_ended() -> None:
    late = a_pod(started=0, code=9, ended=8)
    early = a_pod(started=0, code=7, ended=5)
    stopped = a_pod(started=0, code=143, ended=7, deleted=6)
    end = verdict(decided(a_scene(late, stopped, early)))
    assert (end.reason, end.exit_code, end.message) == ("exit", 7, "copy 2 on n1: ended with exit code 7")


def test_a_deleted_pod_has_not_succeeded_though_its_command_says_so() -> None:
    end = verdict(decided(a_scene(a_pod(started=0, code=0, ended=12, deleted=10))))
    assert (end.reason, end.exit_code) == ("preempted", 0)


def test_a_pod_that_succeeded_and_was_deleted_long_after_has_succeeded() -> None:
    scene = decided(a_scene(a_pod(started=0, code=0, ended=12, deleted=20)))
    assert (next_step(scene), verdict(scene).reason) == (Step.CONCLUDE, "")


@pytest.mark.parametrize(("code", "known"), [(0, True), (3, True), (143, True), (137, None), (143, None)])
def test_a_deleted_pod_is_taken_away_though_its_node_was_done_with_it_long_after(
    code: int, known: bool | None
) -> None:
    pod = a_pod(started=0, code=code, ended=12, deleted=10, done=15, known=known)
    assert verdict(decided(a_scene(pod))).reason == "preempted"


@pytest.mark.parametrize(
    ("code", "known", "reason"),
    [(0, False, ""), (137, False, "signal"), (3, False, "exit"), (3, None, "exit")],
)
def test_a_pod_that_was_deleted_after_its_end_ended_by_itself(
    code: int, known: bool | None, reason: str
) -> None:
    # Who deletes what is over gives no grace.
    pod = a_pod(started=0, code=code, ended=12, deleted=14, done=14, known=known)
    assert verdict(decided(a_scene(pod))).reason == reason


@pytest.mark.parametrize("said", ["Unknown", "ContainerStatusUnknown"])
def test_what_a_node_that_restarted_says_of_its_containers_is_no_failure_of_theirs(said: str) -> None:
    pod = a_pod(started=0, code=255, ended=12)
    ended = pod.status.container_statuses[0].state.terminated
    assert ended is not None
    ended.reason = said
    end = verdict(decided(a_scene(pod)))
    assert (end.reason, end.message) == ("node-lost", "its node does not know what became of it")


def test_what_succeeded_before_its_node_was_lost_has_succeeded() -> None:
    scene = decided(a_scene(a_pod(started=0, code=0, ended=12), lost={0: "its node is gone"}))
    assert (scene.stop, verdict(scene).reason) == (None, "")


def test_a_stop_that_control_asked_for_tells_how_the_copies_took_it() -> None:
    well = a_pod(started=0, code=0, ended=12, deleted=10)
    killed = a_pod(started=0, code=137, ended=40, deleted=10)
    assert verdict(a_scene(well, well, stop=Stop("")))[:3] == ("", 0, None)
    assert verdict(a_scene(well, killed, stop=Stop("")))[:3] == ("signal", 137, 9)
    assert verdict(a_scene(copies=2, stop=Stop("")))[:3] == ("signal", 143, 15)


def test_who_has_no_more_time_has_not_succeeded() -> None:
    end = verdict(a_scene(a_pod(started=0, code=0, ended=12, deleted=10), stop=Stop("timeout", "too long")))
    assert (end.reason, end.message) == ("timeout", "too long")


def test_a_pod_that_can_never_start_says_why() -> None:
    pod = a_pod()
    pod.status.container_statuses[0].state.waiting = Waiting(reason="ErrImagePull", message="no such image")
    pod.status.container_statuses[0].image = "nobody:1"
    assert course.stuck(pod) == "nobody:1: no such image"
    assert course.stuck(RUNS) == ""


def test_the_scheduler_says_why_a_pod_has_no_node() -> None:
    pod = a_pod(node="")
    pod.status.conditions = [Condition(type="PodScheduled", status="False", message="no node is free")]
    assert course.unbound(pod) == "no node is free"
    assert course.unbound(RUNS) == ""


# -- everything at once --------------------------------------------------------------------------------------


class Copy:
    """A pod as it really is."""

    def __init__(self, made: int, *, is_gated: bool) -> None:
        self.life = made
        self.is_gated = is_gated
        self.is_bound = False
        self.started: int | None = None
        self.code: int | None = None
        self.ended = 0
        self.by_itself = False
        """Whether nobody had deleted it when it ended."""
        self.deleted: int | None = None
        self.done: int | None = None

    @property
    def runs(self) -> bool:
        return self.started is not None and self.code is None

    @property
    def succeeded_by_itself(self) -> bool:
        return self.code == 0 and self.by_itself

    def shown(self, *, tells_generations: bool) -> Pod:
        pod = a_pod(
            gated=self.is_gated,
            node="n1" if self.is_bound else "",
            started=self.started,
            code=self.code,
            ended=self.ended,
            deleted=self.deleted,
            done=self.done,
            known=self.code is not None and not self.by_itself if tells_generations else None,
        )
        pod.metadata.uid = str(self.life)
        return pod


class World:
    """A cluster, somebody who looks at it late, and what is done next each time."""

    def __init__(self, copies: int, *, tells_generations: bool) -> None:
        self.copies = copies
        self.tells_generations = tells_generations
        self.time = 0
        self.there: dict[int, Copy] = {}
        self.created: set[int] = set()
        self.scene = Scene(copies, {})
        self.was_released = False
        self.has_begun: set[int] = set()
        self.vanished = False
        self.steps: list[Step] = []

    # -- what happens to pods ----------------------------------------------------------------------------

    def bind(self, copy: int) -> None:
        pod = self.there.get(copy)
        if pod and not pod.is_gated and pod.deleted is None:
            pod.is_bound = True

    def start(self, copy: int) -> None:
        pod = self.there.get(copy)
        if pod and pod.is_bound and pod.started is None and pod.code is None and pod.deleted is None:
            pod.started = self.time
            assert copy not in self.has_begun, "a copy runs twice"
            self.has_begun.add(copy)

    def succeed(self, copy: int) -> None:
        self._end(copy, 0)

    def fail(self, copy: int) -> None:
        self._end(copy, 3)

    def _end(self, copy: int, code: int) -> None:
        pod = self.there.get(copy)
        if pod and pod.is_bound and pod.code is None and (pod.started is not None or pod.deleted is not None):
            pod.code, pod.ended = (143 if pod.started is None else code), self.time
            pod.by_itself = pod.deleted is None

    def delete(self, copy: int) -> None:
        pod = self.there.get(copy)
        if pod and pod.deleted is None:
            pod.deleted = self.time

    def obey(self, copy: int) -> None:
        """Somebody deletes it, and it ends well before anybody looks."""
        self.delete(copy)
        self.succeed(copy)
        self.see(copy)

    def clear(self, copy: int) -> None:
        """Its node is done with what was deleted; what is written of it then tells less of when that was."""
        pod = self.there.get(copy)
        if pod and pod.deleted is not None and pod.code is not None and self.tells_generations:
            pod.done = self.time

    def vanish(self, copy: int) -> None:
        """Somebody takes it away with force, with all that should keep it."""
        if self.there.pop(copy, None):
            self.vanished = True

    def lose(self, copy: int) -> None:
        pod = self.there.get(copy)
        if pod and pod.is_bound:
            self.scene = self.scene._replace(lost={**self.scene.lost, copy: "its node is gone"})

    def back(self, copy: int) -> None:
        left = {each: words for each, words in self.scene.lost.items() if each != copy}
        self.scene = self.scene._replace(lost=left)

    # -- what is done ------------------------------------------------------------------------------------

    def tick(self, copy: int) -> None:
        del copy
        self.time += 1

    def see(self, copy: int) -> None:
        seen = dict(self.scene.pods)
        if copy in self.there:
            seen[copy] = self._shown(self.there[copy])
        elif seen.pop(copy, None) is not None:
            self.created.discard(copy)
        self.scene = self.scene._replace(pods=seen)
        self.scene = self.scene._replace(released=course.is_released(self.scene))

    def _shown(self, pod: Copy) -> Pod:
        return pod.shown(tells_generations=self.tells_generations)

    def stop(self, copy: int) -> None:
        del copy
        if self.scene.stop is None:
            self.scene = self.scene._replace(stop=Stop(""))

    def restart(self, copy: int) -> None:
        """Another service goes on: it knows what the cluster shows, and what was written down."""
        del copy
        if self.vanished and self.was_released and not self.has_begun:
            return  # Nothing would tell it that there was more.
        asked = self.scene.stop if self.scene.stop == Stop("") else None
        self.created = set()
        seen = {each: self._shown(pod) for each, pod in self.there.items()}
        self.scene = Scene(self.copies, seen, asked, bool(self.has_begun), self.scene.lost)
        self.scene = self.scene._replace(released=course.is_released(self.scene))

    def too_late(self) -> None:
        """The cluster has only so much time to show what was made."""
        if not self.scene.is_complete and self.scene.stop is None:
            self.scene = self.scene._replace(stop=Stop("preempted", "it could not be started"))

    def advance(self, copy: int) -> None:
        del copy
        self.scene = decided(self.scene)
        step = next_step(self.scene)
        self.steps.append(step)
        getattr(self, f"_{step}")()

    def _make(self) -> None:
        missing = set(range(self.copies)) - set(self.scene.pods) - self.created
        is_awaited = self.copies == 1 and not missing
        assert is_awaited or not self.was_released, "a pod is made after others were let go"
        for copy in missing:
            self.there.setdefault(copy, Copy(self.time, is_gated=self.copies > 1))
        self.created |= missing
        # One that is alone has no gate.
        self.was_released = self.copies == 1

    def _release(self) -> None:
        assert set(self.scene.pods) == set(range(self.copies)), "some are let go before all are there"
        self.was_released = True
        self.scene = self.scene._replace(released=True)
        for copy, pod in self.scene.pods.items():
            there = self.there.get(copy)
            if there is not None and str(there.life) == pod.metadata.uid:
                there.is_gated = False

    def _wait(self) -> None:
        pass

    def _stop(self) -> None:
        for copy in self.scene.unfinished:
            self.delete(copy)

    def _conclude(self) -> None:
        if self.copies == 1 and not self.scene.pods and self.there:
            # Before the end of one without a gate is told, the cluster is asked whether it is there.
            self.see(0)
            self.steps.pop()
            return
        for copy, pod in self.there.items():
            if copy not in self.scene.pods:
                assert pod.is_gated, "a pod was let go that nobody has seen"
            elif copy not in self.scene.lost:
                assert not pod.runs, "something runs on"
                assert not (pod.is_bound and pod.code is None), "something may still start"
        end = verdict(self.scene)
        if not end.reason and self.scene.stop != Stop(""):
            assert len(self.there) == self.copies or self.vanished
            assert all(pod.succeeded_by_itself for pod in self.there.values()), (
                "one did not succeed by itself"
            )
        if self.scene.stop is None:
            assert not end.reason, "what succeeded is said to have failed"


EVENTS = [
    *("bind", "start", "succeed", "fail", "delete", "obey", "clear", "vanish", "lose", "back"),
    *("see", "see", "see", "advance", "advance", "advance", "tick", "stop", "restart"),
]
BEGINNING = ["advance", "see", "advance", "bind", "see", "start", "see"]
"""How it goes where nothing interferes: each for all copies."""
histories = some.lists(some.tuples(some.sampled_from(EVENTS), some.integers(0, 2)), max_size=40)


def begun(copies: int, turns: int, tells_generations: bool) -> World:
    """A world in which all went well for so many turns."""
    world = World(copies, tells_generations=tells_generations)
    for event in BEGINNING[:turns]:
        for copy in range(1 if event == "advance" else copies):
            getattr(world, event)(copy)
    return world


worlds = some.builds(begun, some.integers(1, 3), some.integers(0, len(BEGINNING)), some.booleans())


@given(world=worlds, history=histories)
def test_no_gang_is_let_go_by_half_none_runs_twice_and_none_succeeds_that_did_not(
    world: World, history: list[tuple[str, int]]
) -> None:
    for event, number in history:
        getattr(world, event)(number % world.copies)
        if world.steps and world.steps[-1] is Step.CONCLUDE:
            break


@given(world=worlds, history=histories, ends_well=some.booleans())
def test_an_attempt_comes_to_an_end_once_everybody_leaves_it_alone(
    world: World, history: list[tuple[str, int]], *, ends_well: bool
) -> None:
    for event, number in history:
        getattr(world, event)(number % world.copies)
    for turn in range(12):
        if turn == 6:
            world.too_late()
        if world.steps and world.steps[-1] is Step.CONCLUDE:
            return
        for event in ("bind", "start", "succeed" if ends_well else "fail", "see"):
            for copy in range(world.copies):
                getattr(world, event)(copy)
        world.tick(0)
        world.advance(0)
    assert world.steps[-1] is Step.CONCLUDE
