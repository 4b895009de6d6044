"""Reading outputs: each line once, several merged by time, and on when a connection broke."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime
from typing import Protocol

from jobman.engines.kubernetes.errors import (
    BadRequest,
    KubernetesError,
    NotFound,
    ServerFault,
    TooEarly,
    Unreachable,
)
from jobman.engines.kubernetes.outputs import Line, Output, stamped

AT_ONCE = 64
"""Outputs that are read side by side; of more, groups are merged one after the other, older pods first."""
_PAUSE = 0.5
_FRUITLESS = 5
"""How often an output is tried that breaks off without a line."""


class LogsApi(Protocol):
    """The cluster as far as it is asked for what pods wrote; `api.Api` is one."""

    def logs(
        self,
        pod: str,
        namespace: str | None = None,
        *,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail: int | None = None,
        since_time: str = "",
    ) -> AsyncGenerator[bytes, None]: ...


class Reading:
    """Outputs that are read, and how far each has come."""

    def __init__(self, api: LogsApi) -> None:
        self._api = api
        self._told: dict[tuple[str, str, int], int] = {}

    async def merged(
        self, outputs: Sequence[Output], *, tail: int | None = None, since: float | None = None
    ) -> AsyncGenerator[Line, None]:
        """What outputs have up to now, in order of time."""
        last: deque[Line] = deque(maxlen=tail)
        for begin in range(0, len(outputs), AT_ONCE):
            group = outputs[begin : begin + AT_ONCE]
            streams = [self._told_once(output, tail=tail, since=since) for output in group]
            async with aclosing(_in_order(streams)) as lines:
                async for line in lines:
                    if tail is None:
                        yield line
                    else:
                        last.append(line)
        for line in last:
            yield line

    async def follow(
        self,
        output: Output,
        goes_on: Callable[[Output], bool],
        *,
        tail: int | None = None,
        since: float | None = None,
    ) -> AsyncGenerator[Line, None]:
        """What an output has and gets, for as long as its container is not known to have ended."""
        fruitless = 0
        while True:
            told = self._last(output)
            # Where something was told, we go on behind it.
            few = tail if told < 0 else None
            try:
                async with aclosing(self._read(output, follow=True, tail=few, since=since)) as lines:
                    async for line in lines:
                        yield line
            except (TooEarly, NotFound):
                fruitless += 1
            except Unreachable as error:
                fruitless += 1
                if fruitless >= _FRUITLESS:
                    yield _note(output, error)
            if self._last(output) != told:
                fruitless = 0
            if not goes_on(output) or fruitless >= _FRUITLESS:
                return
            await asyncio.sleep(_PAUSE)
            # News of the end may come a little later than the end: what follows is of another start.
            if not goes_on(output):
                return

    async def _told_once(
        self, output: Output, *, tail: int | None, since: float | None
    ) -> AsyncGenerator[Line, None]:
        """An output to its end; what cannot be read is said instead, so that the others are heard."""
        try:
            async with aclosing(self._read(output, tail=tail, since=since)) as lines:
                async for line in lines:
                    yield line
        except (TooEarly, NotFound):
            return
        except (Unreachable, ServerFault, BadRequest) as error:
            yield _note(output, error)

    async def _read(
        self,
        output: Output,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: float | None = None,
    ) -> AsyncGenerator[Line, None]:
        told = self._last(output)
        parts = self._api.logs(
            output.pod,
            output.namespace,
            container=output.container,
            follow=follow and not output.previous,
            previous=output.previous,
            timestamps=True,
            tail=tail,
            since_time=_stamp(told / 1e9 if told >= 0 else since),
        )
        async with aclosing(_split(parts)) as lines:
            async for raw in lines:
                line = stamped(output, raw)
                # A time to go on from is known to the second only: some lines come again.
                if not line.at or line.at > told:
                    self._told[output.key] = max(self._told.get(output.key, -1), line.at)
                    yield line

    def _last(self, output: Output) -> int:
        """The time of the last line that was told of it, or of what its container wrote before; or -1."""
        uid, container, restart = output.key
        return max((self._told.get((uid, container, one), -1) for one in range(restart + 1)), default=-1)


async def _in_order(streams: Sequence[AsyncGenerator[Line, None]]) -> AsyncGenerator[Line, None]:
    """The lines of several outputs by time, each in its own order."""
    async with AsyncExitStack() as stack:
        for stream in streams:
            await stack.enter_async_context(aclosing(stream))
        firsts = await asyncio.gather(*(anext(stream, None) for stream in streams))
        heap = [(line.at, number, line) for number, line in enumerate(firsts) if line is not None]
        heapq.heapify(heap)
        while heap:
            at, number, line = heap[0]
            yield line
            after = await anext(streams[number], None)
            if after is None:
                heapq.heappop(heap)
            else:
                # A line without a time belongs to the one before it.
                heapq.heapreplace(heap, (after.at or at, number, after))


async def _split(parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Lines from parts of any size; the last one may have no end."""
    begun: list[bytes] = []
    async with aclosing(parts) as open_parts:
        async for part in open_parts:
            first, *more = part.split(b"\n")
            begun.append(first)
            if not more:
                continue
            yield b"".join(begun)
            for line in more[:-1]:
                yield line
            begun = more[-1:]
    if last := b"".join(begun):
        yield last


def _note(output: Output, error: KubernetesError) -> Line:
    return Line(output, 0, f"the output of {output.pod} cannot be read: {error}", is_note=True)


def _stamp(seconds: float | None) -> str:
    """A moment as the API takes it, which knows seconds only."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
