"""Permissions: whether a job that runs may still run, looked at again with every slice."""

from __future__ import annotations

from collections.abc import Sequence

from jobman.control.accounting.spending import Spending
from jobman.control.store.records import JobRecord
from jobman.sched.accounts import DEFAULT, AccountTree


def account_of(record: JobRecord, accounts: AccountTree) -> str:
    """The account that a job is charged to."""
    return accounts.resolve(record.owner, record.account or "")


def check(
    record: JobRecord, accounts: AccountTree, spending: Spending, unreadable: Sequence[str] = ()
) -> str | None:
    """What a job has lost, in a sentence; None where it may go on.

    `unreadable` are paths it was submitted with and its owner may not read any more.
    """
    account = account_of(record, accounts)
    if unreadable:
        more = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
        return f"{record.owner} may no longer read {unreadable[0]}{more}"
    return _lost_account(record.owner, account, accounts) or _spent(record.owner, account, accounts, spending)


def _lost_account(owner: str, account: str, accounts: AccountTree) -> str | None:
    if account not in accounts and accounts.order == (DEFAULT,):
        return None  # A site that has no accounts takes any name for one.
    return accounts.obstacle(owner, account)


def _spent(owner: str, account: str, accounts: AccountTree, spending: Spending) -> str | None:
    """The first budget that is used up, from the account upwards."""
    for above in accounts.path(account):
        found = accounts.get(above)
        if found is None:
            continue
        budgets = ((found.limits.budget, "", above), (found.each_user.budget, owner, f"{owner} in {above}"))
        for budget, user, words in budgets:
            used = spending.used(above, user)
            if budget is not None and used > budget:
                return f"the budget of {words} is used up: {round(used, 3):,} of {budget:,g} units"
    return None
