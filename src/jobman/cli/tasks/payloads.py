"""Payloads from a file of lines, in chunks that are the same whenever the file is read again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from jobman.tasks.submissions import LARGEST, Refusal, check_reference

CHUNK = 10_000
"""Tasks of a batch."""
_CHUNK_BYTES = 4 * 2**20
STDIN = "-"


class Chunk(NamedTuple):
    """Lines that are submitted together."""

    first: int
    """The number of the first line."""
    payloads: list[bytes]

    @property
    def last(self) -> int:
        return self.first + len(self.payloads) - 1


class WrongLine(Exception):
    """A line that cannot be a task, or a file without any."""

    def __init__(self, file: str, line: int | None, message: str, advice: str) -> None:
        super().__init__(message)
        name = "standard input" if file == STDIN else file
        self.place = name if line is None else f"{name}:{line}"
        self.message = message
        self.advice = advice


class Lines:
    """The lines of a file, each a payload or, with `references`, the place of one."""

    def __init__(self, file: str, *, references: bool = False) -> None:
        self._file = file
        self._references = references

    def count(self) -> int | None:
        """How many there are, when all of them are right; not known of what can be read but once."""
        if self._file == STDIN or (Path(self._file).exists() and not Path(self._file).is_file()):
            return None
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[bytes]:
        """Raises WrongLine."""
        try:
            if self._file == STDIN:
                yield from self._read(sys.stdin.buffer)
                return
            with Path(self._file).open("rb") as stream:
                yield from self._read(stream)
        except OSError as error:
            words = f"it cannot be read: {error.strerror}"
            raise WrongLine(self._file, None, words, "name a file with a task in each line") from None

    def _read(self, stream: BinaryIO) -> Iterator[bytes]:
        number = 0
        # Never more of a line than could be a payload.
        while line := stream.readline(LARGEST + 2):
            number += 1
            payload = line.removesuffix(b"\n")
            self._check(payload, number)
            yield payload
        if not number:
            raise WrongLine(self._file, None, "there is no line in it", "write a task in each line")

    def _check(self, payload: bytes, number: int) -> None:
        if not payload.strip():
            advice = "leave the line out; tasks without anything to read are submitted with --count"
            raise WrongLine(self._file, number, "the line is empty", advice)
        if len(payload) > LARGEST:
            advice = "put it in a file or an object store, and submit its place with --references"
            message = f"a payload has at most {LARGEST:,} bytes, and this line is longer"
            raise WrongLine(self._file, number, message, advice)
        if self._references:
            try:
                check_reference(payload.decode(errors="replace"))
            except Refusal as error:
                raise WrongLine(self._file, number, str(error), error.advice) from None


def chunks(payloads: Iterator[bytes], most: int = CHUNK) -> Iterator[Chunk]:
    """Payloads as they come, so many or so many bytes at once; the same ones for the same payloads."""
    first, found, size = 1, list[bytes](), 0
    for payload in payloads:
        found.append(payload)
        size += len(payload)
        if len(found) >= most or size >= _CHUNK_BYTES:
            yield Chunk(first, found)
            first, found, size = first + len(found), [], 0
    if found:
        yield Chunk(first, found)
