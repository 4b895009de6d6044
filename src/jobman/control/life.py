"""The life of a service: its endpoints, the sockets they are reached at, and when it ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from jobman.control.administrators import first_token, own_name
from jobman.control.api.app import create_app
from jobman.control.api.call import Desk
from jobman.control.api.identity import SocketDoor, TokenDoor, Tokens
from jobman.control.front import Front
from jobman.control.log_file import keep_small
from jobman.garbage import freeze, thaw

if TYPE_CHECKING:
    from jobman.control.director import Director
    from jobman.control.serving import ServeOptions

log = logging.getLogger("jobman.service")
_LOOK_SECONDS = 3.0
_FAULT = 1


class Life:
    """A service while it works. With a `front` it listens already, and only what it answers changes."""

    def __init__(self, options: ServeOptions, director: Director, front: Front | None = None) -> None:
        self._options = options
        self._director = director
        self._code = 0
        self._taken_up = 0
        """Jobs that were live when it began."""
        self._is_open = front is not None
        self._front = front or Front(options, _not_yet)
        self._desk = self._make_desk()
        self._front.app = create_app(self._desk)

    async def lead(self, announce: Callable[[str], None] | None = None) -> int:
        """Answer until the end; returns the exit code."""
        loop = asyncio.get_running_loop()
        # Where another server goes on, those who follow come back to it.
        farewell = self._options.lease is None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: self._desk.begin_stop(farewell=farewell))
        loop.add_signal_handler(signal.SIGHUP, self._director.reread)
        watches = [asyncio.ensure_future(watch) for watch in (self._watch(), self._end_with_director())]
        try:
            if not self._is_open:
                await self._front.open()
            self._begin(announce)
            await self._front.ended()
        finally:
            for watch in watches:
                watch.cancel()
            self._desk.stopping.set()  # streams end, also where nobody told it to stop
            self._desk.close()
        log.info("stopped")
        return self._code

    def _begin(self, announce: Callable[[str], None] | None) -> None:
        if announce is not None:
            announce(self._desk.listen)
        log.info("listening at=%s", self._desk.listen or self._desk.socket)
        freeze()
        gc.enable()
        self._taken_up = self._director.live_jobs

    async def _watch(self) -> None:
        """See to it that an idle service ends, and that the log stays small."""
        limit = self._options.idle
        pause = _LOOK_SECONDS if limit is None else min(_LOOK_SECONDS, max(0.05, limit / 4))
        answered, quiet_since = -1, 0.0
        while True:
            await asyncio.sleep(pause)
            if answered != self._front.answered or self._is_needed():
                answered, quiet_since = self._front.answered, time.monotonic()
            elif limit is not None and time.monotonic() - quiet_since >= limit:
                log.info("idle")
                self._desk.begin_stop(farewell=False)
                return
            if self._director.live_jobs < self._taken_up / 2:
                # What is over by now is a web of references, which nobody else takes apart.
                thaw()
                self._taken_up = 0
            if self._options.listen is None:
                keep_small(self._options.places.log)
                if not self._options.places.socket.exists():
                    # Swept away: nobody can reach it any more, and the next command starts another.
                    log.warning("its socket is gone")
                    self._desk.begin_stop(farewell=False)
                    return

    async def _end_with_director(self) -> None:
        """A service whose director cannot go on ends; the next command starts another."""
        await self._director.failed.wait()
        log.critical("ends because of a fault")
        self._code = _FAULT
        self._desk.begin_stop(farewell=False)

    def _is_needed(self) -> bool:
        return self._front.is_in_use or not self._director.is_idle()

    def _make_desk(self) -> Desk:
        options = self._options
        mode: Literal["embedded", "shared"] = "embedded" if options.listen is None else "shared"
        tokens = None if mode == "embedded" else _tokens(self._director)
        return Desk(
            self._director,
            SocketDoor(own_name()) if tokens is None else TokenDoor(tokens),
            mode=mode,
            tokens=tokens,
            database=_place_of(options),
            folder=str(options.places.state),
            socket=str(options.places.socket) if mode == "embedded" else "",
            listen=self._front.address,
            since=time.time(),
            stop=self._front.stop,
        )


async def _not_yet(_scope: object, _receive: object, _send: object) -> None:
    raise AssertionError("nobody is let in before there is somebody who answers")


def _tokens(director: Director) -> Tokens:
    """The tokens of a shared service; the first one is made and shown where there is none."""
    tokens = Tokens(director.store)
    token = first_token(tokens)
    if token is not None:
        print(f"The token of the administrator, shown this once: {token}", flush=True)
    return tokens


def _place_of(options: ServeOptions) -> str:
    """Where the store is, without a password."""
    if options.database is None:
        return str(options.places.database)
    from sqlalchemy.engine import make_url

    return make_url(options.database).render_as_string(hide_password=True)
