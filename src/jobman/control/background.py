"""A process that a command starts and leaves in the background: how it gets there, and how long it stays."""

from __future__ import annotations

import contextlib
import os
import sys

from jobman.control.embedded import READY, READY_FD

IDLE_SECONDS = 15 * 60.0
_UNITS = {"s": 1, "m": 60, "h": 3600}


def detach() -> bool:
    """Leave the command that started this; false in the process that is left behind."""
    if os.fork():
        return False
    os.setsid()
    os.chdir("/")
    # Whatever else the caller had open, such as a pipe that somebody reads to its end, is none of ours.
    os.closerange(READY_FD + 1, os.sysconf("SC_OPEN_MAX"))
    return True


def say_ready() -> None:
    """Tell the command that waits for it."""
    with contextlib.suppress(OSError):
        os.write(READY_FD, READY)
        os.close(READY_FD)


def idle_seconds(text: str | None) -> float | None:
    """How long to live without work: seconds, or 90s, 15m, 2h; `never` for ever."""
    if not text:
        return IDLE_SECONDS
    if text == "never":
        return None
    try:
        unit = _UNITS.get(text[-1])
        return float(text) if unit is None else float(text[:-1]) * unit
    except ValueError:
        print(f"JOBMAN_IDLE={text} is not a time; 15m is taken.", file=sys.stderr)
        return IDLE_SECONDS
