"""A worker as a process of ours: started, started anew when it ends, and ended with all that it has started.

It leads a process group of its own, and does not outlive whoever started it: the kernel sees to that.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

log = logging.getLogger("jobman.tasks")
_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_PAUSES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LIVED = 10.0
"""Seconds after which a worker that ends is started anew at once."""
_GRACE = 10.0
_WORDS = 4096


def ends_with(parent: int, number: signal.Signals) -> Callable[[], None]:
    """For a child right after its fork: it gets this signal when its parent is gone."""

    def bind() -> None:
        _LIBC.prctl(_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), number)

    return bind


class WorkerProcess:
    """A command that is kept running."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        folder: str | None = None,
        ended: Callable[[str], None] | None = None,
    ) -> None:
        """`ended` is told how, whenever it has ended, before it is started anew."""
        self._command = list(command)
        self._environment = {**os.environ, **environment}
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = ended
        self._over = asyncio.Event()
        self.starts = 0
        """How often it was started since it has last worked."""
        self.last_words = ""
        """What it said last of its errors."""

    # -- its life ----------------------------------------------------------------------------------

    async def keep(self) -> None:
        """Start it, and start it anew whenever it ends, after a pause that grows while that is of no use."""
        clock = asyncio.get_running_loop().time
        while not self._over.is_set():
            start = clock()
            self.starts += 1
            code = await self._run()
            words = f"{_ending(code)} {self.last_words}".strip()
            if self._ended is not None:
                self._ended(words)
            if self._over.is_set():
                return
            log.warning("the worker ended: %s", words)
            if clock() - start > _LIVED:
                self.starts = 1
            await asyncio.sleep(_PAUSES[min(self.starts, len(_PAUSES)) - 1])

    def has_worked(self) -> None:
        """It answered: what comes now is another story."""
        self.starts = 1

    async def _run(self) -> int:
        try:
            process = self._spawn()
        except OSError as error:
            self.last_words = f"{self._command[0]}: {error.strerror}"
            return 127
        self._process = process
        hearing = asyncio.create_task(self._hear(process))
        try:
            return await _gone(process)
        finally:
            # Whatever it has left behind would take the next one's port, or the machine's time.
            self._signal(signal.SIGKILL)
            process.wait()
            self._process = None
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,
            preexec_fn=ends_with(os.getpid(), signal.SIGKILL),
        )

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
            self.last_words = _last_line(said)

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
        self._signal(signal.SIGKILL)

    async def close(self, *, grace: float = _GRACE) -> None:
        """End it for good: it may end by itself for a while."""
        self._over.set()
        if grace:
            self._signal(signal.SIGTERM)
        deadline = asyncio.get_running_loop().time() + grace
        while self._is_alive() and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        self._signal(signal.SIGKILL)

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


async def _gone(process: subprocess.Popen[bytes]) -> int:
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
