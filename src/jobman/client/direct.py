"""A client without a service: the same questions, asked of a cluster with nothing but a kubeconfig."""

from __future__ import annotations

import asyncio
import getpass
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from itertools import chain
from typing import Any

import msgspec

from jobman.client import direct_answers as tell
from jobman.client.client import Client, Filters
from jobman.client.direct_loop import Begun, LoopThread, as_failures
from jobman.client.direct_sessions import DirectSession
from jobman.client.direct_submission import Prepared, fingerprint, job_id, prepare, read
from jobman.client.driving.journey import drive, is_abandoned
from jobman.client.failures import Refused
from jobman.client.filters import tests, words
from jobman.client.no_link import NoLink, not_here
from jobman.control.admission import plain, submitted_again
from jobman.control.answers import (
    Attempt,
    Copy,
    Details,
    Event,
    Job,
    LogLine,
    Node,
    Page,
    QueueRow,
    Replica,
    Submission,
    Submitted,
    Why,
)
from jobman.control.refusals import Refusal
from jobman.engines.entering import Entry
from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.compile import unpacked
from jobman.engines.kubernetes.engine import Direct
from jobman.engines.kubernetes.errors import KubernetesError
from jobman.engines.kubernetes.found import FINGERPRINT, FoundJob
from jobman.engines.kubernetes.kubeconfig import load
from jobman.engines.kubernetes.names import PLAN
from jobman.engines.kubernetes.outputs import Output
from jobman.engines.kubernetes.sight import Sight
from jobman.engines.kubernetes.streams import enter_pod, pod_of
from jobman.engines.kubernetes.underway import DrivenJob, resuming
from jobman.plan.model import PlanError
from jobman.spec.problems import Problem

_SETTLE_SECONDS = 0.2
_TAKEN_SECONDS = 0.05
_CANCEL_SECONDS = 30.0
_LIST = "jobman list shows those there are."
_PLACE = "a plain cluster"
_ONE_STREAM = LogLine(
    at=0.0,
    replica="",
    attempt=0,
    copy=0,
    stream="note",
    text="a cluster keeps standard output and standard error as one: this is both",
)


