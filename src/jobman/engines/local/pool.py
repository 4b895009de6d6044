"""The shims of a launcher: forked when there is none to spare, and used again when they are done.

To fork a shim costs more than all it does for a short copy. One that is done says so, and waits a moment on
its channel for another order; it ends when none comes, or when the launcher hangs up.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from itertools import takewhile

import msgspec

from jobman.engines.local import shim
from jobman.engines.local.orders import Order
from jobman.engines.local.watch import NEWS, STOP, WATCHED

BLOCKED = WATCHED | {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
"""Held back around a fork: a shim waits for some, and lets nobody end it by the others."""
_LONGEST_ORDER = 1 << 16
_KEPT = 1.0
"""Seconds after which a shim has a long copy: its channel is closed, for descriptors are few."""

_encode = msgspec.json.Encoder().encode


class Pool:
    """Shims at work and idle, by their pids."""

    def __init__(self, notices: int) -> None:
        self._notices = notices
        self._channels: dict[int, int] = {}
        self._idle: dict[bool, list[int]] = {True: [], False: []}
        self._busy_since: dict[int, float] = {}  # the longest first

    def start(self, order: Order, *, inherits: bool) -> int:
        """Have a shim bring a copy to its end; returns its pid. Raises OSError where none can be had."""
        pid = None if inherits else self._employ(order)
        if pid is None:
            pid = self._fork(order, inherits=inherits)
        self._busy_since[pid] = time.monotonic()
        return pid

    def is_done(self, pid: int, order: Order) -> None:
        """A shim has nothing to do."""
        self._busy_since.pop(pid, None)
        if pid in self._channels:
            self._idle[order.no_new_privileges].append(pid)

    def forget(self, pid: int) -> None:
        """A shim is gone."""
        for idle in self._idle.values():
            with suppress(ValueError):
                idle.remove(pid)
        self._busy_since.pop(pid, None)
        self._hang_up(pid)

    def let_go(self) -> None:
        """Hang up on shims whose copies last: they will not be used again."""
        since = time.monotonic() - _KEPT
        for pid in list(takewhile(lambda each: self._busy_since[each] < since, self._busy_since)):
            del self._busy_since[pid]
            self._hang_up(pid)

    def _hang_up(self, pid: int) -> None:
        channel = self._channels.pop(pid, None)
        if channel is not None:
            os.close(channel)

    def _employ(self, order: Order) -> int | None:
        idle = self._idle[order.no_new_privileges]
        if not idle:
            return None
        content = _encode(order)
        if len(content) > _LONGEST_ORDER:
            return None
        while idle:
            pid = idle.pop()
            with suppress(OSError):  # it has ended
                os.write(self._channels[pid], content)
                return pid
        return None

    def _fork(self, order: Order, *, inherits: bool) -> int:
        ours, theirs = (end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        os.set_blocking(ours, False)
        signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
        try:
            pid = os.fork()
            if pid == 0:
                shim.run(order, self._notices, theirs, inherits=inherits)
        except OSError:
            os.close(ours)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED - {NEWS, STOP})
            os.close(theirs)
        self._channels[pid] = ours
        return pid
