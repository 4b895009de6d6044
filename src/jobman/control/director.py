"""The director: takes what happens to all jobs, lets conductors decide, commits, and only then acts.

```
 submissions, acts, reports, time ──▶ inbox ──▶ a batch: conductors decide, lines are served
                                                  │
                          answers, events ◀── commit ──▶ the host launches, stops, freezes
```

It has three parts: [working](working.py) makes the batches, in [submitting](submitting.py) jobs come in, and
[acting](acting.py) is what people and administrators do. Here are its life, the settings it goes by, and what
can be looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from jobman.control import answers, overview
from jobman.control.accounting.book import Book
from jobman.control.accounting.paths import unreadable
from jobman.control.acting import Acting
from jobman.control.admission import SettingsShelf
from jobman.control.batch import Batch
from jobman.control.broadcast import Subscription
from jobman.control.explaining import Explanation, estimate_of
from jobman.control.floor import Floor
from jobman.control.intake import Intake
from jobman.control.logs.watching import LogWatcher
from jobman.control.rereading import Reread, reread
from jobman.control.resuming import Known, Resumption, take_up
from jobman.control.retention import Retention
from jobman.control.store.store import Store
from jobman.control.store.writer import Writer
from jobman.control.submitting import Submitting
from jobman.engines import base
from jobman.sched.accounts import AccountTree
from jobman.spec.problems import SpecError

log = logging.getLogger("jobman.director")
A = TypeVar("A")
T = TypeVar("T")


class Director(Submitting, Acting):
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
        shelf = settings or SettingsShelf()
        scheduling, accounting = self._in_force = shelf.scheduling(), shelf.accounting()
        retention = None
        if state is not None:
            retention = Retention(store, state, scheduling.keep_logs, scheduling.keep_log_size, clock)
        balances = store.balances()
        accounts = AccountTree(scheduling.accounts)
        book = Book(accounting, accounts, balances, half_life=scheduling.half_life)
        floor = Floor(host, store.last_numbers(), clock, scheduling, book, store.past_runs)
        floor.planning.remember(balances, book.spending.faded(clock()), clock())
        super().__init__(store, host, floor, logs=logs, retention=retention, clock=clock)
        self.notes: list[str] = []
        """In words, what whoever runs the service should know: settings that are not in force."""
        self._intake = Intake(store, host, shelf, scheduling.default_duration)
        self._keys = {}
        self._inspecting: asyncio.Task[None] | None = None

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
        for act in resumption.acts:
            await act.on(self.host)
        self._inspecting = asyncio.create_task(self._inspect())
        self._put(lambda batch: self._resume(resumption, batch))
        self._begin_to_work()

    def _resume(self, resumption: Resumption, batch: Batch) -> None:
        self._floor.resume(resumption.broken, batch)
        self._government.cordon(batch)

    def _nodes_renewed(self) -> None:
        self._intake.renew(list(self._floor.nodes.values()))

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

    @property
    def has_failed(self) -> bool:
        return self.failed.is_set()

    @property
    def accounts(self) -> AccountTree:
        """Who is below whom."""
        return self._floor.book.accounts

    @property
    def live_jobs(self) -> int:
        """How many jobs are not over."""
        return len(self._floor.jobs)

    def is_idle(self) -> bool:
        """Whether nothing is pending or running."""
        return not self._floor.jobs and self._inbox.empty()

    def reread(self) -> None:
        """Let settings that were changed count, as far as they may while the service runs."""
        try:
            found = self._intake.settings.newly()
        except (SpecError, OSError) as error:
            wrong = "the settings are wrong, and those read before stay in force"
            self._note(f"{wrong}: {error}")
            return
        if found is not None:
            self._enforce(reread(*found, self._in_force))

    def _enforce(self, found: Reread) -> None:
        before, self._in_force = self._in_force, (found.scheduling, found.accounting)
        self._note(found.words)
        if before == self._in_force:
            return
        log.info("settings were read again")
        accounts = self.accounts
        if found.scheduling.accounts != before[0].accounts:
            accounts = AccountTree(found.scheduling.accounts)
            self._floor.planning.set_accounts(found.scheduling, accounts)
        self._floor.book.set(found.accounting, accounts)
        self._put(lambda batch: self._floor.stop_losers(self._floor.book.lost({}), batch))

    def _note(self, words: str) -> None:
        notes = [words] if words else []
        if notes != self.notes:
            self.notes = notes
            if words:
                log.warning("%s", words)

    async def _inspect(self) -> None:
        """Look now and then whether owners may still read what their jobs work on."""
        book = self._floor.book
        while True:
            await asyncio.sleep(book.meter.length)
            self.reread()
            try:
                lost = book.lost(await apart(unreadable, book.inspections()))
            except Exception:
                log.exception("the paths of jobs cannot be looked at")
                continue
            if lost:
                self._put(lambda batch, lost=lost: self._floor.stop_losers(lost, batch))  # type: ignore[misc]

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

    def in_line(self) -> list[int]:
        """The numbers of the jobs that wait, in the order in which they are served."""
        return overview.in_line(self._floor)

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
