"""The processes of a copy as its shim sees them: its own children, or those of a shim that died."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from resource import struct_rusage

from jobman.engines.local import records
from jobman.engines.local.cgroups import Cage
from jobman.engines.local.kernel import exit_status
from jobman.engines.local.orders import Order
from jobman.engines.local.records import Finished, Reaped, Start
from jobman.engines.local.start import start_hook
from jobman.engines.local.trees import (
    Process,
    clear_children,
    descendants,
    facts,
    in_session,
    kill_all,
    marked,
    open_process,
    process_alive,
)

_WORD = 5.0
_NEXT_WORD = 0.5
"""Seconds to wait for what the launcher knows: of an end, or beyond what the last shim noted of it."""
_PATIENCE = 10.0


class Usage:
    """What the processes of a copy used."""

    def __init__(self) -> None:
        self.user_seconds = 0.0
        self.system_seconds = 0.0
        self.max_rss = 0
        self.is_lost = False

    def add(self, user_seconds: float, system_seconds: float, max_rss: int) -> None:
        self.user_seconds += user_seconds
        self.system_seconds += system_seconds
        self.max_rss = max(self.max_rss, max_rss)


def reaped(status: int, used: struct_rusage) -> Reaped:
    """The end of a child, as wait tells it."""
    at, clock = records.now()
    return Reaped(status, at, clock, used.ru_utime, used.ru_stime, used.ru_maxrss * 1024)


class Family:
    """The processes of one copy. `main` is how the first of them ended, None as long as it lives."""

    is_own = True
    """Whether a signal tells of every end, so that nobody has to look for it."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.usage = Usage()
        self.main: Reaped | None = None
        self.start: Start | None = None
        self.is_lost = False
        self.cage = Cage(None, None)
        self._hooks: dict[int, int | None] = {}
        self.is_childless = False

    @property
    def process(self) -> Process | None:
        """The first process, where it is known to be started."""
        raise NotImplementedError

    def members(self) -> list[Process]:
        """The living processes of the copy, without its hooks."""
        raise NotImplementedError

    def look(self) -> float:
        """See who has ended; returns the seconds after which to look again though nothing was heard."""
        self.reap()
        return math.inf

    def start_hook(self, argv: tuple[str, ...]) -> int:
        self.is_childless = False
        pid = start_hook(self.order, argv)
        self._hooks[pid] = None
        return pid

    def hook_status(self, pid: int) -> int | None:
        """The wait status of a hook, None as long as it runs."""
        return self._hooks[pid]

    def end_hook(self, pid: int) -> None:
        """Kill a hook and what it started."""
        own = facts(pid)
        if own is not None:
            hook = Process(pid, own.ticks)
            kill_all(lambda: [each for each in (hook, *descendants(pid)) if process_alive(*each)], self.reap)

    def clear(self) -> list[Process]:
        """Kill all that is left; returns what could not be killed."""
        return kill_all(self.members, self.reap, _PATIENCE)

    def _hook_trees(self) -> set[int]:
        running = [pid for pid, status in self._hooks.items() if status is None]
        return {each.pid for pid in running for each in descendants(pid)} | set(running)

    def reap(self) -> bool:
        """Take in the children that ended; true where there are none left."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self.is_childless = True
                return True
            if found is None:
                return False
            self._note(found)
            _, status, used = os.wait4(found.si_pid, 0)
            self._take(found.si_pid, reaped(status, used))

    def _note(self, found: os.waitid_result) -> None:
        """What must be written down before the kernel forgets the child."""

    def _take(self, pid: int, end: Reaped) -> None:
        self.usage.add(end.user_seconds, end.system_seconds, end.max_rss)
        if pid in self._hooks:
            self._hooks[pid] = end.status


class OwnFamily(Family):
    """A copy that this shim started: whatever it starts, and whatever daemonises, is below the shim."""

    def __init__(self, order: Order, start: Callable[[], int]) -> None:
        super().__init__(order)
        self.pid = start()
        self._process: Process | None = None

    @property
    def process(self) -> Process | None:
        if self._process is None and self.main is None:
            self._recognise(records.read_start(self.order.folder, self.order.copy))
        return self._process

    def _recognise(self, start: Start | None) -> None:
        self.start = start
        if start is not None and start.started.pid == self.pid:
            self._process = start.started.process
            self.cage = Cage(start.started.memory_cgroup, start.started.freezer_cgroup)

    def members(self) -> list[Process]:
        if self.is_childless:
            return []
        hooks = self._hook_trees()
        return [each for each in descendants(os.getpid()) if each.pid not in hooks]

    def clear(self) -> list[Process]:
        return clear_children(self.members, self.reap, _PATIENCE)

    def _note(self, found: os.waitid_result) -> None:
        if found.si_pid == self.pid:
            order = self.order
            self._recognise(records.note_end(order.folder, order.copy, self.pid, _wait_status(found)))

    def _take(self, pid: int, end: Reaped) -> None:
        super()._take(pid, end)
        if pid == self.pid:
            self.main = end


class AdoptedFamily(Family):
    """A copy whose shim died. What it daemonised went to the launcher, and is known by its marker."""

    is_own = False

    def __init__(self, order: Order, start: Start, *, launcher: int | None) -> None:
        super().__init__(order)
        started = start.started
        self.cage = Cage(started.memory_cgroup, started.freezer_cgroup)
        self.start = start
        self._started = started
        self._descriptor = open_process(started.process) if started.boot == records.boot_id() else None
        self._launcher = launcher
        self._missing_since: float | None = None

    @property
    def process(self) -> Process | None:
        return self._started.process

    def members(self) -> list[Process]:
        if self._started.boot != records.boot_id():
            return []
        main = self._started.process
        below = descendants(main.pid) if process_alive(*main) else []
        found = {*below, *marked(self.order.id), *in_session(main.pid), *self.cage.processes()}
        if process_alive(*main):
            found.add(main)
        ours = self._hook_trees() | {os.getpid()}
        return [each for each in found if each.pid not in ours]

    def look(self) -> float:
        self.reap()
        if self.main is None and not self.is_lost:
            self._look_for_the_end()
        return 1.0 if self._missing_since is None else 0.05

    def _look_for_the_end(self) -> None:
        end = records.read_reaped(self.order.folder, self.order.copy)
        if end is not None:
            self.main = end
            self.start = records.read_start(self.order.folder, self.order.copy)
            self.usage.add(end.user_seconds, end.system_seconds, end.max_rss)
        elif not process_alive(*self._started.process) or self._started.boot != records.boot_id():
            self._miss(time.monotonic())

    def _miss(self, now: float) -> None:
        """It is gone without a word: wait for its parent, then ask the kernel, then give it up."""
        if self._missing_since is None:
            self._missing_since = now
        self.start = records.read_start(self.order.folder, self.order.copy)
        finished = self.start.finished if self.start else None
        is_early = now - self._missing_since < (_WORD if finished is None else _NEXT_WORD)
        if is_early and self._launcher is not None and os.getppid() == self._launcher:
            return
        if is_early and self._descriptor is not None and facts(self._started.pid) is not None:
            return  # a zombie: the kernel tells once somebody has reaped it
        self.usage.is_lost = True
        finished = finished or self._ask_the_kernel()
        self.is_lost = finished is None
        if finished is not None:
            self.main = Reaped(finished.status, finished.at, finished.clock, 0.0, 0.0, 0)

    def _ask_the_kernel(self) -> Finished | None:
        status = None if self._descriptor is None else exit_status(self._descriptor)
        return None if status is None else Finished(status, *records.now())


def _wait_status(found: os.waitid_result) -> int:
    """The status that wait would tell."""
    if found.si_code == os.CLD_EXITED:
        return found.si_status << 8
    return found.si_status | (0x80 if found.si_code == os.CLD_DUMPED else 0)
