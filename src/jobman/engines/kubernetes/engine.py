"""A cluster used directly, with nothing but a kubeconfig: jobs are made, found again by labels, and changed.

Nothing is kept on this machine: what a job is, its objects say.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from jobman.engines.kubernetes import milestones, names, queueing, steering, waits, whys
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.attempts import pod_state
from jobman.engines.kubernetes.blockers import Blocker
from jobman.engines.kubernetes.copies import CANCELLED
from jobman.engines.kubernetes.errors import Forbidden, KubernetesError, NotFound
from jobman.engines.kubernetes.found import ACTS, Act, FoundJob, closed_gates, is_held, is_stopped
from jobman.engines.kubernetes.found_sets import SetJob
from jobman.engines.kubernetes.indexes import is_over
from jobman.engines.kubernetes.kinds import (
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    JOB_SETS,
    JOBS,
    NODES,
    PODS,
    QUOTAS,
    Kind,
)
from jobman.engines.kubernetes.merging import Wanted, everything, following, merged, until_over
from jobman.engines.kubernetes.milestones import Happening
from jobman.engines.kubernetes.needs import needs_of
from jobman.engines.kubernetes.objects import ConfigMap, Event, Job, JobSet, Kept, Node, Pod, Written
from jobman.engines.kubernetes.outputs import Line
from jobman.engines.kubernetes.quantities import Amounts, parse_amounts, total
from jobman.engines.kubernetes.sight import Sight, View
from jobman.engines.kubernetes.stops import stops
from jobman.engines.kubernetes.target import Compiled, owned
from jobman.engines.kubernetes.underway import DrivenJob
from jobman.engines.kubernetes.watching import Watched, moments

T = TypeVar("T", bound=Kept)
_SIDE_BY_SIDE = 8
"""Objects that are made or deleted at a time."""
_LAST_WORDS_SECONDS = 0.5
"""What is told of a job that has just ended may come a moment later."""
_MOST_ACTS = 100


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    """A node, what it has to give and what pods on it asked for."""

    node: Node
    amounts: Amounts
    used: Amounts
    jobs: tuple[str, ...]


class Direct:
    """The jobs of one namespace of a cluster. Belongs to the event loop of its Api."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._owner: str | None = None
        self._has_sets: bool | None = None

    async def owner(self) -> str:
        """Who the cluster says we are; empty where it does not say."""
        if self._owner is None:
            self._owner = await self.api.whoami()
        return self._owner

    # -- making ----------------------------------------------------------------------------------------------

    async def try_out(self, compiled: Compiled) -> None:
        """Let the cluster check all objects of a job, and keep none; raises what making them would."""
        for _, written in compiled.objects():
            await self.api.dry_run(written)

    async def create(self, compiled: Compiled) -> bool:
        """Make the objects of a job, or those that an earlier trial did not; what was made goes if one fails.

        The anchor comes first. Where it is the Job itself, it waits until what its pods need is there.
        Returns whether the job is a new one.
        """
        anchor = compiled.anchor
        others = [written for _, written in compiled.objects() if written is not anchor]
        is_job = anchor["kind"] in (JOBS.kind, JOB_SETS.kind)
        waits = bool(others) and is_job and not anchor["spec"].get("suspend")
        first = {**anchor, "spec": {**anchor["spec"], "suspend": True}} if waits else anchor
        kind = await self.api.kind_of(anchor)
        name = anchor["metadata"]["name"]
        was_there = await self.api.find(kind, name) is not None
        made = await self.api.ensure(first)
        owner = {
            "apiVersion": anchor["apiVersion"],
            "kind": anchor["kind"],
            "metadata": {"name": name, "uid": made.metadata.uid},
        }
        try:
            for written in compiled.support:
                await self.api.ensure(owned(written, owner))
            jobs = [each for units in compiled.units.values() for each in units if each is not anchor]
            await self._side_by_side([self.api.ensure(owned(each, owner)) for each in jobs])
            if waits and _waits_for_us(made):
                await self.api.merge_patch(kind, name, {"spec": {"suspend": False}})
        except BaseException:
            if not was_there:
                await asyncio.shield(self._undo(kind, made))
            raise
        return not was_there

    async def delete_made(self, compiled: Compiled) -> None:
        """Take back what was made."""
        kind = await self.api.kind_of(compiled.anchor)
        await self.api.delete(kind, compiled.anchor["metadata"]["name"])

    async def _undo(self, kind: Kind[Any], made: Kept) -> None:
        with contextlib.suppress(KubernetesError):
            await self.api.delete(kind, made.metadata.name, uid=made.metadata.uid)

    async def _side_by_side(self, work: Sequence[Any]) -> None:
        """Do all of it, some at a time; the first that fails stops the others."""
        places = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def one(each: Any) -> None:
            async with places:
                await each

        tasks = [asyncio.ensure_future(one(each)) for each in work]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for each in work:
                each.close()

    # -- finding ---------------------------------------------------------------------------------------------

    async def jobs(self, *, mine: bool = False) -> list[FoundJob]:
        """The jobs of the namespace, the newest first."""
        label = f",{names.OWNER}={names.label_value(await self.owner())}" if mine else ""
        return await self._found(names.JOB + label)

    async def job(self, job_id: str) -> FoundJob | None:
        """The job of an id."""
        found = await self._found(f"{names.JOB}={job_id}") if names.is_label_value(job_id) else []
        return found[0] if found else None

    async def find(self, reference: str) -> list[FoundJob]:
        """The jobs somebody may mean: by id, else by the start of an id, else the newest of that name.

        One's own come first. Several are ambiguous.
        """
        if not reference:
            return []
        if exact := await self.job(reference):
            return [exact]
        everybody = await self.jobs()
        me = await self.owner()
        own = [job for job in everybody if job.owner == me]
        return _meant(own, reference) or _meant(everybody, reference)

    async def _found(self, labels: str) -> list[FoundJob]:
        jobs, configs, pods, sets = await asyncio.gather(
            self.api.list(JOBS, labels=labels),
            self.api.list(CONFIG_MAPS, labels=f"{labels},!{names.TASK}"),
            self.api.list(PODS, labels=labels),
            self._sets(labels),
        )
        is_checked = any(_may_be_unhealthy(pod) for pod in pods.items)
        checks = await self._if_allowed(EVENTS, fields="reason=Unhealthy") if is_checked else ()
        return _sorted_out(jobs.items, [*configs.items, *sets], pods.items, checks)

    async def has_sets(self) -> bool:
        """Whether the cluster makes JobSets, and we may see them."""
        if self._has_sets is None:
            await self._sets(f"{names.JOB}=none")
        return bool(self._has_sets)

    async def _sets(self, labels: str) -> Sequence[JobSet]:
        if self._has_sets is False:
            return ()
        try:
            listed = await self.api.list(JOB_SETS, labels=labels)
        except (NotFound, Forbidden):
            self._has_sets = False
            return ()
        self._has_sets = True
        return listed.items

    # -- acting ----------------------------------------------------------------------------------------------

    async def delete(self, job: FoundJob) -> bool:
        """Delete a job with everything it owns; whether it was still there."""
        meta = job.anchor.metadata
        return await self.api.delete(job.anchor_kind, meta.name, uid=meta.uid, propagation="Background")

    async def delete_all(self, jobs: Sequence[FoundJob]) -> None:
        """Delete many."""
        await self._side_by_side([self.delete(job) for job in jobs])

    async def cancel(self, job: FoundJob) -> None:
        """Stop a job for good: its Jobs are suspended, which takes their pods away, and marked."""
        if isinstance(job, DrivenJob):
            await steering.want(self.api, job, cancelled=_now())
            return
        marks: Written = {"metadata": {"annotations": {CANCELLED: _now()}}}
        if isinstance(job, SetJob):
            # First the set, which would make others in the place of those that are suspended.
            await self._change_set(job, {**marks, "spec": {"suspend": True}})
            await self._change(job, marks)
            return
        await self._change(job, {**marks, "spec": {"suspend": True}})
        if job.anchor_kind is CONFIG_MAPS:
            await self.api.merge_patch(CONFIG_MAPS, job.anchor.metadata.name, marks)

    async def hold(self, job: FoundJob) -> None:
        """Suspend its Jobs: what runs goes back to waiting. A driven job's document says what runs on."""
        if isinstance(job, DrivenJob):
            await steering.want(self.api, job, held="true")
            await self._note(job, "held", await self._by())
            return
        held: Written = {"metadata": {"annotations": {names.HOLD: "true"}}, "spec": {"suspend": True}}
        if isinstance(job, SetJob):
            await self._change_set(job, held)
        else:
            await self._change(job, held)
        await self._note(job, "held", await self._by())

    async def release(self, job: FoundJob) -> None:
        """Let its Jobs go on, but for those that wait at a gate."""
        at = time.time()
        await self._release(job)
        await self._note(job, "released", await self._by(), at)

    async def _release(self, job: FoundJob) -> None:
        if isinstance(job, DrivenJob):
            await steering.want(self.api, job, held="false")
            return
        if isinstance(job, SetJob):
            await self._change_set(
                job, {"metadata": {"annotations": {names.HOLD: None}}, "spec": {"suspend": False}}
            )
            return
        for each in job.jobs:
            if is_held(each) and not _is_decided(each):
                patch: Written = {"metadata": {"annotations": {names.HOLD: None}}}
                if not closed_gates(each):
                    patch["spec"] = {"suspend": False}
                await self.api.merge_patch(JOBS, each.metadata.name, patch)

    async def open_gate(self, job: FoundJob, gate: str) -> None:
        """Open a gate; what has none left and is not held goes on."""
        at = time.time()
        await self._open_gate(job, gate)
        await self._note(job, "gate-opened", f"{gate} opened {await self._by()}".rstrip(), at)

    async def _open_gate(self, job: FoundJob, gate: str) -> None:
        if isinstance(job, DrivenJob):
            await steering.want(self.api, job, gate=gate)
            return
        for each in job.jobs:
            if gate not in closed_gates(each) or _is_decided(each):
                continue
            gates = [one for one in each.spec.template.spec.scheduling_gates if one.name != names.GATE + gate]
            template = {"spec": {"schedulingGates": [{"name": one.name} for one in gates] or None}}
            name = each.metadata.name
            now = await self.api.merge_patch(
                JOBS,
                name,
                {
                    "metadata": {"resourceVersion": each.metadata.resource_version},
                    "spec": {"template": template},
                },
            )
            if not gates and names.HOLD not in now.metadata.annotations:
                await self.api.merge_patch(JOBS, name, {"spec": {"suspend": False}})

    async def _by(self) -> str:
        owner = await self.owner()
        return f"by {owner}" if owner else ""

    async def _note(self, job: FoundJob, kind: str, message: str, at: float | None = None) -> None:
        """Remember what somebody did: a cluster has no place of its own for that."""
        acts = [*job.acts, Act(time.time() if at is None else at, kind, message)][-_MOST_ACTS:]
        marks = {"metadata": {"annotations": {ACTS: msgspec.json.encode(acts).decode()}}}
        await self.api.merge_patch(job.anchor_kind, job.anchor.metadata.name, marks)

    async def _change_set(self, job: SetJob, patch: Written) -> None:
        await self.api.merge_patch(JOB_SETS, job.anchor.metadata.name, patch)

    async def _change(self, job: FoundJob, patch: Written) -> None:
        """Change every Job that is not over."""
        for each in job.jobs:
            if not is_over(each):
                with contextlib.suppress(NotFound):
                    await self.api.merge_patch(JOBS, each.metadata.name, patch)

    # -- looking ---------------------------------------------------------------------------------------------

    async def why(self, job: FoundJob) -> list[tuple[str, Blocker]]:
        """What stands in the way of a job, with the unit it concerns; what we may not see is left out."""
        events, quotas, claims, nodes = await asyncio.gather(
            self._if_allowed(EVENTS),
            self._if_allowed(QUOTAS),
            self._if_allowed(CLAIMS),
            self._if_allowed(NODES),
        )
        told: list[tuple[str, Blocker]] = []
        current = None
        if isinstance(job, DrivenJob):
            told += waits.acts_to_come(job, time.time())
            current = job.current_jobs()
        for each, stands in zip(job.jobs, job.standings, strict=True):
            if current is not None and each.metadata.name not in current:
                continue
            if isinstance(job, DrivenJob) and is_over(each) and not job.is_over:
                # Whoever drives it has an answer to that already.
                continue
            if CANCELLED in each.metadata.annotations and not is_over(each):
                continue
            if isinstance(job, SetJob) and job.is_held:
                continue
            found = list(stops(job, each, stands.task))
            found = found or whys.why(each, job.pods, events, quotas, claims, nodes)
            told += [(stands.task, blocker) for blocker in found]
        if isinstance(job, DrivenJob):
            told += waits.turns(job)
        if isinstance(job, SetJob):
            told += job.turns()
        return list({(blocker.message, blocker.replicas): (task, blocker) for task, blocker in told}.values())

    async def happenings(self, job: FoundJob) -> list[Happening]:
        """What happened to a job, the oldest first: its own milestones, and what the cluster tells."""
        return milestones.happenings(job, await self._if_allowed(EVENTS))

    async def happening(self, job_id: str) -> AsyncGenerator[Happening, None]:
        """The same, and then what happens, until the job is over or gone."""
        labels = f"{names.JOB}={job_id}"
        jobs, pods, told = Watched(JOBS, labels), Watched(PODS, labels), Watched(EVENTS)
        anchors = Watched(CONFIG_MAPS, f"{labels},!{names.TASK}")
        changed = asyncio.Event()
        sets = Watched(JOB_SETS, labels)
        keepers = [each.keep(self.api, changed) for each in (anchors, jobs, pods)]
        if await self.has_sets():
            keepers.append(sets.keep(self.api, changed))
        if await self.api.may("watch", EVENTS):
            keepers.append(told.keep(self.api, changed))
        seen: set[tuple[Any, ...]] = set()
        async with aclosing(moments(changed, keepers)) as bursts:
            async for _ in bursts:
                found = _sorted_out(
                    jobs.objects, [*anchors.objects, *sets.objects], pods.objects, told.objects
                )
                job = found[0] if found else None
                if job is None and seen:
                    return
                for each in milestones.happenings(job, told.objects) if job else ():
                    if each.key not in seen:
                        seen.add(each.key)
                        yield each
                if job is not None and job.is_over:
                    break
        if job is not None and (last := await self.job(job_id)) is not None:
            await asyncio.sleep(_LAST_WORDS_SECONDS)
            for each in await self.happenings(last):
                if each.key not in seen:
                    yield each

    async def until_over(self, job_id: str) -> None:
        """Wait until a job is over: also one that is cancelled, and one that is deleted.

        Raises NobodyDrives where one is driven, and nobody does it.
        """
        job = await self.job(job_id)
        if isinstance(job, DrivenJob):
            await steering.until_over(self.api, job_id)
            return
        if isinstance(job, SetJob):
            await self._until_set_is_over(job_id)
            return
        await until_over(self.api, f"{names.JOB}={job_id}", is_done=is_stopped)

    async def _until_set_is_over(self, job_id: str) -> None:
        labels = f"{names.JOB}={job_id}"
        sets, jobs = Watched(JOB_SETS, labels), Watched(JOBS, labels)
        changed = asyncio.Event()
        keepers = [each.keep(self.api, changed) for each in (sets, jobs)]
        async with aclosing(moments(changed, keepers)) as bursts:
            async for _ in bursts:
                if not sets.is_known or not jobs.is_known:
                    continue
                if all(SetJob(each, jobs.objects, ()).is_over for each in sets.objects):
                    return

    async def lines(
        self,
        job: FoundJob,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: float | None = None,
        wanted: Wanted = everything,
    ) -> AsyncGenerator[Line, None]:
        """What its copies wrote, merged by time, and on request what they write until the job is over."""
        if follow:
            until = self.until_over(job.id)
            labels = f"{names.JOB}={job.id}"
            lines = following(self.api, labels, until=until, tail=tail, since=since, wanted=wanted)
        else:
            lines = merged(self.api, job.pods, tail=tail, since=since, wanted=wanted)
        async with aclosing(lines) as open_lines:
            async for line in open_lines:
                yield line

    async def queue(self) -> tuple[list[queueing.QueueRow], Sight | None]:
        """What waits and runs, of all namespaces where we may see it, and which these are if not all."""
        view = View(self.api)
        pods, jobs = await asyncio.gather(view.of(PODS), view.of(JOBS))
        rows = queueing.queue(pods.items, queueing.owned_by(await self.owner()), jobs.items)
        return rows, pods.sight

    async def nodes(self) -> list[NodeUse]:
        """The nodes, and how much pods on them asked for, as far as we may see them."""
        nodes, pods = await asyncio.gather(self.api.list(NODES), View(self.api).of(PODS))
        there: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in pods.items:
            if pod.spec.node_name and pod_state(pod) not in ("succeeded", "failed"):
                there[pod.spec.node_name].append(pod)
        return [
            NodeUse(
                node=node,
                amounts=parse_amounts(node.status.allocatable),
                used=total(needs_of(pod) for pod in there[node.metadata.name]),
                jobs=tuple(sorted({_id(pod) for pod in there[node.metadata.name]} - {""})),
            )
            for node in sorted(nodes.items, key=lambda node: node.metadata.name)
        ]

    async def _if_allowed(self, kind: Kind[T], *, fields: str = "") -> Sequence[T]:
        try:
            return (await self.api.list(kind, fields=fields)).items
        except Forbidden:
            return ()


