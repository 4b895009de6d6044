"""What a follower of logs is told: which streams there are, which have ended, and when all is over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from jobman.control.logs.streams import LogStream


class LogFeed:
    """Streams for one follower, filled from the same event loop."""

    def __init__(self, streams: Iterable[LogStream] = ()) -> None:
        self.stirred = asyncio.Event()
        """Something is new here, or in a file that the follower is told of."""
        self.over = asyncio.Event()
        self._new = list(streams)

    def put(self, *streams: LogStream) -> None:
        """Add streams; one that is known already is described anew, such as when it has ended."""
        self._new += streams
        self.stirred.set()

    def finish(self) -> None:
        """Say that nothing more will be written and no stream will be added."""
        self.over.set()
        self.stirred.set()

    def take(self) -> list[LogStream]:
        """The streams that were added since this was last asked."""
        new, self._new = self._new, []
        return new
