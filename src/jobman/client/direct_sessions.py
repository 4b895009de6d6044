"""Sessions without a service: inside a pod, through the API server of its cluster."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.client.direct_loop import LoopThread
from jobman.engines.entering import Passage


class DirectSession:
    """A passage, for ordinary code."""

    def __init__(self, loop: LoopThread, passage: Passage) -> None:
        self._loop = loop
        self._passage = passage
        self._closed = False

    @property
    def exit_code(self) -> int | None:
        return self._passage.exit_code

    @property
    def trouble(self) -> str:
        return self._passage.trouble

    def output(self) -> Iterator[tuple[str, bytes]]:
        # One at a time: a command that writes faster than we read has to wait.
        while (piece := self._loop.run(self._passage.read())) is not None:
            yield piece

    def write(self, data: bytes) -> None:
        self._loop.run(self._passage.write(data))

    def end_input(self) -> None:
        self._loop.run(self._passage.end_input())

    def resize(self, rows: int, columns: int) -> None:
        self._loop.run(self._passage.resize(rows, columns))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.run(self._passage.close())
