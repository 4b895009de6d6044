"""What a copy may use and do: its cores, its user, its capabilities, the mode of its files."""

from __future__ import annotations

import errno
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager

from jobman.engines.endings import why
from jobman.engines.local.kernel import (
    AMBIENT_RAISE,
    CAP_AMBIENT,
    CAPBSET_DROP,
    SET_KEEPCAPS,
    CapabilitySets,
    prctl,
)
from jobman.engines.local.orders import CannotRun, Order

DEFAULT_UMASK = 0o022

CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *(
        "LINUX_IMMUTABLE",
        "NET_BIND_SERVICE",
        "NET_BROADCAST",
        "NET_ADMIN",
        "NET_RAW",
        "IPC_LOCK",
        "IPC_OWNER",
    ),
    *(
        "SYS_MODULE",
        "SYS_RAWIO",
        "SYS_CHROOT",
        "SYS_PTRACE",
        "SYS_PACCT",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_NICE",
    ),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL"),
    *("SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ"),
    *("PERFMON", "BPF", "CHECKPOINT_RESTORE"),
)
"""In the order of their numbers."""
_ALL = (1 << len(CAPABILITIES)) - 1


def missing_cores(order: Order) -> tuple[int, ...]:
    """The cores of an order that this process may not use."""
    return tuple(sorted(set(order.cores) - os.sched_getaffinity(0))) if order.cores else ()


def pin(order: Order) -> None:
    """Stay on the cores of the order, as far as they are there."""
    if usable := set(order.cores) & os.sched_getaffinity(0):
        os.sched_setaffinity(0, usable)


def set_umask(order: Order) -> None:
    os.umask(DEFAULT_UMASK if order.umask is None else order.umask)


def drop_privileges(order: Order) -> None:
    """Become the user of the order, with the rights it gives and no others; there is no way back."""
    added = _mask(order.add_capabilities)
    _check_user(order)
    _check_capabilities(added)
    _drop(_mask(order.drop_capabilities))
    try:
        _become(order, keep=bool(added))
        _keep(added)
    except OSError as error:
        raise CannotRun(f"the rights of the copy cannot be set: {why(error)}") from None


@contextmanager
def as_user(order: Order) -> Iterator[None]:
    """Look at files with the eyes of the order's user, for a while."""
    if order.uid is None or os.geteuid() != 0:
        yield
        return
    gid, groups = user_groups(order)
    own = os.getgroups()
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(order.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(own)


def user_groups(order: Order) -> tuple[int, list[int]]:
    """The group and the further groups of the order's user: those of the order, else those of the system."""
    uid = os.getuid() if order.uid is None else order.uid
    try:
        known = pwd.getpwuid(uid)
    except KeyError:
        gid = uid if order.gid is None else order.gid
        return gid, list(order.groups or (gid,))
    gid = known.pw_gid if order.gid is None else order.gid
    return gid, os.getgrouplist(known.pw_name, gid) if order.groups is None else list(order.groups)


def _check_user(order: Order) -> None:
    if os.geteuid() == 0:
        return
    asked = {"user": (order.uid, os.getuid()), "group": (order.gid, os.getgid())}
    for noun, (wanted, own) in asked.items():
        if wanted not in (None, own):
            raise CannotRun(f"only root can run a copy as {noun} {wanted}; jobman runs as {noun} {own} here")
    if order.groups is not None and not set(order.groups) <= {os.getgid(), *os.getgroups()}:
        raise CannotRun("only root can give a copy groups that jobman is not in")


def _check_capabilities(added: int) -> None:
    if not added:
        return
    lacking = added & ~CapabilitySets.own().permitted
    if lacking and added != _ALL:  # all means all that there are
        names = ", ".join(name for number, name in enumerate(CAPABILITIES) if lacking >> number & 1)
        raise CannotRun(f"the copy asks for rights that jobman itself does not have here: {names}")


def _become(order: Order, *, keep: bool) -> None:
    if os.geteuid() != 0 or (order.uid is None and order.gid is None and order.groups is None):
        return
    gid, groups = user_groups(order)
    uid = 0 if order.uid is None else order.uid
    if keep:
        prctl(SET_KEEPCAPS, 1)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _keep(added: int) -> None:
    """Carry capabilities over the change of user and over exec, which for root are there anyway."""
    if not added or os.geteuid() == 0:
        return
    kept = added & CapabilitySets.own().permitted
    CapabilitySets(kept, kept, kept).apply()
    for number in range(len(CAPABILITIES)):
        if kept >> number & 1:
            prctl(CAP_AMBIENT, AMBIENT_RAISE, number)


def _drop(mask: int) -> None:
    if not mask or not CapabilitySets.own().permitted >> CAPABILITIES.index("SETPCAP") & 1:
        return  # who may not drop rights has none that exec could give, other than by a set-uid program
    for number in range(len(CAPABILITIES)):
        if mask >> number & 1:
            _drop_one(number)


def _drop_one(number: int) -> None:
    try:
        prctl(CAPBSET_DROP, number)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return  # an older kernel, which does not know this one
        raise CannotRun(
            f"the right {CAPABILITIES[number]} cannot be taken from the copy: {why(error)}"
        ) from None


def _mask(names: tuple[str, ...]) -> int:
    mask = 0
    for name in names:
        short = name.upper().removeprefix("CAP_")
        if short == "ALL":
            return _ALL
        if short not in CAPABILITIES:
            raise CannotRun(f"there is no capability {name}; one is NET_BIND_SERVICE")
        mask |= 1 << CAPABILITIES.index(short)
    return mask
