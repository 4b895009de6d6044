"""Copies that can be entered without a cluster: a few commands that are enough to try out sessions."""

from __future__ import annotations

import asyncio

from jobman.engines.base import CopyInfo
from jobman.engines.entering import Entry, Piece
from jobman.engines.kubernetes.errors import Unreachable

COPY = CopyInfo(
    replica="main.0", attempt=1, copy=0, node="here", pid=0, cwd="", container="kubernetes:lab/box"
)


class Echo:
    """Says what it hears, as `cat` does; a port of it does the same."""

    def __init__(self, entry: Entry) -> None:
        self.sizes = [(entry.rows, entry.columns)]
        self.exit_code: int | None = None
        self.trouble = ""
        self.is_closed = False
        self._terminal = entry.terminal
        self._heard: asyncio.Queue[Piece | None] = asyncio.Queue()

    async def read(self) -> Piece | None:
        piece = await self._heard.get()
        if piece is None:
            self.exit_code = 0
        return piece

    async def write(self, data: bytes) -> None:
        self._heard.put_nowait(Piece("stdout", data))
        if self._terminal and b"\x04" in data:  # Ctrl-D
            await self.end_input()

    async def end_input(self) -> None:
        self._heard.put_nowait(None)

    async def resize(self, rows: int, columns: int) -> None:
        self.sizes.append((rows, columns))

    async def close(self) -> None:
        self.is_closed = True


class Deaf(Echo):
    """Takes nothing in until it is woken."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry)
        self.awake = asyncio.Event()

    async def write(self, data: bytes) -> None:
        await self.awake.wait()
        await super().write(data)


class Failing(Echo):
    """Complains, and ends with 3."""

    async def read(self) -> Piece | None:
        if self.exit_code is not None:
            return None
        self.exit_code = 3
        return Piece("stderr", b"no\n")


class Flood(Echo):
    """Has always more to say."""

    poured = 0

    async def read(self) -> Piece | None:
        await asyncio.sleep(0)
        self.poured += 1
        return Piece("stdout", bytes(32 * 1024))


class Breaking(Echo):
    """Loses its connection to the cluster."""

    async def read(self) -> Piece | None:
        raise Unreachable("the cluster has gone")


COMMANDS = {"cat": Echo, "deaf": Deaf, "fail": Failing, "flood": Flood, "break": Breaking}


class Machine:
    """A host whose copies are processes beside it."""

    def copies(self, job: str) -> list[CopyInfo]:
        del job
        return [COPY]


class Entrance:
    """A host of one copy of a job that runs, which is entered through it."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.opened: list[Echo] = []

    def copies(self, job: str) -> list[CopyInfo]:
        return [COPY] if job in self.running else []

    async def enter(self, copy: CopyInfo, entry: Entry) -> Echo:
        assert copy == COPY
        if entry.command[0] == "unreachable":
            raise Unreachable("The cluster cannot be reached.", "Is it running?")
        self.opened.append(made := COMMANDS.get(entry.command[0], Echo)(entry))
        return made
