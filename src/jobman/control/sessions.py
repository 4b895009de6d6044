"""Sessions: those who are inside of running copies now, each with what came out and was not fetched yet.

A session lives in the memory of the service. It ends with its command, its copy and the service, and when
nobody has listened to it for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

from jobman.control.entering import MOST_INPUT, SessionEnd, SessionInput, SessionOutput
from jobman.control.refusals import Refusal
from jobman.engines.base import CopyInfo
from jobman.engines.entering import Passage, Piece

log = logging.getLogger("jobman.sessions")
MOST = 64
"""Sessions that one user may have open: a browser behind a port alone takes several."""
MUCH = 1 << 20
"""Bytes that came out and are kept; more is not taken from the copy."""
_LOOK_SECONDS = 2.0
_ALONE_SECONDS = 60.0
"""After so long without a listener a session is over."""
_LAST_WORDS_SECONDS = 5.0
_ROOM_SECONDS = 10.0
"""For so long a request waits until the copy has taken what came before."""
_encode = msgspec.json.Encoder().encode


class Told(NamedTuple):
    """Something that came out, or the end: as an event, with its number and its data as JSON."""

    number: int
    event: str
    data: bytes


class Sessions:
    """All sessions of a service."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self._lives: set[asyncio.Task[None]] = set()

    def check_room(self, user: str) -> None:
        """Refuse one too many."""
        if sum(session.user == user for session in self._open.values()) >= MOST:
            raise Refusal("quota", f"You have {MOST} sessions already.", "Close one of them.")

    def add(
        self,
        job: str,
        user: str,
        copy: CopyInfo,
        passage: Passage,
        runs: Callable[[], bool],
        stop: asyncio.Event,
    ) -> Session:
        """Begin a session; `runs` says whether its copy still does, `stop` ends all of them."""
        session = Session(token_hex(16), job, user, copy, passage)
        self._open[session.id] = session
        life = asyncio.create_task(self._live(session, runs, stop))
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)
        return session

    def find(self, token: str, job: str, user: str) -> Session:
        """A session of a job, for who began it."""
        session = self._open.get(token)
        if session is None or (session.job, session.user) != (job, user):
            raise Refusal(
                "no-such-session",
                "There is no such session, or it is over.",
                "It ends with its copy, when the service restarts, and when nobody listens to it.",
            )
        return session

    async def _live(self, session: Session, runs: Callable[[], bool], stop: asyncio.Event) -> None:
        try:
            await session.live(runs, stop)
        finally:
            del self._open[session.id]


