"""Releasing: what one step of an attempt's course does to the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from jobman.engines import base
from jobman.engines.failpoints import failpoint
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import Conflict, NotFound
from jobman.engines.kubernetes.kinds import PODS
from jobman.engines.kubernetes.managed.attempt import Attempt
from jobman.engines.kubernetes.managed.compile import Release, compile_order
from jobman.engines.kubernetes.managed.course import is_gated
from jobman.engines.kubernetes.managed.names import BOOT, GATE, pod_name
from jobman.engines.kubernetes.managed.networks import namespace_objects, shared_objects
from jobman.engines.kubernetes.managed.target import ManagedTarget
from jobman.engines.kubernetes.objects import Pod, Written
from jobman.engines.kubernetes.target import owned


class Releaser:
    """Makes, releases and stops the pods of attempts. Every step may be repeated."""

    def __init__(self, api: Api, target: ManagedTarget) -> None:
        self._api = api
        self._target = target
        self._shared: dict[tuple[str, bool], asyncio.Task[None]] = {}
        """The making of what attempts of a job have in common, by whether others are connected with it."""

    def compiled(self, attempt: Attempt) -> Release:
        return compile_order(attempt.order, self._target)

    async def make(self, attempt: Attempt, boot_of: Callable[[str], str]) -> None:
        """Make what is missing: what the job has in common, its Job, what that owns, its pods."""
        await self.ensure_shared(attempt.order)
        release = self.compiled(attempt)
        failpoint("release.before-job")
        job = await self._api.ensure(release.job)
        owner = {**release.job, "metadata": {**release.job["metadata"], "uid": job.metadata.uid}}
        failpoint("release.after-job")
        for support in release.support:
            await self._api.ensure(owned(support, owner))
            failpoint("release.after-support")
        attempt.is_tried = True
        pods = {copy: release.pods[copy] for copy in attempt.missing}
        if not attempt.is_gang:
            node = attempt.order.allocation.slots[0].node
            pods = {copy: _meant_for(pod, boot_of(node)) for copy, pod in pods.items()}
        await asyncio.gather(*(self._make_pod(attempt, copy, pod, owner) for copy, pod in pods.items()))

    async def _make_pod(self, attempt: Attempt, copy: int, pod: Written, owner: Written) -> None:
        await self._api.ensure(_controlled(pod, owner))
        attempt.created.add(copy)
        failpoint("release.after-pod")

    async def find(self, attempt: Attempt, copy: int) -> Pod | None:
        """The pod of a copy as it is now, whatever was seen of it."""
        return await self._api.find(PODS, pod_name(attempt.name, copy), self._target.namespace)

    async def ensure_shared(self, order: base.Order, *, connected: bool = False) -> None:
        """Make what all attempts of a job have in common, once for all that come at the same time."""
        wanted = order.job, connected or bool(order.connected)
        if wanted not in self._shared:
            self._shared[wanted] = asyncio.create_task(self._make_shared(order, connected=wanted[1]))
        try:
            await asyncio.shield(self._shared[wanted])
        except BaseException:
            self._shared.pop(wanted, None)
            raise

    async def _make_shared(self, order: base.Order, *, connected: bool) -> None:
        assert order.plan is not None
        found = shared_objects(order.plan, order.job, self._target, owner=order.owner, connected=connected)
        for written in found:
            await self._api.ensure(written)

    async def ensure_walls(self) -> None:
        """Make what has to be there before anything is started."""
        for written in namespace_objects(self._target):
            await self._api.apply_patch(written, force=True)

    def forget(self, job: str) -> None:
        """What a job had in common is gone, or is to be looked at again."""
        for connected in (False, True):
            self._shared.pop((job, connected), None)

    async def release(self, attempt: Attempt, boot_of: Callable[[str], str]) -> None:
        """Take the gates off all pods, and tell each for which life of its node; none is made any more."""
        attempt.released = True
        failpoint("release.all-seen")
        nodes = [slot.node for slot in attempt.order.allocation.slots]
        await asyncio.gather(
            *(self._ungate(pod, boot_of(nodes[copy])) for copy, pod in attempt.pods.items() if is_gated(pod))
        )

    async def _ungate(self, pod: Pod, boot: str) -> None:
        metadata = {"uid": pod.metadata.uid, "annotations": {BOOT: boot}}
        gates = [{"name": GATE, "$patch": "delete"}]
        patch = {"metadata": metadata, "spec": {"schedulingGates": gates}}
        with suppress(NotFound, Conflict):  # It is gone, or another one by now: the watch will say so.
            await self._api.kind_patch(PODS, pod.metadata.name, patch, pod.metadata.namespace)
        failpoint("release.after-gate")

    async def stop(self, pods: Iterable[Pod]) -> None:
        """Ask pods to end that were not asked yet."""
        asked = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        await asyncio.gather(*(self._delete(pod) for pod in asked))

    async def _delete(self, pod: Pod) -> None:
        # No pod is bound any more once it is being deleted, so what the watch then shows is final.
        name, namespace = pod.metadata.name, pod.metadata.namespace
        with suppress(NotFound, Conflict):
            await self._api.delete(PODS, name, namespace, uid=pod.metadata.uid)

    async def relabel(self, pod: Pod, labels: Mapping[str, str | None]) -> None:
        """Change labels of a pod; None takes one away."""
        patch = {"metadata": {"labels": dict(labels)}}
        with suppress(NotFound):
            await self._api.merge_patch(PODS, pod.metadata.name, patch, pod.metadata.namespace)


def _meant_for(pod: Written, boot: str) -> Written:
    """A pod that is told which life of its node it is meant for: it does not survive it."""
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "annotations": {**metadata["annotations"], BOOT: boot}}}


def _controlled(pod: Written, owner: Written) -> Written:
    """A pod that its Job owns and controls, as kubectl and the garbage collector understand it."""
    written = owned(pod, owner)
    (reference,) = written["metadata"]["ownerReferences"]
    controlled = {**reference, "controller": True, "blockOwnerDeletion": True}
    return {**written, "metadata": {**written["metadata"], "ownerReferences": [controlled]}}
