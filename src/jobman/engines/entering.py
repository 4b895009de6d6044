"""Entering a copy from outside: a command beside it, or a connection to one of its ports.

Where a copy is a process of this machine, whoever enters does so alone; elsewhere its engine opens a passage.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from jobman.engines.base import CopyInfo


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted inside: a command, or a port if there is one."""

    command: tuple[str, ...] = ("sh",)
    port: int | None = None
    terminal: bool = False
    """Whether the command gets a terminal of its own; then it has one output."""
    rows: int = 0
    columns: int = 0


class Piece(NamedTuple):
    """Some of what came out."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class Passage(Protocol):
    """A way in, open until the command or the connection ends. Errors are those of its engine."""

    @property
    def exit_code(self) -> int | None:
        """Of the command, at its end; None where it never ran, or nobody knows."""

    @property
    def trouble(self) -> str:
        """In words, why there is no exit code."""

    async def read(self) -> Piece | None:
        """What came out next; None at the end, and when it was closed meanwhile."""

    async def write(self, data: bytes) -> None:
        """Put something in."""

    async def end_input(self) -> None:
        """Nothing more is put in."""

    async def resize(self, rows: int, columns: int) -> None:
        """The terminal has another size now."""

    async def close(self) -> None:
        """Leave; what runs inside loses its terminal."""


@runtime_checkable
class Enterable(Protocol):
    """A host whose copies are entered through it."""

    async def enter(self, copy: CopyInfo, entry: Entry) -> Passage:
        """A way into a running copy."""
