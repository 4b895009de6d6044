"""What stands next to a worker: pulls tasks from a broker, has them executed, and reports.

It has as much work at hand as its credit says, so that no slot waits and nobody else's work is held up here.
One pull is always open: it brings work and orders, and says that the agent is there. What it could not report
it keeps until it can. A worker that dies is reported with what it was executing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from jobman.tasks.calling import Outcome, Worker
from jobman.tasks.happenings import Note
from jobman.tasks.model import Orders, Problem, Pull, Report, Work
from jobman.tasks.slots import PAUSES, Held, Key, Slots
from jobman.tasks.wire import Answer, Asks, Broken

CREDIT = 0.1
"""Seconds of work that wait here at most, for each slot."""
GRACE = 2.0
"""Seconds in which a worker is to let go of a task that nobody wants any more."""
_WAIT = 3.0
"""Seconds that a pull is left open: the broker must hear of an agent more often than its lease ends."""
_MANY = 2000
_MOST_NOTES = 100
_MOST_UNREPORTED = 20_000
"""Tasks that may wait to be reported before no more are taken."""
_MOST_UNREPORTED_BYTES = 64 * 2**20
"""The same, of their results."""
_MOST_BYTES = 8 * 2**20
"""Of results that are reported at once, and what the last one has beyond."""
_CONFLICT = 409
REPLACED = "replaced"
"""What a broker answers to an agent when another one comes under its name."""
_orders = msgspec.msgpack.Decoder(Orders).decode


class NameTaken(Exception):
    """Another agent works under the name of this one."""


class Agent:
    """One worker, and the broker it works for."""

    def __init__(
        self,
        id_: str,
        image: str,
        worker: Worker,
        *,
        pulling: Asks,
        reporting: Asks,
        slots: int = 1,
        kill: Callable[[], None] | None = None,
        grace: float = GRACE,
    ) -> None:
        self.id = id_
        self._image = image
        self.worker = worker
        self._pulling = pulling
        self._reporting = reporting
        self._count = slots
        self._slots = Slots(
            worker,
            slots,
            done=self._done,
            crashed=self._crashed,
            returned=self._give_back,
            changed=self._look_again,
            kill=kill,
            grace=grace,
        )
        self._mine: dict[Key, Held] = {}
        """All that the broker thinks is here, and that it was not told yet what became of."""
        self._telling: dict[Key, Held] = {}
        """What is in a report on its way: the broker may give it here again before it has answered."""
        self._outbox: list[tuple[Held, Outcome]] = []
        self._outbox_bytes = 0
        self._news = asyncio.Event()
        self._is_known = False
        """Whether the broker knows what is here."""
        self._notes: deque[Note] = deque(maxlen=_MOST_NOTES)
        worker.note = self.note
        self._draining = asyncio.Event()
        self._has_left = False
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Work until drained or cancelled."""
        await self._slots.start()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in (self._pull(), self._report())]
            tasks += [group.create_task(self._slots.run()) for _ in range(self._count)]
            await self._draining.wait()
            await self._emptied()
            # Before it hangs up, which would be taken for its end in the middle of something.
            self._has_left = True
            await self._ask(self._reporting, "leave", None)
            for task in tasks:
                task.cancel()
        await self.worker.prepare("finalize")
        self._pulling.close()
        self._reporting.close()

    @property
    def refusals(self) -> list[str]:
        """What its worker said each time when it could not prepare itself, since it last could."""
        return self._slots.refusals

    def note(self, kind: str, words: str) -> None:
        """Tell the broker what happened here, when there is time; of too much the oldest is left out."""
        self._notes.append(Note(kind=kind, words=words))
        self._news.set()

    def drain(self) -> None:
        """Take no more, finish what is executed, give back what waits, and end."""
        self._draining.set()
        self._news.set()

    async def _emptied(self) -> None:
        await self._give_back(self._slots.drain())
        while self._mine or self._telling or not self._slots.is_empty:
            self._changed.clear()
            await self._changed.wait()

    def _look_again(self) -> None:
        """Something is over: whoever waits for the end of all sees whether this was it."""
        self._changed.set()

    # -- the broker --------------------------------------------------------------------------------

    @property
    def _credit(self) -> float:
        """Seconds of work for which there is room."""
        if self._draining.is_set() or self._is_full:
            return 0.0
        return max(0.0, self._count * CREDIT - self._slots.seconds)

    @property
    def _is_full(self) -> bool:
        """Whether so much could not be reported that no more may be executed."""
        return len(self._outbox) > _MOST_UNREPORTED or self._outbox_bytes > _MOST_UNREPORTED_BYTES

    async def _pull(self) -> None:
        tries = 0
        while not self._has_left:
            answer = await self._ask(self._pulling, "pull", self._asked(self._credit, _WAIT))
            if answer is not None and answer.status == 200:
                tries = 0
                await self._obey(_orders(answer.body))
                # The worker has its task before more are asked for.
                await asyncio.sleep(0)
                continue
            self._is_known = False
            is_stranger = answer is not None and answer.status == _CONFLICT
            if is_stranger and _code(answer) == REPLACED:
                raise NameTaken(f"another agent works under the name {self.id}")
            if tries or not is_stranger:
                await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
            tries += 1

    def _asked(self, seconds: float, wait: float) -> Pull:
        have: dict[int, list[int]] | None = None
        if not self._is_known:
            have = _by_batch((self._telling | self._mine).values())
            self._is_known = True
        return Pull(image=self._image, seconds=seconds, most=_MANY, wait=wait, slots=self._count, have=have)

    async def _obey(self, orders: Orders) -> None:
        for batch, index in orders.cancel:
            self._slots.cancel((batch, index))
            self._mine.pop((batch, index), None)
            self._look_again()
        new = [held for work in orders.work for held in _held(work) if held.key not in self._mine]
        self._mine |= {held.key: held for held in new}
        if self._draining.is_set():
            await self._give_back(new)
        else:
            self._slots.put(new)

    async def _ask(self, connection: Asks, act: str, body: object) -> Answer | None:
        try:
            return await connection.ask("POST", f"/v1/agents/{self.id}/{act}", msgspec.msgpack.encode(body))
        except Broken:
            return None

    async def _report(self) -> None:
        """One after the other; what comes meanwhile goes together with the next."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self._tell_notes()
            # Of those that were cancelled meanwhile nobody wants to hear.
            some = [each for each in self._some() if self._mine.get(each[0].key) is each[0]]
            self._telling = {held.key: self._mine.pop(held.key) for held, _ in some}
            await self._insist(f"report?credit={self._credit:.6f}", list(_reports(some)))
            self._telling.clear()
            self._look_again()

    async def _tell_notes(self) -> None:
        """A broker that is away hears of them with the next report."""
        if not self._notes:
            return
        told, self._notes = list(self._notes), deque(maxlen=_MOST_NOTES)
        answer = await self._ask(self._reporting, "notes", told)
        if answer is None or answer.status != 200:
            self._notes = deque([*told, *self._notes], maxlen=_MOST_NOTES)

    def _some(self) -> list[tuple[Held, Outcome]]:
        """As much of the outbox as goes at once."""
        size = 0
        for count, (_, outcome) in enumerate(self._outbox, 1):
            size += len(outcome.result)
            if size > _MOST_BYTES:
                found, self._outbox = self._outbox[:count], self._outbox[count:]
                self._outbox_bytes -= size
                self._news.set()
                return found
        found, self._outbox = self._outbox, []
        self._outbox_bytes = 0
        return found

    async def _insist(self, act: str, body: object) -> None:
        """Until the broker has it."""
        tries = 0
        while (answer := await self._ask(self._reporting, act, body)) is None or answer.status >= 400:
            if answer is not None and answer.status == _CONFLICT:
                # It does not know this agent: the next pull tells it all that is here.
                self._is_known = False
            elif answer is not None and answer.status < 500:
                raise RuntimeError(f"{act}: the broker answers {answer.status}: {answer.body[:300]!r}")
            await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
            tries += 1

    # -- the worker --------------------------------------------------------------------------------

    def _done(self, tasks: Sequence[Held], outcomes: Sequence[Outcome]) -> None:
        self._outbox.extend(zip(tasks, outcomes, strict=True))
        self._outbox_bytes += sum(len(outcome.result) for outcome in outcomes)
        self._news.set()

    async def _crashed(self, tasks: Sequence[Held]) -> None:
        await self._let_go("crashed", tasks)

    async def _give_back(self, tasks: Sequence[Held]) -> None:
        await self._let_go("returned", tasks)

    async def _let_go(self, act: str, tasks: Sequence[Held]) -> None:
        """The broker takes these over; it may give them here again before it has answered."""
        for held in tasks:
            self._mine.pop(held.key, None)
        if tasks:
            await self._insist(act, _by_batch(tasks))
        self._look_again()
        # There is room, of which the broker hears with the next report.
        self._news.set()


def _code(answer: Answer | None) -> str:
    """Which problem an answer is about."""
    try:
        return "" if answer is None else msgspec.msgpack.decode(answer.body, type=Problem).code
    except msgspec.DecodeError:
        return ""


def _by_batch(tasks: Iterable[Held]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for held in tasks:
        found.setdefault(held.batch, []).append(held.index)
    return found


def _held(work: Work) -> Iterator[Held]:
    ends = None if work.deadline is None else asyncio.get_running_loop().time() + work.deadline
    for index, payload in enumerate(work.payloads, work.low):
        attempt = work.attempts.get(index, 1)
        yield Held(work.batch, index, attempt, work.epoch, payload, work.seconds, ends, work.by_reference)


def _reports(done: list[tuple[Held, Outcome]]) -> Iterator[Report]:
    """By batch and status, as columns."""
    groups: dict[tuple[int, int], list[tuple[Held, Outcome]]] = {}
    for held, outcome in done:
        groups.setdefault((held.batch, outcome.status), []).append((held, outcome))
    for (batch, status), some in groups.items():
        yield Report(
            batch=batch,
            indexes=[held.index for held, _ in some],
            status=status,
            seconds=[outcome.seconds for _, outcome in some],
            results=[outcome.result for _, outcome in some],
            attempts={held.index: held.attempt for held, _ in some if held.attempt > 1},
            reasons={held.index: outcome.reason for held, outcome in some if outcome.reason},
        )
