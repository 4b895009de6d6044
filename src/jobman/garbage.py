"""Python's collector of reference cycles, where much is made at once and nothing of it is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
