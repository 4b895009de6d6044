"""Between a program and a broker: a thread that submits, and follows results, and comes again after a break.

What is submitted twice under one key is there once, and results are read from a place on: so a broker that is
started anew in the middle costs nothing but the time.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import msgspec
import uvloop

from jobman.control.embedded import Unreachable
from jobman.tasks.addresses import Address
from jobman.tasks.failures import BrokerAway, GridError
from jobman.tasks.model import Acceptance, Ends, Problem, Submission, Told
from jobman.tasks.wire import Answer, Broken, Connection

T = TypeVar("T")
Find = Callable[[], Address]
"""Says where the broker is now, and starts it where that is ours to do."""
_WAIT = 20.0
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_PATIENCE = 60.0
"""Seconds for which a broker that has answered before may be away."""
_FIRST_PATIENCE = 5.0
_EPOCH_BITS = 32
_AT_ONCE = 4
_TELL_AFTER = 0.1
"""Seconds in which what was fetched may be told with the next question for results."""
_MOST_FETCHED = 500
_LATER = (429, 503, 507)
_decode = msgspec.msgpack.decode


class Receiver(Protocol):
    """Who waits for tasks of a batch; called from the courier's thread."""

    def sent(self, batch: int) -> None:
        """It is accepted, under this number; comes before all else."""

    def received(self, batch: int, ends: Ends) -> None:
        """This became of some of its tasks."""

    def broken(self, error: BaseException) -> None:
        """Nothing more will come."""