class DirectClient(Client):
    """Speaks to one namespace of a cluster. May be used from several threads at once."""

    def __init__(
        self,
        path: str | None = None,
        context: str | None = None,
        *,
        namespace: str | None = None,
        api: Callable[[Access], Api] = Api,
    ) -> None:
        super().__init__(NoLink(_PLACE))
        with as_failures():
            access = load(path, context)
        if namespace is not None:
            access = msgspec.structs.replace(access, namespace=namespace)
        self._loop = LoopThread()
        self._direct = self._loop.run(_opened(lambda: Direct(api(access))))

    def close(self) -> None:
        self._loop.close(self._direct.api.close())

    # -- jobs ------------------------------------------------------------------------------------------------

    def submit(self, submission: Submission, *, key: str | None = None, driven: bool = False) -> Submitted:
        """Make the objects of all jobs of a document, or of none. The same key makes them once.

        With `driven`, the Jobs of a graph are made later, by whoever drives it.
        """
        return self._loop.run(self._submit(submission, key, driven))

    async def _submit(self, submission: Submission, key: str | None, driven: bool = False) -> Submitted:
        print_of_it, is_graph = fingerprint(submission), False
        who, sets = await asyncio.gather(self._direct.owner(), self._direct.has_sets())
        owner = who or getpass.getuser()
        if submission.rerun_of is not None:
            earlier = await self._one(submission.rerun_of)
            is_graph = isinstance(earlier, DrivenJob)
            text = unpacked(earlier.anchor.metadata.annotations.get(PLAN, ""))
            options = earlier.options
            kept = submission.keep_logs or options.get("keep_logs")
            submission = submitted_again(submission, earlier.document, text, options, options.get("cwd"))
            submission = msgspec.structs.replace(submission, keep_logs=kept)
        plans, warnings = read(submission)
        namespace = self._direct.api.namespace
        prepared = prepare(
            submission,
            plans,
            key=key or os.urandom(16).hex(),
            namespace=namespace,
            owner=owner,
            driven=driven or is_graph,
            sets=sets,
        )
        for one in prepared:
            one.compiled.anchor["metadata"]["annotations"][FINGERPRINT] = print_of_it
        if submission.dry_run:
            await self._try_out(prepared)
            return _submitted(prepared, warnings, notes=["nothing was submitted"])
        replayed = key is not None and await self._is_known(owner, key, print_of_it)
        if not replayed and (len(prepared) > 1 or any(one.samples for one in prepared)):
            await self._try_out(prepared)
        await self._make(prepared)
        alone = [one for one in prepared if one.is_driven and not driven]
        notes = [f"nobody drives {one.name} yet: `{resuming(one.id)}`" for one in alone]
        return _submitted(prepared, warnings, replayed=replayed, notes=notes)

    async def _is_known(self, owner: str, key: str, print_of_it: str) -> bool:
        """Whether a submission with this key came before; raises where it was another."""
        known = await self._direct.job(job_id(owner, key, 0))
        if known is not None and known.anchor.metadata.annotations.get(FINGERPRINT) != print_of_it:
            message = "this idempotency key belongs to another submission"
            raise Refusal("key-reused", message, "use a new key for each submission")
        return known is not None

    async def _try_out(self, prepared: list[Prepared]) -> None:
        for one in prepared:
            await self._direct.try_out(one.trial)

    async def _make(self, prepared: list[Prepared]) -> None:
        made: list[Prepared] = []
        try:
            for one in prepared:
                if await self._direct.create(one.compiled):
                    made.append(one)
        except BaseException:
            for one in made:
                with suppress(KubernetesError):
                    await self._direct.delete_made(one.compiled)
            raise

    def jobs(self, **filters: Filters) -> Iterator[Job]:
        """Jobs, the newest first. Filters: owner, mine, state, name, label, since, until, search."""
        return iter([tell.job_answer(job) for job in self._loop.run(self._fitting(filters))])

    def jobs_page(self, *, limit: int = 100, cursor: str | None = None, **filters: Filters) -> Page[Job]:
        found = self._loop.run(self._fitting(filters))
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        end = start + limit
        items = [tell.job_answer(job) for job in found[start:end]]
        return Page(items=items, cursor=str(end) if end < len(found) else None)

    async def _fitting(self, filters: Mapping[str, Filters]) -> list[FoundJob]:
        found = await self._direct.jobs(mine=bool(filters.get("mine")))
        checks = list(tests(filters))
        return [job for job in found if all(check(job) for check in checks)]

    def details(self, ref: str) -> Details:
        return tell.details_answer(self._found(ref))

    def delete(self, ref: str, *, force: bool = False) -> Job:
        """Delete a job that is over, or any with `force`, with everything of it."""
        return self._loop.run(self._delete(ref, force))

    async def _delete(self, ref: str, force: bool) -> Job:
        job = await self._one(ref)
        if not job.is_over and not force:
            raise Refusal("wrong-state", "the job is not over", f"cancel it first: jobman cancel {job.id}")
        await self._direct.delete(job)
        return tell.job_answer(job)

    def delete_all(self, **filters: Filters) -> int:
        """Delete all of one's own jobs that are over and fit."""
        return self._loop.run(self._delete_all(filters))

    async def _delete_all(self, filters: Mapping[str, Filters]) -> int:
        over = [job for job in await self._fitting({"mine": True, **filters}) if job.is_over]
        await self._direct.delete_all(over)
        return len(over)

    def cancel(self, ref: str) -> Job:
        """Stop a job for good; what runs gets the time to end that it asked for."""
        return self._loop.run(self._act(ref, self._cancel))

    async def _cancel(self, job: FoundJob) -> None:
        await self._direct.cancel(job)
        if not isinstance(job, DrivenJob) or not is_abandoned(job, time.time()):
            return
        # Nobody else would stop what runs.
        with suppress(TimeoutError, Refusal):
            await asyncio.wait_for(drive(self._direct.api, job), _CANCEL_SECONDS)

    def drive(self, ref: str, *, waiting: Callable[[str], None] | None = None) -> Begun[Any] | None:
        """Drive a graph from here, when we are the only one who does; raises where somebody else is."""
        job = self._found(ref)
        if not isinstance(job, DrivenJob) or job.is_over:
            return None
        taken = threading.Event()
        begun = self._loop.begin(drive(self._direct.api, job, taken=taken.set, waiting=waiting))
        try:
            while not taken.wait(_TAKEN_SECONDS) and not begun.is_over:
                pass
        except BaseException:
            begun.stop()
            raise
        if begun.is_over:
            begun.result()
        return begun

    def hold(self, ref: str) -> Job:
        """Keep a job from starting; what runs goes back to waiting."""
        return self._loop.run(self._act(ref, self._direct.hold))

    def release(self, ref: str) -> Job:
        return self._loop.run(self._act(ref, self._direct.release))

    def open_gate(self, ref: str, gate: str) -> Job:
        async def act(job: FoundJob) -> None:
            if gate in job.gates:
                await self._direct.open_gate(job, gate)
            elif gate not in (known := tell.details_answer(job).gates):
                advice = f"its gates: {', '.join(known) or 'none'}"
                raise Refusal("no-such-gate", f"the job has no gate {gate}", advice)

        return self._loop.run(self._act(ref, act))

    def extend(self, ref: str, seconds: float, task: str | None = None) -> Job:
        """Nobody gives more time there, to whichever job; one that is over needs none."""
        del seconds, task
        job: FoundJob | None = None
        with suppress(Refused):
            job = self._found(ref)
        if job is None or not job.is_over:
            not_here("/extend", _PLACE)
        raise Refused(409, Refusal("wrong-state", f"the job {job.id} is over").failure())

    async def _act(self, ref: str, act: Callable[[FoundJob], Any]) -> Job:
        job = await self._one(ref)
        if job.is_over:
            raise Refusal("wrong-state", f"the job {job.id} is over")
        await act(job)
        now = await self._direct.job(job.id)
        return tell.job_answer(now or job)

    def replicas(self, ref: str, **filters: Filters) -> Iterator[Replica]:
        unit, states = filters.get("unit"), words(filters.get("state"))
        found = [tell.replica_answer(replica) for replica in self._found(ref).replicas()]
        return (one for one in found if unit in (None, one.unit) and (states is None or one.state in states))

    def attempts(self, ref: str, **filters: Filters) -> Iterator[Attempt]:
        wanted = filters.get("replica")
        replicas = list(self._found(ref).replicas())
        return (
            attempt
            for replica in replicas
            if wanted in (None, replica.key)
            for attempt in tell.attempt_answers(replica)
        )

    def why(self, ref: str) -> Why:
        return self._loop.run(self._why(ref))

    async def _why(self, ref: str) -> Why:
        job = await self._one(ref)
        return tell.why_answer(job, await self._direct.why(job))

    def copies(self, ref: str) -> list[Copy]:
        return tell.copies_answer(self._found(ref))

    def enter(
        self,
        ref: str,
        copy: Copy,
        *,
        command: Sequence[str] = (),
        port: int | None = None,
        terminal: bool = False,
        size: tuple[int, int] = (0, 0),
    ) -> DirectSession:
        """Run a command in a pod, or connect to a port of it, through its API server."""
        del ref
        words = tuple(command) or ("sh",)
        entry = Entry(command=words, port=port, terminal=terminal, rows=size[0], columns=size[1])
        api = self._direct.api
        passage = self._loop.run(enter_pod(api, *pod_of(copy.container or ""), entry))
        return DirectSession(self._loop, passage)

    # -- following -------------------------------------------------------------------------------------------

    def logs(self, ref: str, *, follow: bool = False, **filters: Filters) -> Iterator[LogLine]:
        """Lines that copies of a job wrote, as for a service; which stream they went to is not known."""
        job = self._found(ref)
        lines = self._loop.iterate(self._lines(job, follow, filters))
        return chain([_ONE_STREAM], lines) if filters.get("stream") else lines

    async def _lines(
        self, job: FoundJob, follow: bool, filters: Mapping[str, Any]
    ) -> AsyncGenerator[LogLine, None]:
        wanted = _output_filter(job, filters)
        lines = self._direct.lines(
            job, follow=follow, tail=filters.get("tail"), since=filters.get("since"), wanted=wanted
        )
        async with aclosing(lines) as open_lines:
            async for line in open_lines:
                yield tell.line_answer(job, line)
        if (note := tell.kept_note(job)) is not None:
            yield note

    def events(
        self, ref: str | None = None, *, follow: bool = False, after: int | None = None
    ) -> Iterator[Event]:
        if ref is None:
            not_here("/v1/events", _PLACE)
        job = self._found(ref)
        if follow:
            happened = self._loop.iterate(self._direct.happening(job.id))
        else:
            happened = iter(self._loop.run(self._direct.happenings(job)))
        numbered = (tell.event_answer(job.id, number, each) for number, each in enumerate(happened, 1))
        return (event for event in numbered if after is None or event.number > after)

    def wait(self, ref: str, timeout: float | None = None) -> Job:
        return self._loop.run(self._wait(ref), timeout)

    async def _wait(self, ref: str) -> Job:
        job = await self._one(ref)
        while not job.is_over:
            await self._direct.until_over(job.id)
            job = await self._one(job.id)
            if not job.is_over:
                await asyncio.sleep(_SETTLE_SECONDS)
        return tell.job_answer(job)

    # -- cluster ---------------------------------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        return [tell.node_answer(use) for use in self._loop.run(self._direct.nodes())]

    def queue(self) -> list[QueueRow]:
        return self.queue_in_sight()[0]

    def queue_in_sight(self) -> tuple[list[QueueRow], Sight | None]:
        rows, sight = self._loop.run(self._direct.queue())
        return [tell.row_answer(row) for row in rows], sight

    # -- finding ---------------------------------------------------------------------------------------------

    def _found(self, ref: str) -> FoundJob:
        return self._loop.run(self._one(ref))

    async def _one(self, ref: str) -> FoundJob:
        found = await self._direct.find(ref)
        if not found:
            raise Refusal("no-such-job", f"There is no job {ref!r}.", _LIST)
        if len(found) > 1:
            meant = ", ".join(f"{job.id} ({job.name})" for job in found)
            raise Refusal("ambiguous", f"{ref!r} may mean several jobs.", f"Say more of the id: {meant}.")
        try:
            _ = found[0].plan
        except PlanError as error:
            words = f"the job {found[0].id} cannot be read: {error}"
            raise Refusal("cannot", words, "it may be of another version; kubectl can delete it") from error
        return found[0]


async def _opened(make: Callable[[], Direct]) -> Direct:
    """Made inside the loop it belongs to."""
    return make()


def _submitted(prepared: list[Prepared], warnings: Iterable[Problem], **more: Any) -> Submitted:
    return Submitted(jobs=[one.answer for one in prepared], warnings=plain(warnings), **more)


def _output_filter(job: FoundJob, filters: Mapping[str, Any]) -> Callable[[Output], bool]:
    task, replica, node, attempt = (filters.get(name) for name in ("task", "replica", "node", "attempt"))
    names = {unit.id: unit.name for unit in job.plan.units}

    def wanted(output: Output) -> bool:
        unit = job.unit_of(output.task)
        named = (str(output.replica), tell.output_key(job, output))
        return (
            task in (None, unit, names.get(unit))
            and replica in (None, *named, *(f"{name}/{output.copy}" for name in named))
            and node in (None, output.node)
            and attempt in (None, output.attempt + output.restart)
        )

    return wanted
