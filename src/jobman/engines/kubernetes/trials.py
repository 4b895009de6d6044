"""When to try once more, and when patience is over."""

from __future__ import annotations

import asyncio
import random
import time

_FIRST, _LONGEST = 0.1, 5.0
_BRIEF = 1.0
"""Seconds that a connection lasts where all is well, and longer."""


class Trials:
    """Pauses that grow and differ between clients, until so many seconds without a success are over."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.succeeded()

    def succeeded(self) -> None:
        """Begin to count anew."""
        self._pause = _FIRST
        self._since: float | None = None
        self._opened: float | None = None

    def opened(self) -> None:
        """A connection was made; it is a success when it lasts."""
        self._opened = time.monotonic()

    async def next(self, error: Exception, wanted: float | None = None) -> None:
        """Pause for as long as the server wants, or as seems right; raises the error when it is too long."""
        now = time.monotonic()
        if self._opened is not None and now - self._opened > _BRIEF:
            self.succeeded()
        self._opened = None
        self._since = now if self._since is None else self._since
        pause = self._pause * random.uniform(0.5, 1.0)
        if wanted is not None:
            pause = wanted + random.uniform(0.0, min(1.0, wanted / 4))
        if now + pause > self._since + self._patience:
            raise error
        self._pause = min(_LONGEST, self._pause * 2)
        await asyncio.sleep(pause)
