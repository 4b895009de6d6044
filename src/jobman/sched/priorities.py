"""Priorities of all who wait: queues, fair shares and the size of the cluster brought together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobman.plan.nodes import ClusterNode, in_all
from jobman.sched.accounts import AccountTree
from jobman.sched.fairshare import FairTree, dominant
from jobman.sched.priority import Factors, priority
from jobman.sched.queues import EVERYTHING, Queue
from jobman.sched.requests import Placed, Request
from jobman.sched.scheduling import Scheduling
from jobman.spec.shapes import totals

Amounts = Mapping[str, float]


class Priorities:
    """Says who goes first, of a request at a moment; the fair shares are those of the last refresh."""

    def __init__(self, scheduling: Scheduling, accounts: AccountTree, nodes: Sequence[ClusterNode]) -> None:
        self._queues = {queue.name: queue for queue in scheduling.queues}
        self._usual = self._queues.get(scheduling.default_queue, EVERYTHING)
        self._nodes = {node.name: node for node in nodes}
        self._totals = in_all(nodes)
        self.tree = FairTree(accounts, self._totals, half_life=scheduling.half_life)
        self._fair: dict[tuple[str, str], float] = {}
        self._at: float | None = None

    def __call__(self, request: Request, now: float) -> float:
        # All that wait are measured at one moment: otherwise whoever was looked at later would seem older.
        return self.factors(request, self._at if self._at is not None else now).total

    def factors(self, request: Request, now: float) -> Factors:
        """All that counts for a request, each part of it."""
        queue = self._queue(request)
        member = (self.tree.accounts.resolve(request.user, request.account), request.user)
        size = dominant(amounts_of(request), self._totals)
        return priority(request, queue, now, fair=self._fair.get(member, 1.0), size_fraction=size)

    def _queue(self, request: Request) -> Queue:
        return self._queues.get(request.queue, self._usual)

    def learn(self, node: ClusterNode) -> None:
        """A node that is new, or another than before: it counts for what starts from now on."""
        self._nodes[node.name] = node
        self._totals = in_all(self._nodes.values())
        self.tree.totals = dict(self._totals)

    def refresh(self, now: float, asking: Sequence[tuple[str, str]] = ()) -> None:
        """Look at the fair shares again, and at everybody's age."""
        self._at = now
        self._fair = self.tree.factors(now, asking)

    def charge(self, account: str, user: str, core_hours: float, now: float) -> None:
        """What somebody has used before, as it counts now."""
        cores = self._totals.get("core", 0.0)
        if cores and core_hours > 0:
            self.tree.charge(account, user, core_hours * 3600.0 / cores, now - 1.0, now)

    def start(self, request: Request, placed: Placed, now: float, limit: float) -> None:
        """Charge what starts for all of its limit."""
        amounts = self._held(request, placed)
        self.tree.start(request.id, request.account, request.user, amounts, now, limit)

    def _held(self, request: Request, placed: Placed) -> Amounts:
        """What somebody holds: all that is on nodes they have as a whole, of others what they asked for."""
        parts = request.alternatives[placed.alternative]
        whole = [part.is_whole or request.wishes.exclusive for part in parts]
        shared = totals(tuple(part for part, is_whole in zip(parts, whole, strict=True) if not is_whole))
        held: dict[str, float] = dict(shared.amounts)
        own = {
            name for places, is_whole in zip(placed.places, whole, strict=True) if is_whole for name in places
        }
        for name in own & self._nodes.keys():
            for kind, amount in self._nodes[name].amounts.items():
                held[kind] = held.get(kind, 0.0) + amount
        return held

    def extend(self, request_id: str, seconds: float) -> None:
        self.tree.prolong(request_id, seconds)

    def forgive(self, account: str, user: str, load: float, start: float, end: float) -> None:
        """Take back what was charged for so many cores, or their like, from one moment to another."""
        cores = self._totals.get("core", 0.0)
        if cores:
            self.tree.charge(account, user, -load / cores, start, end)

    def end(self, request_id: str, now: float) -> None:
        self.tree.end(request_id, now)


def amounts_of(request: Request, alternative: int = 0) -> dict[str, float]:
    """What an alternative of a request adds up to."""
    found = totals(request.alternatives[alternative])
    return {**found.amounts, **({"node": found.nodes} if found.nodes else {})}
