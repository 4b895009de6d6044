"""Python's collector of reference cycles, where much is made at once and nothing of it is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


class _Held:
    """Whether somebody has frozen what is there: to ask the collector takes longer the more that is."""

    frozen = False


def freeze() -> None:
    """What is there now stays for long; the collector need not look at it again and again."""
    gc.freeze()
    _Held.frozen = True


def thaw() -> None:
    """Much of what was frozen may be garbage by now."""
    gc.unfreeze()
    _Held.frozen = False


@contextmanager
def collector_paused() -> Iterator[None]:
    """Hold the cycle collector: it walks the growing tree again and again and finds nothing.

    What was made meanwhile goes straight to the oldest generation (frozen and thawed at once), so that
    the collector does not walk it all when it wakes up.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not _Held.frozen:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
