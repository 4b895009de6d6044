"""The shim beside every copy: starts it, watches over it, and records how it ended.

A shim is a fork of the launcher and needs nobody: it goes on without launcher and service. Where a shim was
killed, the launcher forks another, which finds the copy started already and takes over: it is not the copy's
parent, so the launcher, which then is, leaves it word of the end.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import time
import traceback
from contextlib import suppress
from typing import NoReturn

import msgspec

from jobman.engines.endings import why
from jobman.engines.local import records
from jobman.engines.local.ending import Seen, conclude
from jobman.engines.local.family import AdoptedFamily, OwnFamily
from jobman.engines.local.kernel import become_subreaper, forbid_new_privileges, name_process
from jobman.engines.local.orders import Order
from jobman.engines.local.records import Exit, Start
from jobman.engines.local.start import NOT_RUNNABLE, start_copy
from jobman.engines.local.trees import own_process
from jobman.engines.local.watch import Ear, Watch, result_mark
from jobman.engines.local.wire import Answer, line

_RETRY = 1.0
_IDLE = 1.0
"""Seconds for which a shim that is done waits for another copy."""
_MOST_COPIES = 200
_LONGEST_ORDER = 1 << 17


def run(order: Order, notices: int, channel: int, *, inherits: bool) -> NoReturn:
    """Be a shim, just forked, for this copy and others that come by the channel.

    `inherits` where the launcher reaps for a dead shim of this copy.
    The signals it waits for are blocked, and so are those that would end it: it ends with its copy.
    """
    try:
        gc.disable()
        os.setsid()
        # The launcher's sockets must not seem alive because of us once it is dead.
        _close_all_but(notices, channel)
        signal.set_wakeup_fd(-1)
        name_process("jobman-shim")
        become_subreaper()
        if order.no_new_privileges:
            forbid_new_privileges()  # here, because a call of the C library is dear in a fresh fork
        can_go_on = Shim(order, notices, launcher=os.getppid() if inherits else None).run()
        for _ in range(_MOST_COPIES):
            another = _next_order(notices, channel) if can_go_on else None
            if another is None:
                break
            can_go_on = Shim(another, notices).run()
        os._exit(0)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        os._exit(1)


def _close_all_but(*kept: int) -> None:
    first, second = sorted(kept)
    highest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - quicker
    os.closerange(3, first)
    os.closerange(first + 1, second)
    os.closerange(second + 1, highest + 1)


def _next_order(notices: int, channel: int) -> Order | None:
    """Another order, where one comes soon enough."""
    try:
        os.write(notices, b'{"idle":%d}\n' % os.getpid())
        if not select.select([channel], [], [], _IDLE)[0]:
            return None
        content = os.read(channel, _LONGEST_ORDER)
    except OSError:
        return None
    return msgspec.json.decode(content, type=Order) if content else None


class Shim:
    """One copy from its start, or from where another shim left it, to the record of its end."""

    def __init__(self, order: Order, notices: int, launcher: int | None = None) -> None:
        self._order = order
        self._notices = notices
        self._launcher = launcher
        self._own = own_process()
        self._ear = Ear(order)
        self._is_clean = False

    def run(self) -> bool:
        """Until the copy is over, or another shim looks after it; True where all went as it should."""
        try:
            os.makedirs(self._order.folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - quicker
        except OSError as error:
            self._give_up(error)
            return False
        while True:
            state = records.read_copy(self._order.folder, self._order.copy)
            if state.state in ("ended", "void") or state.keeper is not None:
                return False
            start = records.read_start(self._order.folder, self._order.copy)
            if start is not None:
                self._take_over(start)
                return False
            if self._start():
                return self._is_clean

    def _start(self) -> bool:
        """Start the copy and see it through; False where somebody else had started it."""
        order = self._order
        if self._ear.wanted().stop_at is not None:
            return self._never_start()
        born = time.monotonic()
        before = result_mark(order)
        family = OwnFamily(order, lambda: start_copy(order, self._own, self._notices))
        watch = Watch(order, family, self._ear, born, before)
        watch.wait()
        start = family.start
        if start is None and not self._void():
            return False
        if start is not None and start.started.pid != family.pid:
            return False
        self._record(watch.finish())
        self._is_clean = family.is_childless
        return True

    def _void(self) -> bool:
        """The copy was killed on the way to the record of its start, or there was no room for that."""
        try:
            return records.void(self._order.folder, self._order.copy)
        except OSError as error:
            self._give_up(error)
            os._exit(0)

    def _never_start(self) -> bool:
        if not self._void():
            return False
        wanted = self._ear.wanted()
        seen = Seen(status=signal.SIGTERM, ended_at=time.time(), is_stopped=True, why=wanted.why)
        self._record(conclude(self._order, seen))
        return True

    def _take_over(self, start: Start) -> None:
        order = self._order
        with suppress(OSError):
            records.write_keeper(order.folder, order.copy, self._own)
        family = AdoptedFamily(order, start, launcher=self._launcher)
        watch = Watch(order, family, self._ear, start.started.clock)
        watch.wait()
        self._record(watch.finish())

    def _record(self, exit_: Exit) -> None:
        """Write the record of the end, however long it takes to find room for it."""
        is_told = False
        while True:
            try:
                records.write_exit(self._order.folder, exit_)
                return
            except OSError as error:
                if not is_told:
                    self._tell(exit_, error)
                if error.errno in (errno.ENOENT, errno.ENOTDIR):
                    return  # somebody removed the folder: nobody wants to know any more
                is_told = True
                time.sleep(_RETRY)

    def _give_up(self, error: OSError) -> None:
        """There is no room even for the record of the start, so the copy never ran."""
        exit_ = Exit(
            id=self._order.id,
            copy=self._order.copy,
            reason="launch-failed",
            exit_code=NOT_RUNNABLE,
            message=f"cannot write to {self._order.folder}: {why(error)}",
            ended_at=time.time(),
        )
        self._tell(exit_, error)

    def _tell(self, exit_: Exit, error: OSError) -> None:
        """Say to the launcher what could not be written."""
        os.write(2, f"copy {self._order.id}: its end could not be recorded: {why(error)}\n".encode())
        said = line(Answer(ended=exit_))
        if len(said) > select.PIPE_BUF:
            said = line(Answer(ended=msgspec.structs.replace(exit_, result=None)))
        with suppress(OSError):
            os.write(self._notices, said)
