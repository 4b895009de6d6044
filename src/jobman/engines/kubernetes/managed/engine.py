"""A cluster whose jobs we schedule: the control service says what runs where, kube-scheduler binds it there.

```
 orders ──▶ the runner: one step of each attempt's course at a time ──▶ the cluster
               ▲                                                          │
            mirrors of pods, Jobs, nodes and what jobs share ◀── watches ──┘ ──▶ reports
```

What is done is done to objects with names that follow from the order, so that it may be done again; what is
known is what the mirrors show. A service that is killed anywhere goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any

from jobman.engines import base
from jobman.engines.entering import Entry, Passage
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import KubernetesError
from jobman.engines.kubernetes.kinds import NETWORK_POLICIES, OWNERS, PODS, SERVICES
from jobman.engines.kubernetes.managed import cleaning, features, names
from jobman.engines.kubernetes.managed.connecting import Connector
from jobman.engines.kubernetes.managed.course import Stop
from jobman.engines.kubernetes.managed.mirror import Mirror, Place, place_of
from jobman.engines.kubernetes.managed.releasing import Releaser
from jobman.engines.kubernetes.managed.runner import Limits, Runner
from jobman.engines.kubernetes.managed.survey import Survey
from jobman.engines.kubernetes.managed.target import ManagedTarget
from jobman.engines.kubernetes.objects import Kept, Pod
from jobman.engines.kubernetes.streams import enter_pod, pod_of
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode

log = logging.getLogger("jobman.kubernetes")
_PAUSE, _LONGEST_PAUSE = 0.3, 15.0


class ManagedEngine:
    """Runs on a cluster what the control service places on its nodes."""

    name = "kubernetes"

    def __init__(
        self, api: Api, target: ManagedTarget, state: Path, survey: Survey, limits: Limits | None = None
    ) -> None:
        self._api = api
        self._target = target
        self._folder = state / "jobs"
        self._survey = survey
        self._releaser = Releaser(api, target)
        self._runner = Runner(api, self._releaser, self._folder, survey, limits or Limits())
        self._live: set[str] = set()
        """Jobs of which something was launched, and which are not over."""
        self._connector = Connector(self._runner, self._releaser)
        self._has_recovered = False
        self._report: Callable[[base.News], None] = lambda _news: None
        self._by_attempt: dict[str, set[Place]] = {}
        """Where the pods of our Jobs are, by the name of the Job."""
        ours = f"{names.SERVICE}={target.service}"
        self._pods = Mirror(api, PODS, self._pod_changed)
        self._jobs = Mirror(api, OWNERS, self._job_changed, namespace=target.namespace, labels=ours)
        self._shared = [
            Mirror(api, kind, self._shared_changed, namespace=target.namespace, labels=ours)
            for kind in (SERVICES, NETWORK_POLICIES)
        ]

    @classmethod
    async def open(
        cls, api: Api, target: ManagedTarget, state: Path, survey: Survey, limits: Limits | None = None
    ) -> ManagedEngine:
        """An engine that knows its nodes. Raises KubernetesError where the cluster cannot be asked."""
        engine = cls(api, target, state, survey, limits)
        await engine._releaser.ensure_walls()
        await survey.fill()
        await asyncio.gather(*(mirror.fill() for mirror in engine._mirrors))
        return engine

    @property
    def _mirrors(self) -> list[Mirror[Any]]:
        return [self._pods, self._jobs, *self._shared]

    # -- what it is --------------------------------------------------------------------------------

    def nodes(self, virtual: str | None = None) -> Sequence[ClusterNode]:
        if virtual is not None:
            raise ValueError("a cluster has real nodes only")
        return self._survey.nodes()

    def refusals(self, plan: Plan, *, no_container: bool = False) -> Sequence[base.Refused]:
        if no_container:
            return [base.Refused("image", (), "a cluster runs nothing without a container")]
        return features.refusals(plan, self._target)

    def account_of(self, owner: str) -> base.Account | None:
        """Copies run as their image and `security` say."""
        del owner
        return None

    def refusals_for(self, plan: Plan, account: base.Account) -> Sequence[base.Refused]:
        del plan, account
        return ()

    def host_of(self, job: str, key: str, copy: int = 0) -> str:
        return names.host_name(job, key, copy)

    def overhead(self, plan: Plan, unit: Unit) -> Mapping[str, int]:
        return self._survey.overhead(plan, unit)

    def sweep(self, used: Collection[str]) -> None:
        """No environment of submission goes to a cluster."""
        del used

    def keep_environment(self, environment: Mapping[str, str]) -> str:
        del environment
        return ""

    def copies(self, job: str) -> Sequence[base.CopyInfo]:
        return [info for each in self._runner.of_job(job) for info in each.infos()]

    async def enter(self, copy: base.CopyInfo, entry: Entry) -> Passage:
        """A way into a pod, through its API server."""
        return await enter_pod(self._api, *pod_of(copy.container or ""), entry)

    # -- life --------------------------------------------------------------------------------------

    async def start(self, report: Callable[[base.News], None]) -> None:
        self._report = report
        for mirror in self._mirrors:
            self._runner.spawn(mirror.follow())
        self._runner.spawn(self._survey.follow(report, self._runner.look_again))
        self._runner.start(report)

    async def close(self) -> None:
        await self._runner.close()
        await self._api.close()

    # -- orders ------------------------------------------------------------------------------------

    async def launch(self, orders: Sequence[base.Order]) -> None:
        for order in orders:
            if order.address not in self._runner.attempts and order.address not in self._runner.over:
                self._take_up(order, is_new=True)

    async def recover(self, orders: Sequence[base.Order]) -> None:
        for order in orders:
            self._take_up(order, is_new=False)
        # Nothing may be planned on nodes nobody has looked at; what of their use is ours is known by now.
        self._report(self._survey.all_seen())
        self._has_recovered = True
        self._sweep_away()

    def _take_up(self, order: base.Order, *, is_new: bool) -> None:
        attempt = self._runner.take_up(order, is_new=is_new)
        self._live.add(order.job)
        if is_new:
            return
        for copy in range(attempt.copies):
            pod = self._pods.get(names.pod_name(attempt.name, copy), self._target.namespace)
            if pod is not None:
                self._survey.claim(pod)
                self._runner.see(attempt, copy, pod)

    async def stop(self, address: base.Address, why: str) -> None:
        del why  # Control knows, and says so.
        attempt = self._runner.attempts.get(address)
        if attempt is not None:
            self._runner.stop(attempt, Stop(""))

    async def freeze(self, address: base.Address) -> None:
        """Refused by the table of features: pods do not stand still."""

    async def thaw(self, address: base.Address) -> None:
        """As freezing."""

    async def prolong(self, address: base.Address, seconds: float) -> None:
        attempt = self._runner.attempts.get(address)
        if attempt is not None:
            self._runner.prolong(attempt, seconds)

    async def connect(self, job: str, partners: Sequence[str]) -> None:
        """Relabel what runs of a job; what is launched later says itself whom it is connected with."""
        if self._connector.want(job, partners):
            self._relabel(job)

    def _relabel(self, job: str) -> None:
        self._insist(f"connecting {job}", lambda: self._connector.relabel(job))

    async def drain(self, node: str, *, drained: bool) -> None:
        self._insist(f"draining {node}", lambda: self._survey.drain(node, drained=drained))

    # -- what may go -------------------------------------------------------------------------------

    async def settle(self, address: base.Address) -> None:
        self._runner.settled(address)
        self._remove(names.attempt_name_of(address))

    async def finish(self, job: str) -> None:
        self._live.discard(job)
        self._connector.forget(job)
        self._releaser.forget(job)
        self._remove_shared(job)

    async def forget(self, job: str) -> None:
        await asyncio.to_thread(rmtree, self._folder / job, ignore_errors=True)

    def _remove(self, name: str) -> None:
        """Take an attempt off the cluster, as far as it is there."""

        async def remove() -> None:
            job = self._jobs.get(name, self._target.namespace)
            await cleaning.remove_attempt(self._api, job, self._pods_of(name))

        self._insist(f"cleaning after {name}", remove)

    def _pods_of(self, name: str) -> list[Pod]:
        """The pods of a Job, by what owns them."""
        places = self._by_attempt.get(name, ())
        return [pod for place in places if (pod := self._pods.items.get(place)) is not None]

    def _sweep_away(self) -> None:
        """Remove what is nobody's: an end that was written down before somebody was killed."""
        known = {attempt.name for attempt in self._runner.attempts.values()}
        found = {job.metadata.name for job in self._jobs.items.values()}
        found |= self._by_attempt.keys()
        for name in found - known:
            self._remove(name)
        shared = [item for mirror in self._shared for item in mirror.items.values()]
        jobs = {item.metadata.labels.get(names.JOB, "") for item in shared}
        for job in jobs - self._live - {""}:
            self._remove_shared(job)

    def _remove_stray(self, name: str) -> None:
        """Remove what appears and is nobody's: the last word of a server that does not lead any more."""
        if self._has_recovered and name:
            self._remove(name)

    def _remove_shared(self, job: str) -> None:
        service = self._target.service
        self._insist(f"cleaning after {job}", lambda: cleaning.remove_shared(self._api, job, service))

    def _insist(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do something beside everything else, until it is done."""

        async def insist() -> None:
            pause = _PAUSE
            while True:
                try:
                    return await work()
                except KubernetesError as error:
                    log.info("%s: %s", what, error)
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)

        self._runner.spawn(insist())

    # -- what the mirrors show -----------------------------------------------------------------------

    def _is_ours(self, pod: Pod) -> bool:
        meta = pod.metadata
        return (
            meta.namespace == self._target.namespace
            and meta.labels.get(names.SERVICE) == self._target.service
        )

    def _pod_changed(self, before: Pod | None, now: Pod | None) -> None:
        pod = now or before
        assert pod is not None
        attempt = None
        if self._is_ours(pod):
            self._index(pod, is_there=now is not None)
            attempt = self._runner.named(_attempt_of(pod))
            if attempt is None and before is None:
                self._remove_stray(_attempt_of(pod))
            elif attempt is not None and not self._connector.suits(attempt.order.job, pod):
                self._relabel(attempt.order.job)
        self._survey.pod_changed(before, now, is_ours=attempt is not None)
        if attempt is not None and not attempt.is_over:
            copy = pod.metadata.labels.get(names.COPY, "")
            if copy.isdecimal() and int(copy) < attempt.copies:
                self._runner.see(attempt, int(copy), now)

    def _index(self, pod: Pod, *, is_there: bool) -> None:
        name = _attempt_of(pod)
        places = self._by_attempt.setdefault(name, set())
        (places.add if is_there else places.discard)(place_of(pod))
        if not places:
            del self._by_attempt[name]

    def _job_changed(self, before: Kept | None, now: Kept | None) -> None:
        job = now or before
        assert job is not None
        attempt = self._runner.named(job.metadata.name)
        if attempt is None and before is None:
            self._remove_stray(job.metadata.name)
        if attempt is None or attempt.is_over:
            return
        if now is None or now.metadata.deletion_timestamp is not None:
            self._runner.stop(attempt, Stop("preempted", "somebody else deleted its Job"))

    def _shared_changed(self, before: Kept | None, now: Kept | None) -> None:
        """What a job has in common is made again where somebody else removed it."""
        if now is not None or before is None:
            return
        job = before.metadata.labels.get(names.JOB, "")
        if job in self._live:
            self._releaser.forget(job)
            self._insist(f"mending {job}", lambda: self._mend(job))

    async def _mend(self, job: str) -> None:
        attempt = next(iter(self._runner.of_job(job)), None)
        if attempt is not None:
            await self._releaser.ensure_shared(attempt.order, connected=self._connector.is_connected(job))


def _attempt_of(pod: Pod) -> str:
    """The Job that owns a pod."""
    return next((owner.name for owner in pod.metadata.owner_references if owner.kind == "Job"), "")
