"""The director: takes what happens to all jobs, lets conductors decide, commits, and only then acts.

```
 submissions, acts, reports, time ──▶ inbox ──▶ a batch: conductors decide, lines are served
                                                  │
                          answers, events ◀── commit ──▶ the host launches, stops, freezes
```

One batch at a time; what arrives while it is being committed makes the next one, so that many changes share
one commit. Everything in here runs in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from jobman.control import answers, overview
from jobman.control import happenings as h
from jobman.control.accounting.book import Book
from jobman.control.accounting.paths import unreadable
from jobman.control.administration import CalendarEntry, NewEntry, QueueInfo, Standing
from jobman.control.admission import LARGE, SettingsShelf, plain
from jobman.control.batch import Batch
from jobman.control.broadcast import Broadcast, Subscription
from jobman.control.explaining import Explanation, estimate_of, try_out
from jobman.control.failpoints import failpoint
from jobman.control.floor import Floor
from jobman.control.governing import Government
from jobman.control.intake import Admitted, Intake, fingerprint
from jobman.control.live import LiveJob
from jobman.control.logs.watching import LogWatcher
from jobman.control.planning import Outcome
from jobman.control.refusals import Refusal
from jobman.control.resuming import Known, take_up
from jobman.control.retention import Retention
from jobman.control.store.errors import Fenced, StoreError
from jobman.control.store.records import JobRecord, LogRecord, SubmissionRecord
from jobman.control.store.store import Store
from jobman.control.store.writer import Writer
from jobman.control.switches import standing
from jobman.engines import base
from jobman.sched.accounts import AccountTree

log = logging.getLogger("jobman.director")
_MOST_AT_ONCE = 500
_TIDY = 60.0
_PATIENCE = 0.05
"""Seconds for which a commit waits for a pass of the planner, so that one commit does for both."""
_NO_TIME = 0.03
"""Seconds after which somebody may want to see output as it is written."""

Item = Callable[[Batch], None]
A = TypeVar("A")
T = TypeVar("T")


class Director:
    """Leads all jobs of a service."""

    def __init__(
        self,
        store: Store,
        host: base.Host,
        *,
        settings: SettingsShelf | None = None,
        logs: LogWatcher | None = None,
        state: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.host = host
        self.trouble = ""
        """In words, why nothing can be written just now."""
        self.logs = logs
        """Follows the growth of outputs; without it they are looked at now and then."""
        self._clock = clock
        self._intake = Intake(store, host, settings or SettingsShelf())
        shelf = self._intake.settings
        scheduling = shelf.scheduling()
        self.retention: Retention | None = None
        """Removes output that is kept no longer; the words of its rule are for everybody."""
        if state is not None:
            keep, most = scheduling.keep_logs, scheduling.keep_log_size
            self.retention = Retention(store, state, keep, most, clock)
        accounts = AccountTree(scheduling.accounts)
        balances = store.balances()
        book = Book(shelf.accounting(), accounts, balances, half_life=scheduling.half_life)
        self._floor = Floor(host, store.last_numbers(), clock, scheduling, book, store.past_runs())
        self._floor.planning.remember(balances, book.spending.faded(clock()), clock())
        self._government = Government(store, self._floor)
        self._broadcast = Broadcast()
        self._inbox: asyncio.Queue[Item] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._writer: Writer | None = None
        self._worker: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._inspecting: asyncio.Task[None] | None = None
        self._retaining: asyncio.Task[int] | None = None
        self._soon_watched: dict[str, asyncio.TimerHandle] = {}
        self._unanswered: set[asyncio.Future[Any]] = set()
        self._keys: dict[tuple[str, str], asyncio.Future[Any]] = {}
        """Idempotency keys of submissions that are not committed yet."""
        self.failed = asyncio.Event()
        """Set when it cannot go on: the process should end, and be started again."""

    # -- life -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take up all work that is not finished, then wait for more."""
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(self.store)
        if self.logs is not None:
            await self.logs.__aenter__()
        self._government.begin()
        known = Known(self.store.promises(), self.store.charged())
        resumption = take_up(self._floor, self.store.unfinished(), known)
        await self.host.start(self._report)
        await self.host.recover(resumption.orders)
        for name, address, arguments in resumption.acts:
            await getattr(self.host, name)(address, *arguments)
        self._inspecting = asyncio.create_task(self._inspect())
        self._put(lambda batch: self._floor.resume(resumption.broken, batch))
        self._worker = asyncio.create_task(self._work(), name="director")
        self._worker.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Stop working; copies that run go on."""
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._worker
        for task in (self._sweeping, self._inspecting, self._retaining):
            if task is not None:
                task.cancel()
        if self._retaining is not None:
            await asyncio.wait([self._retaining])
        for timer in (self._timer, *self._soon_watched.values()):
            if timer is not None:
                timer.cancel()
        if self._writer is not None:
            await self._writer.close()
        self._floor.planning.close()
        if self.logs is not None:
            self.logs.close()
        await self.host.close()
        self.store.close()

    def _ended(self, worker: asyncio.Task[None]) -> None:
        failure = None if worker.cancelled() else worker.exception()
        if failure is not None:
            self.trouble = f"the service has a fault and must be started again: {failure}"
            log.critical("the director ended", exc_info=failure)
            self.failed.set()
        for future in self._unanswered:
            if not future.done():
                future.set_exception(Refusal("stopping", "the service is stopping", "try again"))

    @property
    def has_failed(self) -> bool:
        return self.failed.is_set()

    def is_idle(self) -> bool:
        """Whether nothing is pending or running."""
        return not self._floor.jobs and self._inbox.empty()

    # -- the loop ---------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            items = [await self._inbox.get()]
            while not self._inbox.empty() and len(items) < _MOST_AT_ONCE:
                items.append(self._inbox.get_nowait())
            batch = Batch()
            for item in items:
                item(batch)
            await self._schedule(batch)
            await self._commit(batch)
            await self._carry_out(batch)
            self._set_timer()

    async def _schedule(self, batch: Batch) -> None:
        """Give what can be given. A pass that takes its time goes on meanwhile, and is carried out later."""
        floor, planning = self._floor, self._floor.planning
        floor.serve_lines(batch)
        while planning.is_due(self._clock()) and not planning.is_busy:
            under_way = planning.begin(self._clock())
            done, _ = await asyncio.wait([under_way], timeout=_PATIENCE)
            if not done:
                under_way.add_done_callback(self._pass_done)
                return
            self._carry(under_way.result(), batch)

    def _carry(self, outcome: Outcome, batch: Batch) -> None:
        self._floor.planning.finished(outcome)
        self._floor.carry(outcome, batch)
        self._floor.serve_lines(batch)

    def _pass_done(self, under_way: asyncio.Future[Outcome]) -> None:
        self._put(lambda batch: self._carry(under_way.result(), batch))

    async def _commit(self, batch: Batch) -> None:
        """Write a batch. Where that fails, submissions are refused and the rest is tried again."""
        assert self._writer is not None
        pause = 0.2
        while not batch.is_empty:
            try:
                failpoint("director.before-commit")
                await self._writer.write(batch.changes)
            except Fenced:
                raise  # Another service has taken over: this one must not go on.
            except StoreError as error:
                log.error("cannot write: %s", error)
                self.trouble = str(error)
                await self._refuse_submissions(batch, error)
                if not batch.is_empty:
                    await asyncio.sleep(pause)
                    pause = min(5.0, pause * 2)
            else:
                failpoint("director.after-commit")
                break
        self.trouble = ""

    async def _refuse_submissions(self, batch: Batch, error: StoreError) -> None:
        """Take submissions back, once it is certain that they were not written after all."""
        if not batch.fresh:
            return
        try:
            found = await asyncio.to_thread(self.store.job, next(iter(batch.fresh)))
        except StoreError:
            return  # Nobody knows; to write them again is harmless.
        if found is None:
            self._take_back(batch, error)

    def _take_back(self, batch: Batch, error: StoreError) -> None:
        """Nothing of a submission is committed: its author is told, and it leaves no trace."""
        fresh, batch.fresh = batch.fresh, {}
        batch.take_back(set(fresh))
        for job_id in fresh:
            self._floor.forget(self._floor.jobs[job_id])
        refusal = Refusal("store", f"nothing was submitted: {error}", "try again when that is mended")
        for future in set(fresh.values()):
            if not future.done():
                future.set_exception(refusal)

    async def _carry_out(self, batch: Batch) -> None:
        has_acts = bool(batch.launches or batch.acts)
        if has_acts:
            failpoint("director.before-acts")
        if batch.launches:
            await self.host.launch(batch.launches)
        for future, answer in batch.waiting:
            if not future.done():
                future.set_result(answer)
        for name, address, arguments in batch.acts:
            await getattr(self.host, name)(address, *arguments)
        if has_acts:
            failpoint("director.after-acts")
        if self.logs is not None and batch.changes.logs:
            self._watch(batch.changes.logs.values())
        self._broadcast.publish(batch.changes.events)

    def _watch(self, records: Iterable[LogRecord]) -> None:
        """Follow the growth of outputs, but not of those that are over in no time."""
        assert self.logs is not None
        for record in records:
            stream = f"{record.job}/{record.key}/{record.attempt}/{record.copy}/{record.stream}"
            timer = self._soon_watched.pop(stream, None)
            if timer is not None:
                timer.cancel()
            elif record.ended:
                self.logs.unwatch(stream)
            if not record.ended:
                self._soon_watched[stream] = self._loop.call_later(
                    _NO_TIME, self._begin_to_watch, stream, Path(record.path)
                )

    def _begin_to_watch(self, stream: str, path: Path) -> None:
        del self._soon_watched[stream]
        if self.logs is not None:
            self.logs.watch(stream, path)

    def _put(self, item: Item) -> None:
        self._inbox.put_nowait(item)

    def _report(self, report: base.Report) -> None:
        self._put(lambda batch: self._floor.hear(report, batch))

    async def _ask(self, item: Callable[[Batch, asyncio.Future[Any]], None]) -> Any:
        """Put something into the next batch and wait for its commit."""
        if self.trouble:
            raise Refusal("store", self.trouble, "try again when that is mended")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._unanswered.add(future)
        future.add_done_callback(self._unanswered.discard)

        def run(batch: Batch) -> None:
            try:
                item(batch, future)
            except Refusal as refusal:
                future.set_exception(refusal)

        self._put(run)
        return await future

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        kept = None if self.retention is None else self.retention.next_due(self._clock())
        dues = (self._floor.next_due(), self._floor.planning.due, self._government.next_due(), kept)
        due = min(due for due in dues if due is not None)
        # The clock of the day may jump: a long wait is looked at again after a minute.
        wait = min(60.0, max(0.0, due - self._clock())) + 0.001
        self._timer = self._loop.call_later(wait, self._put, self._ring)

    def _ring(self, batch: Batch) -> None:
        self._government.ring(batch)
        self._floor.ring(batch)
        self._retain()

    def _retain(self) -> None:
        """Remove output that is kept no longer, beside everything else."""
        due = None if self.retention is None else self.retention.next_due(self._clock())
        if self.retention is not None and due is not None and due <= self._clock():
            self._retaining = asyncio.create_task(self.retention.sweep())

    # -- submitting -------------------------------------------------------------------------------

    async def submit(self, submission: answers.Submission, owner: str, key: str | None) -> answers.Submitted:
        """Admit a document, commit its jobs, and answer. The same key gets the same answer again."""
        if key is None or submission.dry_run or submission.what_if:
            return await self._submit(submission, owner, None)
        while (earlier := self._keys.get((owner, key))) is not None:
            await asyncio.wait([earlier])
        done = self._keys[owner, key] = self._loop.create_future()
        try:
            known = await self._replayed(owner, key, fingerprint(submission))
            return known or await self._submit(submission, owner, key)
        finally:
            del self._keys[owner, key]
            done.set_result(None)

    async def _submit(self, submission: answers.Submission, owner: str, key: str | None) -> answers.Submitted:
        print_of_it = fingerprint(submission)
        if len(submission.document) > LARGE or submission.rerun_of is not None:
            admitted = await asyncio.to_thread(self._intake.admit, submission, owner)
        else:
            admitted = self._intake.admit(submission, owner)
        warnings = plain(admitted.warnings)
        if submission.dry_run or submission.what_if:
            records = self._records(admitted, owner, None)
            self._government.refuse_all(records, admitted.plans)
            return answers.Submitted(
                jobs=[_as_answer(record) for record in records],
                warnings=warnings,
                estimates=await self._what_if(records, admitted) if submission.what_if else [],
                notes=["nothing was submitted"],
            )
        environment = None
        if submission.environment is not None:
            environment = self.host.keep_environment(submission.environment)

        def enter(batch: Batch, future: asyncio.Future[Any]) -> None:
            records = self._records(admitted, owner, environment)
            self._government.refuse_all(records, admitted.plans)
            for plan, record in zip(admitted.plans, records, strict=True):
                self._floor.enter(
                    record, plan, admitted.nodes, batch, done=admitted.done, hold=submission.hold
                )
                batch.fresh[record.id] = future
            if key is not None:
                jobs = tuple(record.id for record in records)
                batch.changes.submissions.append(
                    SubmissionRecord(owner=owner, key=key, digest=print_of_it, jobs=jobs, at=self._clock())
                )
            batch.waiting.append((future, records))

        records = await self._ask(enter)
        estimates = [estimate_of(self._floor, record.id) for record in records]
        return answers.Submitted(
            jobs=[_as_answer(record) for record in records],
            warnings=warnings,
            estimates=[estimate for estimate in estimates if estimate is not None],
        )

    async def _what_if(self, records: Sequence[JobRecord], admitted: Admitted) -> list[answers.Estimate]:
        """When each job would start if it were submitted now, and what would make that sooner."""
        if admitted.submission.virtual:
            return [answers.Estimate(job=record.id, starts_now=True) for record in records]
        pairs = zip(records, admitted.plans, strict=True)
        return [await try_out(self._floor, record, plan) for record, plan in pairs]

    def _records(self, admitted: Admitted, owner: str, environment: str | None) -> list[JobRecord]:
        now = self._clock()
        return [self._intake.record(plan, admitted, owner, now, environment) for plan in admitted.plans]

    async def _replayed(self, owner: str, key: str, print_of_it: str) -> answers.Submitted | None:
        known = await asyncio.to_thread(self.store.submission, owner, key)
        if known is None:
            return None
        if known.digest != print_of_it:
            message = "this idempotency key belongs to another submission"
            raise Refusal("key-reused", message, "use a new key for each submission")
        found = [await asyncio.to_thread(self.store.job, job_id) for job_id in known.jobs]
        jobs = [_as_answer(record) for record in found if record is not None]
        return answers.Submitted(jobs=jobs, replayed=True)

    # -- acts of people ---------------------------------------------------------------------------

    async def cancel(self, job_id: str, who: str) -> None:
        """End a job; its cleanup still runs."""
        await self._act(job_id, h.Cancelled(), "cancelling", f"cancelled by {who}")

    async def hold(self, job_id: str, who: str) -> None:
        """Start nothing more of a job; what runs is suspended as its document says."""
        await self._act(job_id, h.Held(), "held", f"held by {who}")

    async def release(self, job_id: str, who: str) -> None:
        await self._act(job_id, h.Released(), "released", f"released by {who}")

    async def open_gate(self, job_id: str, gate: str, who: str) -> None:
        job = self._floor.jobs.get(job_id)
        if job is None:
            return await self._act(job_id, h.GateOpened(gate), "gate-opened", "")
        gates = {*job.plan.policies.gates, *(name for unit in job.plan.units for name in unit.policies.gates)}
        if gate not in gates:
            known = ", ".join(sorted(gates)) or "none"
            raise Refusal("no-such-gate", f"the job has no gate {gate}", f"its gates: {known}")
        return await self._act(job_id, h.GateOpened(gate), "gate-opened", f"{gate} opened by {who}")

    async def extend(self, job_id: str, seconds: float, task: str | None, who: str) -> None:
        """Give more time to what runs."""
        job = self._live(job_id)
        if task is not None and task not in job.units:
            known = ", ".join(job.units)
            raise Refusal("no-such-task", f"the job has no task {task}", f"its tasks: {known}")
        if all(replica.due is None and replica.left is None for replica in job.conductor.live()):
            raise Refusal("wrong-state", "nothing with a time limit runs in this job")
        await self._refuse_delay(job, seconds, task)
        words = f"{seconds:g} s more for {task or 'everything that runs'}, given by {who}"
        await self._act(job_id, h.Extended(seconds, task), "extended", words)

    async def _refuse_delay(self, job: LiveJob, seconds: float, task: str | None) -> None:
        """More time is given only where nobody's guarantee moves; if not, the most that could be is named."""
        planning = self._floor.planning
        concerned = [
            request_id
            for key, request_id in job.requests.items()
            if key in job.allocations and _is_about(task, job.unit_of(key).id)
        ]
        if not concerned:
            return
        answer = await planning.extend(concerned, seconds, self._clock())
        if not answer.granted:
            most = int(answer.largest)
            which = f" --task {task}" if task is not None else ""
            advice = (
                f"jobman extend {job.id} +{most}s{which} would be granted" if most >= 1 else "try again later"
            )
            raise Refusal("would-delay", "somebody else was promised these nodes by then", advice)

    # -- acts of administrators ---------------------------------------------------------------------

    def calendar(self) -> list[CalendarEntry]:
        """All windows of maintenance and reservations."""
        return self._government.calendars.entries(self._clock())

    async def add_calendar(self, wanted: NewEntry, who: str) -> CalendarEntry:
        calendars = self._government.calendars

        def add(batch: Batch, future: asyncio.Future[Any]) -> None:
            record, notes = calendars.admit(wanted, who, self._clock(), list(self._floor.nodes.values()))
            batch.changes.calendar[record.name] = record
            self._government.keep_entry(record)
            batch.waiting.append((future, calendars.entry(record, self._clock(), notes)))

        entry: CalendarEntry = await self._ask(add)
        return entry

    async def remove_calendar(self, name: str, kind: str | None, who: str) -> CalendarEntry:
        log.info("%s removes %s from the calendar", who, name)
        calendars = self._government.calendars

        def remove(batch: Batch, future: asyncio.Future[Any]) -> None:
            record = calendars.find(name, kind)
            entry = calendars.entry(record, self._clock())
            batch.changes.calendar[record.name] = None
            self._government.drop_entry(record.name)
            batch.waiting.append((future, entry))

        entry: CalendarEntry = await self._ask(remove)
        return entry

    def queues(self) -> list[QueueInfo]:
        return self._government.queues()

    async def set_queue_state(self, name: str, state: str, reason: str, who: str) -> Standing:
        switches, queues = self._government.switches, self._floor.planning.scheduling.queues

        def switch(batch: Batch, future: asyncio.Future[Any]) -> None:
            record = switches.switch_queue(name, state, reason, who, self._clock(), queues)
            batch.changes.queue_states[name] = record
            self._government.keep_queue(record)
            batch.waiting.append((future, standing(record)))

        found: Standing = await self._ask(switch)
        return found

    async def set_node_state(self, name: str, state: str, reason: str, who: str) -> Standing:
        switches = self._government.switches

        def switch(batch: Batch, future: asyncio.Future[Any]) -> None:
            record = switches.switch_node(name, state, reason, who, self._clock(), list(self._floor.nodes))
            batch.changes.node_states[name] = record
            self._government.keep_node(record)
            batch.waiting.append((future, standing(record)))

        found: Standing = await self._ask(switch)
        return found

    async def delete(self, job_id: str, who: str) -> None:
        """Forget a finished job with everything it left."""
        if job_id in self._floor.jobs:
            raise Refusal("wrong-state", "the job is not over", f"cancel it first: jobman cancel {job_id}")
        log.info("%s deletes %s", who, job_id)

        def forget(batch: Batch, future: asyncio.Future[Any]) -> None:
            batch.changes.deleted.add(job_id)
            batch.waiting.append((future, None))

        await self.host.forget(job_id)
        await self._ask(forget)
        self._sweep_later()

    def _sweep_later(self) -> None:
        """Some time after jobs were deleted, remove the environments that only they had used."""
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        await asyncio.sleep(_TIDY)
        used = await asyncio.to_thread(self.store.environments)
        await asyncio.to_thread(self.host.sweep, used)

    async def _inspect(self) -> None:
        """Look now and then whether owners may still read what their jobs work on."""
        book = self._floor.book
        while True:
            await asyncio.sleep(book.meter.length)
            lost = book.lost(await apart(unreadable, book.inspections()))
            if lost:
                self._put(lambda batch, lost=lost: self._floor.stop_losers(lost, batch))  # type: ignore[misc]

    async def _act(self, job_id: str, happening: h.Happening, kind: str, words: str) -> None:
        if job_id not in self._floor.jobs and await self._was_done(job_id, kind):
            return

        def act(batch: Batch, future: asyncio.Future[Any]) -> None:
            self._floor.event(self._live(job_id), batch, kind, message=words)
            self._floor.take(job_id, happening, batch)
            batch.waiting.append((future, None))

        await self._ask(act)

    async def _was_done(self, job_id: str, kind: str) -> bool:
        """Whether a request is one that is repeated because its answer was lost."""
        return bool(await asyncio.to_thread(lambda: self.store.events(job_id, kinds=[kind], limit=1)))

    def _live(self, job_id: str) -> LiveJob:
        job = self._floor.jobs.get(job_id)
        if job is None:
            raise Refusal("wrong-state", f"the job {job_id} is over")
        return job

    # -- looking ----------------------------------------------------------------------------------

    def subscribe(self) -> Subscription:
        """Hear every event after it was committed."""
        return self._broadcast.subscribe()

    async def why(self, job_id: str) -> answers.Why | None:
        """Why a job is where it is; None where it is over."""
        job = self._floor.jobs.get(job_id)
        if job is None:
            return None
        return await Explanation(self._floor, self.store, job).give()

    def glance(self, job_id: str) -> tuple[answers.Estimate | None, float | None]:
        """Of a job that waits what it was promised, and of one that runs by when it ends."""
        job = self._floor.jobs.get(job_id)
        if job is None:
            return None, None
        if job.record.state == "waiting":
            return estimate_of(self._floor, job_id), None
        dues = [replica.due for replica in list(job.conductor.live())]
        return None, max((due for due in dues if due is not None), default=None) if all(dues) else None

    def gates(self, job_id: str) -> set[str]:
        """The gates of a live job that are open."""
        job = self._floor.jobs.get(job_id)
        return set() if job is None else job.conductor.open_gates

    def copies(self, job_id: str) -> list[dict[str, Any]]:
        """The running copies of a job."""
        found: list[dict[str, Any]] = msgspec.to_builtins(list(self.host.copies(job_id)))
        return found

    def nodes(self) -> list[answers.Node]:
        """The nodes with what is used of them."""
        return overview.nodes(self._floor, self._government.switches)

    async def queue(self, owner: str) -> list[answers.QueueRow]:
        """Live jobs by flavor."""
        return await overview.queue(self._floor, owner)


async def apart(call: Callable[[A], T], argument: A) -> T:
    """Call something that may never come back, such as a look at a dead disk, so that nobody waits for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: Exception | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = call(argument)
        except Exception as failure:
            error = failure
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future


def _is_about(task: str | None, unit: str) -> bool:
    """Whether a task is meant that holds nodes itself, or is inside a group that does."""
    return task is None or task == unit or task.startswith(f"{unit}/")


def _as_answer(record: JobRecord) -> answers.Job:
    fields = {name: getattr(record, name) for name in answers.Job.__struct_fields__ if hasattr(record, name)}
    return answers.Job(**fields)
