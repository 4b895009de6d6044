"""The end of a copy on request: its hook, a signal in peace, and force when the grace is over."""

from __future__ import annotations

import signal

from jobman.engines.local import records
from jobman.engines.local.family import Family
from jobman.engines.local.orders import Order
from jobman.engines.local.trees import kill_all, signal_all

_AGAIN = 0.1


class Stop:
    """One stop under way. The grace is the time from the request to the kill, the hook's time included."""

    def __init__(self, order: Order, family: Family, *, grace: float, now: float) -> None:
        self.killed = False
        self._family = family
        self._kill_at = now + grace
        self._is_asked = False
        self._hook: int | None = None
        if order.on_stop and grace > 0 and records.claim(order.folder, order.copy, "on_stop"):
            self._hook = family.start_hook(order.on_stop)

    def hurry(self, kill_at: float) -> None:
        """A later request may shorten the grace, not lengthen it."""
        self._kill_at = min(self._kill_at, kill_at)

    def turn(self, now: float) -> float:
        """Do what is due; returns when to come back."""
        if self._hook_runs():
            if now < self._kill_at:
                return self._kill_at
            self._family.end_hook(self._hook or 0)
        if not self._is_asked:
            self._ask()
        if now < self._kill_at:
            return self._kill_at if self._family.is_own else min(self._kill_at, now + _AGAIN)
        self._kill()
        return now + _AGAIN

    def is_over(self, now: float) -> bool:
        """Whether nothing is left but the first process: others may still be saving their work."""
        if self._hook_runs():
            return False
        return now >= self._kill_at or not self._family.members()

    def _hook_runs(self) -> bool:
        return self._hook is not None and self._family.hook_status(self._hook) is None

    def _ask(self) -> None:
        self._is_asked = True
        # All stand still while they are told: a shell whose command ends first would begin the next one.
        freeze(self._family)
        # Once: what a process starts in order to clean up is not to be ended.
        signal_all(self._family.members, signal.SIGTERM, passes=1)
        thaw(self._family)

    def _kill(self) -> None:
        if self._family.members():
            self.killed = True
            self._family.cage.kill()
            kill_all(self._family.members, self._family.reap)


def freeze(family: Family) -> None:
    """Let every process of the copy stand still."""
    if family.process is None or not family.cage.freeze(frozen=True):
        signal_all(family.members, signal.SIGSTOP)


def thaw(family: Family) -> None:
    """Let every process of the copy go on."""
    family.cage.freeze(frozen=False)
    signal_all(family.members, signal.SIGCONT)
