"""The entrance: who may let a job wait here, and what would wait for ever and is refused at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from jobman.control.admission import NEVER, Fitting
from jobman.control.calendars import Calendars
from jobman.control.floor import Floor
from jobman.control.refusals import Refusal
from jobman.control.store.records import JobRecord
from jobman.control.switches import Switches
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import COPY, ClusterNode
from jobman.plan.wording import describe_amounts, format_duration
from jobman.sched.capacity import to_amount
from jobman.sched.minimum import least_amounts
from jobman.sched.reach import own_nodes, share_of, within_reach
from jobman.sched.requests import Request

_LESS = "Ask for less, or in another queue."


class Entrance:
    """Refuses jobs that their queue, their account, their reservation or their limits do not admit."""

    def __init__(self, floor: Floor, calendars: Calendars, switches: Switches) -> None:
        self._floor = floor
        self._calendars = calendars
        self._switches = switches
        self._reaches: dict[str, Fitting] = {}

    def renew(self) -> None:
        """There are other nodes than before."""
        self._reaches.clear()

    def refuse_all(self, records: Sequence[JobRecord], plans: Sequence[Plan]) -> None:
        """Refuse the first of some jobs that may not enter."""
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
        self._switches.refuse_closed(queue)
        obstacle = planning.accounts.obstacle(record.owner, record.account or "")
        if obstacle is not None and planning.scheduling.accounts:  # without accounts any name will do
            raise Refusal("forbidden", f"The job cannot be charged: {obstacle}.", "Name another account.")
        reservation = record.options.get("reservation")
        if reservation:
            accounts = planning.accounts.path(planning.accounts.resolve(record.owner, record.account or ""))
            self._calendars.refuse_stranger(reservation, record.owner, accounts, self._floor.clock())
            if "/" in reservation:
                whole = reservation.partition("/")[0]
                advice = f"Name {whole}: its first free time is taken."
                raise Refusal("bad-request", "A reservation is named without its date.", advice)

    def _refuse_longer(self, reservation: str, unit: Unit, seconds: float) -> None:
        """What is longer than the reservation it wants to run in would wait for ever."""
        entry = self._calendars.entry(self._calendars.find(reservation, "reservation"), self._floor.clock())
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
            queue = self._floor.outline(record, plan, unit).queue
            words = f"{unit.id} can never start on the nodes of the queue {queue}: {why.removeprefix(NEVER)}."
            raise Refusal("does-not-fit", words, _LESS)

    def _refuse_excess(self, record: JobRecord, plan: Plan) -> None:
        """What its limits will never let start, and what is one too many."""
        planning = self._floor.planning
        nodes = self._reach(record.queue or "").nodes
        self._refuse_misfits(record, plan)
        for unit in plan.askers():
            request = self._floor.outline(record, plan, unit)
            seconds = inf if unit.duration is None else unit.duration
            charge = self._least_charge(unit, nodes)
            self._refuse_overhead(unit, request)
            blocked = planning.quotas.may_wait(request, seconds=seconds, charge=charge, nodes=nodes)
            self._refuse_beyond_share(unit, request)
            if request.reservation:
                self._refuse_longer(request.reservation, unit, request.limit)
            if blocked is not None:
                raise Refusal("quota", f"{unit.id}: {blocked.words}.", _LESS)

    def _refuse_overhead(self, unit: Unit, request: Request) -> None:
        """What fits on no node beside what its copies cost there would wait for ever."""
        if not request.overhead or request.reservation:
            return
        if not self._reach(request.queue).fits_beside(unit, request.overhead):
            costs = {kind: units for kind, units in request.overhead.items() if kind != COPY}
            more = describe_amounts({kind: to_amount(kind, units) for kind, units in costs.items()})
            why = (
                f"no node has room for it beside the {more} that running it costs"
                if more
                else "no node takes so many copies at one time"
            )
            raise Refusal("does-not-fit", f"{unit.id} can never start: {why}.", _LESS)

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
