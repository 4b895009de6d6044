"""The life of a service: its director, its endpoints, the sockets they are reached at, and its end."""

from __future__ import annotations

import asyncio
import gc
import getpass
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import uvloop

from jobman.control.api.app import create_app
from jobman.control.api.call import Desk
from jobman.control.api.identity import SocketDoor, TokenDoor, Tokens
from jobman.control.listening import Listener, Unsafe, address_of, tcp_sockets, unix_socket
from jobman.control.refusals import Refusal
from jobman.control.store.errors import StoreError

if TYPE_CHECKING:
    from jobman.control.director import Director
    from jobman.control.serving import Build, ServeOptions

log = logging.getLogger("jobman.service")
_LONGEST_LOG = 10 * 2**20
_LOOK_SECONDS = 10.0
_FAULT, _UNREACHABLE = 1, 5


def run(options: ServeOptions, build: Build, announce: Callable[[str], None]) -> int:
    """Live until told to stop, or idle for too long; returns the exit code."""
    _write_log_lines()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_live(options, build, announce))
    except (StoreError, Refusal, Unsafe) as error:
        print("\n".join(filter(None, (error.message, error.advice))), file=sys.stderr, flush=True)
    except OSError as error:
        print(f"The service cannot start: {error}.", file=sys.stderr, flush=True)
    return _UNREACHABLE


async def _live(options: ServeOptions, build: Build, announce: Callable[[str], None]) -> int:
    director = await build(options)
    await director.start()
    try:
        return await Life(options, director).lead(announce)
    finally:
        await director.stop()


class Life:
    """A service while it listens."""

    def __init__(self, options: ServeOptions, director: Director) -> None:
        self._options = options
        self._director = director
        self._code = 0
        self._sockets = self._open_sockets()
        self._desk = self._make_desk()
        self._listener = Listener(create_app(self._desk), self._sockets, options)

    async def lead(self, announce: Callable[[str], None]) -> int:
        """Listen until the end; returns the exit code."""
        listener = self._listener
        listener.on_listening = lambda: self._begin(announce)
        listener.on_closing = self._close
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: self._desk.begin_stop(farewell=True))
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
        watch = asyncio.ensure_future(self._watch())
        try:
            await listener.listen()
        finally:
            watch.cancel()
            self._desk.close()
        log.info("stopped")
        return self._code

    def _begin(self, announce: Callable[[str], None]) -> None:
        announce(self._desk.listen)
        log.info("listening at=%s", self._desk.listen or self._desk.socket)
        # What is there now stays; the collector need not look at it again.
        gc.freeze()
        gc.enable()

    def _close(self) -> None:
        if self._options.listen is None:
            # Nobody else can have taken the name: that takes the lock on the pid file.
            self._options.places.socket.unlink(missing_ok=True)

    async def _watch(self) -> None:
        """See to it that an idle service ends, a broken one does not linger, and the log stays small."""
        limit = self._options.idle
        pause = _LOOK_SECONDS if limit is None else min(_LOOK_SECONDS, max(0.05, limit / 4))
        answered, quiet_since = -1, 0.0
        while True:
            await asyncio.sleep(pause)
            if getattr(self._director, "has_failed", False):
                log.critical("ends because of a fault")
                self._code = _FAULT
                self._desk.begin_stop(farewell=False)
                return
            if answered != self._listener.answered or self._is_needed():
                answered, quiet_since = self._listener.answered, time.monotonic()
            elif limit is not None and time.monotonic() - quiet_since >= limit:
                log.info("idle")
                self._desk.begin_stop(farewell=False)
                return
            if self._options.listen is None:
                _keep_small(self._options.places.log)

    def _is_needed(self) -> bool:
        return self._listener.is_in_use or not self._director.is_idle()

    def _open_sockets(self) -> list[socket.socket]:
        if self._options.listen is None:
            return [unix_socket(self._options.places.socket)]
        return tcp_sockets(self._options.listen)

    def _make_desk(self) -> Desk:
        options = self._options
        mode: Literal["embedded", "shared"] = "embedded" if options.listen is None else "shared"
        tokens = None if mode == "embedded" else _tokens(self._director)
        return Desk(
            self._director,
            SocketDoor(_user_name()) if tokens is None else TokenDoor(tokens),
            mode=mode,
            tokens=tokens,
            database=_place_of(options),
            folder=str(options.places.state),
            socket=str(options.places.socket) if mode == "embedded" else "",
            listen="" if mode == "embedded" else address_of(self._sockets[0], options),
            since=time.time(),
            stop=lambda: self._listener.stop(),
        )


def _tokens(director: Director) -> Tokens:
    """The tokens of a shared service; the first one is made and shown where there is none."""
    tokens = Tokens(director.store)
    if not tokens.all():
        _, token = tokens.make("admin", _user_name(), "admin")
        print(f"The token of the administrator, shown this once: {token}", flush=True)
    return tokens


def _place_of(options: ServeOptions) -> str:
    """Where the store is, without a password."""
    if options.database is None:
        return str(options.places.database)
    from sqlalchemy.engine import make_url

    return make_url(options.database).render_as_string(hide_password=True)


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


def _write_log_lines() -> None:
    handler = logging.StreamHandler()
    formatter = logging.Formatter(
        "time=%(asctime)s.%(msecs)03dZ level=%(levelname)s from=%(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # It tells of its own start and stop, which we tell of ourselves.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def _keep_small(path: Path) -> None:
    """Begin a new log when the old one is long; one old log is kept."""
    try:
        if path.stat().st_size < _LONGEST_LOG:
            return
        path.rename(path.with_suffix(".log.1"))
        fresh = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        return
    for descriptor in (1, 2):
        os.dup2(fresh, descriptor)
    os.close(fresh)
