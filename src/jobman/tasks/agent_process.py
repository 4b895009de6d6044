"""An agent as a process: between a broker and a worker, which it starts itself or finds beside it.

TERM drains it: it takes no more, finishes what it has, and ends. INT ends it now, and its worker with it.
"""

from __future__ import annotations

import asyncio
import logging
import signal

import uvloop

from jobman.tasks.addresses import parse
from jobman.tasks.station import AgentOptions, Station
from jobman.tasks.wire import Connection
from jobman.tasks.worker_process import WorkerProcess


def run_agent(options: AgentOptions) -> int:
    """Be an agent until it is drained or ended."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s agent: %(message)s")
    return uvloop.run(_run(options))


async def _run(options: AgentOptions) -> int:
    headers = {"authorization": f"Bearer {options.token}"} if options.token else {}

    def connect() -> Connection:
        return parse(options.broker).connection(headers, options.ca_file)

    # The worker is a child of this process, which has no others.
    station = Station(options, connect=connect, keep=WorkerProcess)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, station.drain)
    loop.add_signal_handler(signal.SIGINT, station.end)
    return await station.run()
