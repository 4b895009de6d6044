"""What a tenant may have at once: tasks and bytes in the queue, tasks with workers, workers."""

from __future__ import annotations

from math import inf

import msgspec

_PAUSE = 1.0
"""Seconds to wait at least before a refused submission is tried again."""
_LONGEST = 5.0
"""At most: who asks again costs little, and rates change."""
_MEMORY = 5.0
"""Seconds that count for a rate."""


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """The limits and the weight of a tenant; nothing is limited where nothing is said."""

    weight: float = 1.0
    tasks: float = inf
    bytes: float = inf
    slots: float = inf
    workers: float = inf


class Refused(msgspec.Struct, frozen=True):
    """A submission that exceeds a limit."""

    limit: str
    most: float
    would_be: float
    retry_after: float
    """Seconds after which there may be room."""

    @property
    def message(self) -> str:
        noun = {"tasks": "tasks in the queue", "bytes": "bytes in the queue"}[self.limit]
        return f"{self.would_be:,.0f} {noun} would be more than the {self.most:,.0f} you may have"

    @property
    def is_hopeless(self) -> bool:
        """Whether it could not be taken even if nothing else were there."""
        return self.retry_after == inf


class Usage:
    """What one tenant has in the queue."""

    def __init__(self) -> None:
        self.tasks = 0
        self.bytes = 0
        self.rate = 0.0
        """Tasks a second that leave the queue, lately."""
        self._left = 0

    def admit(self, tasks: int, size: int, quota: Quota) -> Refused | None:
        """Take a submission, or say what it would exceed; then nothing is taken."""
        for name, more, most in (("tasks", tasks, quota.tasks), ("bytes", size, quota.bytes)):
            would_be = getattr(self, name) + more
            if would_be > most:
                wait = inf if more > most else self._wait(would_be - most, name)
                return Refused(name, most, would_be, wait)
        self.tasks += tasks
        self.bytes += size
        return None

    def _wait(self, excess: float, name: str) -> float:
        """As long as the excess takes to leave at the rate of late; not long where none is known yet."""
        share = excess / max(1, getattr(self, name)) * self.tasks
        return min(_LONGEST, max(_PAUSE, share / self.rate)) if self.rate > 0 else _PAUSE

    def leave(self, tasks: int, size: int) -> None:
        self.tasks -= tasks
        self.bytes -= size
        self._left += tasks

    def come_back(self, tasks: int, size: int) -> None:
        """What had left is in the queue again, whatever the limits are."""
        self.tasks += tasks
        self.bytes += size

    def pass_time(self, seconds: float) -> None:
        """Learn the rate of the last so many seconds."""
        if seconds > 0:
            self.rate += (self._left / seconds - self.rate) * min(1.0, seconds / _MEMORY)
            self._left = 0
