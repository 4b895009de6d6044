"""A `jobman connect --port` that goes on in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Here(tuple[str, int]):
    """The address of a port that leads to a copy."""

    process: subprocess.Popen[str]

    def said(self) -> str:
        """The next line that the command says."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()


@contextmanager
def forwarding(*words: str, **environment: str) -> Iterator[Here]:
    """The address at which it listens; it ends as Ctrl-C ends it."""
    command = [sys.executable, "-m", "jobman.cli.main", *words]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        found = re.search(r"([\d.]+):(\d+) is port", first)
        assert found, first
        here = Here((found[1], int(found[2])))
        here.process = process
        yield here
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait()
