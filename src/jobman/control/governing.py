"""Governing: the calendar, the states of queues and nodes, and who may enter; what administrators decide.

Knows what was committed and tells the planner. Writes nothing itself: the director commits and has it kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import msgspec

from jobman.control import happenings as h
from jobman.control.administration import NewEntry, QueueInfo
from jobman.control.admission import NEVER, Fitting
from jobman.control.batch import Batch
from jobman.control.calendars import Calendars
from jobman.control.conductor import PREEMPTED
from jobman.control.floor import Floor
from jobman.control.refusals import Refusal
from jobman.control.store.records import CalendarRecord, JobRecord, StateRecord
from jobman.control.store.store import Store
from jobman.control.switches import Switches
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.plan.wording import describe_amounts, format_duration
from jobman.sched.blocks import Block, difference
from jobman.sched.minimum import least_amounts
from jobman.sched.queues import QueueState
from jobman.sched.reach import own_nodes, share_of, within_reach
from jobman.sched.requests import Request
from jobman.spec.suggest import closest

HORIZON = 30 * 86400.0
"""How far ahead windows and reservations are planned around."""
_LOOK_AGAIN = 6 * 3600.0
_LESS = "Ask for less, or in another queue."


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
        self._removed: list[str] = []
        """What was taken from the calendar, and those who count on it are not told yet."""
        self._look_at = 0.0
        self._reaches: dict[str, Fitting] = {}
        floor.is_over = lambda reservation: self.calendars.is_over(reservation, floor.clock())
        floor.keep_chosen = self.keep_chosen

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
        self._removed.append(name)
        self._look_at = self._floor.clock()

    def keep_chosen(self, chosen: Mapping[str, Sequence[str]], batch: Batch) -> None:
        """Nodes that were chosen for a reservation stay the same over a restart: others count on the rest."""
        for name, nodes in chosen.items():
            record = self.calendars.choose(name, nodes, self._given)
            if record is not None:
                batch.changes.calendar[record.name] = record

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
        blocks = self.calendars.blocks(now, now + HORIZON, list(self._floor.nodes))
        after = [self._with_all_below(block) for block in blocks]
        gone, new = difference(self._given, after)
        if any(self._given[name].end <= now for name in gone):
            self._floor.look_at_booked()
        for name in gone:
            self._floor.planning.unblock(name)
        for block in new:
            self._floor.planning.block(self.calendars.as_chosen(block, self._floor.nodes))
        self._given = {block.name: block for block in after}
        self._begun &= self._given.keys()
        self._look_at = now + _LOOK_AGAIN

    def _with_all_below(self, block: Block) -> Block:
        """A reservation for an account is for everybody below it, too."""
        tree = self._floor.planning.accounts
        below = tuple(dict.fromkeys(name for account in block.accounts for name in tree.below(account)))
        return block if below == block.accounts else msgspec.structs.replace(block, accounts=below)

    def refuse_unknown(self, wanted: NewEntry) -> None:
        """A reservation for an account that is not there would be for nobody."""
        tree = self._floor.planning.accounts
        known = [account.name for account in self._floor.planning.scheduling.accounts]
        for name in wanted.accounts if known else ():
            if name not in tree:
                meant = closest(name, known)
                advice = f"Did you mean {meant}?" if meant else f"There are {', '.join(known)}."
                raise Refusal("bad-request", f"There is no account {name}.", advice)

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
        self._tell_removed(batch)
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

    def _tell_removed(self, batch: Batch) -> None:
        """Who waits for a reservation that was removed waits until there is one of this name again."""
        removed, self._removed = self._removed, []
        for name in removed:
            words = f"the reservation {name} was removed; it waits until there is one of this name again"
            for job in self._floor.booked(name):
                self._floor.event(job, batch, "reservation-removed", message=words)

    def _clear(self, block: Block, batch: Batch) -> None:
        nodes = set(block.nodes)
        for job in list(self._floor.jobs.values()):
            if job.line is not None:
                continue
            for key, (_, allocation) in list(job.allocations.items()):
                if "/" not in key and any(held.node in nodes for held in allocation.held):
                    why = f"maintenance {block.definition} begins on its node"
                    self._floor.displace(job, h.Displaced(key, PREEMPTED), why, batch)

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
            accounts = planning.accounts.path(planning.accounts.resolve(record.owner, record.account or ""))
            self.calendars.refuse_stranger(reservation, record.owner, accounts, self._floor.clock())
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

    def _reach(self, name: str) -> Fitting:
        """The nodes that jobs of a queue may get, and what fits there."""
        scheduling = self._floor.planning.scheduling
        queue = scheduling.queue(name) or scheduling.queues[0]
        known = self._reaches.get(queue.name)
        if known is None:
            found = within_reach(queue, scheduling.queues, list(self._floor.nodes.values()))
            known = self._reaches[queue.name] = Fitting(found)
        return known

    def _refuse_misfits(self, record: JobRecord, plan: Plan) -> None:
        """What would fit on all nodes together may be too much for those of its queue."""
        fitting = self._reach(record.queue or "")
        if len(fitting.nodes) == len(self._floor.nodes) or record.options.get("reservation"):
            return
        for unit, why in fitting.misfits(plan):
            queue = self._floor.outline(record, unit).queue
            words = f"{unit.id} can never start on the nodes of the queue {queue}: {why.removeprefix(NEVER)}."
            raise Refusal("does-not-fit", words, _LESS)

    def _refuse_excess(self, record: JobRecord, plan: Plan) -> None:
        """What its limits will never let start, and what is one too many."""
        planning = self._floor.planning
        nodes = self._reach(record.queue or "").nodes
        self._refuse_misfits(record, plan)
        for unit in plan.askers():
            request = self._floor.outline(record, unit)
            seconds = inf if unit.duration is None else unit.duration
            charge = self._least_charge(unit, nodes)
            blocked = planning.quotas.may_wait(request, seconds=seconds, charge=charge, nodes=nodes)
            self._refuse_beyond_share(unit, request)
            if request.reservation:
                self._refuse_longer(request.reservation, unit, request.limit)
            if blocked is not None:
                raise Refusal("quota", f"{unit.id}: {blocked.words}.", _LESS)

    def _refuse_beyond_share(self, unit: Unit, request: Request) -> None:
        """What needs more than its queue may use at one time would wait for ever."""
        scheduling = self._floor.planning.scheduling
        queue = scheduling.queue(request.queue)
        if queue is None or queue.share is None:
            return
        own = own_nodes(queue, scheduling.queues, list(self._floor.nodes.values()))
        share = share_of(queue, own)
        needs = [least_amounts(parts, own, request.wishes) or {} for parts in request.alternatives]
        first, *others = [_beyond(need, share) for need in needs]
        if first is not None and None not in others:
            asked, has = (describe_amounts({first: amounts[first]}) for amounts in (needs[0], share))
            words = f"{unit.id}: asks for {asked}, and the share of the queue {queue.name} is {has}."
            raise Refusal("quota", words, _LESS)

    def _least_charge(self, unit: Unit, nodes: Sequence[ClusterNode]) -> float:
        """What all replicas of a unit may cost, in its cheapest alternative; without a limit nobody knows."""
        if unit.duration is None:
            return 0.0
        prices = self._floor.book.prices
        price = min(prices.least_hour(parts, nodes) for parts in unit.alternatives)
        return price * unit.replicas * unit.duration / 3600


def _beyond(amounts: Mapping[str, float], share: Mapping[str, float]) -> str | None:
    """The first kind of which there is too little."""
    return next((kind for kind, amount in amounts.items() if amount > share.get(kind, inf)), None)
