"""Fair share: decayed use of the cluster, and whose turn it is, by the Fair Tree algorithm.

Use is measured in seconds of the whole cluster. A job that runs is charged for what it has used, which decays
as it happens, and for all that it may still use, which does not decay before it is used. So a job counts in
full from its start, and when it ends nothing is left but what its real time left behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import expm1, floor, fsum, inf, isinf, ldexp, log
from operator import attrgetter
from typing import Any

import msgspec

from jobman.sched.accounts import ROOT, AccountTree

WEEK = 7 * 86400.0
Member = tuple[str, str]
"""An account and one of its users."""
_NOTHING = 1e-30
"""Less than this of the cluster's seconds has been forgotten."""
_FARTHEST = 512
"""Periods that are looked back where a clock was set back behind the use; more would overflow."""
_LN2 = log(2)


def dominant(amounts: Mapping[str, float], totals: Mapping[str, float]) -> float:
    """The largest part of the cluster that is held of any kind; kinds the cluster has not do not count."""
    return max((amount / totals[kind] for kind, amount in amounts.items() if totals.get(kind)), default=0.0)


class Decay(msgspec.Struct, frozen=True):
    """Use that is one half-life old counts half. An infinite half-life forgets nothing.

    Values are kept as they were at the beginning of a period of one half-life. From one period to another
    they change by powers of two, which loses nothing, however often it is done.
    """

    half_life: float = WEEK

    def __post_init__(self) -> None:
        if not self.half_life > 0:
            raise ValueError(f"a half-life of {self.half_life:g} s is not possible; give more than 0")

    def period(self, moment: float) -> int:
        return 0 if isinf(self.half_life) else floor(moment / self.half_life)

    def growth(self, moment: float, period: int) -> float:
        """What one unit of that moment is in units of the period's beginning."""
        if isinf(self.half_life):
            return 1.0
        return float(2.0 ** ((moment - period * self.half_life) / self.half_life))

    def used(self, seconds: float) -> float:
        """What is left at its end of using one unit for so long, each part decaying from when it was used."""
        if seconds <= 0.0:
            return 0.0
        if isinf(self.half_life):
            return seconds
        return -expm1(-seconds / self.half_life * _LN2) * self.half_life / _LN2


class Usage(msgspec.Struct):
    """What a member has used: a value, and the period at whose beginning it was that."""

    value: float = 0.0
    period: int = 0

    def add(self, amount: float, moment: float, decay: Decay) -> None:
        period = decay.period(moment)
        later = max(period, self.period) if self.value else period
        self.value = self._in(later) + ldexp(amount * decay.growth(moment, period), period - later)
        self.period = later

    def at(self, moment: float, decay: Decay) -> float:
        period = decay.period(moment)
        return _worth(self._in(period) / decay.growth(moment, period))

    def _in(self, period: int) -> float:
        return ldexp(self.value, min(self.period - period, _FARTHEST))


def _worth(value: float) -> float:
    """Nothing where it is as good as nothing, as after a refund that left a rounding behind."""
    return value if value > _NOTHING else 0.0


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """What runs now: whose it is, which part of the cluster it holds, since when and for how long at most."""

    account: str
    user: str
    rate: float
    start: float
    limit: float | None = None

    def charged(self, now: float, decay: Decay) -> float:
        """What it has used, and what it may still use."""
        ran = now - self.start
        rest = 0.0 if self.limit is None else max(0.0, min(self.limit, self.limit - ran))
        return self.rate * (decay.used(ran) + rest)


