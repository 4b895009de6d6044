"""The log of a service: lines with a time and where they come from, in a file that does not grow for ever."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

_LONGEST = 10 * 2**20


def write_lines() -> None:
    """Write what is logged to the standard error, which is the log of a service in the background."""
    handler = logging.StreamHandler()
    formatter = logging.Formatter(
        "time=%(asctime)s.%(msecs)03dZ level=%(levelname)s from=%(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # It tells of its own start and stop, which we tell of ourselves.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # It tells of every request to a cluster, several a second.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def keep_small(path: Path) -> None:
    """Begin a new log when the old one is long; one old log is kept."""
    try:
        if path.stat().st_size < _LONGEST:
            return
        path.rename(path.with_suffix(".log.1"))
        fresh = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        return
    for descriptor in (1, 2):
        os.dup2(fresh, descriptor)
    os.close(fresh)
