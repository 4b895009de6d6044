"""The tasks that wait at an agent or are executed by its worker, so many calls at once.

A worker that takes batches gets as many short tasks in one call as take about as long as a call is worth. One
that does not let go of a task that nobody wants any more is killed, by whoever has started it; where nobody
here has, its slot stays taken until the call returns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import ceil

import msgspec

from jobman.tasks.batches import Status
from jobman.tasks.calling import Call, Outcome, Worker, WorkerLost

Key = tuple[int, int]
"""Batch and index of a task."""
PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between tries, the last one again and again: a broker that is restarted waits longer for agents."""
_CALL = 0.05
"""Seconds of work that go to a worker in one call."""
_MOST_TASKS = 2000
_MOST_BYTES = 8 * 2**20


class Held(msgspec.Struct, frozen=True):
    """A task that waits here or is being executed."""

    batch: int
    index: int
    attempt: int
    epoch: int
    payload: bytes
    seconds: float = 0.0
    """How long it is thought to take."""
    ends: float | None = None
    """Its deadline, on the clock of the loop."""
    is_reference: bool = False

    @property
    def key(self) -> Key:
        return self.batch, self.index

    @property
    def id(self) -> str:
        return f"{self.batch:x}-{self.index:x}-{self.attempt:x}-{self.epoch:x}"


class _Calling:
    """Tasks that a worker executes in one call."""

    def __init__(self, tasks: list[Held]) -> None:
        self.tasks = tasks
        self.unwanted: set[Key] = set()
        """Those whose outcome nobody waits for."""
        self.over = asyncio.Event()
        self.start = asyncio.get_running_loop().time()

    @property
    def wanted(self) -> list[Held]:
        return [held for held in self.tasks if held.key not in self.unwanted]


Done = Callable[[Sequence[Held], Sequence[Outcome]], None]
Lost = Callable[[Sequence[Held]], Awaitable[None]]


