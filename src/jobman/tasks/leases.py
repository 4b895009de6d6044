"""Who has which tasks, and what becomes of them when somebody is lost, or a task takes its worker with it.

A task is with one agent at most. What an agent tells of a task that it does not have any more is not taken:
so every task is recorded once, however often it was executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

from jobman.tasks.batches import Batch, Span, Status
from jobman.tasks.queues import Lean, straight

DEATHS = 3
"""Workers that a task may take with it before it is given up."""


Refund = Callable[[Batch, float], None]
"""Told of seconds that were paid for tasks which an agent has no longer."""


def _nothing(_: Batch, __: float) -> None:
    """Nobody pays."""


class Agent:
    """One that stands next to a worker, and what it has."""

    def __init__(self, id_: str, image: str, heard: float) -> None:
        self.id = id_
        self.image = image
        self.heard = heard
        self.slots = 1
        self.credit = 0.0
        """Seconds of work that it wants to have, as it said last."""
        self.held: dict[Batch, set[int]] = {}
        self.charged: dict[Batch, float] = {}
        """Seconds that tenants pay so far for what it has."""
        self.tenants: dict[str, int] = {}
        """How many it has of each."""
        self.cancelled: list[tuple[int, int]] = []
        """What it had, and is not told yet to end."""

    @property
    def count(self) -> int:
        return sum(map(len, self.held.values()))


class Leases:
    """All agents, and the tasks that are with them."""

    def __init__(self, seconds: float, refund: Refund = _nothing) -> None:
        self.seconds = seconds
        """How long an agent may be silent."""
        self._refund = refund
        self.agents: dict[str, Agent] = {}
        self.running: dict[str, int] = {}
        """Tasks with agents, by tenant."""
        self.workers: dict[str, int] = {}
        """Agents that have some, by tenant."""
        self._deaths: dict[tuple[int, int], int] = {}

    def hear(self, id_: str, image: str, now: float) -> Agent:
        """An agent came, or is still there."""
        agent = self.agents.setdefault(id_, Agent(id_, image, now))
        agent.heard = now
        return agent

    def silent(self, now: float) -> list[Agent]:
        """Those that were not heard of for too long."""
        return [agent for agent in self.agents.values() if now - agent.heard > self.seconds]

    def give(self, agent: Agent, spans: Iterable[Span], lean: Lean = straight) -> None:
        for span in spans:
            batch, low, high = span
            batch.mark(low, high, Status.GIVEN)
            agent.charged[batch] = agent.charged.get(batch, 0.0) + span.seconds * lean(batch)
            agent.held.setdefault(batch, set()).update(range(low, high))
            self._count(agent, batch, high - low)

    def take_back(self, agent: Agent, batch: Batch, indexes: Iterable[int]) -> list[int]:
        """Of these, in order, the ones that the agent has; it has them no longer."""
        held = agent.held.get(batch)
        if held is None:
            return []
        found = sorted(held.intersection(indexes))
        part = agent.charged[batch] * len(found) / len(held)
        held.difference_update(found)
        agent.charged[batch] -= part
        if not held:
            del agent.held[batch], agent.charged[batch]
        # Whoever knows what they really took says so.
        self._refund(batch, part)
        self._count(agent, batch, -len(found))
        return found

    def _count(self, agent: Agent, batch: Batch, more: int) -> None:
        tenant = batch.tenant
        before = agent.tenants.get(tenant, 0)
        agent.tenants[tenant] = before + more
        self.running[tenant] = self.running.get(tenant, 0) + more
        self.workers[tenant] = self.workers.get(tenant, 0) + bool(before + more) - bool(before)

    def end(self, agent: Agent, batch: Batch, indexes: Iterable[int], status: Status) -> list[int]:
        """These came out so; tells which of them count."""
        found = self.take_back(agent, batch, indexes)
        for span in spans_of(batch, found):
            batch.mark(span.low, span.high, status)
        for index in found if self.has_suspects else ():
            self.forgive(batch, index)
        return found

    def lose(self, agent: Agent) -> list[Span]:
        """All that an agent had is to be given out again."""
        self.agents.pop(agent.id, None)
        return [span for batch in list(agent.held) for span in self.again(agent, batch, agent.held[batch])]

    def again(self, agent: Agent, batch: Batch, indexes: Iterable[int]) -> list[Span]:
        """These wait once more, each for its next attempt."""
        found = self.take_back(agent, batch, list(indexes))
        for index in found:
            batch.attempts[index] = batch.attempt(index) + 1
        spans = list(spans_of(batch, found))
        for span in spans:
            batch.mark(span.low, span.high, Status.QUEUED)
        return spans

    def crash(self, agent: Agent, batch: Batch, indexes: Iterable[int]) -> tuple[list[Span], list[int]]:
        """A worker died over these: those that are to be tried alone, and those that are given up."""
        found = [index for index in indexes if index in agent.held.get(batch, ())]
        for index in found:
            self._deaths[batch.id, index] = self._deaths.get((batch.id, index), 0) + 1
        dead = [index for index in found if self._deaths[batch.id, index] >= DEATHS]
        given_up = self.end(agent, batch, dead, Status.FAILED)
        alone = [index for index in found if index not in given_up]
        again = self.again(agent, batch, alone)
        return [
            Span(batch, index, index + 1) for span in again for index in range(span.low, span.high)
        ], given_up

    def deaths(self, batch: Batch, index: int) -> int:
        """Workers that died over a task."""
        return self._deaths.get((batch.id, index), 0)

    def remember(self, batch: Batch, deaths: Mapping[int, int]) -> None:
        """What was known of tasks before."""
        self._deaths |= {(batch.id, index): count for index, count in deaths.items()}

    def forgive(self, batch: Batch, index: int) -> None:
        """It has ended: whatever it did."""
        self._deaths.pop((batch.id, index), None)

    @property
    def has_suspects(self) -> bool:
        """Whether there is any."""
        return bool(self._deaths)

    def is_suspect(self, batch: Batch, index: int) -> bool:
        """Whether a worker died while it executed this one: then it is given out alone."""
        return (batch.id, index) in self._deaths


def spans_of(batch: Batch, indexes: Iterable[int]) -> Iterator[Span]:
    """Indexes, each once and in any order, as spans: workers end their tasks as it happens."""
    indexes = sorted(indexes)
    if indexes and indexes[-1] - indexes[0] + 1 == len(indexes):
        yield Span(batch, indexes[0], indexes[-1] + 1)
        return
    for _, run in groupby(enumerate(indexes), lambda pair: pair[1] - pair[0]):
        found = [index for _, index in run]
        yield Span(batch, found[0], found[-1] + 1)
