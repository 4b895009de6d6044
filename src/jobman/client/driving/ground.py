"""The ground of a driver on a real cluster: its Jobs are made, stopped and looked at through the API."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from math import inf

import msgspec

from jobman.client.driving.driver import NotNow
from jobman.client.driving.lead import Address, Wishes
from jobman.client.driving.sight import Sight
from jobman.client.driving.tenure import Tenure
from jobman.control.refusals import Refusal
from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.course import RENEW_SECONDS, Course
from jobman.engines.kubernetes.driven import DrivenCompiler, spot_of
from jobman.engines.kubernetes.endings import OUT_OF_TIME, started_at
from jobman.engines.kubernetes.endings import is_over as has_ended
from jobman.engines.kubernetes.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound
from jobman.engines.kubernetes.found import FoundJob
from jobman.engines.kubernetes.indexes import is_decided, width
from jobman.engines.kubernetes.kinds import EVENTS, JOBS, PODS
from jobman.engines.kubernetes.objects import Event, Job, Kept, Pod, Written
from jobman.engines.kubernetes.seen import Seen, is_at_rest, seen
from jobman.engines.kubernetes.target import owned
from jobman.engines.kubernetes.underway import gates_opened
from jobman.plan.model import Plan, Unit

_LONGEST_WAIT = 60.0


class ClusterGround:
    """One job on a cluster, as its driver deals with it."""

    def __init__(self, api: Api, job: FoundJob, compiler: DrivenCompiler, tenure: Tenure) -> None:
        self._api = api
        self._plan: Plan = job.plan
        self._anchor = job.anchor
        self._id = job.id
        self._compiler = compiler
        self._tenure = tenure
        self._sight = Sight(api, job.id)
        self._renewing: asyncio.Task[None] | None = None
        self._owner = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": job.anchor.metadata.name, "uid": job.anchor.metadata.uid},
        }

    async def open(self) -> None:
        """Begin to look, and to say that somebody drives."""
        await self._sight.open()
        self._renewing = asyncio.ensure_future(self._renew())

    async def close(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        await self._sight.close()
        self._sight = Sight(self._api, self._id)

    def now(self) -> float:
        return time.time()

    def wishes(self) -> Wishes:
        anchor = self._sight.config(self._anchor.metadata.name)
        if anchor is None or anchor.metadata.uid != self._anchor.metadata.uid:
            raise Refusal("no-such-job", f"the job {self._id} is gone: somebody deleted it")
        return wishes_of(anchor)

    # -- looking ---------------------------------------------------------------------------------------------

    async def look(self, addresses: Collection[Address], made: Collection[Address]) -> Mapping[Address, Seen]:
        attempts, pods = self._sight.attempts(), self._sight.pods_by_owner()
        found: dict[Address, Seen] = {}
        for address in addresses:
            unit = spot_of(self._plan, address[0]).unit
            jobs = attempts.get(address, [])
            parts = self._compiler.parts(unit)
            if address in made and len(jobs) < parts:
                # What was just made may not be in sight yet.
                jobs = await self._fetched(address)
            own = [pod for job in jobs for pod in pods.get(job.metadata.uid, ())]
            if len(jobs) == parts:
                shown = seen(jobs, own)
                found[address] = await self._explained(shown, unit, jobs) if shown.over else shown
            elif address in made and not self._is_gone(address, jobs, own):
                left = seen(jobs, own)
                found[address] = msgspec.structs.replace(left, failing=True, halted=not jobs, over=False)
        return found

    def _is_gone(self, address: Address, jobs: Sequence[Job], pods: Sequence[Pod]) -> bool:
        """Whether nothing runs any more of an attempt whose Jobs somebody deleted, or some of them."""
        own = [*pods, *self._sight.pods_of(address)]
        return all(is_at_rest(job, own) for job in jobs) and all(map(has_ended, own))

    async def _fetched(self, address: Address) -> list[Job]:
        wanted = [written["metadata"]["name"] for written in self._compiler.attempt(*address)]
        found = [await self._api.find(JOBS, name) for name in wanted]
        return [job for job in found if job is not None]

    async def _explained(self, shown: Seen, unit: Unit, jobs: Sequence[Job]) -> Seen:
        """A kill may be that of a check, which only events tell."""
        checks = unit.policies.checks
        if shown.reason != "signal" or checks is None or not (checks.alive or checks.started):
            return shown
        events: Sequence[Event] = ()
        with contextlib.suppress(Forbidden):
            events = (await self._api.list(EVENTS, fields="reason=Unhealthy")).items
        # A Job may be seen to have failed before its pod is.
        pods = (await self._api.list(PODS, labels=f"{names.JOB}={self._id}")).items
        return seen(jobs, pods, events)

    async def wait(self, until: float) -> None:
        await self._sight.wait(min(_LONGEST_WAIT, until - self.now()) if until < inf else _LONGEST_WAIT)
        if self._renewing is not None and self._renewing.done():
            self._renewing.result()

    # -- acting ----------------------------------------------------------------------------------------------

    async def write(self, course: Course, *, last: bool) -> None:
        await self._tenure.write(course, last=last)

    async def make(self, address: Address, *, stopped: bool) -> Seen | None:
        for written in self._compiler.attempt(*address):
            try:
                await self._api.ensure(owned(_halted(written) if stopped else written, self._owner))
            except Forbidden as error:
                if "exceeded quota" in error.message:
                    raise NotNow from error
                raise
            except AlreadyExists as error:
                if error.code == 409 and await self._is_going(written):
                    return None
                raise
            except (Invalid, BadRequest, NotFound) as error:
                return Seen(over=True, reason="launch-failed", message=error.message)
        return None

    async def _is_going(self, written: Written) -> bool:
        """Whether a Job of this name is being deleted: it was made, and that is what counts."""
        there = await self._api.find(JOBS, written["metadata"]["name"])
        return there is None or there.metadata.deletion_timestamp is not None

    async def halt(self, address: Address, why: str = "") -> None:
        pods = self._sight.pods_by_owner()
        for job in self._sight.attempts().get(address, []):
            # What the cluster ends itself did not end because it was told to.
            if not is_decided(job) and CANCELLED not in job.metadata.annotations:
                with contextlib.suppress(NotFound):
                    await self._stop(job, pods.get(job.metadata.uid, []), why)

    async def _stop(self, job: Job, pods: Sequence[Pod], why: str) -> None:
        """Cut the time of its pods short, which keeps them; where not all have begun, give them up.

        The mark of the Job comes last: without it, whoever comes next tells its pods again.
        """
        mark = {"annotations": {CANCELLED: _moment()}}
        patch: Written = {"metadata": mark, "spec": {"suspend": True}}
        begun = [
            pod for pod in pods if started_at(pod) is not None and pod.metadata.deletion_timestamp is None
        ]
        if len(begun) == len(pods) == width(job):
            with contextlib.suppress(Forbidden, Invalid):
                for pod in begun:
                    if not has_ended(pod):
                        await self._api.merge_patch(PODS, pod.metadata.name, _cut_short(pod, mark, why))
                patch = {"metadata": mark}
        await self._api.merge_patch(JOBS, job.metadata.name, patch)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            await self._tenure.renew()


def wishes_of(anchor: Kept) -> Wishes:
    """What people want of a job."""
    notes = anchor.metadata.annotations
    held = notes.get(names.HOLD)
    return Wishes(
        held=None if held is None else held == "true",
        cancelled=CANCELLED in notes,
        gates=frozenset(gates_opened(anchor)),
    )


def _halted(written: Written) -> Written:
    """A Job that holds its name and never runs."""
    metadata, spec = written["metadata"], written["spec"]
    annotations = {**metadata.get("annotations", {}), CANCELLED: _moment()}
    return {
        **written,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**spec, "suspend": True},
    }


def _cut_short(pod: Pod, mark: Written, why: str) -> Written:
    """What ends a pod, and tells of its time limit where that is why: the limit itself is written over."""
    notes = dict(mark["annotations"])
    if why == "timeout":
        notes[OUT_OF_TIME] = str(pod.spec.active_deadline_seconds or "")
    return {"metadata": {"annotations": notes}, "spec": {"activeDeadlineSeconds": 1}}


def _moment() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
