"""The memory of a tree of processes, held against its limit where no control group keeps it."""

from __future__ import annotations

from collections.abc import Sequence

from jobman.engines.endings import size_words
from jobman.engines.local.trees import Process, proportional_memory, resident_memory

SAMPLING = 0.2
"""Seconds between two looks at memory that no control group limits."""


def excess(members: Sequence[Process], limit: int) -> int | None:
    """Bytes that the processes have in use, where that is more than the limit."""
    # What forks share is counted for each of them, so an excess is looked at twice.
    if resident_memory(members) > limit and (used := proportional_memory(members)) > limit:
        return used
    return None


def memory_words(limit: int, used: int | None) -> str:
    """What became too much; how much it was is known only where somebody looked."""
    given = size_words(limit)
    if used is None:
        return f"used more than the {given} of memory it was given"
    return f"used {size_words(used)} of memory, more than the {given} it was given"
