"""The watch over a running copy: its time, its memory, what is wanted of it, and then its end."""

from __future__ import annotations

import math
import os
import shutil
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path

from jobman.engines.local import records
from jobman.engines.local.cgroups import find
from jobman.engines.local.ending import Seen, conclude, signal_number
from jobman.engines.local.family import Family
from jobman.engines.local.limits import as_user
from jobman.engines.local.memory import SAMPLING, excess
from jobman.engines.local.orders import Order
from jobman.engines.local.records import RESULT_BYTES, Exit, Started, Wanted
from jobman.engines.local.stopping import Stop, freeze, thaw
from jobman.engines.local.trees import kill_all

NEWS = signal.SIGUSR1
"""Sent to a shim when there is something new in its copy's folder."""
STOP = signal.SIGUSR2
"""Sent to a shim whose copy should stop, where that cannot be written down."""
WATCHED = frozenset((signal.SIGCHLD, NEWS, STOP))
"""Blocked in a shim, and waited for."""


class Ear:
    """What a shim listens to: the ends of its children, and what is wanted of its copy."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._wanted = Wanted()
        self._has_news = True
        self._stop_at: float | None = None

    def wait(self, until: float) -> None:
        """Until something happens, but no longer than to a moment of the monotonic clock."""
        if until == math.inf:
            happened: signal.struct_siginfo | None = signal.sigwaitinfo(WATCHED)
        else:
            happened = signal.sigtimedwait(WATCHED, max(0.0, until - time.monotonic()))
        if happened is None or happened.si_signo == signal.SIGCHLD:
            return
        self._has_news = True
        if happened.si_signo == STOP and self._stop_at is None:
            self._stop_at = time.monotonic()

    def wanted(self) -> Wanted:
        if self._has_news:
            self._has_news = False
            self._wanted = records.read_wanted(self._order.folder, self._order.copy)
            if self._stop_at is not None and self._wanted.stop_at is None:
                self._wanted.stop(self._stop_at, self._order.grace, "")
        return self._wanted


class Watch:
    """A copy under watch; `born` is the moment of its start on the monotonic clock."""

    def __init__(
        self, order: Order, family: Family, ear: Ear, born: float, before: ResultMark | None = None
    ) -> None:
        """`before` is what its result file was before it started; without it, the file's time tells."""
        self._before = before
        self._order = order
        self._family = family
        self._ear = ear
        self._born = born
        self._stop: Stop | None = None
        self._is_asked_to_stop = False
        # A shim that takes over cannot know, and so does what is wanted in any case.
        self._is_frozen: bool | None = False if family.is_own else None
        self._has_timed_out = False
        self._warning_due = order.signal is not None
        self._memory_used: int | None = None
        self._sample_at = math.inf if order.memory is None else born + SAMPLING

    def wait(self) -> None:
        """Until the copy is over, or was killed as a whole."""
        while True:
            again = self._family.look()
            now = time.monotonic()
            if self._is_over(now):
                return
            due = min(
                turn(now) for turn in (self._obey, self._keep_time, self._keep_memory, self._go_on_stopping)
            )
            self._ear.wait(min(due, now + again))

    def finish(self) -> Exit:
        """Clear away what the copy left, run its last hook, and conclude."""
        order, family = self._order, self._family
        start = family.start
        notes = self._clear()
        killed_for_memory = family.cage.out_of_memory() > 0 or self._memory_used is not None
        after_status, after_lost = self._run_after()
        notes += [] if after_status is None else self._clear()
        main = family.main
        seen = Seen(
            status=None if main is None else main.status,
            ended_at=time.time() if main is None else main.at,
            started=start.started if start else None,
            refusal=start.refusal if start else None,
            user_seconds=family.usage.user_seconds,
            system_seconds=family.usage.system_seconds,
            max_rss=family.usage.max_rss,
            usage_lost=family.usage.is_lost,
            has_timed_out=self._has_timed_out or self._ended_past_limit(),
            limit=self._duration() or 0.0,
            out_of_memory=killed_for_memory,
            memory_used=self._memory_used,
            is_stopped=self._is_asked_to_stop or self._ear.wanted().stop_at is not None,
            why=self._ear.wanted().why,
            killed=self._stop is not None and self._stop.killed,
            after_status=after_status,
            after_lost=after_lost,
            result=_result(order, self._before, None if start is None else start.started.at),
            lost=_lost(start.started if start else None),
            notes=(*notes, *self._tidy()),
        )
        return conclude(order, seen)

    def _is_over(self, now: float) -> bool:
        if self._family.main is None and not self._family.is_lost:
            return False
        return self._stop is None or self._stop.is_over(now)

    # Turns: each does what is due and says when it wants to be asked again.

    def _obey(self, now: float) -> float:
        wanted = self._ear.wanted()
        if wanted.stop_at is not None:
            grace = self._order.grace if wanted.grace is None else wanted.grace
            self._is_asked_to_stop = True
            self._begin_to_stop(grace, now).hurry(wanted.stop_at + grace)
        elif self._is_frozen is not (is_wanted := wanted.frozen_since is not None):
            self._is_frozen = is_wanted
            (freeze if is_wanted else thaw)(self._family)
        return math.inf

    def _keep_time(self, now: float) -> float:
        limit = self._limit()
        if self._stop is not None or self._is_frozen or limit == math.inf:
            return math.inf
        if now >= limit:
            self._has_timed_out = True
            self._begin_to_stop(self._order.grace, now)
            return math.inf
        if not self._warning_due:
            return limit
        warning = limit - self._order.signal_before
        if now < warning:
            return warning
        self._warn()
        return limit

    def _keep_memory(self, now: float) -> float:
        if now < self._sample_at:
            return self._sample_at
        if self._family.process is not None and self._family.cage.memory is not None:
            self._sample_at = math.inf  # the kernel keeps the limit
            return math.inf
        used = excess(self._family.members(), self._order.memory or 0)
        if used is not None:
            self._memory_used = used
            kill_all(self._family.members, self._family.reap)
        self._sample_at = now + SAMPLING
        return self._sample_at

    def _go_on_stopping(self, now: float) -> float:
        return math.inf if self._stop is None else self._stop.turn(now)

    def _begin_to_stop(self, grace: float, now: float) -> Stop:
        if self._stop is None:
            self._stop = Stop(self._order, self._family, grace=grace, now=now)
        return self._stop

    def _duration(self) -> float | None:
        wanted = self._ear.wanted().duration
        return self._order.duration if wanted is None else wanted

    def _limit(self) -> float:
        """The moment at which the copy must end; a time in which it stood still does not count."""
        duration = self._duration()
        return math.inf if duration is None else self._born + duration + self._ear.wanted().frozen_seconds

    def _warn(self) -> None:
        self._warning_due = False
        process = self._family.process
        if process is None or not records.claim(self._order.folder, self._order.copy, "warned"):
            return
        with suppress(OSError, KeyError):  # gone already, or no signal of this system
            os.killpg(process.pid, signal_number(self._order.signal or "TERM"))

    def _ended_past_limit(self) -> bool:
        """A shim that took over may not have seen the limit pass."""
        main = self._family.main
        return not self._family.is_own and main is not None and main.clock >= self._limit()

    def _clear(self) -> list[str]:
        left = self._family.clear()
        return [f"{len(left)} of its processes could not be killed"] if left else []

    def _run_after(self) -> tuple[int | None, bool]:
        """The status of the last hook, and whether it is unknown because it was run before."""
        order = self._order
        if not order.after:
            return None, False
        if self._family.is_own and self._family.main is not None:
            with suppress(OSError):  # all that is known of the end, should the next shim have to tell it
                records.write_reaped(order.folder, order.copy, self._family.main)
        if not records.claim(order.folder, order.copy, "after"):
            return None, True
        until = self._after_until(time.monotonic())
        hook = self._family.start_hook(order.after)
        while self._family.hook_status(hook) is None:
            now = time.monotonic()
            if self._ear.wanted().stop_at is not None:
                until = min(until, now + order.grace)
            if now >= until:
                self._family.end_hook(hook)
            self._ear.wait(until)
            self._family.reap()
        return self._family.hook_status(hook), False

    def _after_until(self, now: float) -> float:
        """The last hook has what is left of the time limit, and at least the grace."""
        if self._stop is not None:
            return now + self._order.grace
        return max(self._limit(), now + self._order.grace)

    def _tidy(self) -> list[str]:
        order, cage = self._order, self._family.cage
        if order.cgroup is not None and self._family.start is None:
            cage = find(order.cgroup)  # killed before it could say that it is in one
        notes = [] if cage.remove() else ["its control group could not be removed"]
        if order.scratch is not None:
            shutil.rmtree(order.scratch, ignore_errors=True)
            if Path(order.scratch).exists():
                notes.append(f"its scratch folder {order.scratch} could not be removed")
        return notes


