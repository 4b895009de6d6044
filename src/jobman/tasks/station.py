"""An agent and its worker, with what stands around them: as a process of their own, or inside a broker.

A worker that is started here is looked after, and ended when it does not answer; one that cannot be started
is given up where that is wanted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import msgspec

from jobman.tasks.addresses import Place, parse
from jobman.tasks.agent import Agent, NameTaken
from jobman.tasks.beside import cancelled
from jobman.tasks.calling import Call, Outcome, Worker
from jobman.tasks.wire import Asks, Server
from jobman.tasks.worker import PORT, SOCKET
from jobman.tasks.worker_process import Started

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

    broker: str = ""
    """Its address, for one that is not inside it."""
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
    ca_file: str | None = None


class Kept(Protocol):
    """A worker that somebody keeps running."""

    @property
    def starts(self) -> int:
        """How often it was started since it has last worked."""

    @property
    def last_words(self) -> str:
        """Why it ended, as far as it said."""

    async def keep(self) -> None:
        """Have it running, until it is closed."""

    def has_worked(self) -> None:
        """It answered: what comes now is another story."""

    def kill(self) -> None:
        """End it now, with all that it has started; it is started anew."""

    async def close(self, *, grace: float) -> None:
        """End it for good: it may end by itself for so many seconds."""


Keep = Callable[[Started, Callable[[str], None]], Kept]
"""Starts a worker, and is told to whom to say how it ended, each time that it has."""


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


class Station:
    """One agent and its worker."""

    def __init__(self, options: AgentOptions, *, connect: Callable[[], Asks], keep: Keep) -> None:
        """`connect` is the way to the broker, of which an agent needs two."""
        self._options = options
        self._connect = connect
        self._keep = keep
        self._process: Kept | None = None
        self._agent: Agent
        self._worker: _Seen
        self._running: asyncio.Task[None] | None = None
        self._is_told = False
        self._is_over = False
        self._code = 0
        self.words = ""
        """Why its worker could not be started, where that was its end."""

    async def run(self) -> int:
        """Work until drained or ended; returns the exit code."""
        async with AsyncExitStack() as stack:
            place, listen, told, sockets = self._places(stack)
            self._worker = _Seen(place)
            if self._options.command:
                self._start(stack, told, sockets)
            server = Server(self._worker.handle)
            if listen is not None:
                await server.listen(listen)
                stack.push_async_callback(server.close)
            self._agent = self._make_agent()
            self._running = asyncio.create_task(self._agent.run())
            watching = asyncio.create_task(self._watch())
            stack.callback(watching.cancel)
            if self._is_over:
                self._running.cancel()
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

    def _places(self, stack: AsyncExitStack) -> tuple[Place, Place | None, dict[str, str], str | None]:
        """Where the worker is, where it calls back, what it is told of both, and the folder of sockets."""
        options = self._options
        if not options.command:
            listen = parse(options.listen).place if options.listen else None
            return parse(options.worker).place, listen, {}, None
        if options.on_port:
            ports = _free_ports(2)
            told = {PORT: str(ports[0]), AGENT_PORT: str(ports[1])}
            return ("127.0.0.1", ports[0]), ("127.0.0.1", ports[1]), told, None
        folder = Path(tempfile.mkdtemp(prefix="jobman-agent-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        worker, agent = folder / "worker", folder / "agent"
        return worker, agent, {SOCKET: str(worker), AGENT_SOCKET: str(agent)}, str(folder)

    def _start(self, stack: AsyncExitStack, told: dict[str, str], sockets: str | None) -> None:
        options = self._options
        started = Started(
            id=options.id,
            command=options.command,
            environment={**options.environment, **told},
            folder=options.folder,
            memory=options.memory,
            sockets=sockets,
        )
        self._process = self._keep(started, self._worker.ended)
        keeping = asyncio.create_task(self._process.keep())
        # Who keeps it ends only with it: without anybody there would be no worker any more.
        keeping.add_done_callback(lambda _: self.end())
        stack.push_async_callback(cancelled, keeping)

    def _make_agent(self) -> Agent:
        options = self._options
        return Agent(
            options.id or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            options.image,
            self._worker,
            pulling=self._connect(),
            reporting=self._connect(),
            slots=options.slots,
            kill=None if self._process is None else self._process.kill,
        )

    # -- what happens to it ------------------------------------------------------------------------

    def drain(self) -> None:
        """Take no more, finish what it has, and end; now, where it is told so again or has done nothing."""
        if self._is_told or self._running is None or not self._worker.answered:
            self.end()
            return
        self._is_told = True
        self._agent.drain()

    def end(self) -> None:
        """End now, and the worker with it."""
        self._is_over = True
        if self._running is not None:
            self._running.cancel()

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
            self.words = (refusals[-1] if refusals else process.last_words)[:_MOST_WORDS]
            log.error("the worker of %s cannot be started: %s", self._options.image, self.words)
            self._code = CANNOT_START
            self.end()


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens at now."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [server.getsockname()[1] for server in servers]
    finally:
        for server in servers:
            server.close()
