"""Governing: the calendar, and the states of queues and nodes; what administrators decide.

Knows what was committed and tells the planner. Writes nothing itself: the director commits and has it kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from jobman.control import happenings as h
from jobman.control.administration import NewEntry, QueueInfo
from jobman.control.batch import Act, Batch
from jobman.control.calendars import Calendars
from jobman.control.conductor import PREEMPTED
from jobman.control.entrance import Entrance
from jobman.control.floor import Floor
from jobman.control.refusals import Refusal
from jobman.control.store.records import CalendarRecord, StateRecord
from jobman.control.store.store import Store
from jobman.control.switches import Switches
from jobman.sched.blocks import Block, difference
from jobman.sched.queues import QueueState
from jobman.spec.suggest import closest

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
        self._removed: list[str] = []
        """What was taken from the calendar, and those who count on it are not told yet."""
        self._cordoned: dict[str, bool] = {}
        """What the host was told of each node."""
        self._look_at = 0.0
        self.entrance = Entrance(floor, self.calendars, self.switches)
        floor.is_over = lambda reservation: self.calendars.is_over(reservation, floor.clock())
        floor.keep_chosen = self.keep_chosen

    def begin(self) -> None:
        """Tell the planner what holds from the start."""
        planning = self._floor.planning
        for queue in self.switches.queues(planning.scheduling.queues):
            planning.set_queue(queue.name, queue.state)
        for name, cause in self.switches.draining().items():
            self._floor.ground.drain(name, cause)
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
        self._floor.ground.drain(record.name, self.switches.draining().get(record.name, ""))

    def renew(self) -> None:
        """There are others nodes, or others of them, than before."""
        self.entrance.renew()
        self.plan_windows()

    def cordon(self, batch: Batch) -> None:
        """Have the host keep others away from nodes that are out of use, and give back those that are not.

        After a restart everything is said once: what was said last may have been lost.
        """
        now = self._floor.clock()
        closed = [
            block for block in self._given.values() if block.kind == "maintenance" and block.holds_at(now)
        ]
        away = self.switches.draining().keys() | {node for block in closed for node in block.nodes}
        for name in self._floor.nodes:
            is_away = name in away
            if self._cordoned.get(name) is not is_away:
                self._cordoned[name] = is_away
                batch.acts.append(Act("drain", name, options={"drained": is_away}))

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
        self.cordon(batch)

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
