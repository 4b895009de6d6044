"""Accounts: a tree of those who pay, with shares; what is below an account counts for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

import msgspec

from jobman.sched.queues import NO_LIMITS, Limits

ROOT = ""
"""Above the topmost accounts; not an account itself."""
DEFAULT = "default"
"""Of whoever is in no other account. It is always there; a site may write it down, with shares and limits."""


class Account(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One account, and the users who may charge it."""

    name: str
    parent: str = ROOT
    shares: float = 1.0
    """Against its siblings: the accounts and users right below the same parent."""
    users: dict[str, float] = {}
    """Each with its shares; a user may be in several accounts."""
    active: bool = True
    limits: Limits = NO_LIMITS
    """Of the account and everything below it."""
    each_user: Limits = NO_LIMITS
    """Of each user, in the account and everything below it together."""


class AccountsError(ValueError):
    """Accounts that do not make a tree; `problems` has all that is wrong, one sentence each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class AccountTree:
    """Who is below whom. Without any account there is still the one for everybody."""

    def __init__(self, accounts: Iterable[Account] = ()) -> None:
        given = tuple(accounts)
        if problems := _problems(given):
            raise AccountsError(problems)
        self._accounts = {account.name: account for account in given}
        self._accounts.setdefault(DEFAULT, Account(name=DEFAULT))
        self._children: dict[str, list[str]] = {name: [] for name in (ROOT, *self._accounts)}
        self._of: dict[str, list[str]] = {}
        for name, account in self._accounts.items():
            self._children[account.parent].append(name)
            for user in account.users:
                self._of.setdefault(user, []).append(name)
        self.order = tuple(self._from_the_top())
        """All accounts, each after its parent."""

    def _from_the_top(self) -> list[str]:
        order = list(self._children[ROOT])
        for name in order:  # it grows while it is walked
            order += self._children[name]
        return order

    def __contains__(self, name: object) -> bool:
        return name in self._accounts

    def __getitem__(self, name: str) -> Account:
        return self._accounts[name]

    def get(self, name: str) -> Account | None:
        return self._accounts.get(name)

    def children(self, name: str = ROOT) -> tuple[str, ...]:
        """The accounts right below, in the order in which they were written."""
        return tuple(self._children.get(name, ()))

    def members(self, name: str) -> Mapping[str, float]:
        """The users whom an account names, with their shares."""
        account = self._accounts.get(name)
        return account.users if account else {}

    def path(self, name: str) -> tuple[str, ...]:
        """The account and all above it, the topmost last; one that is not there stands alone."""
        path = [name]
        while (account := self._accounts.get(path[-1])) and account.parent != ROOT:
            path.append(account.parent)
        return tuple(path)

    def below(self, name: str) -> tuple[str, ...]:
        """The account and all below it, each after its parent; one that is not there stands alone."""
        found = [name]
        for one in found:  # it grows while it is walked
            found += self._children.get(one, ())
        return tuple(found)

    def accounts_of(self, user: str) -> tuple[str, ...]:
        """All that a user may name: those that name the user, and the one for everybody."""
        own = self._of.get(user, [])
        return (*own, *([] if DEFAULT in own else [DEFAULT]))

    def default_of(self, user: str) -> str:
        """The first account that names the user."""
        return self.accounts_of(user)[0]

    def resolve(self, user: str, account: str = "") -> str:
        """The account that is meant where one is named, or none."""
        return account or self.default_of(user)

    def may_use(self, user: str, account: str = "") -> bool:
        return self.obstacle(user, account) is None

    def obstacle(self, user: str, account: str = "") -> str | None:
        """Why a user may not charge an account, with what may be used instead; None where it is allowed."""
        name = self.resolve(user, account)
        if name not in self._accounts:
            return f"there is no account {name}; {self._advice(user)}"
        if name not in self.accounts_of(user):
            return f"user {user} is not in account {name}; {self._advice(user)}"
        return self._closed(name)

    def _advice(self, user: str) -> str:
        open_ = [name for name in self.accounts_of(user) if self._closed(name) is None]
        return f"{user or 'this user'} may use {' or '.join(open_) if open_ else 'none'}"

    def _closed(self, name: str) -> str | None:
        closed = next((above for above in self.path(name) if not self._accounts[above].active), None)
        if closed is None:
            return None
        return f"account {name} is not active" + (f", because {closed} is not" if closed != name else "")


def _problems(accounts: tuple[Account, ...]) -> list[str]:
    parents: dict[str, str] = {DEFAULT: ROOT}
    problems = []
    seen = set()
    for account in accounts:
        if account.name in seen:
            problems.append(f"there are two accounts named {account.name}; give one another name")
        seen.add(account.name)
        parents[account.name] = account.parent
        problems += _flaws(account)
    for account in accounts:
        if account.parent != ROOT and account.parent not in parents:
            problems.append(
                f"account {account.name} is below {account.parent}, which is not there; "
                "name an account, or leave `parent` out"
            )
    parents.pop(ROOT, None)  # without a name it is above all others, and would close circles
    return problems + [_in_words(circle) for circle in _circles(parents)]


def _flaws(account: Account) -> list[str]:
    """What is wrong with an account taken by itself."""
    flaws = [] if account.name else ["an account has no name; give it one"]
    if not _counts(account.shares):
        flaws.append(f"account {account.name} has {account.shares:g} shares; give it more than 0")
    flaws += [
        f"user {user} of account {account.name} has {shares:g} shares; give more than 0"
        for user, shares in account.users.items()
        if not _counts(shares)
    ]
    return flaws


def _counts(shares: float) -> bool:
    return isfinite(shares) and shares > 0


def _circles(parents: Mapping[str, str]) -> list[list[str]]:
    """Each circle once, from the account in it that was written first."""
    circles = []
    done: set[str] = set()
    written = list(parents)
    for start in written:
        path: dict[str, None] = {}
        name = start
        while name in parents and name not in done and name not in path:
            path[name] = None
            name = parents[name]
        if name in path:
            way = list(path)
            circle = way[way.index(name) :]
            first = circle.index(min(circle, key=written.index))
            circles.append(circle[first:] + circle[:first])
        done.update(path)
    return circles


def _in_words(circle: list[str]) -> str:
    if len(circle) == 1:
        return f"account {circle[0]} is below itself; give it another parent, or none"
    return f"accounts go round in a circle: {' below '.join([*circle, circle[0]])}; give one another parent"
