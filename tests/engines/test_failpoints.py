"""Failpoints do nothing unless they are asked for, and then exactly what and when it was said."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from jobman.engines import failpoints
from jobman.engines.failpoints import failpoint, parsed


def hits(monkeypatch, text, times, name="a.point"):
    """What came of each time a point was reached: the error's number, or 0."""
    monkeypatch.setattr(failpoints, "_points", parsed(text))
    found: list[int | None] = []
    for _ in range(times):
        try:
            failpoint(name)
            found.append(0)
        except OSError as error:
            found.append(error.errno)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [0, 0, 0, 0]),
        ("a.point=error", [errno.EIO] * 4),
        ("a.point=error@2", [0, errno.EIO, 0, 0]),
        ("a.point=disk-full@2-3", [0, errno.ENOSPC, errno.ENOSPC, 0]),
        ("other=error, a.point=error@4,", [0, 0, 0, errno.EIO]),
        ("other=error", [0, 0, 0, 0]),
    ],
)
def test_a_point_fails_when_it_was_said(monkeypatch, text, expected):
    assert hits(monkeypatch, text, 4) == expected


def test_a_process_is_killed_at_the_point():
    program = (
        "from jobman.engines.failpoints import *\nfor n in range(5): print(n, flush=True); failpoint('x')"
    )
    environment = {**os.environ, "JOBMAN_FAILPOINTS": "x=kill@3"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1", "2"]


@pytest.mark.parametrize("text", ["x", "x=explode", "x=kill@", "x=kill@-1", "=kill", "x=kill@a"])
def test_what_cannot_be_understood_is_refused(text):
    with pytest.raises(ValueError, match="JOBMAN_FAILPOINTS"):
        parsed(text)
