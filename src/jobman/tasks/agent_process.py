"""An agent as a process: between a broker and a worker, which it starts itself or finds beside it.

TERM drains it: it takes no more, finishes what it has, and ends. INT ends it now, and its worker with it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import uvloop

from jobman.tasks.addresses import Place, parse
from jobman.tasks.agent import Agent, NameTaken
from jobman.tasks.beside import cancelled
from jobman.tasks.calling import Call, Outcome, Worker
from jobman.tasks.wire import Server
from jobman.tasks.worker import PORT, SOCKET
from jobman.tasks.worker_process import WorkerProcess, ends_with, group_of

AGENT_SOCKET, AGENT_PORT = "JOBMAN_AGENT_SOCKET", "JOBMAN_AGENT_PORT"
log = logging.getLogger("jobman.tasks")
_LOOK = 5.0
_MOST_SILENT = 3
"""Pings without an answer, after which a worker is taken for dead."""
_TRIES = 5
"""Starts of a worker that never answers, and answers of one that cannot prepare itself."""
_MOST_WORDS = 500
CANNOT_START, NAME_TAKEN = 4, 6
"""Exit codes."""


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is told."""

    broker: str
    image: str
    command: tuple[str, ...] = ()
    """That of the worker; without one it is somebody else's, at `worker`."""
    worker: str = ""
    listen: str = ""
    """Where somebody else's worker calls `/complete`."""
    slots: int = 1
    token: str = ""
    id: str = ""
    on_port: bool = False
    """Whether a worker that is started gets a port and no socket."""
    folder: str | None = None
    """Where the worker is started."""
    environment: dict[str, str] = {}
    memory: int | None = None
    """Bytes that the worker may use with all that it starts."""
    gives_up: bool = False
    """Whether to end when its worker does not come up."""
    words: int | None = None
    """A descriptor to which is written why that is."""
    ca_file: str | None = None


class _Seen(Worker):
    """A worker of which is known whether it has ever answered, and whether it does while it computes."""

    answered = False
    is_there = False
    """Whether the process that runs now has answered: one that starts may take its time."""
    answers_always = False
    executing = 0

    def ended(self, words: str) -> None:
        self.is_there = False
        super().ended(words)

    async def ping(self) -> bool:
        before = self.executing
        found = await super().ping()
        self.answered = self.answered or found
        self.is_there = self.is_there or found
        # One with a single thread is silent while it computes, and not to be taken for dead.
        self.answers_always = self.answers_always or (found and before > 0 and self.executing > 0)
        return found

    async def execute(self, call: Call) -> Outcome:
        self.executing += 1
        try:
            return await super().execute(call)
        finally:
            self.executing -= 1

    async def execute_batch(self, calls: list[Call]) -> list[Outcome]:
        self.executing += 1
        try:
            return await super().execute_batch(calls)
        finally:
            self.executing -= 1


