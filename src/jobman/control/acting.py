"""Acting: what people do to their jobs, and what administrators do to everything."""

from __future__ import annotations

import asyncio
import logging

from jobman.control import happenings as h
from jobman.control.administration import CalendarEntry, NewEntry, QueueInfo, Standing
from jobman.control.batch import Batch
from jobman.control.live import LiveJob
from jobman.control.refusals import Refusal
from jobman.control.switches import standing
from jobman.control.working import Working

log = logging.getLogger("jobman.director")
_TIDY = 60.0
"""Seconds after which what deleted jobs left behind is removed."""


class Acting(Working):
    """The part of the director that does what it is told."""

    _sweeping: asyncio.Task[None] | None = None

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
            advice = "what waits gets all of its time when it starts, and what has no `duration` needs none"
            raise Refusal("wrong-state", "nothing with a time limit runs in this job", advice)
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
            words = await planning.in_the_way(concerned, seconds, self._clock())
            words = words or "somebody else was promised these nodes by then"
            raise Refusal("would-delay", words, advice, largest=max(0.0, answer.largest))

    async def _act(self, job_id: str, happening: h.Happening, kind: str, words: str) -> None:
        if job_id not in self._floor.jobs and await self._was_done(job_id, kind):
            return

        def act(batch: Batch) -> None:
            self._floor.event(self._live(job_id), batch, kind, message=words)
            self._floor.take(job_id, happening, batch)

        await self._do(act)

    async def _was_done(self, job_id: str, kind: str) -> bool:
        """Whether a request is one that is repeated because its answer was lost."""
        return bool(await asyncio.to_thread(lambda: self.store.events(job_id, kinds=[kind], limit=1)))

    def _live(self, job_id: str) -> LiveJob:
        job = self._floor.jobs.get(job_id)
        if job is None:
            raise Refusal("wrong-state", f"the job {job_id} is over")
        return job

    # -- acts of administrators ---------------------------------------------------------------------

    def calendar(self) -> list[CalendarEntry]:
        """All windows of maintenance and reservations."""
        return self._government.calendars.entries(self._clock())

    async def add_calendar(self, wanted: NewEntry, who: str) -> CalendarEntry:
        calendars = self._government.calendars

        def add(batch: Batch) -> CalendarEntry:
            self._government.refuse_unknown(wanted)
            record, notes = calendars.admit(wanted, who, self._clock(), list(self._floor.nodes.values()))
            batch.changes.calendar[record.name] = record
            self._government.keep_entry(record)
            return calendars.entry(record, self._clock(), notes)

        return await self._do(add)

    async def remove_calendar(self, name: str, kind: str | None, who: str) -> CalendarEntry:
        log.info("%s removes %s from the calendar", who, name)
        calendars = self._government.calendars

        def remove(batch: Batch) -> CalendarEntry:
            record = calendars.find(name, kind)
            entry = calendars.entry(record, self._clock())
            batch.changes.calendar[record.name] = None
            self._government.drop_entry(record.name)
            self._government.cordon(batch)
            return entry

        return await self._do(remove)

    def queues(self) -> list[QueueInfo]:
        return self._government.queues()

    async def set_queue_state(self, name: str, state: str, reason: str, who: str) -> Standing:
        switches, queues = self._government.switches, self._floor.planning.scheduling.queues

        def switch(batch: Batch) -> Standing:
            record = switches.switch_queue(name, state, reason, who, self._clock(), queues)
            batch.changes.queue_states[name] = record
            self._government.keep_queue(record)
            return standing(record)

        return await self._do(switch)

    async def set_node_state(self, name: str, state: str, reason: str, who: str) -> Standing:
        switches = self._government.switches

        def switch(batch: Batch) -> Standing:
            record = switches.switch_node(name, state, reason, who, self._clock(), list(self._floor.nodes))
            batch.changes.node_states[name] = record
            self._government.keep_node(record)
            self._government.cordon(batch)
            return standing(record)

        return await self._do(switch)

    async def delete(self, job_id: str, who: str) -> None:
        """Forget a finished job with everything it left."""
        if job_id in self._floor.jobs:
            raise Refusal("wrong-state", "the job is not over", f"cancel it first: jobman cancel {job_id}")
        log.info("%s deletes %s", who, job_id)

        await self.host.forget(job_id)
        await self._do(lambda batch: batch.changes.deleted.add(job_id))
        self._sweep_later()

    def _sweep_later(self) -> None:
        """Some time after jobs were deleted, remove the environments that only they had used."""
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        await asyncio.sleep(_TIDY)
        used = await asyncio.to_thread(self.store.environments)
        await asyncio.to_thread(self.host.sweep, used)


def _is_about(task: str | None, unit: str) -> bool:
    """Whether a task is meant that holds nodes itself, or is inside a group that does."""
    return task is None or task == unit or task.startswith(f"{unit}/")
