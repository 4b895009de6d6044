"""Points where tests make the service die or fail, as JOBMAN_FAILPOINTS says; without it they do nothing.

    JOBMAN_FAILPOINTS="store.before-commit=kill@3, store.after-commit=disk-full@1-3"

kills the process at the third time it comes to the first point, and finds the disk full at the first three
times at the second. Without `@` it is every time.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from collections.abc import Callable

VARIABLE = "JOBMAN_FAILPOINTS"


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _error() -> None:
    raise OSError(errno.EIO, "failed on purpose")


def _disk_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


_ACTIONS: dict[str, Callable[[], None]] = {"kill": _kill, "error": _error, "disk-full": _disk_full}
_FORM = re.compile(rf"([\w.-]+)=({'|'.join(_ACTIONS)})(?:@(\d+)(?:-(\d+))?)?")


class _Point:
    """What happens at one point, and at which of the times it is reached."""

    def __init__(self, action: Callable[[], None], first: int, last: float) -> None:
        self._action = action
        self._first = first
        self._last = last
        self._times = 0
        self._lock = threading.Lock()

    def reached(self) -> None:
        with self._lock:
            self._times += 1
            times = self._times
        if self._first <= times <= self._last:
            self._action()


def parsed(text: str) -> dict[str, _Point]:
    """The points that a text names."""
    return dict(_parsed(part.strip()) for part in text.split(",") if part.strip())


def _parsed(part: str) -> tuple[str, _Point]:
    match = _FORM.fullmatch(part)
    if match is None:
        raise ValueError(f"{VARIABLE}: {part!r} is not POINT=ACTION[@TIME[-TIME]] with {', '.join(_ACTIONS)}")
    name, action, first, last = match.groups()
    if first is None:
        return name, _Point(_ACTIONS[action], 1, float("inf"))
    return name, _Point(_ACTIONS[action], int(first), int(last or first))


_points = parsed(os.environ.get(VARIABLE, ""))


def failpoint(name: str) -> None:
    """Come to a point; almost always nothing happens."""
    if _points and name in _points:
        _points[name].reached()
