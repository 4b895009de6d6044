"""The front of a service: where it listens from its first moment to its last, whoever answers there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from jobman.control.listening import Listener, address_of, tcp_sockets, unix_socket

if TYPE_CHECKING:
    from jobman.control.serving import ServeOptions

Application = Callable[[Any, Any, Any], Awaitable[None]]


class Front:
    """The sockets of a service. Those who connect meet `app`, whatever that is at the time of a request."""

    def __init__(self, options: ServeOptions, app: Application) -> None:
        self.app = app
        self._options = options
        if options.listen is None:
            sockets = [unix_socket(options.places.socket)]
        else:
            sockets = tcp_sockets(options.listen)
        self.address = "" if options.listen is None else address_of(sockets[0], options)
        """Where a shared service is found."""
        self.port = 0 if options.listen is None else int(sockets[0].getsockname()[1])
        self._listener = Listener(self._answer, sockets, options)
        self._listener.on_closing = self._close
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to listen; returns when callers are answered."""
        listening = asyncio.Event()
        self._listener.on_listening = listening.set
        self._serving = asyncio.create_task(self._listener.listen())
        opened = asyncio.ensure_future(listening.wait())
        await asyncio.wait([opened, self._serving], return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if self._serving.done():
            self._serving.result()

    def stop(self) -> None:
        """Take no more connections, and finish the requests that are under way."""
        self._listener.stop()

    async def ended(self) -> None:
        """Wait until it was stopped, and everybody has an answer."""
        if self._serving is not None:
            # It is not cancelled with whoever waits for it.
            await asyncio.shield(self._serving)

    @property
    def is_in_use(self) -> bool:
        """Whether somebody is connected."""
        return self._listener.is_in_use

    @property
    def answered(self) -> int:
        """How many requests there were."""
        return self._listener.answered

    async def _answer(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    def _close(self) -> None:
        if self._options.listen is None:
            # Nobody else can have taken the name: that takes the lock on the pid file.
            self._options.places.socket.unlink(missing_ok=True)