class Courier:
    """The way to a broker, for one tenant."""

    def __init__(
        self,
        find: Find,
        headers: Mapping[str, str],
        ca_file: str | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        """`notice` is told why something has to wait, in the courier's thread."""
        self._find = find
        self._notice = notice
        self._headers = dict(headers)
        self._ca_file = ca_file
        self._address: Address | None = None
        self._free: list[Connection] = []
        self._met = 0.0
        self._receivers: dict[int, Receiver] = {}
        self._early: dict[int, list[Ends]] = {}
        self._fetched: deque[int] = deque()
        """Batches of which the broker is to hear that nobody will ask for their results again."""
        self._telling: asyncio.TimerHandle | None = None
        self._sending = 0
        self._place: int | None = None
        self._following: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._submitting: set[asyncio.Task[None]] = set()
        self._loop = uvloop.new_event_loop()
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._beginning, self._looking = asyncio.Lock(), asyncio.Lock()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="jobman-courier", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    # -- for other threads -------------------------------------------------------------------------

    def do(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have something done in the courier's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def ask(self, method: str, path: str, body: object = None, *, type_: type[T]) -> T:
        """What a broker answers; raises GridError."""

        async def asking() -> T:
            answer = await self.answer(method, path, msgspec.msgpack.encode(body))
            return _decode(answer.body, type=type_)

        return self.do(asking()).result()

    def send(self, submission: Submission, receiver: Receiver) -> None:
        """Submit a batch, and hand over what becomes of it."""

        async def sending() -> None:
            try:
                await self._submit(submission, receiver)
            except asyncio.CancelledError:
                receiver.broken(closed())
                raise
            except Exception as error:
                receiver.broken(error)

        if self._is_closing:
            receiver.broken(closed())
        elif threading.get_ident() == self._thread.ident:
            _keep(self._submitting, self._loop.create_task(sending()))
        else:
            self.do(sending())

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def soon(self, call: Callable[[], None]) -> None:
        """Have something called in the courier's thread."""
        self._loop.call_soon_threadsafe(call)

    def cancel(self, batch: int, indexes: Sequence[int] | None = None) -> Future[Answer]:
        """End what waits and what runs of a batch: all of it, or these."""
        return self.do(self._cancel(batch, indexes))

    async def _cancel(self, batch: int, indexes: Sequence[int] | None) -> Answer:
        body = msgspec.msgpack.encode(None if indexes is None else list(indexes))
        return await self.answer("POST", f"/v1/tasks/{batch}/cancel", body)

    def fetched(self, batch: int) -> None:
        """All results of a batch are here: the broker may forget it."""
        self._fetched.append(batch)
        self._loop.call_soon_threadsafe(self._forget_fetched, batch)

    def close(self) -> None:
        """End the thread, and what it is doing."""

        async def end() -> None:
            self._is_closing = True
            mine = asyncio.current_task()
            others = [task for task in asyncio.all_tasks() if task is not mine]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            for receiver in set(self._receivers.values()):
                receiver.broken(closed())
            self._receivers.clear()
            self._hang_up()

        if self._thread.is_alive():
            self.do(end()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def settled(self) -> None:
        """Wait until the broker was told all that it is to be told."""
        self._tell_fetched()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- in its own thread -------------------------------------------------------------------------

    async def _submit(self, submission: Submission, receiver: Receiver) -> None:
        if not submission.key:
            submission = msgspec.structs.replace(submission, key=secrets.token_hex(16))
        self._sending += 1
        try:
            await self._begin()
            body = msgspec.msgpack.encode(submission)
            async with self._room:
                answer = await self.answer("POST", f"/v1/tasks?ends=1{self._along()}", body)
            self._take(_decode(answer.body, type=Acceptance), receiver)
        finally:
            self._sending -= 1
            if not self._sending:
                self._early.clear()

    def _take(self, accepted: Acceptance, receiver: Receiver) -> None:
        """A batch is accepted, and may have ended already."""
        batch = accepted.batch
        receiver.sent(batch)
        early = self._early.pop(batch, [])
        if accepted.ends:
            early = [_decode(ends, type=Ends) for ends in accepted.ends]
            if not self._receivers and self._sending == 1 and not self._is_following:
                # Nobody here waits for anything that was written before.
                self._place = accepted.place
        else:
            self._receivers[batch] = receiver
            self._follow()
        for ends in early:
            receiver.received(batch, ends)

    def forget(self, batch: int) -> None:
        """Nobody wants to hear of a batch any more."""
        self._receivers.pop(batch, None)

    def end(self, batch: int, indexes: Sequence[int]) -> asyncio.Task[None]:
        """End tasks of a batch for nobody who waits to hear of it."""
        return self._told(self._end(batch, indexes))

    async def _end(self, batch: int, indexes: Sequence[int]) -> None:
        # Not in line with submissions: those may wait for the very room that this makes.
        with suppress(GridError):
            await self._cancel(batch, indexes)

    def _forget_fetched(self, batch: int) -> None:
        self.forget(batch)
        if self._fetched and self._telling is None:
            self._telling = self._loop.call_later(_TELL_AFTER, self._tell_fetched)

    def _tell_fetched(self) -> None:
        """No question for results has taken these along."""
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        while self._fetched:
            self._told(self._tell_one(self._fetched.popleft()))

    def _told(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """The broker is told this before the courier goes."""
        return _keep(self._tasks, self._loop.create_task(work))

    async def _tell_one(self, batch: int) -> None:
        with suppress(GridError):  # then it expires
            async with self._room:
                await self.answer("POST", f"/v1/tasks/{batch}/fetched", b"\xc0")

    # -- results -----------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Know from where on to read, before anything can be there that is ours."""
        async with self._beginning:
            if self._place is None:
                self._place = await self.place()

    async def place(self) -> int:
        """A place behind which all is found that ends from now on."""
        found = _decode((await self.answer("GET", "/healthz")).body, type=dict[str, Any])
        return int(found.get("place", int(found["epoch"]) << _EPOCH_BITS))

    @property
    def _is_following(self) -> bool:
        return self._following is not None and not self._following.done()

    def _follow(self) -> None:
        if not self._is_following:
            self._following = self._loop.create_task(self._read())

    async def _read(self) -> None:
        try:
            await self._hand_over()
        except Exception as error:
            for receiver in set(self._receivers.values()):
                receiver.broken(error)
            self._receivers.clear()

    def _along(self) -> str:
        """What was fetched, to be told with another question: for a single task that saves a request."""
        fetched: list[str] = []
        while self._fetched and len(fetched) < _MOST_FETCHED:
            fetched.append(str(self._fetched.popleft()))
        return f"&fetched={','.join(fetched)}" if fetched else ""

    async def _hand_over(self) -> None:
        """Tell what comes, for as long as somebody waits for some."""
        while self._receivers or self._sending:
            question = f"/v1/tasks/results?after={self._place}&wait={_WAIT}{self._along()}"
            answer = await self.answer("GET", question)
            told = _decode(answer.body, type=Told)
            for batch, ends in told.ends:
                if (receiver := self._receivers.get(batch)) is not None:
                    receiver.received(batch, ends)
                elif self._sending:
                    # Its number may just be on the way.
                    self._early.setdefault(batch, []).append(ends)
            self._place = told.place

    # -- requests ----------------------------------------------------------------------------------

    async def answer(self, method: str, path: str, body: bytes = b"") -> Answer:
        """Ask until there is an answer, and raise GridError where it is a refusal.

        All requests may be repeated: submissions have a key, and what is ended or fetched twice is so once.
        """
        tries = 0
        since = time.monotonic()
        while True:
            try:
                answer = await self._once(method, path, body)
            except Broken as error:
                self._be_patient(since, error)
                pause = _PAUSES[min(tries, len(_PAUSES) - 1)]
                if tries == len(_PAUSES):
                    self._tell(f"the broker does not answer ({error}); asking again")
            else:
                self._met = time.monotonic()
                if answer.status < 300:
                    return answer
                refused = _refused(answer)
                if answer.status not in _LATER or (answer.status == 429 and refused.retry_after is None):
                    raise refused
                # A quota gets free in time; whatever else is amiss may stay so.
                if answer.status != 429 and time.monotonic() - since > _PATIENCE:
                    raise refused
                pause = refused.retry_after or _PAUSES[-1]
                if not tries:
                    self._tell(f"waiting: {refused.message}")
            tries += 1
            await asyncio.sleep(pause)

    def _tell(self, words: str) -> None:
        if self._notice is not None:
            self._notice(words)

    def _be_patient(self, since: float, error: Broken) -> None:
        patience = _PATIENCE if self._met else _FIRST_PATIENCE
        where = self._address
        self._address = None
        if time.monotonic() - max(since, self._met) > patience:
            raise BrokerAway(
                f"the broker{'' if where is None else f' at {where}'} does not answer ({error})",
                "is it running, and is the address right?",
            ) from error

    async def _once(self, method: str, path: str, body: bytes) -> Answer:
        address = self._address or await self._look()
        connection = self._free.pop() if self._free else address.connection(self._headers, self._ca_file)
        try:
            answer = await connection.ask(method, path, body)
        except BaseException:
            connection.close()
            self._hang_up()
            raise
        self._free.append(connection)
        return answer

    async def _look(self) -> Address:
        """Find the broker, one of us for all."""
        async with self._looking:
            if self._address is None:
                try:
                    self._address = await asyncio.to_thread(self._find)
                except Unreachable as error:
                    if self._met:
                        # It could be started before: this one may have been killed while it came up.
                        raise Broken(f"{error.message} {error.advice}".strip(), is_sent=False) from error
                    raise BrokerAway(error.message, error.advice) from error
            return self._address

    def _hang_up(self) -> None:
        while self._free:
            self._free.pop().close()


def _keep(tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> asyncio.Task[None]:
    """A loop alone does not keep what it runs."""
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


def closed() -> GridError:
    """Told to those who still wait when a grid is closed."""
    return GridError("closed", "the grid was closed before this was done", "what was accepted goes on there")


def _refused(answer: Answer) -> GridError:
    try:
        problem = _decode(answer.body, type=Problem)
    except msgspec.DecodeError:
        words = answer.body[:300].decode(errors="replace").strip()
        problem = Problem(code="broker", message=f"the broker answered {answer.status}: {words}")
    after = answer.headers.get("retry-after", "")
    retry = float(after) if after.replace(".", "", 1).isdecimal() else None
    return GridError(problem.code, problem.message, problem.advice, retry)
