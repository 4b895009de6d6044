"""A stream that a copy writes, and a line of it, as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from jobman.control.logs.times import times_beside

StreamName = Literal["stdout", "stderr"]
StreamKey = tuple[str, int, int, StreamName]
"""Replica, attempt, copy and stream: unique within a job."""


class LogStream(msgspec.Struct, frozen=True):
    """Where one stream of one copy is found.

    `start` and `end` bound it within a file that other attempts append to as well. A file that holds both
    streams of a copy is described once, as its stdout. `ended` means that nothing more will be written.
    """

    replica: str
    attempt: int
    copy: int
    node: str | None
    stream: StreamName
    path: Path
    times: Path | None = None
    """The file of marks, if it is not beside the stream's own file."""
    start: int = 0
    end: int | None = None
    ended: bool = False

    @property
    def key(self) -> StreamKey:
        return (self.replica, self.attempt, self.copy, self.stream)

    @property
    def marks(self) -> Path:
        return self.times or times_beside(self.path)

    def __str__(self) -> str:
        return f"{self.stream} of {self.replica} (attempt {self.attempt}, copy {self.copy})"


class LogLine(msgspec.Struct, frozen=True, gc=False):
    """One line as it was written, without its newline.

    `partial`: the line goes on in the next one of the same stream. `end` is the offset behind it in its file,
    which is what a cursor remembers.
    """

    at: float
    replica: str
    attempt: int
    copy: int
    node: str | None
    stream: StreamName
    text: str
    partial: bool
    end: int

    @property
    def key(self) -> StreamKey:
        return (self.replica, self.attempt, self.copy, self.stream)
