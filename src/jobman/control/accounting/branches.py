"""Branches: what accounts used themselves and what those below them did, as a tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from jobman.control.store.views import UsageSum
from jobman.sched.accounts import AccountTree


class Branch(NamedTuple):
    """An account in a statement."""

    own: UsageSum
    parent: str | None
    below: float
    """Units of all accounts below it."""


def branches(
    sums: Iterable[UsageSum], accounts: AccountTree, within: Collection[str] | None = None
) -> Iterator[Branch]:
    """Each account that used something itself or below it, followed by those below it, the largest first.

    `within` are the accounts that are meant. One that is not in the settings any more stands alone.
    """
    own = {one.account: one for one in sums}
    in_all: dict[str, float] = {}
    for name, one in own.items():
        for above in accounts.path(name):
            if within is None or above in within:
                in_all[above] = in_all.get(above, 0.0) + one.units
    children: dict[str | None, list[str]] = {}
    for name in sorted(in_all, key=lambda name: (-in_all[name], name)):
        parent = _parent(name, accounts)
        children.setdefault(parent if parent in in_all else None, []).append(name)
    stack = children.get(None, [])[::-1]
    while stack:
        name = stack.pop()
        known = own.get(name) or UsageSum(account=name)
        yield Branch(known, _parent(name, accounts), in_all[name] - known.units)
        stack += children.get(name, [])[::-1]


def _parent(name: str, accounts: AccountTree) -> str | None:
    return next(iter(accounts.path(name)[1:]), None)
