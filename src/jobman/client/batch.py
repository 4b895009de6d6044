"""A client without a service: the same questions, asked of a manager of batch jobs and of jobs' folders."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from jobman.client import batch_answers as tell
from jobman.client.batch_completing import complete, is_held
from jobman.client.batch_failures import as_failures, patient
from jobman.client.batch_logs import Outputs
from jobman.client.batch_submission import Prepared, Submitting, submission_again
from jobman.client.client import Client, Filters
from jobman.client.filters import tests, words
from jobman.client.no_link import NoLink, not_here
from jobman.control.admission import plain
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
from jobman.engines.scripts.delegate import Delegate
from jobman.engines.scripts.done import done_of
from jobman.engines.scripts.folder import Folder
from jobman.engines.scripts.found import BatchJob, Native, natives_by_job
from jobman.engines.scripts.graph import Piece, pieces_of
from jobman.engines.scripts.registry import Entry, Registry
from jobman.plan.model import PlanError

_LIST = "jobman list shows those there are."
_PAUSE = 0.3
_FREEZING = 5.0
_HELD = ("frozen", "stopping", "retrying")
"""What a script says when it has heard that its job is held."""
_CLOCKS = 5.0
"""Seconds by which the clocks of nodes may differ."""
_ASK_EVERY = 5.0
"""Seconds between questions to the manager while something is followed; files are looked at more often."""


class BatchClient(Client):
    """Speaks to one manager, as one user. May be used from several threads at once."""

    def __init__(self, manager: Delegate, *, root: Path, database: Path, owner: str) -> None:
        self._place = manager.title
        super().__init__(NoLink(self._place))
        self._manager = manager
        self._root = root
        self._owner = owner
        self._registry = Registry(database, manager.name, root)

    def close(self) -> None:
        """There is nothing to be closed."""

    # -- submitting ------------------------------------------------------------------------------------------

    def submit(self, submission: Submission, *, key: str | None = None, driven: bool = False) -> Submitted:
        """Submit all jobs of a document, or none. The same key submits them once."""
        del driven
        with as_failures():
            return self._submit(submission, key or os.urandom(16).hex())

    def _submit(self, submission: Submission, key: str) -> Submitted:
        done: dict[str, tuple[int, ...]] = {}
        if submission.rerun_of is not None:
            earlier = self._one(submission.rerun_of)
            if submission.failed_only:
                done = done_of(earlier, in_part=self._manager.picks_replicas)
            submission = submission_again(submission, earlier.about)
        submitting = Submitting(self._manager, self._registry, self._root, self._owner)
        plans, warnings, settings = submitting.read(submission)
        prepared = submitting.prepare(submission, plans, settings, key, done)
        notes = [note for one in prepared for note in one.notes]
        if submission.dry_run:
            notes.append("nothing was submitted")
            return Submitted(jobs=[_new(one) for one in prepared], warnings=plain(warnings), notes=notes)
        replayed = submitting.is_known(prepared)
        submitting.submit(prepared, hold=submission.hold)
        jobs = [_new(one, held=submission.hold) for one in prepared]
        return Submitted(jobs=jobs, warnings=plain(warnings), replayed=replayed, notes=notes)

    # -- jobs ------------------------------------------------------------------------------------------------

    def jobs(self, **filters: Filters) -> Iterator[Job]:
        """Jobs, the newest first. Filters: owner, mine, state, name, label, since, until, search."""
        return iter(self._fitting(filters))

    def jobs_page(self, *, limit: int = 100, cursor: str | None = None, **filters: Filters) -> Page[Job]:
        found = self._fitting(filters)
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        end = start + limit
        return Page(items=found[start:end], cursor=str(end) if end < len(found) else None)

    def _fitting(self, filters: dict[str, Any]) -> list[Job]:
        checks = list(tests(filters))
        if filters.get("queue") is not None:
            checks.append(lambda job: getattr(job, "queue", None) == filters["queue"])
        with as_failures():
            return [job for job in self._glances() if all(check(job) for check in checks)]

    def _glances(self) -> list[Job]:
        """Every job, with one question to the manager for all that are not over."""
        entries = self._registry.all()
        open_ = [entry for entry in entries if entry.glance is None]
        whole = {entry.id for entry in open_ if _is_whole(entry)}
        natives = self._natives(open_)
        closed: list[tuple[str, str]] = []
        found = []
        for entry in entries:
            if entry.glance is not None:
                found.append(msgspec.json.decode(entry.glance, type=Job))
                continue
            job = self._job(entry, natives.get(entry.id, []), whole=entry.id in whole)
            if job is None:
                continue
            glance = tell.job_answer(job)
            if job.is_over:
                closed.append((job.id, msgspec.json.encode(glance).decode()))
            found.append(glance)
        if closed:
            self._registry.close(closed)
        return found

    def _natives(self, entries: Sequence[Entry]) -> dict[str, list[Native]]:
        """What the manager says of jobs: of those in its queue, and where it can of those that left it."""
        if not entries:
            return {}
        found = natives_by_job(self._manager.queue())
        gone: dict[str, tuple[str, str]] = {}
        for entry in entries:
            seen = {native.piece for native in found.get(entry.id, ())}
            ids = Folder(Path(entry.folder)).ids()
            gone.update({ids[piece]: (entry.id, piece) for piece in ids if piece not in seen})
        for native in self._manager.finished(gone):
            job, piece = gone[native.id]
            known = msgspec.structs.replace(native, job=job, piece=piece)
            found.setdefault(job, []).append(known)
        return found

    def _job(self, entry: Entry, natives: Sequence[Native], *, whole: bool) -> BatchJob | None:
        """The job of an entry. Was it whole when the manager was asked? Since then more may be there."""
        folder = Folder(Path(entry.folder))
        try:
            about = folder.about()
        except (OSError, msgspec.DecodeError):
            if self._root.is_dir() and not folder.path.exists():
                # Somebody removed its folder: nothing is known of it any more.
                self._registry.remove([entry.id])
            return None
        job = BatchJob(folder, about, natives)
        job.is_whole = whole
        if job.is_late and not folder.has("failed"):
            # Nobody else sees that its window is over: whoever looks gives it up.
            folder.mark("cancelled")
            folder.mark("failed")
            self._manager.kill(job.ids.values())
            job = BatchJob(folder, about, [])
        return job

    def details(self, ref: str) -> Details:
        return tell.details_answer(self._found(ref))

    def replicas(self, ref: str, **filters: Filters) -> Iterator[Replica]:
        unit, states = filters.get("unit"), words(filters.get("state"))
        found = [tell.replica_answer(replica) for replica in self._found(ref).replicas]
        return (one for one in found if unit in (None, one.unit) and (states is None or one.state in states))

    def attempts(self, ref: str, **filters: Filters) -> Iterator[Attempt]:
        job, wanted = self._found(ref), filters.get("replica")
        return (
            attempt
            for replica in job.replicas
            if wanted in (None, replica.key)
            for attempt in tell.attempt_answers(job, replica)
        )

    def why(self, ref: str) -> Why:
        with as_failures():
            job = self._one(ref)
            return tell.why_answer(job, [] if job.is_over else self._manager.why(job))

    def copies(self, ref: str) -> list[Copy]:
        job = self._found(ref)
        return [
            Copy(replica=replica.key, attempt=replica.attempts[-1].number, copy=0, node=node)
            for replica in job.replicas
            if replica.state == "running" and job.plan.unit(replica.unit).kind == "task"
            for node in replica.attempts[-1].nodes
        ]

    # -- acting ----------------------------------------------------------------------------------------------

    def cancel(self, ref: str) -> Job:
        """Stop a job for good; what runs gets the time to end that it asked for, and cleanup still runs."""
        return self._act(ref, self._cancel)

    def _cancel(self, job: BatchJob) -> None:
        again = job.folder.has("cancelled")
        job.folder.mark("cancelled")
        job.folder.tell("cancelling", at=time.time())
        has_begun = bool(job.folder.names("began"))
        spared = {unit.name for unit in job.plan.children() if unit.when == "always"} if has_begun else set()
        ids = [native for piece, native in _arrived(job) if piece not in spared]
        # Whoever stops what stands still lets it go on for that.
        for piece in job.folder.names("frozen"):
            job.folder.mark(f"frozen/{piece}", there=False)
        if again:
            self._manager.kill(ids)
        self._manager.cancel(ids, ids)
        # Cleanup of what is given up waits neither for a release nor at a gate.
        if spared:
            self._manager.release(native for piece, native in job.ids.items() if piece in spared)

    def delete(self, ref: str, *, force: bool = False) -> Job:
        """Delete a job that is over, or any with `force`, with everything of it."""
        with as_failures():
            job = self._one(ref)
            if not job.is_over:
                if not force:
                    advice = f"cancel it first: jobman cancel {job.id}"
                    raise Refusal("wrong-state", "the job is not over", advice)
                job.folder.mark("cancelled")
                self._manager.kill([native for _, native in _arrived(job)])
            self._forget([job])
            return tell.job_answer(job)

    def delete_all(self, **filters: Filters) -> int:
        """Delete all of one's own jobs that are over and fit."""
        over = [job.id for job in self._fitting(filters) if job.state in ("succeeded", "failed", "cancelled")]
        for id_ in over:
            self.delete(id_)
        return len(over)

    def _forget(self, jobs: Sequence[BatchJob]) -> None:
        self._registry.remove([job.id for job in jobs])
        for job in jobs:
            shutil.rmtree(job.folder.path, ignore_errors=True)

    def hold(self, ref: str) -> Job:
        """Keep a job from starting; what runs goes on, unless `suspend` says otherwise."""
        return self._act(ref, self._hold)

    def _hold(self, job: BatchJob) -> None:
        since = time.time()
        job.folder.mark("held")
        job.folder.tell("held", at=since)
        waiting = [native.id for native in job.natives if native.state == "waiting"]
        self._manager.hold(waiting)
        running = {native.piece: native.id for native in job.natives if native.state == "running"}
        heard: list[str] = []
        for unit in job.plan.children():
            way = unit.policies.suspend
            if way is None or unit.name not in running:
                continue
            job.folder.mark("suspended")
            job.folder.mark(f"{'frozen' if way == 'freeze' else 'requeued'}/{unit.name}")
            if way == "freeze":
                self._manager.freeze([running[unit.name]])
            else:
                self._manager.requeue([running[unit.name]])
            heard.append(unit.name)
        self._await_hold(job, heard, since)

    def _await_hold(self, job: BatchJob, pieces: Sequence[str], since: float) -> None:
        """Scripts hear of it in their own time: nobody should be told, or release it, before it is so."""
        deadline = time.monotonic() + _FREEZING
        while pieces and time.monotonic() < deadline:
            lines = [line for line in job.folder.lines() if line.kind in _HELD and line.at >= since - _CLOCKS]
            said = {line.key.partition("/")[0].rpartition(".")[0] for line in lines}
            if said.issuperset(pieces):
                return
            time.sleep(_PAUSE)

    def release(self, ref: str) -> Job:
        return self._act(ref, self._release)

    def _release(self, job: BatchJob) -> None:
        job.folder.mark("held", there=False)
        job.folder.mark("released")
        job.folder.mark("suspended", there=False)
        job.folder.tell("released", at=time.time())
        pieces = _pieces(job)
        if not job.is_whole:
            complete(self._manager, job.folder, pieces)
        for piece in job.folder.names("frozen"):
            job.folder.mark(f"frozen/{piece}", there=False)
            self._manager.freeze([job.ids[piece]])
        for piece in job.folder.names("requeued"):
            job.folder.mark(f"requeued/{piece}", there=False)
        self._let_go(job, pieces)

    def _let_go(self, job: BatchJob, pieces: Sequence[Piece]) -> None:
        ids = job.folder.ids()
        held = {native.piece for native in job.natives if native.state in ("held", "waiting")}
        free = [piece.name for piece in pieces if piece.name in held and not is_held(piece, job.folder)]
        self._manager.release(ids[name] for name in free)

    def open_gate(self, ref: str, gate: str) -> Job:
        def act(job: BatchJob) -> None:
            if gate not in job.gates:
                advice = f"its gates: {', '.join(job.gates) or 'none'}"
                raise Refusal("no-such-gate", f"the job has no gate {gate}", advice)
            if not job.gates[gate]:
                job.folder.mark(f"gates/{gate}")
                job.folder.tell("gate-opened", gate, at=time.time())
                self._let_go(job, _pieces(job))

        return self._act(ref, act)

    def extend(self, ref: str, seconds: float, task: str | None = None) -> Job:
        """Give a job, or one task of it, more time."""

        def act(job: BatchJob) -> None:
            names = {unit.id: unit for unit in job.plan.units} | {unit.name: unit for unit in job.plan.units}
            if task is not None and task not in names:
                raise Refusal("no-such-task", f"the job has no task {task}", "jobman details shows its tasks")
            running = {native.id for native in job.natives if native.state == "running"}
            if not running:
                raise Refusal("wrong-state", "nothing of it runs", "only what runs can be given more time")
            for native in running:
                self._manager.add_time(native, seconds)
            if task is None:
                job.folder.add_time(None, seconds)
            unit = names[task] if task is not None else None
            while unit is not None:
                # More time for a task is also more time for its group.
                job.folder.add_time(unit.name, seconds)
                unit = names[unit.parent] if unit.parent is not None else None
            job.folder.tell("extended", f"{seconds:g} s more", at=time.time())

        return self._act(ref, act)

    def _act(self, ref: str, act: Callable[[BatchJob], Any]) -> Job:
        with as_failures():
            job = self._one(ref)
            if job.is_over:
                raise Refusal("wrong-state", f"the job {job.id} is over")
            act(job)
            return tell.job_answer(self._one(job.id))

    # -- following -------------------------------------------------------------------------------------------

    def logs(self, ref: str, *, follow: bool = False, **filters: Filters) -> Iterator[LogLine]:
        """Lines that copies of a job wrote. Filters: tail, since, task, replica, node, attempt, stream."""
        job = self._found(ref)
        outputs = Outputs(filters)
        lines: Iterable[LogLine] = outputs.read(job, last=job.is_over or not follow)
        if (since := filters.get("since")) is not None:
            lines = (line for line in lines if line.at >= float(since))  # type: ignore[arg-type]
        if (tail := filters.get("tail")) is not None:
            lines = list(lines)[-int(tail) :] if tail else []  # type: ignore[arg-type]
        if not follow or job.is_over:
            return iter(lines)
        return chain(lines, self._growing(job, outputs))

    def _growing(self, job: BatchJob, outputs: Outputs) -> Iterator[LogLine]:
        for now in self._looking(job):
            yield from outputs.read(now, time.time(), last=now.is_over)

    def _looking(self, job: BatchJob) -> Iterator[BatchJob]:
        """The job again and again, until it is over: its files often, its manager now and then."""
        id_, asked, natives = job.id, time.monotonic(), job.natives
        while not job.is_over:
            time.sleep(_PAUSE)
            if time.monotonic() - asked > _ASK_EVERY:
                natives = patient(lambda: natives_by_job(self._manager.queue()).get(id_, []))
                asked = time.monotonic()
            job = BatchJob(job.folder, job.about, natives)
            if job.is_over:
                # What the manager says may be older than what the scripts wrote.
                job = patient(lambda: self._one(id_))
            yield job

    def events(
        self, ref: str | None = None, *, follow: bool = False, after: int | None = None
    ) -> Iterator[Event]:
        if ref is None:
            not_here("/v1/events", self._place)
        job = self._found(ref)
        events = self._happening(job) if follow else tell.event_answers(job)
        return (event for event in events if after is None or event.number > after)

    def _happening(self, job: BatchJob) -> Iterator[Event]:
        told = 0
        for now in chain([job], self._looking(job)):
            events = list(tell.event_answers(now))
            yield from events[told:]
            told = len(events)

    def wait(self, ref: str, timeout: float | None = None) -> Job:
        deadline = None if timeout is None else time.monotonic() + timeout
        job = self._found(ref)
        for now in self._looking(job):
            job = now
            if deadline is not None and time.monotonic() > deadline and not now.is_over:
                raise TimeoutError
        return tell.job_answer(job)

    # -- cluster ---------------------------------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        with as_failures():
            return [tell.node_answer(node) for node in self._manager.nodes()]

    def queue(self) -> list[QueueRow]:
        with as_failures():
            return [tell.row_answer(row) for row in self._manager.queues()]

    # -- finding ---------------------------------------------------------------------------------------------

    def _found(self, ref: str) -> BatchJob:
        with as_failures():
            return self._one(ref)

    def _recover(self, ref: str) -> int:
        """Take up the job that the manager has and nobody here knows: it says where its folder is.

        One that is asked for by its name may be any of them.
        """
        known = {entry.id for entry in self._registry.all()}
        strangers = {native.job: native.id for native in self._manager.queue() if native.job not in known}
        meant = {job: native for job, native in strangers.items() if job.startswith(ref)} or strangers
        folders = (self._manager.folder_of(native) for native in meant.values())
        return sum(self._registry.adopt(folder) for folder in folders if folder is not None)

    def _one(self, ref: str) -> BatchJob:
        found = self._registry.find(ref)
        if not found and (self._registry.rebuild() or self._recover(ref)):
            found = self._registry.find(ref)
        if not found:
            raise Refusal("no-such-job", f"There is no job {ref!r}.", _LIST)
        if len(found) > 1:
            meant = ", ".join(f"{entry.id} ({entry.name})" for entry in found)
            raise Refusal("ambiguous", f"{ref!r} may mean several jobs.", f"Say more of the id: {meant}.")
        entry = found[0]
        whole = _is_whole(entry)
        natives = {} if entry.glance is not None else self._natives([entry])
        job = self._job(entry, natives.get(entry.id, []), whole=whole)
        if job is None:
            raise Refusal("no-such-job", f"The folder of the job {entry.id} is gone.", _LIST)
        try:
            _ = job.plan
        except PlanError as error:
            raise Refusal(
                "cannot", f"the job {job.id} cannot be read: {error}", "it may be of another version"
            ) from error
        return job


def _is_whole(entry: Entry) -> bool:
    return Folder(Path(entry.folder)).has("submitted")


def _arrived(job: BatchJob) -> set[tuple[str, str]]:
    """The pieces of a job by their ids; nobody may have heard that one of them arrived."""
    unheard = {(native.piece, native.id) for native in job.natives if native.piece not in job.ids}
    return {*job.ids.items(), *unheard}


def _pieces(job: BatchJob) -> list[Piece]:
    """The pieces of a job that were to be submitted."""
    return pieces_of(job.plan, job.about.done)


def _new(one: Prepared, *, held: bool = False) -> Job:
    tasks = [unit for unit in one.plan.units if unit.kind == "task"]
    return Job(
        id=one.about.id,
        name=one.about.name,
        owner=one.about.owner,
        state="waiting",
        held=held or one.plan.policies.hold,
        queue=one.plan.queue,
        account=one.plan.account,
        labels=dict(one.plan.labels),
        submitted_at=one.about.submitted_at,
        counts={"waiting": sum(unit.replicas for unit in tasks)},
    )
