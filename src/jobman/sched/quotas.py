"""Quotas: what queues, accounts and users hold, have waiting and have spent, against what they may."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import isinf
from typing import NamedTuple, TypeVar

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.plan.wording import describe_amounts, format_amount
from jobman.sched.accounts import AccountTree
from jobman.sched.capacity import to_amount, to_units
from jobman.sched.minimum import least_amounts
from jobman.sched.queues import EVERYTHING, NO_LIMITS, Limits, Queue
from jobman.sched.requests import Request
from jobman.spec.quantities import format_duration
from jobman.spec.shapes import Alternative, totals

K = TypeVar("K")
JOB = "job"
"""Stands among the kinds of resources for a running job, of which each has one."""
_FINEST = 10**9
"""Parts of a charged unit that are counted, so that sums and differences are exact."""


class Row(NamedTuple):
    """Whose limit it is: a queue, a user or an account in a queue, an account, or a user in an account."""

    scope: str
    queue: str = ""
    account: str = ""
    user: str = ""

    @property
    def who(self) -> str:
        return _WHO[self.scope][0].format_map(self._asdict())

    @property
    def where(self) -> str:
        return _WHO[self.scope][1].format_map(self._asdict())

    @property
    def it(self) -> str:
        return "they" if self.user else "it"


_WHO = {
    "queue": ("queue {queue}", ""),
    "queue user": ("user {user}", " in {queue}"),
    "queue account": ("account {account}", " in {queue}"),
    "account": ("account {account}", ""),
    "account user": ("user {user}", " in account {account}"),
}
_LIMITS = {
    "queue": "limits",
    "queue user": "each_user",
    "queue account": "each_account",
    "account": "limits",
    "account user": "each_user",
}
"""Where a queue or an account keeps the limits of a row."""


class Blocked(msgspec.Struct, frozen=True, omit_defaults=True):
    """A limit in the way, and what it is about: a kind of resource, `job`, `budget`, `waiting` or `time`."""

    row: Row
    what: str
    words: str
    never: bool = False
    """Whether it would still be in the way if nothing else ran, waited or had been spent."""


class Tally(msgspec.Struct, frozen=True, omit_defaults=True):
    """What counts against one row now, beside its limits."""

    row: Row
    limits: Limits
    jobs: int = 0
    waiting: int = 0
    amounts: dict[str, float] = {}
    charged: float = 0.0
    """Units that have been spent."""
    committed: float = 0.0
    """Units that what runs may still spend."""


class _Count:
    """The counters of one row: jobs by the number of their requests, amounts and money in whole parts."""

    __slots__ = ("charged", "committed", "jobs", "units", "waiting")

    def __init__(self) -> None:
        self.jobs: dict[str, int] = {}
        self.waiting: dict[str, int] = {}
        self.units: dict[str, int] = {}
        self.charged = 0
        self.committed = 0

    @property
    def is_empty(self) -> bool:
        return not (self.jobs or self.waiting or self.units or self.charged or self.committed)


class _Key(NamedTuple):
    queue: str
    account: str
    user: str


class _Place(NamedTuple):
    """Where requests of one queue, account and user count; `key` has their names where none were given."""

    key: _Key
    rows: tuple[Row, ...]
    limited: tuple[tuple[Row, Limits], ...]
    bounds: list[tuple[Hashable, dict[str, float]]]


class _Held(msgspec.Struct):
    """What runs: whose it is, what it holds and what of its charge has not been billed yet."""

    key: _Key
    job: str
    units: dict[str, int]
    rest: int


class Quotas:
    """What is used now, and whether one more would be too much.

    A limit of an account is for everything below it, so a request counts for its account and all above. Each
    request that waits is made known by `wait`, each that runs by `start`; all requests of a job are one job.
    """

    def __init__(
        self,
        queues: Iterable[Queue] = (EVERYTHING,),
        accounts: AccountTree | None = None,
        default_queue: str = EVERYTHING.name,
    ) -> None:
        self._waiting: dict[str, Request] = {}
        self._running: dict[str, _Held] = {}
        self._spent: dict[_Key, int] = {}
        self.change(queues, accounts or AccountTree(), default_queue)

    def change(
        self, queues: Iterable[Queue], accounts: AccountTree, default_queue: str = EVERYTHING.name
    ) -> None:
        """Other limits or other accounts: what waits, runs and was spent counts by them from now on."""
        self.queues = {queue.name: queue for queue in queues}
        self.accounts = accounts
        self._default = (
            default_queue if default_queue in self.queues else next(iter(self.queues), default_queue)
        )
        self._places: dict[_Key, _Place] = {}
        self._counts: dict[Row, _Count] = {}
        for request in self._waiting.values():
            self._count_waiting(request, 1)
        for held in self._running.values():
            self._count_running(held, 1)
        for key, spent in self._spent.items():
            self._count_spent(self._place(key), spent)

    # -- what may be

    def may_start(
        self, request: Request, amounts: Mapping[str, float], charge: float = 0.0
    ) -> Blocked | None:
        """The first limit in the way of a request that would hold `amounts` and may cost `charge`, if any.

        Limits that will always be in the way come before those that are so now.
        """
        limited = self._place(_key(request)).limited
        for row, limits in limited:
            if blocked := _too_large(row, limits, amounts, charge):
                return blocked
        for row, limits in limited:
            if blocked := _full(row, limits, self._count(row), request, amounts, charge):
                return blocked
        return None

    def may_wait(
        self,
        request: Request,
        *,
        seconds: float | None = None,
        charge: float = 0.0,
        nodes: Sequence[ClusterNode] | None = None,
    ) -> Blocked | None:
        """What speaks against taking a request in: it could never start, the money is spent, too many wait.

        `seconds` is the time that was asked for, where the request's own limit has grace in it; `nodes` are
        those it may get: whoever takes nodes as a whole holds all that is on them.
        """
        limited = self._place(_key(request)).limited
        for row, limits in limited:
            if blocked := _too_long(row, limits, request.limit if seconds is None else seconds):
                return blocked
        if blocked := _too_large_for_all(request, limited, charge, nodes):
            return blocked
        for row, limits in limited:
            if blocked := _spent(row, limits, self._count(row), charge):
                return blocked
        for row, limits in limited:
            if blocked := _crowded(row, limits, self._count(row), request):
                return blocked
        return None

    def exhausted(self, id: str) -> Blocked | None:
        """The budget that is spent, where what runs has nothing set aside in it any more."""
        held = self._run(id)
        for row, limits in self._place(held.key).limited:
            blocked = _spent(row, limits, self._count(row))
            if blocked is not None and (
                not held.rest or _units(self._count(row).charged) > (limits.budget or 0.0)
            ):
                return blocked
        return None

    def bounds(self, request: Request) -> list[tuple[Hashable, dict[str, float]]]:
        """The rows a request counts against, with what each may hold of the kinds that are limited.

        `job` is among the kinds. All of one queue, account and user get the same list: leave it as it is.
        """
        return self._place(_key(request)).bounds

    # -- what is

    def wait(self, request: Request) -> None:
        if request.id in self._waiting:
            raise ValueError(f"{request.id} waits already")
        self._waiting[request.id] = request
        self._count_waiting(request, 1)

    def leave(self, id: str) -> None:
        """No longer waiting, whatever became of it."""
        if request := self._waiting.pop(id, None):
            self._count_waiting(request, -1)

    def start(self, request: Request, amounts: Mapping[str, float], charge: float = 0.0) -> None:
        """It holds these amounts from now on, and its charge is set aside; limits are not looked at again."""
        if request.id in self._running:
            raise ValueError(f"{request.id} runs already; end it before it is started again")
        self.leave(request.id)
        units = {kind: to_units(kind, amount) for kind, amount in amounts.items() if amount}
        key = self._place(_key(request)).key
        held = self._running[request.id] = _Held(key, _job(request), units, _parts(charge))
        self._count_running(held, 1)

    def bill(self, id: str, units: float) -> None:
        """Units that what runs has spent, out of what was set aside for it as long as that lasts."""
        held = self._run(id)
        place = self._place(held.key)
        rest = max(0, held.rest - _parts(units))
        self._count_committed(place, rest - held.rest)
        held.rest = rest
        self._spend(held.key, _parts(units))

    def extend(self, id: str, charge: float) -> None:
        """Set aside this much more for what runs."""
        held = self._run(id)
        self._count_committed(self._place(held.key), _parts(charge))
        held.rest += _parts(charge)

    def end(self, id: str) -> None:
        """It gives everything back, also what was set aside and not billed."""
        held = self._run(id)
        del self._running[id]
        self._count_running(held, -1)

    def spend(self, queue: str, account: str, user: str, units: float) -> None:
        """Units of the past, as a ledger has them; below 0 for a refund."""
        self._spend(self._place(_Key(queue, account, user)).key, _parts(units))

    def tallies(self) -> list[Tally]:
        """Everything that counts now, row by row."""
        return [self.tally(row) for row in sorted(self._counts)]

    def tally(self, row: Row) -> Tally:
        count = self._count(row)
        return Tally(
            row=row,
            limits=self._limits(row),
            jobs=len(count.jobs),
            waiting=len(count.waiting),
            amounts={kind: to_amount(kind, units) for kind, units in count.units.items()},
            charged=_units(count.charged),
            committed=_units(count.committed),
        )

    # -- where it counts

    def _place(self, key: _Key) -> _Place:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._find(key)
        return place

    def _find(self, key: _Key) -> _Place:
        queue = key.queue or self._default
        account = self.accounts.resolve(key.user, key.account)
        path = self.accounts.path(account)
        rows = (
            Row("queue", queue=queue),
            Row("queue user", queue=queue, user=key.user),
            Row("queue account", queue=queue, account=account),
            *(Row("account user", account=name, user=key.user) for name in path),
            *(Row("account", account=name) for name in path),
        )
        limited = tuple((row, limits) for row in rows if (limits := self._limits(row)) != NO_LIMITS)
        bounds: list[tuple[Hashable, dict[str, float]]] = [
            (row, bound) for row, limits in limited if (bound := _bound(limits))
        ]
        return _Place(_Key(queue, account, key.user), rows, limited, bounds)

    def _limits(self, row: Row) -> Limits:
        holder = self.queues.get(row.queue) if row.queue else self.accounts.get(row.account)
        limits: Limits = getattr(holder, _LIMITS[row.scope], NO_LIMITS)
        return limits

    # -- counting

    def _run(self, id: str) -> _Held:
        if id not in self._running:
            raise ValueError(f"{id} does not run")
        return self._running[id]

    def _count(self, row: Row) -> _Count:
        """The counters to read; a row that nothing counts for has none of its own."""
        return self._counts.get(row, _NO_COUNT)

    def _counters(self, place: _Place) -> list[_Count]:
        return [self._counts.setdefault(row, _Count()) for row in place.rows]

    def _tidy(self, place: _Place) -> None:
        for row in place.rows:
            if self._counts[row].is_empty:
                del self._counts[row]

    def _count_waiting(self, request: Request, by: int) -> None:
        place = self._place(_key(request))
        for count in self._counters(place):
            _step(count.waiting, _job(request), by)
        self._tidy(place)

    def _count_running(self, held: _Held, by: int) -> None:
        place = self._place(held.key)
        for count in self._counters(place):
            _step(count.jobs, held.job, by)
            for kind, units in held.units.items():
                _step(count.units, kind, by * units)
            count.committed += by * held.rest
        self._tidy(place)

    def _count_committed(self, place: _Place, by: int) -> None:
        for count in self._counters(place):
            count.committed += by

    def _count_spent(self, place: _Place, by: int) -> None:
        for count in self._counters(place):
            count.charged += by
        self._tidy(place)

    def _spend(self, key: _Key, parts: int) -> None:
        _step(self._spent, key, parts)
        self._count_spent(self._place(key), parts)


_NO_COUNT = _Count()


def _key(request: Request) -> _Key:
    return _Key(request.queue, request.account, request.user)


def _job(request: Request) -> str:
    return request.job or request.id


def _step(counts: dict[K, int], key: K, by: int) -> None:
    """Count up or down; what is at nothing is not kept."""
    count = counts.get(key, 0) + by
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)


def _parts(units: float) -> int:
    """What has no bound sets nothing aside: it is billed as it runs."""
    return 0 if isinf(units) else round(units * _FINEST)


def _units(parts: int) -> float:
    return parts / _FINEST


def _bound(limits: Limits) -> dict[str, float]:
    return {**limits.amounts, **({} if limits.jobs is None else {JOB: limits.jobs})}


# -- limits in the way


def _too_large(row: Row, limits: Limits, amounts: Mapping[str, float], charge: float) -> Blocked | None:
    """A limit that one request alone would break."""
    if limits.jobs == 0:
        return Blocked(row, JOB, f"{row.who} may have no running jobs{row.where}", never=True)
    for kind, most in limits.amounts.items():
        if (need := _whole(kind, amounts)) > most:
            words = f"asks for {_said(kind, need)}; {row.who} may hold {format_amount(kind, most)}{row.where}"
            return Blocked(row, kind, words, never=True)
    if limits.budget is not None and charge > limits.budget:
        cost = (
            "sets no time limit, so its cost has no bound" if isinf(charge) else f"may cost {_money(charge)}"
        )
        words = f"{cost}; {row.who} may spend {_money(limits.budget)}{row.where}"
        return Blocked(row, "budget", words, never=True)
    return None


def _full(
    row: Row, limits: Limits, count: _Count, request: Request, amounts: Mapping[str, float], charge: float
) -> Blocked | None:
    """A limit that one request would break together with what runs."""
    if limits.jobs is not None and _job(request) not in count.jobs and len(count.jobs) >= limits.jobs:
        return Blocked(row, JOB, _enough(row, len(count.jobs), "running", limits.jobs))
    for kind, most in limits.amounts.items():
        held, need = count.units.get(kind, 0), _whole(kind, amounts)
        if need and to_amount(kind, held + to_units(kind, need)) > most:
            words = (
                f"{row.who} may hold {_said(kind, most)}{row.where} and holds "
                f"{format_amount(kind, to_amount(kind, held))}; this needs {format_amount(kind, need)}"
            )
            return Blocked(row, kind, words)
    if charge and limits.budget is not None:
        return _overdrawn(row, limits.budget, count, charge)
    return None


def _overdrawn(row: Row, budget: float, count: _Count, charge: float) -> Blocked | None:
    if _units(count.charged + count.committed + _parts(charge)) <= budget:
        return None
    aside = f", with {_money(_units(count.committed))} set aside for what runs" if count.committed else ""
    words = (
        f"{row.who} may spend {_money(budget)}{row.where} and has spent {_money(_units(count.charged))}"
        f"{aside}; this may cost {_money(charge)}"
    )
    return Blocked(row, "budget", words)


def _spent(row: Row, limits: Limits, count: _Count, charge: float = 0.0) -> Blocked | None:
    """A budget of which too little is left; what costs nothing needs none."""
    spent = _units(count.charged)
    if limits.budget is None or not spent:
        return None
    words = f"{row.who} may spend {_money(limits.budget)}{row.where} and has spent {_money(spent)}"
    if spent >= limits.budget:
        return Blocked(row, "budget", words)
    if spent + charge > limits.budget:
        return Blocked(row, "budget", f"{words}; this may cost {_money(charge)}")
    return None


def _too_long(row: Row, limits: Limits, seconds: float) -> Blocked | None:
    if limits.longest is None or seconds <= limits.longest:
        return None
    asked = "sets no time limit" if isinf(seconds) else f"asks for {format_duration(seconds)}"
    words = f"{asked}; the most for {row.who}{row.where} is {format_duration(limits.longest)}"
    return Blocked(row, "time", words, never=True)


def _too_large_for_all(
    request: Request,
    limited: Sequence[tuple[Row, Limits]],
    charge: float,
    nodes: Sequence[ClusterNode] | None,
) -> Blocked | None:
    """A limit that every alternative would break alone; it is told of the first."""
    first = None
    for amounts in [_least(parts, request, nodes) for parts in request.alternatives] or [{}]:
        found = (_too_large(row, limits, amounts, charge) for row, limits in limited)
        blocked = next(filter(None, found), None)
        if blocked is None:
            return None
        first = first or blocked
    return first


def _least(parts: Alternative, request: Request, nodes: Sequence[ClusterNode] | None) -> dict[str, float]:
    """What is known of an alternative before it has nodes."""
    if nodes is not None:
        found = least_amounts(parts, nodes, request.wishes, request.overhead)
        if found is not None:  # what suits no node at all is told elsewhere
            return dict(found)
    summed = totals(parts)
    return {**summed.amounts, **({"node": summed.nodes} if summed.nodes else {})}


def _crowded(row: Row, limits: Limits, count: _Count, request: Request) -> Blocked | None:
    if limits.waiting is None or _job(request) in count.waiting or len(count.waiting) < limits.waiting:
        return None
    words = _enough(row, len(count.waiting), "waiting", limits.waiting)
    return Blocked(row, "waiting", words, never=limits.waiting == 0)


# -- wording


def _whole(kind: str, amounts: Mapping[str, float]) -> float:
    """As it is counted, where it was asked for in finer parts."""
    return to_amount(kind, to_units(kind, amounts.get(kind, 0)))


def _said(kind: str, amount: float) -> str:
    return describe_amounts({kind: amount})


def _enough(row: Row, count: int, doing: str, most: int) -> str:
    """`account physics has 10 running jobs, which is all it may have`."""
    if most == 0:
        return f"{row.who} may have no {doing} jobs{row.where}"
    has = f"{row.who} has {count} {doing} job{'' if count == 1 else 's'}{row.where}"
    return f"{has}, which is all {row.it} may have" if count == most else f"{has} and may have {most}"


def _money(units: float) -> str:
    return f"{units:.2f}".rstrip("0").rstrip(".")