class Session:
    """One way into a copy."""

    def __init__(self, token: str, job: str, user: str, copy: CopyInfo, passage: Passage) -> None:
        self.id = token
        self.job = job
        self.user = user
        self.copy = copy
        self._passage = passage
        self._kept: deque[Told] = deque()
        self._size = 0
        self._last = 0
        self._sent = 0
        """The last number that a listener took."""
        self._ended = False
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._listener = 0
        """Who listens now; another one takes over."""
        self._listens = False
        self._left_at = time.monotonic()
        self.inputs = 0
        """The number of the last that was put in."""
        self._feeding: asyncio.Future[None] | None = None
        self._inputting = asyncio.Lock()
        self._closing = asyncio.Event()

    # -- in ------------------------------------------------------------------------------------------------

    async def put(self, given: SessionInput) -> None:
        """Put something in, once, unless there is no room for it now: `inputs` says so.

        Raises the errors of the engine with what was put in before.
        """
        if len(given.data) > MOST_INPUT:
            raise Refusal("too-large", f"A request puts in at most {MOST_INPUT >> 10} KiB.")
        async with self._inputting:
            if given.number <= self.inputs:
                return
            if given.number != self.inputs + 1:
                raise Refusal("bad-request", f"Number {self.inputs + 1} has to come before {given.number}.")
            if not self._ended and self._feeding is not None:
                await asyncio.wait({self._feeding}, timeout=_ROOM_SECONDS)
                if not self._feeding.done():
                    return
                if not self._feeding.cancelled():
                    self._feeding.result()
            # What breaks in the middle must not be put in twice.
            self.inputs = given.number
            if not self._ended:
                self._feeding = asyncio.ensure_future(self._feed(given))

    async def _feed(self, given: SessionInput) -> None:
        if given.rows and given.columns:
            await self._passage.resize(given.rows, given.columns)
        if given.data:
            await self._passage.write(given.data)
        if given.end:
            await self._passage.end_input()

    # -- out -----------------------------------------------------------------------------------------------

    async def output(self, after: int) -> AsyncGenerator[Told, None]:
        """Events behind a number, as they come; the last one is the end."""
        self._listener += 1
        me, self._listens = self._listener, True
        self._news.set()
        try:
            if self._kept and after + 1 < self._kept[0].number:
                lost = SessionEnd(trouble="a part of the output was lost on the way")
                yield Told(after + 1, "end", _encode(lost))
                return
            while me == self._listener:
                fresh = [told for told in self._kept if told.number > after]
                for told in fresh:
                    yield told
                    after = told.number
                    self._sent = max(self._sent, after)
                    self._taken.set()
                if self._ended and after >= self._last:
                    return
                if not fresh:
                    self._news.clear()
                    await self._news.wait()
        finally:
            if me == self._listener:
                self._listens, self._left_at = False, time.monotonic()

    async def _tell(self, piece: Piece) -> None:
        """Keep something for the listener, when there is room for it."""
        data = _encode(SessionOutput(data=piece.data))
        while self._size + len(data) > MUCH and self._kept:
            if self._kept[0].number <= self._sent:
                self._size -= len(self._kept.popleft().data)
                continue
            self._taken.clear()
            await self._taken.wait()
        self._append(piece.stream, data)

    def _append(self, event: str, data: bytes) -> None:
        self._last += 1
        self._kept.append(Told(self._last, event, data))
        self._size += len(data)
        self._news.set()

    # -- life ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End it."""
        self._closing.set()

    async def live(self, runs: Callable[[], bool], stop: asyncio.Event) -> None:
        """Until it is over, and its end was heard."""
        pump = asyncio.ensure_future(self._pump())
        closing = asyncio.ensure_future(self._closing.wait())
        stopping = asyncio.ensure_future(stop.wait())
        ends: set[asyncio.Future[Any]] = {closing, stopping}
        try:
            trouble = await self._watch(pump, ends, runs)
            if not self._ended and not stopping.done():
                self._end(SessionEnd(trouble=trouble))
            await self._linger(ends)
        finally:
            tasks: list[asyncio.Future[Any]] = [
                pump,
                closing,
                stopping,
                *([self._feeding] if self._feeding is not None else []),
            ]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(Exception):
                await self._passage.close()

    async def _watch(
        self, pump: asyncio.Future[Any], ends: set[asyncio.Future[Any]], runs: Callable[[], bool]
    ) -> str:
        """Until somebody or something ends it: why, in words."""
        while True:
            await asyncio.wait({pump, *ends}, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if pump.done() or any(end.done() for end in ends):
                return "the session was closed"
            if self._is_alone:
                return "nobody listened to it"
            if not runs():
                # What it said last may still be on its way.
                await asyncio.wait({pump, *ends}, timeout=_LAST_WORDS_SECONDS)
                return "the copy has ended"

    async def _linger(self, ends: set[asyncio.Future[Any]]) -> None:
        """Whoever lost the connection comes back for the end."""
        while not any(end.done() for end in ends) and (self._listens or not self._is_alone):
            await asyncio.wait(ends, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)

    @property
    def _is_alone(self) -> bool:
        return not self._listens and time.monotonic() - self._left_at > _ALONE_SECONDS

    async def _pump(self) -> None:
        passage = self._passage
        try:
            while (piece := await passage.read()) is not None:
                await self._tell(piece)
        except Exception as error:
            log.info("session in %s of %s broke: %s", self.copy.replica, self.job, error)
            self._end(SessionEnd(trouble=str(error)))
        else:
            self._end(SessionEnd(exit_code=passage.exit_code, trouble=passage.trouble))

    def _end(self, end: SessionEnd) -> None:
        if not self._ended:
            self._ended = True
            self._append("end", _encode(end))
