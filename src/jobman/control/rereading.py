"""Rereading: which settings that were changed count at once, and which when the service starts again.

Who is in an account, what it may spend and what things cost is looked at again and again, and may change.
What the plan is made of, queues and what may be held at one time, stays: guarantees were given by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from jobman.sched.accounts import Account, AccountsError, AccountTree
from jobman.sched.queues import Limits
from jobman.sched.scheduling import Scheduling
from jobman.settings.accounting import Accounting

_LATER = {
    "queues": "queues",
    "default_queue": "scheduler.default_queue",
    "half_life": "scheduler.half_life",
    "default_duration": "scheduler.default_duration",
    "stop_margin": "scheduler.stop_margin",
    "keep_logs": "scheduler.logs",
    "keep_log_size": "scheduler.logs",
}
"""What of the scheduling stays as it was, and where it is written."""


class Reread(NamedTuple):
    """What is in force from now on, and the settings that are not."""

    scheduling: Scheduling
    accounting: Accounting
    later: tuple[str, ...]
    """Settings that were changed and count when the service starts again."""

    @property
    def words(self) -> str:
        """What whoever runs the service should know; nothing where everything is in force."""
        if not self.later:
            return ""
        return f"settings that were changed count when the service starts again: {', '.join(self.later)}"


def reread(scheduling: Scheduling, accounting: Accounting, before: tuple[Scheduling, Accounting]) -> Reread:
    """Bring settings that were read anew together with those in force."""
    old, charging = before
    later = dict.fromkeys(
        where for name, where in _LATER.items() if getattr(scheduling, name) != getattr(old, name)
    )
    accounts = tuple(_in_force(account, scheduling, old) for account in scheduling.accounts)
    try:
        AccountTree(accounts)
    except AccountsError:  # what stays and what is new do not go together
        accounts = old.accounts
        later["accounts"] = None
    else:
        later |= dict.fromkeys(_later(scheduling.accounts, accounts))
    if accounting.slice != charging.slice:
        later["accounting.slice"] = None
    return Reread(
        msgspec.structs.replace(old, accounts=accounts),
        msgspec.structs.replace(accounting, slice=charging.slice),
        tuple(later),
    )


def _in_force(account: Account, new: Scheduling, old: Scheduling) -> Account:
    """An account as it counts now: where it stands, and what may be held of it at one time, stays."""
    known = next((each for each in old.accounts if each.name == account.name), None)
    if known is None:
        return account
    is_there = not known.parent or any(each.name == known.parent for each in new.accounts)
    return msgspec.structs.replace(
        account,
        parent=known.parent if is_there else account.parent,
        limits=_held_as(known.limits, account.limits),
        each_user=_held_as(known.each_user, account.each_user),
    )


def _held_as(before: Limits, after: Limits) -> Limits:
    return msgspec.structs.replace(after, jobs=before.jobs, amounts=before.amounts)


def _later(written: tuple[Account, ...], in_force: tuple[Account, ...]) -> Iterator[str]:
    for wanted, now in zip(written, in_force, strict=True):
        for name in ("parent", "limits", "each_user"):
            if getattr(wanted, name) != getattr(now, name):
                yield f"{name} of account {wanted.name}"
