"""Planning: lays what waits for nodes before the planner, in a thread of its own, and keeps what it answers.

```
 floor ──ask, leave, give back──▶ notes ──▶ planner's thread: a pass ──▶ outcome: starts, promises ──▶ floor
```

The planner is touched by its thread only. Notes gather while a pass is under way, so that a thousand
submissions make one pass, and nobody who asks something of the service waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from jobman.control.accounting.ledger import OUR_FAULT
from jobman.control.expectations import Expectations
from jobman.control.store.records import BalanceRecord, SliceRecord
from jobman.control.store.views import PastRun
from jobman.control.time_limits import FAR
from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import piece_of
from jobman.sched.accounts import AccountTree
from jobman.sched.allocation import Allocation
from jobman.sched.blocks import Block
from jobman.sched.fairshare import Member
from jobman.sched.forecast import Expectation
from jobman.sched.placement import Pool
from jobman.sched.planner import Planner
from jobman.sched.priorities import Priorities, amounts_of
from jobman.sched.queues import QueueState
from jobman.sched.quotas import Quotas
from jobman.sched.requests import Extension, Placed, Promise, Request, Revision, Start
from jobman.sched.scheduling import Scheduling
from jobman.sched.whys import in_the_way, unpromised

log = logging.getLogger("jobman.planning")
_MOST_PLACES = 1000
_RESORT = 60.0
"""Seconds after which priorities are computed anew."""

T = TypeVar("T")


class Outcome(NamedTuple):
    """What a pass decided."""

    starts: list[Start]
    revisions: list[Revision]
    promises: dict[str, Promise]
    """What those are told who were planned for the first time, or anew."""
    expected: dict[str, Expectation | None]
    """What those are told to expect who came, and now and then everybody; None for nothing any more."""
    positions: dict[str, int]
    """The places of those who wait in their queues, from 1; only of the first where very many wait."""
    due: float | None
    """When to make a pass although nothing happens."""
    chosen: dict[str, tuple[str, ...]]
    """The nodes of reservations that only say how many they take, where these were chosen in this pass."""
    unpromised: dict[str, str]
    """Why some of those who came could not be promised anything."""


class Planning:
    """What waits for the nodes of a service. All but `_pass` and what it calls runs in the event loop."""

    def __init__(
        self,
        nodes: Sequence[ClusterNode],
        scheduling: Scheduling,
        past: Callable[[], Iterable[PastRun]] = tuple,
        accounts: AccountTree | None = None,
    ) -> None:
        """`past` is asked in the planner's thread, when somebody waits for the first time."""
        self.pool = Pool(nodes)
        self.scheduling = scheduling
        self.accounts = accounts or AccountTree(scheduling.accounts)
        self.quotas = Quotas(scheduling.queues, self.accounts, scheduling.default_queue)
        self.priorities = Priorities(scheduling, self.accounts, nodes)
        self.waiting: dict[str, Request] = {}
        """What has asked and has nothing yet."""
        self.due: float | None = None
        self._planner = Planner(
            nodes, scheduling.queues, priority=self.priorities, bounds=self.quotas.bounds, firm=FAR
        )
        self._expectations = Expectations(nodes, scheduling, self.quotas.bounds, past)
        self._known: dict[str, Request] = {}
        self._running: dict[str, Request] = {}
        """What the planner knows, and of that what it has started; for its thread only."""
        self._chosen: dict[str, tuple[str, ...]] = {}
        self._came: list[Request] = []
        self._notes: list[Callable[[float], None]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="planner")
        self._pass_under_way: asyncio.Future[Outcome] | None = None
        self._resorted = 0.0
        self.passes = 0
        self.positions: dict[str, int] = {}
        """As of the last pass."""

    def remember(self, balances: Iterable[BalanceRecord], faded: Mapping[Member, float], now: float) -> None:
        """What was used before a restart: for budgets, and for fair shares."""
        for balance in balances:
            self.quotas.spend(balance.queue, balance.account, balance.owner, balance.units)
        for (account, owner), units in faded.items():
            self.priorities.charge(account, owner, units, now)

    def charged(self, slices: Iterable[SliceRecord]) -> None:
        """Slices count against budgets; what was not somebody's fault counts for no fair share either."""
        for each in slices:
            self.quotas.spend(each.queue, each.account, each.owner, each.units)
            if each.kind == "refund" and each.reason in OUR_FAULT:
                self._notes.append(lambda _, each=each: self._forgive(each))  # type: ignore[misc]

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    # -- what the floor tells ------------------------------------------------------------------------

    def join(self, request: Request) -> None:
        """Somebody asks."""
        self.waiting[request.id] = request
        self.quotas.wait(request)
        self._notes.append(lambda now: self._submit(request, now))

    def join_again(self, request: Request, placed: Placed, guaranteed_by: float) -> None:
        """Somebody who asked before a restart, with a guarantee."""
        self.waiting[request.id] = request
        self.quotas.wait(request)
        self._notes.append(lambda now: self._keep(request, placed, guaranteed_by, now))

    def leave(self, request_id: str) -> None:
        """Somebody does not want anything any more."""
        if self.waiting.pop(request_id, None) is not None:
            self.quotas.leave(request_id)
            self._notes.append(lambda now: self._gone(request_id, now))

    def take(self, request: Request, allocation: Allocation, start: float) -> None:
        """Something runs already, after a restart. The pool knows of it apart."""
        placed = placed_of(allocation, request)
        self.quotas.start(request, amounts_of(request, allocation.alternative))
        self._notes.append(lambda now: self._restore(request, placed, start, now))

    def grant(self, start: Start) -> Allocation:
        """Take for somebody what the planner gives; raises PlacementError where it is not free."""
        request = self.waiting[start.id]
        placed = start.placed
        parts = request.alternatives[placed.alternative]
        allocation = self.pool.settle(placed.alternative, parts, placed.places, request.wishes)
        del self.waiting[start.id]
        self.quotas.start(request, amounts_of(request, placed.alternative))
        return allocation

    def give_back(self, request_id: str, allocation: Allocation | None, *, learn: bool = True) -> None:
        """What was held is free again; `learn` if it ran as long as it wanted to, or might."""
        if allocation is not None:
            self.pool.give_back(allocation)
        self.quotas.end(request_id)
        self._notes.append(lambda now: self._gone(request_id, now, learn=learn))

    def refuse(self, request_id: str) -> None:
        """What the planner started is not wanted any more, or cannot be had."""
        self._notes.append(lambda now: self._gone(request_id, now))

    # -- what becomes of the nodes -------------------------------------------------------------------

    def add_node(self, node: ClusterNode) -> None:
        """A node that was not there before, empty and up."""
        self.pool.add(node)
        self._notes.append(lambda now: self._add_node(node, now))

    def change_node(self, node: ClusterNode) -> None:
        """A node that is known has more or less than before, or something else is true of it."""
        self.pool.change(node)
        self._notes.append(lambda now: self._change_node(node, now))

    def set_foreign(self, name: str, amounts: Mapping[str, float]) -> None:
        """What others use of a node from now on."""
        self.pool.set_foreign(name, amounts)
        self._notes.append(lambda now: self._set_foreign(name, amounts, now))

    # -- what administrators say ---------------------------------------------------------------------

    def set_queue(self, name: str, state: QueueState) -> None:
        self._notes.append(lambda now: self._set_queue(name, state, now))

    def set_node(self, name: str, state: str, cause: str) -> None:
        self._notes.append(lambda now: self._set_node(name, state, cause, now))

    def set_accounts(self, scheduling: Scheduling, accounts: AccountTree) -> None:
        """Other accounts, of settings that differ in nothing else: they count for all who wait."""
        self.scheduling, self.accounts = scheduling, accounts
        self.quotas.change(scheduling.queues, accounts, scheduling.default_queue)
        self._notes.append(self._regroup)

    def block(self, block: Block) -> None:
        self._notes.append(lambda now: self._block(block, now))

    def unblock(self, name: str) -> None:
        self._notes.append(lambda now: self._unblock(name, now))

    # -- passes --------------------------------------------------------------------------------------

    def is_due(self, now: float) -> bool:
        """Whether there is a reason to make a pass."""
        return bool(self._notes) or (self.due is not None and self.due <= now)

    @property
    def is_busy(self) -> bool:
        return self._pass_under_way is not None

    def begin(self, now: float) -> asyncio.Future[Outcome]:
        """Make a pass, off the loop."""
        notes, self._notes = self._notes, []
        self.due = None
        loop = asyncio.get_running_loop()
        self._pass_under_way = loop.run_in_executor(self._thread, self._pass, notes, now)
        return self._pass_under_way

    def finished(self, outcome: Outcome) -> None:
        """The outcome of a pass is going to be carried out."""
        self._pass_under_way = None
        self.due = outcome.due
        self.positions = outcome.positions
        self.passes += 1

    async def ask(self, question: Callable[[Planner], T]) -> T:
        """Ask the planner something, between passes."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, question, self._planner)

    async def expect(self, request: Request, guaranteed_by: float | None, now: float) -> Expectation | None:
        """When something would be expected to start if it came now."""
        try:
            return await self.ask(lambda _: self._expectations.expect(request, guaranteed_by, now))
        except Exception:
            log.exception("no start could be foretold")
            return None

    async def extend(self, request_ids: Sequence[str], seconds: float, now: float) -> Extension:
        """More time for what runs, if it disturbs nobody; the most that all of it could have, if it does."""

        def ask(planner: Planner) -> Extension:
            known = [each for each in request_ids if each in self._running]
            answer = planner.extend_all(known, seconds, now)
            for each in known if answer.granted else ():
                self.priorities.extend(each, seconds)
            return answer

        return await self.ask(ask)

    async def in_the_way(self, request_ids: Sequence[str], seconds: float, now: float) -> str:
        """Why what runs cannot have so much more time, in words."""

        def ask(planner: Planner) -> str:
            known = [each for each in request_ids if each in self._running]
            return in_the_way(planner, known, seconds, now) if known else ""

        return await self.ask(ask)

    # -- in the planner's thread ---------------------------------------------------------------------

    def _pass(self, notes: Sequence[Callable[[float], None]], now: float) -> Outcome:
        if now - self._resorted > _RESORT:
            self._resorted = now
            self.priorities.refresh(now, self._members())
            self._planner.resort(now)
        if self.passes:
            self._remember()
        for note in notes:
            note(now)
        done = self._planner.plan(now)
        for start in done.starts:
            self._running[start.id] = self._known[start.id]
            self.priorities.start(self._known[start.id], start.placed, now, start.until - now)
            self._expectations.started(start.id, now)
        promises = {
            revision.id: self._planner.promise(revision.id)
            for revision in done.revisions
            if revision.id not in self._running
        }
        expected = self._foreseen(now, promises)
        positions = {
            entry.request.id: place
            for lane in self._planner.lanes
            for place, entry in enumerate(lane.waiting[:_MOST_PLACES], 1)
        }
        # What ran before is looked at only when everything is started that can start.
        due = now if self._expectations.is_ignorant else self._planner.next_due(now)
        chosen, self._chosen = self._chosen, {}
        unpromised = self._unpromised(now)
        return Outcome(done.starts, done.revisions, promises, expected, positions, due, chosen, unpromised)

    def _unpromised(self, now: float) -> dict[str, str]:
        came, self._came = self._came, []
        found = {}
        for request in came[:_MOST_PLACES]:
            entry = self._planner.entries.get(request.id)
            if entry is not None and not entry.is_running and entry.guaranteed is None:
                found[request.id] = unpromised(self._planner, request, now)
        return found

    def _remember(self) -> None:
        try:
            if self._expectations.is_ignorant:
                self._expectations.learn()
        except Exception:
            log.exception("what ran before cannot be looked at")

    def _foreseen(self, now: float, revised: Iterable[str]) -> dict[str, Expectation | None]:
        """What those are told who came; nobody is kept from starting because nothing can be foretold."""
        entries = self._planner.entries
        try:
            return self._expectations.fresh(now, lambda each: entries[each].guaranteed, revised)
        except Exception:
            log.exception("no start could be foretold")
            return {}

    def _set_queue(self, name: str, state: QueueState, now: float) -> None:
        self._planner.set_queue(name, state)
        self._expectations.set_queue(name, state, now)

    def _set_node(self, name: str, state: str, cause: str, now: float) -> None:
        self._planner.set_node(name, state, now, cause)
        self._expectations.set_node(name, state, now)

    def _add_node(self, node: ClusterNode, now: float) -> None:
        self._planner.add_node(node, now)
        self.priorities.learn(node)
        self._expectations.learn_node(node, now)

    def _change_node(self, node: ClusterNode, now: float) -> None:
        self._planner.change_node(node, now)
        self.priorities.learn(node)
        self._expectations.learn_node(node, now)

    def _set_foreign(self, name: str, amounts: Mapping[str, float], now: float) -> None:
        self._planner.set_foreign(name, amounts, now)
        self._expectations.set_foreign(name, amounts, now)

    def _block(self, block: Block, now: float) -> None:
        nodes = self._planner.block(block, now)
        if block.count is not None:
            self._chosen[block.name] = nodes
        self._expectations.closed(block.name, block.start, block.end, nodes)

    def _unblock(self, name: str, now: float) -> None:
        self._planner.unblock(name, now)
        self._expectations.reopened(name)

    def _forgive(self, refund: SliceRecord) -> None:
        load = refund.amounts.get("load", 0.0)
        self.priorities.forgive(refund.account, refund.owner, load, refund.start, refund.end)

    def _regroup(self, now: float) -> None:
        self.priorities.tree.accounts = self.accounts
        self.priorities.refresh(now, self._members())
        self._planner.resort(now)

    def _members(self) -> list[tuple[str, str]]:
        """All accounts and users that want something."""
        found = {(request.account, request.user) for request in self._known.values()}
        return sorted((self.accounts.resolve(user, account), user) for account, user in found)

    def _submit(self, request: Request, now: float) -> None:
        self._known[request.id] = request
        self._came.append(request)
        self._planner.submit(request, now)
        self._expectations.submitted(request, now)

    def _keep(self, request: Request, placed: Placed, guaranteed_by: float, now: float) -> None:
        self._known[request.id] = request
        try:
            self._planner.keep(request, placed, guaranteed_by, now)
        except (KeyError, IndexError):  # the nodes or the queues are others now
            log.warning("what was planned for %s is not possible any more", request.id)
            self._planner.submit(request, now)
        self._expectations.submitted(request, now)

    def _restore(self, request: Request, placed: Placed, start: float, now: float) -> None:
        self._planner.restore(request, placed, start, now)
        self._known[request.id] = self._running[request.id] = request
        # What it used before stands in the balances.
        self.priorities.start(request, placed, now, max(0.0, start + request.limit - now))
        self._expectations.submitted(request, now)
        self._expectations.started(request.id, start)

    def _gone(self, request_id: str, now: float, *, learn: bool = True) -> None:
        if self._known.pop(request_id, None) is None:
            return
        if self._running.pop(request_id, None) is not None:
            self._planner.ended(request_id, now)
            self.priorities.end(request_id, now)
            self._expectations.ended(request_id, now, learn=learn)
        else:
            self._planner.withdraw(request_id, now)
            self._expectations.left(request_id)


def placed_of(allocation: Allocation, request: Request) -> Placed:
    """The places of an allocation: how many pieces of each part are on which node."""
    parts = request.alternatives[allocation.alternative]
    slots = iter(allocation.slots)
    places = []
    for part in parts:
        piece = piece_of(part)
        copies: dict[str, int] = {}
        for _ in range(piece.wanted * piece.copies):
            slot = next(slots, None)
            if slot is not None:
                copies[slot.node] = copies.get(slot.node, 0) + 1
        places.append({node: count // piece.copies for node, count in copies.items()})
    return Placed(allocation.alternative, tuple(places))