class Slots:
    """One worker, and what it has to do."""

    def __init__(
        self,
        worker: Worker,
        count: int,
        *,
        done: Done,
        crashed: Lost,
        returned: Lost,
        changed: Callable[[], None],
        kill: Callable[[], None] | None,
        grace: float,
    ) -> None:
        self._worker = worker
        self._count = count
        self._done = done
        self._crashed = crashed
        self._returned = returned
        self._changed = changed
        self._kill = kill
        self._grace = grace
        self._waiting: deque[Held] = deque()
        self._calls: dict[Key, _Calling] = {}
        self._work = asyncio.Event()
        self._up = asyncio.Event()
        self._starting = asyncio.Lock()
        self._is_killed = False
        """Whether the worker was killed from here: what it executed is not to blame."""
        self._is_draining = False
        self._took = 0.01
        """Seconds of a task, lately."""
        self.refusals: list[str] = []
        """What the worker said each time when it could not prepare itself, since it last could."""
        self._ending: set[asyncio.Task[None]] = set()
        self.seconds = 0.0
        """Of all that is here, as it is thought."""

    @property
    def is_empty(self) -> bool:
        return not self._waiting and not self._calls

    async def start(self) -> None:
        """Wait until the worker is there and has prepared itself."""
        async with self._starting:
            if not self._up.is_set():
                await self._start()

    async def _start(self) -> None:
        tries = 0
        while not await self._is_prepared():
            await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
            tries += 1
        self.refusals.clear()
        self._is_killed = False
        self._up.set()
        self._work.set()

    async def _is_prepared(self) -> bool:
        if not await self._worker.ping():
            return False
        if said := await self._worker.prepare("initialize"):
            self.refusals.append(said)
        return not said

    def put(self, tasks: Iterable[Held]) -> None:
        """These are to be executed."""
        for held in tasks:
            self._waiting.append(held)
            self.seconds += held.seconds
        self._work.set()

    def drain(self) -> list[Held]:
        """All that only waits, which is not executed here any more."""
        self._is_draining = True
        found = list(self._waiting)
        self._waiting.clear()
        self._forget(found)
        return found

    def _forget(self, tasks: Iterable[Held]) -> None:
        self.seconds = 0.0 if self.is_empty else self.seconds - sum(held.seconds for held in tasks)

    # -- executing ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """One slot: one call after the other."""
        while True:
            while not self._waiting or not self._up.is_set():
                self._work.clear()
                await self._work.wait()
            tasks = self._take()
            if tasks:
                await self._execute(_Calling(tasks))

    def _take(self) -> list[Held]:
        """Those for the next call, without such as have no time left."""
        now, many = asyncio.get_running_loop().time(), self._many()
        found: list[Held] = []
        late: list[Held] = []
        size = 0
        while self._waiting and len(found) < many:
            held = self._waiting[0]
            size += len(held.payload)
            if found and (held.is_reference or size > _MOST_BYTES):
                break
            self._waiting.popleft()
            if held.ends is not None and held.ends <= now:
                late.append(held)
                continue
            found.append(held)
            if held.is_reference:
                break
        if late:
            self._forget(late)
            self._done(late, [Outcome(status=Status.KILLED, seconds=0.0, reason="deadline")] * len(late))
        return found

    def _many(self) -> int:
        if not self._worker.takes_batches:
            return 1
        fair = ceil(len(self._waiting) / self._count)
        return max(1, min(int(_CALL / max(self._took, 1e-6)), fair, _MOST_TASKS))

    async def _execute(self, calling: _Calling) -> None:
        for held in calling.tasks:
            self._calls[held.key] = calling
        loop = asyncio.get_running_loop()
        timers = [
            loop.call_at(held.ends, self._late, calling, held)
            for held in calling.tasks
            if held.ends is not None
        ]
        try:
            outcomes = await self._call(calling.tasks)
        except WorkerLost as lost:
            self._close(calling)
            await self._lose(calling, is_sent=lost.is_sent)
            return
        finally:
            calling.over.set()
            for timer in timers:
                timer.cancel()
        self._close(calling)
        self._took += (sum(each.seconds for each in outcomes) / len(outcomes) - self._took) * 0.2
        if not calling.unwanted:
            self._done(calling.tasks, outcomes)
            return
        pairs = zip(calling.tasks, outcomes, strict=True)
        kept = [(held, outcome) for held, outcome in pairs if held.key not in calling.unwanted]
        self._done([held for held, _ in kept], [outcome for _, outcome in kept])

    async def _call(self, tasks: list[Held]) -> list[Outcome]:
        now = asyncio.get_running_loop().time()
        calls = [_call_of(held, now) for held in tasks]
        if len(calls) == 1:
            return [await self._worker.execute(calls[0])]
        return await self._worker.execute_batch(calls)

    def _close(self, calling: _Calling) -> None:
        for held in calling.tasks:
            if self._calls.get(held.key) is calling:
                del self._calls[held.key]
        self._forget(calling.tasks)
        self._changed()

    # -- ending ------------------------------------------------------------------------------------

    def cancel(self, key: Key) -> None:
        """Nobody wants this one any more."""
        calling = self._calls.get(key)
        if calling is None:
            gone = [held for held in self._waiting if held.key == key]
            for held in gone:
                self._waiting.remove(held)
            self._forget(gone)
            return
        for held in calling.tasks:
            if held.key == key:
                self._end(calling, held)

    def _late(self, calling: _Calling, held: Held) -> None:
        """Its deadline has passed."""
        if held.key not in calling.unwanted:
            self._end(calling, held)
            seconds = asyncio.get_running_loop().time() - calling.start
            self._done([held], [Outcome(status=Status.KILLED, seconds=seconds, reason="deadline")])

    def _end(self, calling: _Calling, held: Held) -> None:
        calling.unwanted.add(held.key)
        task = asyncio.create_task(self._let_go(calling, held))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _let_go(self, calling: _Calling, held: Held) -> None:
        """Ask the worker to end it; one that goes on is killed."""
        await self._worker.cancel(held.id)
        try:
            async with asyncio.timeout(self._grace):
                await calling.over.wait()
        except TimeoutError:
            # Once, whoever else wants it: another kill might hit the next worker.
            if self._kill is not None and not self._is_killed:
                self._is_killed = True
                self._worker.note("worker-killed", f"it did not let go of the task {held.id}")
                self._kill()

    async def _lose(self, calling: _Calling, *, is_sent: bool) -> None:
        """The worker hung up, or is not there."""
        if self._up.is_set() and not (is_sent and await self._worker.ping()):
            self._up.clear()
        wanted = calling.wanted
        if not is_sent and not self._is_draining:
            # It never heard of them.
            self._waiting.extendleft(reversed(wanted))
            self.seconds += sum(held.seconds for held in wanted)
        elif self._is_killed or not is_sent:
            await self._returned(wanted)
        else:
            await self._crashed(wanted)
        if not self._up.is_set():
            await self.start()


def _call_of(held: Held, now: float) -> Call:
    return Call(
        id=held.id,
        attempt=held.attempt,
        payload=b"" if held.is_reference else held.payload,
        reference=held.payload.decode() if held.is_reference else "",
        seconds=None if held.ends is None else max(0.0, held.ends - now),
    )
