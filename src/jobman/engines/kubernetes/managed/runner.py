"""The runner: takes every attempt through its course, one step of each at a time.

It is told what the watches show, looks at what is to be done next, does it, and says what has become of it.
Steps that fail because the cluster is busy or away are tried again; nothing is concluded from silence.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterator
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, Protocol

from jobman.engines import base
from jobman.engines.failpoints import failpoint
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.endings import Ending, is_over, result, too_long
from jobman.engines.kubernetes.errors import (
    Conflict,
    Expired,
    Forbidden,
    KubernetesError,
    ServerFault,
    TooMany,
    Unauthorized,
    Unreachable,
)
from jobman.engines.kubernetes.kinds import EVENTS
from jobman.engines.kubernetes.managed import course, names
from jobman.engines.kubernetes.managed.attempt import Attempt, output_path
from jobman.engines.kubernetes.managed.collecting import FOLLOWED, Collector
from jobman.engines.kubernetes.managed.course import Scene, Step, Stop
from jobman.engines.kubernetes.managed.releasing import Releaser
from jobman.engines.kubernetes.objects import Event, Pod
from jobman.engines.kubernetes.pods import MAIN
from jobman.engines.kubernetes.services import port_numbers
from jobman.engines.kubernetes.target import CannotCompile

log = logging.getLogger("jobman.kubernetes")
WORKERS = 16
_PASSING = (Unreachable, TooMany, ServerFault, Unauthorized, Expired, Conflict)
"""What a cluster says that will think otherwise in a while."""
_FORBIDDEN = 30.0
"""Seconds after which a right that is missing is believed to be."""
_NOT_READY = "not yet ready"
_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_AGAIN = 1.0
"""Seconds after which output is followed anew whose stream ended before its container."""


class Ground(Protocol):
    """What the runner wants to know of nodes."""

    def boot_of(self, node: str) -> str:
        """The id of the life of a node, which a restart ends."""

    def lost(self, node: str) -> str:
        """What has become of a node that does not come back as it was; empty where it may."""

    def closed(self, node: str) -> str:
        """Why a node would take no pod now; empty where it would."""


class Limits:
    """How long the cluster may take for its part of a start."""

    def __init__(self, bind: float = 60.0, start: float = 600.0) -> None:
        self.bind = bind
        """Seconds until all pods of an attempt have their nodes."""
        self.start = start
        """Seconds until their commands run: images take their time."""


class Runner:
    """All attempts that are not over."""

    def __init__(self, api: Api, releaser: Releaser, jobs: Path, ground: Ground, limits: Limits) -> None:
        self.attempts: dict[base.Address, Attempt] = {}
        self.over: dict[base.Address, Attempt] = {}
        """Attempts whose end was told, until it is written down."""
        self.report: Callable[[base.News], None] = lambda _news: None
        self._api = api
        self._releaser = releaser
        self._jobs = jobs
        self._ground = ground
        self._limits = limits
        self._by_name: dict[str, Attempt] = {}
        self._by_job: defaultdict[str, dict[base.Address, Attempt]] = defaultdict(dict)
        self._dirty: asyncio.PriorityQueue[tuple[bool, int, Attempt]] = asyncio.PriorityQueue()
        self._entries = count()
        """Numbers for those who wait to be looked at, so that they are served in their order."""
        self._marked: set[base.Address] = set()
        self._busy: set[base.Address] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._following = asyncio.Semaphore(FOLLOWED)
        self._last_bound = 0.0
        """When the cluster last found a node for anything of ours."""

    # -- life ----------------------------------------------------------------------------------------

    def start(self, report: Callable[[base.News], None]) -> None:
        self.report = report
        for _ in range(WORKERS):
            self.spawn(self._work())

    async def close(self) -> None:
        self.report = lambda _news: None
        for attempt in self.attempts.values():
            if attempt.timer is not None:
                attempt.timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something beside everything else."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("something went wrong in the engine of the cluster", exc_info=error)

    # -- what it is told -------------------------------------------------------------------------------

    def take_up(self, order: base.Order, *, is_new: bool) -> Attempt:
        """Begin with an attempt, or go on with it."""
        attempt = Attempt(order, names.attempt_name(order), time.time(), is_new=is_new)
        self.attempts[order.address] = self._by_name[attempt.name] = attempt
        self._by_job[order.job][order.address] = attempt
        self.mark(attempt)
        return attempt

    def named(self, name: str) -> Attempt | None:
        """The attempt whose Job has a name."""
        return self._by_name.get(name)

    def of_job(self, job: str) -> list[Attempt]:
        return list(self._by_job[job].values()) if job in self._by_job else []

    def see(self, attempt: Attempt, copy: int, pod: Pod | None) -> None:
        """A pod is as it is said here, or gone."""
        if pod is not None:
            before = attempt.pods.get(copy)
            if pod.spec.node_name and (before is None or not before.spec.node_name):
                self._last_bound = time.time()
            attempt.pods[copy] = pod
            # Whoever was here before may have let it go: should it vanish, it is lost, and not made again.
            attempt.released = attempt.released or not course.is_gated(pod)
        elif attempt.pods.pop(copy, None) is not None:
            attempt.created.discard(copy)
            log.warning("the pod of copy %s of %s is gone", copy, attempt.address)
        self.mark(attempt)

    def stop(self, attempt: Attempt, stop: Stop) -> None:
        if attempt.stop is None:
            attempt.stop = stop
            self.mark(attempt)

    def prolong(self, attempt: Attempt, seconds: float) -> None:
        attempt.extra = seconds
        self._set_timer(attempt)

    def look_again(self, nodes: Collection[str]) -> None:
        """Something has become of nodes: look at everything that is there."""
        for attempt in self.attempts.values():
            if any(slot.node in nodes for slot in attempt.order.allocation.slots):
                self.mark(attempt)

    def mark(self, attempt: Attempt) -> None:
        """Let somebody look at an attempt."""
        if attempt.address not in self._marked:
            self._marked.add(attempt.address)
            if attempt.address not in self._busy:
                self._enqueue(attempt)

    def _enqueue(self, attempt: Attempt) -> None:
        # After a restart there are thousands that mostly go on as they did: what is new comes before them.
        is_old = attempt.is_tried and attempt.patience == inf
        self._dirty.put_nowait((is_old, next(self._entries), attempt))

    # -- steps -----------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            _, _, attempt = await self._dirty.get()
            self._marked.discard(attempt.address)
            if attempt.is_over:
                continue
            self._busy.add(attempt.address)
            try:
                await self._advance(attempt)
            except Exception:
                log.exception("attempt %s", attempt.address)
                self._later(attempt, _LONGEST_PAUSE)
            finally:
                self._busy.discard(attempt.address)
                if attempt.address in self._marked:
                    self._enqueue(attempt)
            await asyncio.sleep(0)  # where there are thousands to look at, others have their turns meanwhile

    async def _advance(self, attempt: Attempt) -> None:
        attempt.patience = min(attempt.patience, time.time())
        self._tell(attempt)
        step = Step.WAIT
        try:
            scene = await self._decided(attempt)
            step = course.next_step(scene)
            await self._do(step, attempt, scene)
        except (KubernetesError, CannotCompile) as error:
            if _is_passing(error, attempt):
                # While the cluster is away, its time does not run.
                attempt.patience = time.time()
                attempt.trials += 1
                pause = min(_LONGEST_PAUSE, _PAUSE * 2**attempt.trials)
                log.info("attempt %s, %s: %s", attempt.address, step, error)
                self._later(attempt, pause)
                return
            log.warning("attempt %s, %s: %s", attempt.address, step, error)
            self.stop(attempt, Stop("launch-failed", str(error)))
            self._later(attempt, _PAUSE)
        else:
            attempt.trials = 0
            attempt.forbidden_since = None
            if step in (Step.MAKE, Step.RELEASE):
                attempt.patience = time.time()
            self._set_timer(attempt)

    async def _decided(self, attempt: Attempt) -> Scene:
        """The scene, once it is decided whether the attempt has to end."""
        if attempt.stop is None:
            attempt.stop = course.reason_to_stop(self._scene(attempt))
        if attempt.stop is None and self._too_late(attempt) is not None:
            # It may have started or ended long ago, and only nobody told us.
            await self._look(attempt)
            attempt.stop = course.reason_to_stop(self._scene(attempt)) or self._too_late(attempt)
        return self._scene(attempt)

    async def _look(self, attempt: Attempt) -> None:
        """Ask the cluster for the pods of an attempt, whatever the watches have shown of them."""
        for copy in range(attempt.copies):
            pod = await self._releaser.find(attempt, copy)
            if pod is not None:
                self.see(attempt, copy, pod)

    async def _do(self, step: Step, attempt: Attempt, scene: Scene) -> None:
        match step:
            case Step.MAKE if attempt.missing and not attempt.is_gang and (words := self._closed(attempt)):
                self.stop(attempt, Stop("preempted", words))
            case Step.MAKE if attempt.missing:
                await self._releaser.make(attempt, self._ground.boot_of)
            case Step.RELEASE if words := self._closed(attempt):
                # One copy would run without the other.
                self.stop(attempt, Stop("preempted", words))
            case Step.RELEASE:
                await self._releaser.release(attempt, self._ground.boot_of)
            case Step.STOP:
                await self._releaser.stop(scene.pods[copy] for copy in scene.unfinished)
            case Step.CONCLUDE if not attempt.is_concluding and not await self._is_overlooked(attempt):
                attempt.is_concluding = True
                self.spawn(self._conclude(attempt))

    async def _is_overlooked(self, attempt: Attempt) -> bool:
        """Whether a pod may run that no watch has shown: making one that has no gate may seem to fail."""
        if attempt.is_gang or attempt.pods or not attempt.is_tried:
            return False
        pod = await self._releaser.find(attempt, 0)
        if pod is not None:
            self.see(attempt, 0, pod)
        return pod is not None

    def _closed(self, attempt: Attempt) -> str:
        """Why a node of an attempt would not take its copy; where some run already, the rest may wait."""
        if any(not course.is_gated(pod) for pod in attempt.pods.values()):
            return ""
        nodes = dict.fromkeys(slot.node for slot in attempt.order.allocation.slots)
        return next(filter(None, map(self._ground.closed, nodes)), "")

    def _scene(self, attempt: Attempt) -> Scene:
        return attempt.scene(dict(self._lost(attempt)))

    def _lost(self, attempt: Attempt) -> Iterator[tuple[int, str]]:
        """Copies whose node is gone for good, or has begun another life since they were released."""
        for copy, pod in attempt.pods.items():
            node = pod.spec.node_name
            if not node or pod.status.phase == "Succeeded":
                continue
            boot = pod.metadata.annotations.get(names.BOOT)
            if words := self._ground.lost(node):
                yield copy, words
            elif boot and (now := self._ground.boot_of(node)) and now != boot:
                yield copy, f"its node {node} restarted"

    # -- time ------------------------------------------------------------------------------------------

    def _later(self, attempt: Attempt, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.mark, attempt)

    def _set_timer(self, attempt: Attempt) -> None:
        """Look again when a limit is over: that of its time, or of the cluster's."""
        if attempt.timer is not None:
            attempt.timer.cancel()
            attempt.timer = None
        due = self._due(attempt)
        if due is not None and attempt.stop is None and not attempt.is_over:
            wait = min(3600.0, max(0.0, due - time.time())) + 0.05
            attempt.timer = asyncio.get_running_loop().call_later(wait, self.mark, attempt)

    def _due(self, attempt: Attempt) -> float | None:
        if attempt.is_running:
            duration = attempt.order.unit.duration
            started = attempt.started_at()
            return None if duration is None or started is None else started + duration + attempt.extra
        unbound = [pod for pod in attempt.pods.values() if not pod.spec.node_name]
        if attempt.is_complete and not unbound:
            return attempt.patience + self._limits.start
        # Thousands take their time: who is only not their turn yet waits for as long as others get theirs.
        in_turn = attempt.is_complete and not any(map(course.unbound, unbound))
        since = max(attempt.patience, self._last_bound) if in_turn else attempt.patience
        return since + self._limits.bind

    def _too_late(self, attempt: Attempt) -> Stop | None:
        due = self._due(attempt)
        is_done = attempt.is_complete and not self._scene(attempt).unfinished
        if due is None or time.time() < due or is_done:
            return None
        if attempt.is_running:
            seconds = (attempt.order.unit.duration or 0) + attempt.extra
            return Stop("timeout", too_long(round(seconds)))
        waiting = [pod for pod in attempt.pods.values() if not course.has_started(pod)]
        if words := next(filter(None, map(course.stuck, waiting)), ""):
            return Stop("launch-failed", words)
        words = next(filter(None, map(course.unbound, waiting)), "") or "the cluster did not start it"
        # What is not the job's own fault is not counted, and not charged.
        passed = round(time.time() - attempt.patience)
        return Stop("preempted", f"it could not be started within {passed} s: {words}")

    # -- what is said ----------------------------------------------------------------------------------

    def _tell(self, attempt: Attempt) -> None:
        """Say what is new: that it runs, what its checks find."""
        for copy, pod in attempt.pods.items():
            if course.has_started(pod) and copy not in attempt.collectors:
                self._collect(attempt, copy, pod)
        if not attempt.is_running:
            if attempt.stop is None and (words := _hopeless(attempt)):
                attempt.stop = Stop("launch-failed", words)
            self._tell_delay(attempt)
            return
        if not attempt.is_told:
            failpoint("release.before-running")
            attempt.is_told = True
            ports = port_numbers(attempt.order.unit.policies.ports)
            outputs = attempt.outputs(ended=False)
            at = attempt.started_at() or time.time()
            self.report(base.Running(**_named(attempt), at=at, outputs=outputs, ports=ports))
        self._tell_checks(attempt)

    def _tell_delay(self, attempt: Attempt) -> None:
        """Say what keeps pods from starting: an image that does not come, a node that does not take them."""
        for look in (course.unbound, course.stuck):
            words = next(filter(None, map(look, attempt.pods.values())), "")
            if words and look.__name__ not in attempt.delays:
                # Once of each kind: an image that is asked for again and again has other words each time.
                attempt.delays.add(look.__name__)
                self.report(base.Delayed(**_named(attempt), at=time.time(), message=words))

    def _tell_checks(self, attempt: Attempt) -> None:
        checks = attempt.order.unit.policies.checks
        if checks is None or attempt.stop is not None:
            return
        mains = [
            status
            for pod in attempt.pods.values()
            for status in pod.status.container_statuses
            if status.name == MAIN
        ]
        if checks.started is not None and not attempt.passed_start and all(each.started for each in mains):
            attempt.passed_start = True
            self.report(base.CheckPassed(**_named(attempt), at=time.time(), kind="started"))
        is_ready = bool(mains) and all(each.ready for each in mains)
        if checks.ready is not None and is_ready is not (attempt.is_ready or False):
            attempt.is_ready = is_ready
            self.report(base.CheckPassed(**_named(attempt), at=time.time(), kind="ready", passed=is_ready))

    def _collect(self, attempt: Attempt, copy: int, pod: Pod) -> None:
        path = output_path(self._jobs, attempt.address, copy)
        collector = attempt.collectors[copy] = Collector(self._api, pod.metadata.name, MAIN, path)
        collector.prepare()
        if not is_over(pod):
            attempt.following[copy] = self.spawn(self._follow(attempt, copy, collector))

    async def _follow(self, attempt: Attempt, copy: int, collector: Collector) -> None:
        """Follow output to its end: a stream ends before its container where a kubelet is restarted."""
        async with self._following:
            while True:
                await collector.follow()
                pod = attempt.pods.get(copy)
                if pod is None or is_over(pod):
                    return
                await asyncio.sleep(_AGAIN)

    async def _conclude(self, attempt: Attempt) -> None:
        """Bring the rest of the output, then say how it ended."""
        try:
            end = await self._ending(attempt)
        except Exception:
            # Whatever went wrong, an attempt that is over must be said to be.
            log.exception("the end of attempt %s", attempt.address)
            attempt.is_concluding = False
            self._later(attempt, _LONGEST_PAUSE)
        else:
            self._finish(attempt, end)

    async def _ending(self, attempt: Attempt) -> Ending:
        for following in attempt.following.values():
            following.cancel()
        await asyncio.gather(*attempt.following.values(), return_exceptions=True)
        scene = self._scene(attempt)
        reachable = [each for copy, each in attempt.collectors.items() if copy not in scene.lost]
        await asyncio.gather(*(each.complete() for each in reachable))
        return course.verdict(scene, await self._events(attempt))

    async def _events(self, attempt: Attempt) -> list[Event]:
        """What the cluster says of pods that were stopped for their checks."""
        if attempt.order.unit.policies.checks is None:
            return []
        found: list[Event] = []
        for pod in attempt.pods.values():
            try:
                listed = await self._api.list(EVENTS, fields=f"involvedObject.uid={pod.metadata.uid}")
            except KubernetesError as error:
                log.info("events of %s: %s", pod.metadata.name, error)
            else:
                found += listed.items
        return found

    def _finish(self, attempt: Attempt, end: Ending) -> None:
        started = attempt.started_at()
        lost = [each.lost for each in attempt.collectors.values() if each.lost]
        results = (result(pod) for _, pod in sorted(attempt.pods.items()))
        over = base.Over(
            **_named(attempt),
            at=max(attempt.ended_at() or time.time(), started or attempt.born),
            reason=end.reason,
            exit_code=end.exit_code,
            signal=end.signal,
            message=end.message,
            started_at=started,
            result=next(filter(None, results), None),
            outputs=attempt.outputs(ended=True),
            notes=tuple(dict.fromkeys(lost)),
        )
        if end.reason == "unhealthy":
            # The node has acted on it already; who follows the job hears of the check first.
            self.report(base.Unhealthy(**_named(attempt), at=over.at, message=end.message))
        failpoint("release.before-over")
        attempt.is_over = True
        if attempt.timer is not None:
            attempt.timer.cancel()
        self.over[attempt.address] = self.attempts.pop(attempt.address)
        own = self._by_job[attempt.order.job]
        del own[attempt.address]
        if not own:
            del self._by_job[attempt.order.job]
        self.report(over)

    def settled(self, address: base.Address) -> None:
        """The end of an attempt is written down: it is nobody's any more."""
        attempt = self.over.pop(address, None)
        if attempt is not None:
            self._by_name.pop(attempt.name, None)


def _is_passing(error: Exception, attempt: Attempt) -> bool:
    """Whether to try again. An API server that has just started may not know our rights yet."""
    if isinstance(error, Forbidden) and (error.need is not None or _NOT_READY in str(error)):
        attempt.forbidden_since = attempt.forbidden_since or time.time()
        return time.time() - attempt.forbidden_since < _FORBIDDEN
    return isinstance(error, _PASSING)


def _named(attempt: Attempt) -> dict[str, Any]:
    job, key, number = attempt.address
    return {"job": job, "key": key, "attempt": number}


def _hopeless(attempt: Attempt) -> str:
    """Why an attempt can never start: no patience mends a name that no image can have."""
    for pod in attempt.pods.values():
        for status in pod.status.container_statuses:
            waiting = status.state.waiting
            if waiting is not None and waiting.reason in ("InvalidImageName", "ErrImageNeverPull"):
                return course.stuck(pod)
    return ""