class AgentProcess:
    """One agent, its worker, and the signals that end them."""

    def __init__(self, options: AgentOptions) -> None:
        self._options = options
        self._process: WorkerProcess | None = None
        self._agent: Agent
        self._worker: _Seen
        self._running: asyncio.Task[None] | None = None
        self._is_told = False
        self._code = 0

    async def run(self) -> int:
        """Work until drained or ended; returns the exit code."""
        loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            place, listen, told = self._places(stack)
            self._worker = _Seen(place)
            if self._options.command:
                self._start(stack, told)
            server = Server(self._worker.handle)
            if listen is not None:
                await server.listen(listen)
                stack.push_async_callback(server.close)
            self._agent = self._make_agent()
            self._running = asyncio.create_task(self._agent.run())
            watching = asyncio.create_task(self._watch())
            stack.callback(watching.cancel)
            loop.add_signal_handler(signal.SIGTERM, self._drain)
            loop.add_signal_handler(signal.SIGINT, self._running.cancel)
            await asyncio.wait([self._running])
            if self._process is not None:
                await self._process.close(grace=0.0 if self._running.cancelled() else 10.0)
            if not self._running.cancelled():
                self._tell_end(self._running)
        return self._code

    def _tell_end(self, running: asyncio.Task[None]) -> None:
        try:
            running.result()
        except* NameTaken as taken:
            log.error("%s: give each agent its own", taken.exceptions[0])
            self._code = NAME_TAKEN

    # -- what stands around it ---------------------------------------------------------------------

    def _places(self, stack: AsyncExitStack) -> tuple[Place, Place | None, dict[str, str]]:
        """Where the worker is, where it calls back, and what it is told of both."""
        options = self._options
        if not options.command:
            listen = parse(options.listen).place if options.listen else None
            return parse(options.worker).place, listen, {}
        if options.on_port:
            ports = _free_ports(2)
            told = {PORT: str(ports[0]), AGENT_PORT: str(ports[1])}
            return ("127.0.0.1", ports[0]), ("127.0.0.1", ports[1]), told
        folder = Path(tempfile.mkdtemp(prefix="jobman-agent-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        worker, agent = folder / "worker", folder / "agent"
        return worker, agent, {SOCKET: str(worker), AGENT_SOCKET: str(agent)}

    def _start(self, stack: AsyncExitStack, told: dict[str, str]) -> None:
        options = self._options
        self._process = WorkerProcess(
            options.command,
            {**options.environment, **told},
            folder=options.folder,
            memory=options.memory,
            group=group_of(options.id),
            ended=self._worker.ended,
        )
        keeping = asyncio.create_task(self._process.keep())
        stack.push_async_callback(cancelled, keeping)

    def _make_agent(self) -> Agent:
        options = self._options
        headers = {"authorization": f"Bearer {options.token}"} if options.token else {}
        pulling, reporting = (parse(options.broker).connection(headers, options.ca_file) for _ in range(2))
        return Agent(
            options.id or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            options.image,
            self._worker,
            pulling=pulling,
            reporting=reporting,
            slots=options.slots,
            kill=None if self._process is None else self._process.kill,
        )

    # -- what happens to it ------------------------------------------------------------------------

    def _drain(self) -> None:
        if self._is_told or not self._worker.answered:
            assert self._running is not None
            self._running.cancel()
        self._is_told = True
        self._agent.drain()

    async def _watch(self) -> None:
        """End a worker that does not answer, and this agent where its worker cannot be started."""
        silent = 0
        while True:
            is_up = self._worker.answered and not self._agent.refusals
            await asyncio.sleep(_LOOK if is_up else 0.1)
            if not is_up:
                self._give_up_at_last()
                continue
            if self._process is None:
                continue
            if await self._worker.ping():
                self._process.has_worked()
                silent = 0
                continue
            silent = silent + self._is_owed() if self._worker.is_there else 0
            if silent >= _MOST_SILENT:
                log.warning("the worker does not answer, and is ended")
                self._agent.note("worker-silent", f"no answer to {_MOST_SILENT} pings: it is ended")
                self._process.kill()
                silent = 0

    def _is_owed(self) -> bool:
        """Whether the worker answers at any time, or has nothing to do: then its silence counts."""
        return self._worker.answers_always or not self._worker.executing

    def _give_up_at_last(self) -> None:
        process, refusals = self._process, self._agent.refusals
        if not self._options.gives_up or process is None:
            return
        if process.starts > _TRIES or len(refusals) >= _TRIES:
            words = refusals[-1] if refusals else process.last_words
            log.error("the worker of %s cannot be started: %s", self._options.image, words)
            if self._options.words is not None:
                os.write(self._options.words, words[:_MOST_WORDS].encode())
            self._code = CANNOT_START
            assert self._running is not None
            self._running.cancel()


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens at now."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [server.getsockname()[1] for server in servers]
    finally:
        for server in servers:
            server.close()


def run_agent(options: AgentOptions) -> int:
    """Be an agent until it is drained or ended."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s agent: %(message)s")
    return uvloop.run(AgentProcess(options).run())


def main(arguments: Sequence[str] | None = None) -> int:
    """An agent of a pool: its options come as one text, and it ends with whoever has started it."""
    parser = argparse.ArgumentParser(prog="jobman-agent")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("options", type=str)
    given = parser.parse_args(arguments)
    ends_with(given.parent, signal.SIGINT)()
    return run_agent(msgspec.json.decode(given.options, type=AgentOptions))


if __name__ == "__main__":
    sys.exit(main())
