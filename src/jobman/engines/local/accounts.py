"""Accounts: as whom copies run, on a service that several people share."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator

import msgspec

from jobman.engines.base import Account, Order, Refused
from jobman.engines.local.orders import CannotRun
from jobman.plan.features import users
from jobman.plan.model import Plan
from jobman.spec.access import Security

_BY_THE_SERVICE = (
    "identity",
    "image",
    "secrets",
    "env_from",
    "security.privileged",
    *(f"volumes.{kind}" for kind in ("host", "git", "secret", "config")),
)
"""What the service itself reads or makes for a copy, with rights that the copy's user has not."""


def account_of(owner: str) -> Account | None:
    """The account of somebody; None for that of this process. Raises PermissionError where there is none."""
    if owner == _own_name():
        return None
    if os.geteuid() != 0:
        raise PermissionError(f"only root may run copies as {owner}; this service is {_own_name()}")
    try:
        found = pwd.getpwnam(owner)
    except KeyError:
        raise PermissionError(f"there is no account {owner} on the machine of the service") from None
    groups = os.getgrouplist(owner, found.pw_gid)
    return Account(found.pw_uid, found.pw_gid, tuple(groups))


def as_identity(order: Order) -> Order:
    """An order whose copies are the account its document names, unless it names a uid as well."""
    policies = order.unit.policies
    if policies.identity is None or (policies.security is not None and policies.security.uid is not None):
        return order
    try:
        account = account_of(policies.identity)
    except PermissionError as error:
        raise CannotRun(str(error)) from None
    if account is None:
        return order
    known = policies.security or Security()
    security = msgspec.structs.replace(known, uid=account.uid, gid=account.gid, groups=account.groups)
    unit = msgspec.structs.replace(order.unit, policies=msgspec.structs.replace(policies, security=security))
    return msgspec.structs.replace(order, unit=unit)


def refusals_for(plan: Plan, account: Account) -> Iterator[Refused]:
    """What people other than the service's own account cannot have: it would be done with its rights."""
    for feature in _BY_THE_SERVICE:
        if feature in plan.features:
            units = tuple(unit.id for unit in users(plan, feature))
            yield Refused(feature, units, "on a shared service only its own account may use it")
    others = tuple(unit.id for unit in plan.units if _asks_for_more(unit.policies.security, account))
    if others:
        yield Refused("security", others, "on a shared service copies run with the account of their owner")


def _asks_for_more(security: Security | None, account: Account) -> bool:
    """Whether copies are to be somebody else again, or more than their owner is."""
    if security is None:
        return False
    is_other = security.uid not in (None, account.uid) or security.gid not in (None, account.gid)
    added = () if security.capabilities is None else security.capabilities.add
    return is_other or bool(security.groups) or bool(added)


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