def _sorted_out(
    jobs: Sequence[Job], others: Sequence[Kept], pods: Sequence[Pod], events: Sequence[Event]
) -> list[FoundJob]:
    """Whose the objects are; the newest job first. `others` are ConfigMaps and JobSets."""
    own: defaultdict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        own[_id(job)].append(job)
    their_pods: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        their_pods[_id(pod)].append(pod)
    anchors: dict[str, Kept] = {
        _id(each): each
        for each in (*jobs, *others)
        if names.DOCUMENT in each.metadata.annotations and each.metadata.deletion_timestamp is None
    }
    courses = {_id(each): each for each in others if names.COURSE in each.metadata.annotations}
    found = [
        _as_found(anchor, courses.get(job_id), own[job_id], their_pods[job_id], events)
        for job_id, anchor in anchors.items()
    ]
    return sorted(found, key=lambda job: (-job.submitted_at, job.id))


def _as_found(
    anchor: Kept, course: Kept | None, jobs: Sequence[Job], pods: Sequence[Pod], events: Sequence[Event]
) -> FoundJob:
    if isinstance(course, ConfigMap):
        return DrivenJob(anchor, course, jobs, pods, events)
    if isinstance(anchor, JobSet):
        return SetJob(anchor, jobs, pods, events)
    return FoundJob(anchor, jobs, pods, events)


def _may_be_unhealthy(pod: Pod) -> bool:
    """Whether a pod failed, and a check may be the reason."""
    is_checked = any(one.liveness_probe or one.startup_probe for one in pod.spec.containers)
    return is_checked and pod.status.phase == "Failed"


def _meant(jobs: Sequence[FoundJob], reference: str) -> list[FoundJob]:
    """Of the newest first: those whose id begins so, or the newest of that name."""
    started = [job for job in jobs if job.id.startswith(reference)]
    named = [job for job in jobs if job.name == reference][:1]
    if not named or named == started:
        return started
    return [*started, *named] if len(started) == 1 else named


def _is_decided(job: Job) -> bool:
    """Whether a Job is over, or will be because somebody cancelled it."""
    return is_over(job) or CANCELLED in job.metadata.annotations


def _waits_for_us(made: Kept) -> bool:
    """Whether a Job is suspended, and nobody wants it so."""
    marks = made.metadata.annotations
    return (
        isinstance(made, Job | JobSet)
        and made.spec.suspend
        and names.HOLD not in marks
        and CANCELLED not in marks
    )


def _id(each: Kept) -> str:
    return each.metadata.labels.get(names.JOB, "")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
