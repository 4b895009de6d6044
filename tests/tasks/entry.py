"""A broker or an agent as a test wants it: with a clock of the wall that jumps, or with pings that hurry.

It is started as a process of its own, with what is special about it in its environment.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

WALL = "JOBMAN_TEST_WALL"
"""A file that says by how many seconds the clock of the wall is wrong."""
PINGS = "JOBMAN_TEST_PINGS"
"""Seconds between the pings of a worker, and seconds in which it is to answer one."""


def _move_wall(path: Path) -> None:
    right = time.time
    time.time = lambda: right() + float(path.read_text())


def _hurry(pause: float, patience: float) -> None:
    from jobman.tasks import calling, station

    station._LOOK, calling._PING_SECONDS = pause, patience


def _broker(options: str) -> int:
    import msgspec

    from jobman.tasks.broker_process import BrokerOptions, run_broker

    run_broker(msgspec.json.decode(options, type=BrokerOptions))
    return 0


def _agent(parent: str, options: str) -> int:
    import msgspec

    from jobman.tasks.agent_process import run_agent
    from jobman.tasks.station import AgentOptions
    from jobman.tasks.worker_process import ends_with

    ends_with(int(parent), signal.SIGINT)()
    return run_agent(msgspec.json.decode(options, type=AgentOptions))


ROLES: dict[str, Callable[..., int]] = {"broker": _broker, "agent": _agent}

if __name__ == "__main__":
    # Before anything is imported that keeps the clock in its hand.
    if WALL in os.environ:
        _move_wall(Path(os.environ[WALL]))
    if PINGS in os.environ:
        _hurry(*map(float, os.environ[PINGS].split()))
    sys.exit(ROLES[sys.argv[1]](*sys.argv[2:]))