class Standing(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where an account or a user stands, as `why` and `usage` show it."""

    account: str
    parent: str
    """The account above; of a user, the one that is charged."""
    depth: int
    shares: float
    share: float
    """Its part of the shares of all siblings."""
    usage: float
    """Decayed seconds of the whole cluster."""
    used: float
    """Its part of the usage of all siblings."""
    level: float
    """Share by use among its siblings: above 1 for less than its share, infinite for nothing."""
    user: str = ""
    """Empty for an account."""
    rank: int | None = None
    """From 1 in the whole tree; of an account that of its first user, None where it has none."""
    factor: float | None = None


class _Node:
    """A user, or an account, while the tree is ranked."""

    __slots__ = ("level", "name", "parent", "rank", "shares", "usage")
    is_account = False

    def __init__(self, name: str, parent: _Account | None, shares: float, usage: float = 0.0) -> None:
        self.name = name
        self.parent = parent
        self.shares = shares
        self.usage = usage
        self.level = inf
        self.rank = 0


class _Account(_Node):
    """An account with what is right below it."""

    __slots__ = ("accounts", "all_shares", "users")
    is_account = True

    def __init__(self, name: str, parent: _Account | None, shares: float) -> None:
        super().__init__(name, parent, shares)
        self.users: list[_Node] = []
        self.accounts: list[_Account] = []
        self.all_shares = 0.0

    @property
    def children(self) -> list[_Node]:
        return [*self.users, *self.accounts]

    def add_up(self) -> None:
        children = self.children
        self.usage = fsum([child.usage for child in children])
        self.all_shares = fsum([child.shares for child in children])

    def compare(self) -> None:
        """Find each child's share by use; what they have in common comes last, so that equals stay equal."""
        scale = self.usage / self.all_shares if self.all_shares else 0.0
        for child in self.children:
            if child.usage:
                child.level = child.shares / child.usage * scale


class FairTree:
    """What everybody has used, and in which order they come next.

    Factors are computed when they are asked for; between that, a start or an end costs next to nothing.
    `totals` is what the cluster has by kind; it may be changed and counts for what starts from then on.
    """

    def __init__(
        self,
        accounts: AccountTree | None = None,
        totals: Mapping[str, float] | None = None,
        *,
        half_life: float = WEEK,
    ) -> None:
        self.accounts = accounts or AccountTree()
        self.totals: dict[str, float] = dict(totals or {})
        self.decay = Decay(half_life)
        self._usage: dict[Member, Usage] = {}
        self._running: dict[str, Run] = {}

    # -- what is used

    def start(
        self, id: str, account: str, user: str, amounts: Mapping[str, float], now: float, limit: float = inf
    ) -> None:
        """Charge what starts for all of its limit; without one it is charged as it runs."""
        if id in self._running:
            raise ValueError(f"{id} runs already; end it before it is started again")
        name = self.accounts.resolve(user, account)
        self._running[id] = Run(name, user, dominant(amounts, self.totals), now, _bounded(limit))

    def extend(self, id: str, limit: float) -> None:
        """Another limit for what runs, in seconds from its start."""
        self._running[id] = msgspec.structs.replace(self._run(id), limit=_bounded(limit))

    def prolong(self, id: str, seconds: float) -> None:
        """So much more time for what runs; what has no limit has none."""
        run = self._run(id)
        if run.limit is not None:
            self.extend(id, run.limit + seconds)

    def end(self, id: str, now: float) -> None:
        """Leave exactly what the time it ran leaves, and nothing of what it might have used."""
        run = self._run(id)
        del self._running[id]
        self.charge(run.account, run.user, run.rate, run.start, now)

    def forgive(self, id: str) -> None:
        """As if it had never run: it was not the user's fault that it ended."""
        self._run(id)
        del self._running[id]

    def charge(self, account: str, user: str, rate: float, start: float, end: float) -> None:
        """Use in the past, such as a slice of a statement; a rate below 0 takes it back."""
        amount = rate * self.decay.used(end - start)
        if amount:
            member = self.accounts.resolve(user, account), user
            self._usage.setdefault(member, Usage()).add(amount, end, self.decay)

    def change_half_life(self, half_life: float, now: float) -> None:
        """What has been used counts now as it did, and decays from now on by another half-life."""
        before, self.decay = self.decay, Decay(half_life)
        for usage in self._usage.values():
            value, usage.value = usage.at(now, before), 0.0
            usage.add(value, now, self.decay)

    def usage(self, account: str, user: str, now: float) -> float:
        """What counts against a user in an account, with what runs."""
        member = self.accounts.resolve(user, account), user
        kept = self._usage.get(member, Usage()).at(now, self.decay)
        mine = (run for run in self._running.values() if (run.account, run.user) == member)
        return kept + sum(run.charged(now, self.decay) for run in mine)

    def _run(self, id: str) -> Run:
        if id not in self._running:
            raise ValueError(f"{id} does not run")
        return self._running[id]

    # -- whose turn it is

    def factors(self, now: float, asking: Iterable[Member] = ()) -> dict[Member, float]:
        """Above 0 and at most 1 for each account and user, the highest for who comes next.

        Those who are `asking` are in it also where no account names them and they have used nothing yet.
        Whoever asks for an account that is not there comes last.
        """
        _, leaves = self._ranked(now, asking)
        count = len(leaves)
        return {member: (count - leaf.rank + 1) / count for member, leaf in leaves.items()}

    def standings(self, now: float, asking: Iterable[Member] = ()) -> list[Standing]:
        """The tree in the order of its ranking, each account before what is below it."""
        root, leaves = self._ranked(now, asking)
        rows: list[Standing] = []
        pending: list[tuple[_Node, int]] = [(root, -1)]
        while pending:
            node, depth = pending.pop()
            if node is not root:
                rows.append(_standing(node, depth, len(leaves)))
            if isinstance(node, _Account):
                pending += [(child, depth + 1) for child in _shown(node.children)[::-1]]
        return rows

    def _ranked(self, now: float, asking: Iterable[Member]) -> tuple[_Account, dict[Member, _Node]]:
        accounts = self._accounts()
        leaves = self._leaves(accounts, self._all_usage(now), asking)
        upwards = list(accounts.values())[::-1]
        for account in upwards:
            account.add_up()
        for account in upwards:
            account.compare()
        last = _rank(accounts[ROOT]) + 1
        for leaf in leaves.values():
            leaf.rank = leaf.rank or last
        for account in upwards:
            account.rank = min((child.rank for child in account.children if child.rank), default=0)
        return accounts[ROOT], leaves

    def _all_usage(self, now: float) -> dict[Member, float]:
        decay, period = self.decay, self.decay.period(now)
        growth = decay.growth(now, period)
        used = {
            member: _worth(ldexp(usage.value, min(usage.period - period, _FARTHEST)) / growth)
            for member, usage in self._usage.items()
        }
        for run in self._running.values():
            member = run.account, run.user
            used[member] = used.get(member, 0.0) + run.charged(now, decay)
        return used

    def _accounts(self) -> dict[str, _Account]:
        """From the top downwards, without users yet."""
        nodes = {ROOT: _Account(ROOT, None, 1.0)}
        for name in self.accounts.order:
            account = self.accounts[name]
            parent = nodes[account.parent]
            nodes[name] = _Account(name, parent, account.shares)
            parent.accounts.append(nodes[name])
        return nodes

    def _leaves(
        self, accounts: Mapping[str, _Account], used: Mapping[Member, float], asking: Iterable[Member]
    ) -> dict[Member, _Node]:
        """Everybody who is a member, has used something or asks; accounts that are gone are left out."""
        leaves: dict[Member, _Node] = {}
        for name, account in accounts.items():
            for user, shares in self.accounts.members(name).items():
                member = name, user
                leaf = leaves[member] = _Node(user, account, shares, used.get(member, 0.0))
                account.users.append(leaf)
        others = [member for member, usage in used.items() if usage and member[0] in accounts]
        others += [(self.accounts.resolve(user, name), user) for name, user in asking]
        for member in others:
            if member not in leaves:
                parent = accounts.get(member[0])
                leaf = leaves[member] = _Node(member[1], parent, 1.0, used.get(member, 0.0))
                if parent is not None:
                    parent.users.append(leaf)
        return leaves

    # -- as plain data

    def to_dict(self) -> dict[str, Any]:
        """All that is known of use, as plain data."""
        return {
            "half_life": _bounded(self.decay.half_life),
            "usage": [[*member, usage.value, usage.period] for member, usage in self._usage.items()],
            "running": {id: msgspec.to_builtins(run) for id, run in self._running.items()},
        }

    @classmethod
    def from_dict(
        cls,
        state: Mapping[str, Any],
        accounts: AccountTree | None = None,
        totals: Mapping[str, float] | None = None,
    ) -> FairTree:
        """The tree as it was, with its half-life."""
        tree = cls(accounts, totals, half_life=inf if state["half_life"] is None else state["half_life"])
        for account, user, value, period in state["usage"]:
            tree._usage[account, user] = Usage(value, period)
        tree._running = {id: msgspec.convert(run, Run) for id, run in state["running"].items()}
        return tree


def _bounded(seconds: float) -> float | None:
    """None for no bound, which every plain format can say."""
    return None if isinf(seconds) else seconds


def _rank(root: _Account) -> int:
    """Give all users below their ranks, depth first; says how many there were.

    Accounts that are equal are opened together, their users compared as if they were siblings. Equal users
    share a rank, and so do a user and the first below an account that is equal to that user.
    """
    seen = rank = 0
    pending: list[tuple[list[_Node], int, bool]] = [(_below([root]), 0, False)]
    while pending:
        siblings, at, tied = pending.pop()
        while at < len(siblings):
            node = siblings[at]
            tied = node.level == siblings[at - 1].level if at else tied
            if isinstance(node, _Account):
                equals = [node, *_equals(siblings, at)]
                pending.append((siblings, at + len(equals), False))
                pending.append((_below(equals), 0, tied))
                break
            seen += 1
            node.rank = rank = rank if tied else seen
            at += 1
    return seen


def _below(accounts: list[_Account]) -> list[_Node]:
    """What is right below them, the most share by use first; of equals users before accounts."""
    below: list[_Node] = [user for account in accounts for user in account.users]
    below += [child for account in accounts for child in account.accounts]
    below.sort(key=attrgetter("level"), reverse=True)  # which keeps equals in their order
    return below


def _equals(siblings: list[_Node], at: int) -> list[_Account]:
    """The accounts behind one that are equal to it."""
    equals = []
    for node in siblings[at + 1 :]:
        if node.level != siblings[at].level or not isinstance(node, _Account):
            break
        equals.append(node)
    return equals


def _shown(siblings: list[_Node]) -> list[_Node]:
    return sorted(siblings, key=lambda node: (-node.level, node.is_account, node.name))


def _standing(node: _Node, depth: int, count: int) -> Standing:
    parent = node.parent
    assert parent is not None
    return Standing(
        account=node.name if node.is_account else parent.name,
        parent=parent.name,
        depth=depth,
        shares=node.shares,
        share=node.shares / parent.all_shares,
        usage=node.usage,
        used=node.usage / parent.usage if parent.usage else 0.0,
        level=node.level,
        user="" if node.is_account else node.name,
        rank=node.rank or None,
        factor=(count - node.rank + 1) / count if node.rank else None,
    )
