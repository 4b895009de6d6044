"""A worker as a process of ours: started, started anew when it ends, and ended with all that it has started.

It is kept as the local engine keeps a copy: within its memory, by a control group where one can be made, and
in one tree with whatever it starts, also what daemonises itself. It does not outlive whoever started it: the
kernel sees to that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress

import msgspec

from jobman.engines.local.cgroups import Cage, enter, find
from jobman.engines.local.kernel import SET_PDEATHSIG, become_subreaper, prctl
from jobman.engines.local.memory import SAMPLING, excess, memory_words
from jobman.engines.local.trees import Process, clear_children, descendants, kill_all, signal_all

log = logging.getLogger("jobman.tasks")
_PAUSES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LIVED = 10.0
"""Seconds after which a worker that ends is started anew at once."""
_GRACE = 10.0
_WORDS = 4096
_LOOK = 1.0
"""Seconds between two looks for orphans that have ended."""


def ends_with(parent: int, number: signal.Signals) -> Callable[[], None]:
    """For a child right after its fork: it gets this signal when its parent is gone."""

    def bind() -> None:
        prctl(SET_PDEATHSIG, int(number))
        if os.getppid() != parent:
            os.kill(os.getpid(), number)

    return bind


def group_of(agent: str) -> str:
    """The name of the control group of an agent's worker."""
    return f"jobman-{agent}"


class Started(msgspec.Struct, frozen=True):
    """A worker that is to be started; the agent whose it is has this id."""

    id: str
    command: tuple[str, ...]
    environment: dict[str, str] = {}
    folder: str | None = None
    memory: int | None = None
    """The most that it may use, in bytes, with all that it starts."""
    sockets: str | None = None
    """The folder of its sockets, which goes with it."""


class WorkerProcess:
    """A command that is kept running. All processes below this one belong to it: an agent has no others."""

    def __init__(self, started: Started, ended: Callable[[str], None] | None = None) -> None:
        """`ended` is told how, whenever it has ended, before it is started anew."""
        become_subreaper()
        self._command = list(started.command)
        self._environment = {**os.environ, **started.environment}
        self._folder = started.folder
        self._memory = started.memory
        self._group = group_of(started.id)
        self._used: int | None = None
        """Of memory, when it was killed for that."""
        self._excess = ""
        self._said = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = ended
        self._over = asyncio.Event()
        self.starts = 0
        """How often it was started since it has last worked."""

    # -- its life ----------------------------------------------------------------------------------

    async def keep(self) -> None:
        """Start it, and start it anew whenever it ends, after a pause that grows while that is of no use."""
        clock = asyncio.get_running_loop().time
        while not self._over.is_set():
            start = clock()
            self.starts += 1
            code = await self._run()
            words = self._excess or f"{_ending(code)} {self._said}".strip()
            if self._ended is not None:
                self._ended(words)
            if self._over.is_set():
                return
            log.warning("the worker ended: %s", words)
            if clock() - start > _LIVED:
                self.starts = 1
            await asyncio.sleep(_PAUSES[min(self.starts, len(_PAUSES)) - 1])

    @property
    def last_words(self) -> str:
        """What it said last of its errors, or that it was ended for its memory."""
        return self._excess or self._said

    def has_worked(self) -> None:
        """It answered: what comes now is another story."""
        self.starts = 1

    async def _run(self) -> int:
        try:
            process = self._spawn()
        except OSError as error:
            self._said = f"{self._command[0]}: {error.strerror}"
            self._leave(self._cage())
            return 127
        self._process, self._used = process, None
        cage = self._cage()
        beside = [asyncio.create_task(work) for work in (self._hear(process), self._keep_tree(process, cage))]
        try:
            return await gone(process)
        finally:
            # Whatever it has left behind would take the next one's port, or the machine's time.
            kill_all(_members)
            process.wait()
            clear_children(_members, _reap)
            self._process = None
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            self._leave(cage)

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,
            preexec_fn=self._settle(os.getpid()),
        )

    def _settle(self, parent: int) -> Callable[[], None]:
        bind = ends_with(parent, signal.SIGKILL)

        def settle() -> None:
            bind()
            if self._memory is not None:
                enter(self._group, self._memory)

        return settle

    # -- its tree ----------------------------------------------------------------------------------

    def _cage(self) -> Cage:
        return Cage(None, None) if self._memory is None else find(self._group)

    async def _keep_tree(self, process: subprocess.Popen[bytes], cage: Cage) -> None:
        """Take in orphans that have ended, and keep its memory where the kernel does not."""
        limit = self._memory if cage.memory is None else None
        while True:
            await asyncio.sleep(_LOOK if limit is None else SAMPLING)
            _reap(process.pid)
            if limit is not None and (used := excess(_members(), limit)) is not None:
                self._used = used
                kill_all(_members)
                return

    def _leave(self, cage: Cage) -> None:
        """Remember whether its memory was its end, and remove its control group."""
        self._excess = ""
        if self._memory is not None and (self._used is not None or cage.out_of_memory()):
            self._excess = f"ended for its memory: {memory_words(self._memory, self._used)}"
        cage.remove()

    async def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """Pass on what it says, and remember the end of it."""
        assert process.stderr is not None
        descriptor = process.stderr.fileno()
        os.set_blocking(descriptor, False)
        loop = asyncio.get_running_loop()
        said = bytearray()
        over = asyncio.Event()

        def read() -> None:
            try:
                some = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                return
            if not some:
                over.set()
                return
            with suppress(OSError):
                os.write(2, some)
            said.extend(some)
            del said[:-_WORDS]
            self._said = _last_line(said)

        loop.add_reader(descriptor, read)
        try:
            await over.wait()
        finally:
            with suppress(BlockingIOError):
                read()
            loop.remove_reader(descriptor)
            process.stderr.close()

    # -- its end -----------------------------------------------------------------------------------

    def kill(self) -> None:
        """End it now, with all that it has started; it is started anew."""
        signal_all(_members, signal.SIGKILL)

    async def close(self, *, grace: float = _GRACE) -> None:
        """End it for good: it may end by itself for a while."""
        self._over.set()
        if grace:
            # Once: what a process starts in order to clean up is not to be ended.
            signal_all(_members, signal.SIGTERM, passes=1)
        deadline = asyncio.get_running_loop().time() + grace
        while self._is_alive() and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        self.kill()

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None


def _members() -> list[Process]:
    """The worker and all that descends from it: who loses its parent becomes a child of this process."""
    return descendants(os.getpid())


def _reap(but: int | None = None) -> bool:
    """Take in the children that ended, but for one that somebody waits for; true where there are none."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        if found is None or found.si_pid == but:
            return False
        os.waitpid(found.si_pid, 0)


async def gone(process: subprocess.Popen[bytes]) -> int:
    """Wait for its end; tells its exit code."""
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    loop.add_reader(descriptor, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()


def _last_line(said: bytearray) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _ending(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"