ResultMark = tuple[int, int, int]
"""What tells two states of a file apart: its inode, the time of its last change, its size."""
_FILE_CLOCK = 0.02
"""Seconds by which the times of files may lag."""


def result_mark(order: Order) -> ResultMark:
    """The result file as it is before the copy starts; zeros where there is none."""
    if order.result_file is None:
        return 0, 0, 0
    try:
        with as_user(order):
            known = (Path(order.cwd) / order.result_file).stat()
    except OSError:
        return 0, 0, 0
    return known.st_ino, known.st_mtime_ns, known.st_size


def _result(order: Order, before: ResultMark | None, started_at: float | None) -> str | None:
    """The end of the copy's result file, read with the rights of its user; not one that others left."""
    if order.result_file is None:
        return None
    path = Path(order.cwd) / order.result_file
    try:
        with as_user(order):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode):
            return None
        if before == (known.st_ino, known.st_mtime_ns, known.st_size):
            return None
        if before is None and started_at is not None and known.st_mtime < started_at - _FILE_CLOCK:
            return None
        content = os.pread(descriptor, RESULT_BYTES, max(0, known.st_size - RESULT_BYTES))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return content.decode("utf-8", "replace")


def _lost(started: Started | None) -> str:
    if started is not None and started.boot != records.boot_id():
        return "the machine was restarted while it ran"
    return "nobody saw its end: all that looked after it had been killed"
