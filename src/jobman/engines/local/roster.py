"""The copies a launcher looks after: their shims, forked or found, and what is wanted of them."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec

from jobman.engines.endings import why
from jobman.engines.local import records
from jobman.engines.local.family import reaped
from jobman.engines.local.orders import Order
from jobman.engines.local.pool import Pool
from jobman.engines.local.records import CopyState, Exit, Reaped, Wanted
from jobman.engines.local.trees import Process, open_process
from jobman.engines.local.watch import NEWS, STOP
from jobman.engines.local.wire import Answer, Named, decode_answer, line

_AT_ONCE = max(4, 2 * (os.cpu_count() or 1))
"""Copies on their way to their start; more at once only get in each other's way."""
_WAY = 0.25
"""Seconds after which one on its way no longer holds up the others."""
_LONGEST_PAUSE = 1.0
_FORKS_TRIED = 8

Change = Callable[[Wanted, Order], None]


class Charge:
    """One copy in the launcher's charge."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.wanted: Wanted | None = None
        self.started: bytes | None = None
        self.is_told = False
        self.shim: int | None = None
        self.descriptor: int | None = None
        self.deaths = 0
        self.failed_forks = 0
        self.again_at = 0.0


class Roster:
    """All copies in charge; `report` is given every line of news, `watch` the pidfd of a found shim."""

    def __init__(
        self,
        notices: int,
        report: Callable[[bytes], None],
        watch: Callable[[int, Charge], None],
        unwatch: Callable[[int], object],
    ) -> None:
        self._pool = Pool(notices)
        self._report = report
        self._watch = watch
        self._unwatch = unwatch
        self._charges: dict[str, Charge] = {}
        self._shims: dict[int, Charge | None] = {}
        self._waiting: deque[Charge] = deque()
        self._on_their_way: dict[int, float] = {}
        self._resting: set[str] = set()
        self._bereaved: set[str] = set()

    def __len__(self) -> int:
        return len(self._charges)

    def known(self, ids: tuple[str, ...]) -> dict[str, str]:
        """Which of these are in charge, and whether they have started."""
        found = {id_: self._charges.get(id_) for id_ in ids}
        return {id_: "running" if charge.started else "starting" for id_, charge in found.items() if charge}

    def take(self, order: Order, *, may_start: bool) -> bool:
        """Take charge of a copy, or say again what is known of it; False where it may not be started."""
        charge = self._charges.get(order.id)
        if charge is not None:
            if charge.started:
                self._report(charge.started)
            return True
        charge = Charge(order)
        try:
            state = records.read_copy(order.folder, order.copy)
        except OSError as error:
            self._charges[order.id] = charge
            self._give_up(charge, f"cannot read {order.folder}: {why(error)}")
            return True
        if state.state == "unknown" and not may_start:
            return False
        self._charges[order.id] = charge
        self._see_to(charge, state)
        return True

    def want(self, id_: str, change: Change) -> bool:
        """Ask something of a copy; False where it is not in charge."""
        charge = self._charges.get(id_)
        if charge is None:
            return False
        folder, copy = charge.order.folder, charge.order.copy
        if charge.wanted is None:
            charge.wanted = records.read_wanted(folder, copy)
        change(charge.wanted, charge.order)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - the shim may not be there yet
            records.write_wanted(folder, copy, charge.wanted)
        except OSError:
            if charge.wanted.stop_at is not None:
                self._call(charge, STOP)  # a full disk must not keep a copy from being stopped
            raise
        self._call(charge, NEWS)
        return True

    def notice(self, said: bytes) -> None:
        """News from a shim: a start, an end that could not be recorded, or that it is done."""
        try:
            news = decode_answer(said)
        except msgspec.MsgspecError:
            return  # longer than a pipe takes at once; the records say the same
        if news.idle is not None:
            self._shim_is_done(news.idle)
            return
        subject = news.started or news.ended
        charge = self._charges.get(subject.id) if subject else None
        if charge is None:
            return
        self._report(said)
        if news.started:
            charge.started = said
            self._on_their_way.pop(charge.shim or 0, None)
        else:
            charge.is_told = True

    def fork_some(self) -> float | None:
        """Fork the shims that are due, a few at a time; returns the seconds to the next, None for never."""
        now = time.monotonic()
        due = [id_ for id_ in self._resting if self._charges[id_].again_at <= now]
        for id_ in due:
            self._resting.discard(id_)
            self._look_again(self._charges[id_])
        self._pool.let_go()
        while self._waiting and self._may_start(now):
            self._start(self._waiting.popleft())
        if self._waiting:
            return _WAY
        return min((self._charges[id_].again_at - now for id_ in self._resting), default=None)

    def _may_start(self, now: float) -> bool:
        if len(self._on_their_way) < _AT_ONCE:
            return True
        self._on_their_way = {pid: since for pid, since in self._on_their_way.items() if since > now - _WAY}
        return len(self._on_their_way) < _AT_ONCE

    def reap(self, drain: Callable[[], None]) -> None:
        """Take in all children that ended; `drain` brings what they said before.

        Shims come first: then a child that nobody knows can be recognised as the copy of one of them.
        """
        strays: dict[int, Reaped] = {}
        ended = []
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self._shims:
                ended.append(pid)
            else:
                strays[pid] = reaped(status, used)
        drain()
        for pid in ended:
            self._pool.forget(pid)
            self._on_their_way.pop(pid, None)
            charge = self._shims.pop(pid)
            if charge is not None:
                charge.shim = None
                self._shim_ended(charge, is_bereaved=True)
        if strays and self._bereaved:
            self._hand_on(strays)

    def found_shim_ended(self, charge: Charge) -> None:
        """A shim of an earlier launcher is gone."""
        self._let_go(charge)
        self._shim_ended(charge, is_bereaved=False)

    def _shim_is_done(self, pid: int) -> None:
        charge = self._shims.get(pid)
        if charge is None:
            return
        self._shims[pid] = charge.shim = None
        self._on_their_way.pop(pid, None)
        self._pool.is_done(pid, charge.order)
        self._shim_ended(charge, is_bereaved=False)

    def _shim_ended(self, charge: Charge, *, is_bereaved: bool) -> None:
        exit_ = None
        with suppress(OSError):
            exit_ = records.read_exit(charge.order.folder, charge.order.copy)
        if exit_ is not None:
            self._forget(charge, Answer(ended=exit_))
        elif charge.is_told:
            self._forget(charge)
        else:
            charge.deaths += 1
            if is_bereaved:
                self._bereaved.add(charge.order.id)
            self._rest(charge, 0.0 if charge.deaths < 5 else 0.01 * 2 ** min(charge.deaths, 10))

    def _rest(self, charge: Charge, seconds: float) -> None:
        charge.again_at = time.monotonic() + min(seconds, _LONGEST_PAUSE)
        self._resting.add(charge.order.id)

    def _look_again(self, charge: Charge) -> None:
        try:
            state = records.read_copy(charge.order.folder, charge.order.copy)
        except OSError:
            self._rest(charge, _LONGEST_PAUSE)
            return
        self._see_to(charge, state)

    def _see_to(self, charge: Charge, state: CopyState) -> None:
        """Whatever a copy needs to come to its end, and to have it told."""
        if state.started is not None and not state.started.void and charge.started is None:
            charge.started = line(Answer(started=state.started))
            self._report(charge.started)
        if state.exit is not None:
            self._forget(charge, Answer(ended=state.exit))
        elif state.state == "void":
            self._forget(charge, Answer(void=Named(charge.order.id)))
        elif state.keeper is None or not self._keep(charge, state.keeper):
            self._waiting.append(charge)

    def _keep(self, charge: Charge, keeper: Process) -> bool:
        """Watch over a shim that is not our child; False where it is gone."""
        charge.descriptor = open_process(keeper)
        if charge.descriptor is None:
            return False
        self._watch(charge.descriptor, charge)
        return True

    def _let_go(self, charge: Charge) -> None:
        if charge.descriptor is not None:
            self._unwatch(charge.descriptor)
            os.close(charge.descriptor)
            charge.descriptor = None

    def _call(self, charge: Charge, number: int) -> None:
        with suppress(OSError):
            if charge.shim is not None:
                os.kill(charge.shim, number)
            elif charge.descriptor is not None:
                signal.pidfd_send_signal(charge.descriptor, number)

    def _start(self, charge: Charge) -> None:
        try:
            pid = self._pool.start(charge.order, inherits=charge.order.id in self._bereaved)
        except OSError as error:
            self._fork_failed(charge, error)
            return
        charge.shim = pid
        self._shims[pid] = charge
        self._on_their_way[pid] = time.monotonic()

    def _fork_failed(self, charge: Charge, error: OSError) -> None:
        charge.failed_forks += 1
        if charge.failed_forks < _FORKS_TRIED or charge.started:
            self._rest(charge, 0.1 * 2 ** min(charge.failed_forks, 10))
        else:
            self._give_up(charge, f"the machine allows no more processes: {why(error)}")

    def _give_up(self, charge: Charge, message: str) -> None:
        """Make sure that a copy never starts, and say so; unless it has."""
        order = charge.order
        end = Exit(
            id=order.id, copy=order.copy, reason="launch-failed", message=message, ended_at=time.time()
        )
        try:
            if not records.void(order.folder, order.copy):
                self._rest(charge, _LONGEST_PAUSE)
                return
            records.write_exit(order.folder, end)
        except OSError:
            pass  # then it is only said
        self._forget(charge, Answer(ended=end))

    def _hand_on(self, strays: dict[int, Reaped]) -> None:
        """Children that were a dead shim's: the end of a copy among them is written down for the next."""
        for id_ in self._bereaved:
            charge = self._charges[id_]
            with suppress(OSError):
                start = records.read_start(charge.order.folder, charge.order.copy)
                if start is not None and start.started.pid in strays:
                    records.write_reaped(charge.order.folder, charge.order.copy, strays[start.started.pid])
                    self._call(charge, NEWS)

    def _forget(self, charge: Charge, last: Answer | None = None) -> None:
        if last is not None:
            self._report(line(last))
        self._let_go(charge)
        self._bereaved.discard(charge.order.id)
        self._resting.discard(charge.order.id)
        del self._charges[charge.order.id]
