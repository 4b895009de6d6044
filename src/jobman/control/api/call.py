"""One request as an endpoint sees it: who asks, for which path, and what there is to answer with."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from jobman.control.api.identity import Caller, Door, Tokens
from jobman.control.api.measures import Measures
from jobman.control.sessions import Sessions

if TYPE_CHECKING:
    from jobman.control.director import Director
    from jobman.control.logs.watching import LogWatcher
    from jobman.control.store.store import Store

T = TypeVar("T")
_READERS = 4


class Desk:
    """What all endpoints share: the director, the door, and the threads that read from the store."""

    def __init__(
        self,
        director: Director,
        door: Door,
        *,
        mode: Literal["embedded", "shared"],
        tokens: Tokens | None = None,
        database: str = "",
        folder: str = "",
        socket: str = "",
        listen: str = "",
        since: float = 0.0,
        keep_alive: float = 15.0,
        stop: Callable[[], None] | None = None,
    ) -> None:
        self.director = director
        self.door = door
        self.mode = mode
        self.tokens = tokens
        self.database = database
        self.folder = folder
        self.socket = socket
        self.listen = listen
        self.since = since
        self.keep_alive = keep_alive
        self.measures = Measures()
        self.stopping = asyncio.Event()
        self.farewell = True
        """Whether those who follow are told not to come back: a restart is none of their business."""
        self.description: Callable[[], bytes] = bytes
        self.sessions = Sessions()
        self.lag_watch: asyncio.Future[None] | None = None
        self._stop = stop
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="read")

    @property
    def store(self) -> Store:
        return self.director.store

    @property
    def logs(self) -> LogWatcher | None:
        """What knows of the growth of logs; without it they are looked at now and then."""
        return getattr(self.director, "logs", None)

    async def read(self, what: Callable[..., T], *arguments: Any) -> T:
        """Do something that waits for the disk, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, what, *arguments)

    def begin_stop(self, *, farewell: bool) -> None:
        """Take no new requests; streams end, and whoever serves is told to stop."""
        self.farewell = farewell
        self.stopping.set()
        if self._stop is not None:
            self._stop()

    def close(self) -> None:
        """Let the threads go."""
        if self.lag_watch is not None:
            self.lag_watch.cancel()
        self._readers.shutdown(wait=False, cancel_futures=True)


class Call:
    """A request that was let in."""

    __slots__ = ("caller", "desk", "scope")

    def __init__(self, desk: Desk, scope: MutableMapping[str, Any], caller: Caller) -> None:
        self.desk = desk
        self.scope = scope
        self.caller = caller

    @property
    def director(self) -> Director:
        return self.desk.director

    @property
    def store(self) -> Store:
        return self.desk.store

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.scope["path_params"][name])

    def header(self, name: bytes) -> str | None:
        """A header, if it is there and can be read."""
        for key, value in self.scope["headers"]:
            if key == name:
                with contextlib.suppress(UnicodeDecodeError):
                    return str(value, "utf-8")
        return None
