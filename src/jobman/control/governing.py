"""Governing: the calendar, the states of queues and nodes, and who may enter; what administrators decide.

Knows what was committed and tells the planner. Writes nothing itself: the director commits and has it kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from jobman.control import happenings as h
from jobman.control.administration import QueueInfo
from jobman.control.batch import Batch
from jobman.control.calendars import Calendars
from jobman.control.floor import Floor
from jobman.control.refusals import Refusal
from jobman.control.states import State
from jobman.control.store.records import CalendarRecord, JobRecord, StateRecord
from jobman.control.store.store import Store
from jobman.control.switches import Switches
from jobman.plan.model import Plan, Unit
from jobman.plan.wording import format_duration
from jobman.sched.blocks import Block, difference
from jobman.sched.queues import QueueState

HORIZON = 30 * 86400.0
"""How far ahead windows and reservations are planned around."""
_LOOK_AGAIN = 6 * 3600.0


class Government:
    """What holds for everybody who wants to use the nodes of a service."""

    def __init__(self, store: Store, floor: Floor) -> None:
        self._floor = floor
        self.calendars = Calendars(store.calendar())
        self.switches = Switches(store.queue_states(), store.node_states())
        self._given: dict[str, Block] = {}
        """The blocks that the planner knows of."""
        self._begun: set[str] = set()
        """The windows of maintenance that have begun."""
        self._look_at = 0.0

    def begin(self) -> None:
        """Tell the planner what holds from the start."""
        planning = self._floor.planning
        for queue in self.switches.queues(planning.scheduling.queues):
            planning.set_queue(queue.name, queue.state)
        for name, cause in self.switches.draining().items():
            if name in self._floor.nodes:
                planning.set_node(name, "draining", cause)
        self.plan_windows()

    # -- what was committed --------------------------------------------------------------------------

    def keep_entry(self, record: CalendarRecord) -> None:
        self.calendars.keep(record)
        self.plan_windows()

    def drop_entry(self, name: str) -> None:
        self.calendars.drop(name)
        self.plan_windows()

    def keep_queue(self, record: StateRecord) -> None:
        self.switches.keep_queue(record)
        self._floor.planning.set_queue(record.name, QueueState(record.state))

    def keep_node(self, record: StateRecord) -> None:
        self.switches.keep_node(record)
        cause = self.switches.draining().get(record.name, "")
        self._floor.planning.set_node(record.name, record.state, cause)

    def queues(self) -> list[QueueInfo]:
        return self.switches.infos(self._floor.planning.scheduling.queues)

    # -- windows -------------------------------------------------------------------------------------

    def plan_windows(self) -> None:
        """Let the planner know of all windows and reservations within the horizon."""
        now = self._floor.clock()
        after = self.calendars.blocks(now, now + HORIZON, list(self._floor.nodes))
        gone, new = difference(self._given, after)
        for name in gone:
            self._floor.planning.unblock(name)
        for block in new:
            self._floor.planning.block(block)
        self._given = {block.name: block for block in after}
        self._begun &= self._given.keys()
        self._look_at = now + _LOOK_AGAIN

    def next_due(self) -> float:
        """When to ring."""
        starts = [
            block.start
            for block in self._given.values()
            if block.kind == "maintenance" and block.name not in self._begun
        ]
        ends = [block.end for block in self._given.values()]
        return min([*starts, *ends, self._look_at])

    def ring(self, batch: Batch) -> None:
        """Clear the nodes of windows that begin; what ran there goes back to the queue."""
        now = self._floor.clock()
        for block in list(self._given.values()):
            if (
                block.kind == "maintenance"
                and block.name not in self._begun
                and block.start <= now < block.end
            ):
                self._begun.add(block.name)
                self._clear(block, batch)
        if self._look_at <= now or any(block.end <= now for block in self._given.values()):
            self.plan_windows()

    def _clear(self, block: Block, batch: Batch) -> None:
        nodes = set(block.nodes)
        for job in list(self._floor.jobs.values()):
            if job.line is not None:
                continue
            for key, (attempt, allocation) in list(job.allocations.items()):
                state = job.conductor.replica(key).state
                is_there = "/" not in key and state in (State.STARTING, State.RUNNING)
                if is_there and any(held.node in nodes for held in allocation.held):
                    words = f"maintenance {block.definition} begins on its node; it goes back to the queue"
                    self._floor.event(job, batch, "displaced", key, attempt, words)
                    self._floor.take(job.id, h.Displaced(key), batch)

    # -- who may enter -------------------------------------------------------------------------------

    def refuse_all(self, records: Sequence[JobRecord], plans: Sequence[Plan]) -> None:
        """Refuse jobs that their queue, their account, their reservation or their limits do not admit."""
        for record, plan in zip(records, plans, strict=True):
            if not record.options.get("virtual"):
                self._refuse_stranger(record)
                self._refuse_excess(record, plan)

    def _refuse_stranger(self, record: JobRecord) -> None:
        planning = self._floor.planning
        queue = planning.scheduling.queue(record.queue or "")
        if queue is None:
            known = ", ".join(each.name for each in planning.scheduling.queues)
            raise Refusal("no-such-queue", f"There is no queue {record.queue}.", f"There are {known}.")
        self.switches.refuse_closed(queue)
        obstacle = planning.accounts.obstacle(record.owner, record.account or "")
        if obstacle is not None and planning.scheduling.accounts:  # without accounts any name will do
            raise Refusal("forbidden", f"The job cannot be charged: {obstacle}.", "Name another account.")
        reservation = record.options.get("reservation")
        if reservation:
            account = planning.accounts.resolve(record.owner, record.account or "")
            self.calendars.refuse_stranger(reservation, record.owner, account, self._floor.clock())
            if "/" in reservation:
                whole = reservation.partition("/")[0]
                advice = f"Name {whole}: its first free time is taken."
                raise Refusal("bad-request", "A reservation is named without its date.", advice)

    def _refuse_longer(self, reservation: str, unit: Unit, seconds: float) -> None:
        """What is longer than the reservation it wants to run in would wait for ever."""
        entry = self.calendars.entry(self.calendars.find(reservation, "reservation"), self._floor.clock())
        if entry.duration is not None and seconds > entry.duration:
            raise Refusal(
                "does-not-fit",
                f"{unit.id} may take {format_duration(seconds)} with its grace, and the reservation"
                f" {reservation} lasts {format_duration(entry.duration)}.",
                "Give it a shorter duration.",
            )

    def _refuse_excess(self, record: JobRecord, plan: Plan) -> None:
        """What its limits will never let start, and what is one too many."""
        planning = self._floor.planning
        for unit in plan.units:
            if unit.parent is not None or not unit.alternatives:
                continue
            request = self._floor.outline(record, unit)
            seconds = inf if unit.duration is None else unit.duration
            blocked = planning.quotas.may_wait(request, seconds=seconds)
            if request.reservation:
                self._refuse_longer(request.reservation, unit, request.limit)
            if blocked is not None:
                raise Refusal("quota", f"{unit.id}: {blocked.words}.", "Ask for less, or in another queue.")
