"""Working: batch after batch, of what happens what follows; committed first, carried out then.

One batch at a time; what arrives while it is being committed makes the next one, so that many changes share
one commit. Everything in here runs in one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jobman.control.batch import Batch
from jobman.control.broadcast import Broadcast
from jobman.control.floor import Floor
from jobman.control.governing import Government
from jobman.control.logs.watching import LogWatcher
from jobman.control.planning import Outcome
from jobman.control.refusals import Refusal
from jobman.control.retention import Retention
from jobman.control.store.errors import Fenced, StoreError
from jobman.control.store.records import LogRecord
from jobman.control.store.store import Store
from jobman.control.store.writer import Writer
from jobman.engines import base
from jobman.engines.failpoints import failpoint

log = logging.getLogger("jobman.director")
MOST_AT_ONCE = 500
"""Happenings that make one batch."""
_NO_TIME = 0.03
"""Seconds after which somebody may want to see output as it is written."""

Item = Callable[[Batch], None]
T = TypeVar("T")


class Working:
    """The inbox of a service, and its batches."""

    patience = 0.05
    """Seconds for which a commit waits for a pass of the planner, so that one commit does for both."""

    _loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        store: Store,
        host: base.Host,
        floor: Floor,
        *,
        logs: LogWatcher | None,
        retention: Retention | None,
        clock: Callable[[], float],
    ) -> None:
        self.store = store
        self.host = host
        self.trouble = ""
        """In words, why nothing can be written just now."""
        self.logs = logs
        """Follows the growth of outputs; without it they are looked at now and then."""
        self.retention = retention
        """Removes output that is kept no longer; the words of its rule are for everybody."""
        self.failed = asyncio.Event()
        """Set when it cannot go on: the process should end, and be started again."""
        self._clock = clock
        self._floor = floor
        self._government = Government(store, floor)
        self._broadcast = Broadcast()
        self._inbox: asyncio.Queue[Item] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._writer: Writer | None = None
        self._worker: asyncio.Task[None] | None = None
        self._retaining: asyncio.Task[int] | None = None
        self._soon_watched: dict[str, asyncio.TimerHandle] = {}
        self._unanswered: set[asyncio.Future[Any]] = set()

    def _begin_to_work(self) -> None:
        self._worker = asyncio.create_task(self._work(), name="director")
        self._worker.add_done_callback(self._ended)

    def _ended(self, worker: asyncio.Task[None]) -> None:
        failure = None if worker.cancelled() else worker.exception()
        if failure is not None:
            self.trouble = f"the service has a fault and must be started again: {failure}"
            log.critical("the director ended", exc_info=failure)
            self.failed.set()
        for future in self._unanswered:
            if not future.done():
                future.set_exception(Refusal("stopping", "the service is stopping", "try again"))

    async def _work(self) -> None:
        while True:
            items = [await self._inbox.get()]
            while not self._inbox.empty() and len(items) < MOST_AT_ONCE:
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
            done, _ = await asyncio.wait([under_way], timeout=self.patience)
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
        # What is said of nodes is said again at every start; the points are for what happens to jobs.
        has_acts = bool(batch.launches or any(act.is_of_a_job for act in batch.acts))
        if has_acts:
            failpoint("director.before-acts")
        if batch.launches:
            await self.host.launch(batch.launches)
        for future, answer in batch.waiting:
            if not future.done():
                future.set_result(answer)
        for act in batch.acts:
            await act.on(self.host)
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

    def _report(self, news: base.News) -> None:
        if isinstance(news, base.NodesChanged):
            self._put(lambda batch: self._look_at_nodes(news.nodes, batch))
        else:
            self._put(lambda batch: self._floor.hear(news, batch))

    def _look_at_nodes(self, nodes: Sequence[base.NodeSeen], batch: Batch) -> None:
        """Learn how nodes are now."""
        if self._floor.see(nodes):
            self._government.renew()
            self._nodes_renewed()
        self._government.cordon(batch)

    def _nodes_renewed(self) -> None:
        """There are others nodes, or others of them, than before."""

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

    async def _do(self, act: Callable[[Batch], T]) -> T:
        """Have something done in the next batch; what it returns, after the commit."""

        def run(batch: Batch, future: asyncio.Future[Any]) -> None:
            batch.waiting.append((future, act(batch)))

        done: T = await self._ask(run)
        return done

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
