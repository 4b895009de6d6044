"""What becomes of tasks, as decisions: each call changes the state and tells what must be written for it.

Time is an argument, nothing waits and nothing is sent: sockets and the journal are around this. After a crash
the same state is made again from what was written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from math import log

import msgspec

from jobman.tasks.batches import Batch, Span, Status
from jobman.tasks.entries import AGAIN, Entry
from jobman.tasks.estimates import Kind
from jobman.tasks.leases import DEATHS, Agent, spans_of
from jobman.tasks.model import Again, Pull, Report, of_each
from jobman.tasks.queues import Room, anything
from jobman.tasks.quotas import Quota
from jobman.tasks.reports import check_report, only, seconds_of
from jobman.tasks.revival import Revival, Tasks
from jobman.tasks.stock import attempts_of, kind_of
from jobman.tasks.submissions import Refusal

_CHANGE = log(1.1)
"""Estimates that change by less stay as they are."""
_MOST_LEAN = 1e4
_LEAST = 1e-9
_WAITING = (Status.QUEUED, Status.RESTING)
DEADLINE = "deadline"
"""The reason of what is ended for it."""


class Given(msgspec.Struct, frozen=True):
    """Tasks for an agent."""

    batch: int
    low: int
    high: int
    attempts: dict[int, int] = {}
    """Of those that were given out before."""
    deadline: float | None = None
    """Seconds that are left."""
    seconds: float = 0.0
    """How long each is thought to take."""


class Broker(Revival):
    """All batches and who has what of them."""

    # -- giving out -----------------------------------------------------------------------------------

    def pull(self, agent_id: str, asked: Pull, now: float) -> list[Given]:
        """Work for an agent that wants to have so many seconds of it at hand."""
        if agent_id not in self.leases.agents:
            if asked.have is None:
                raise _stranger(agent_id)
            self.diary.add("agent-came", image=asked.image, agent=agent_id)
        agent = self.leases.hear(agent_id, asked.image, now)
        agent.slots, agent.credit = asked.slots, asked.seconds
        if asked.have is not None:
            self._take_up(agent, asked.have)
        if asked.seconds <= 0 or now < self._gives_from:
            return []
        spans = self._alone(agent)
        if spans is None:
            spans = self._queue(agent.image).take(asked.seconds, asked.most, self._room(agent), self._lean_of)
        self.leases.give(agent, spans, self._lean_of)
        return [_given(span, now, self._lean_of(span.batch)) for span in spans]

    def _take_up(self, agent: Agent, have: Tasks) -> None:
        """An agent tells all it has: what waits here is with it; what it has not is given out again."""
        for batch, held in list(agent.held.items()):
            for span in self.leases.again(agent, batch, held.difference(have.get(batch.id, ()))):
                self._put_back(span, first=True)
        for id_, indexes in have.items():
            batch_or_none = self.batches.get(id_)
            for index in indexes:
                if batch_or_none is None or not self._takes_up(agent, batch_or_none, index):
                    agent.cancelled.append((id_, index))

    def _takes_up(self, agent: Agent, batch: Batch, index: int) -> bool:
        if index >= len(batch) or index in agent.held.get(batch, ()):
            return index < len(batch)
        span, suspects = Span(batch, index, index + 1), self.suspects.get(batch.image, ())
        if batch.states[index] == Status.QUEUED:
            self._queue(batch.image).lines[batch.tenant].forget(span)
        elif span in suspects:
            self.suspects[batch.image].remove(span)
        else:
            return False
        self._charge(batch, span.seconds * self._lean_of(batch))
        self.leases.give(agent, [span], self._lean_of)
        return True

    def _alone(self, agent: Agent) -> list[Span] | None:
        """Whoever is suspected to kill workers gets one to itself; None where nobody is."""
        if self.leases.has_suspects and any(
            self.leases.is_suspect(batch, index) for batch, some in agent.held.items() for index in some
        ):
            return []
        suspects = self.suspects.get(agent.image)
        if not suspects:
            return None
        if agent.count:
            # Where there is always more to do, nobody would ever have nothing.
            if self._reserved.get(agent.image) not in self.leases.agents:
                self._reserved[agent.image] = agent.id
            return [] if self._reserved[agent.image] == agent.id else None
        self._reserved.pop(agent.image, None)
        span = suspects.popleft()
        self._charge(span.batch, span.seconds * self._lean_of(span.batch))
        return [span]

    def has_work(self, image: str) -> bool:
        """Whether anything waits for an agent of this image."""
        return bool(self.suspects.get(image)) or bool(self._queue(image).count)

    def _room(self, agent: Agent) -> Room:
        """How many more of a tenant may be with workers, and with this one."""
        if not self.quotas:
            return anything

        def room(tenant: str) -> float:
            quota = self.quotas.get(tenant, Quota())
            if not agent.tenants.get(tenant) and self.leases.workers.get(tenant, 0) >= quota.workers:
                return 0
            return quota.slots - self.leases.running.get(tenant, 0)

        return room

    def orders(self, agent_id: str) -> list[tuple[int, int]]:
        """What an agent is to end, told once."""
        agent = self.leases.agents.get(agent_id)
        if agent is None:
            return []
        found, agent.cancelled = agent.cancelled, []
        return found

    # -- what agents say ------------------------------------------------------------------------------

    def report(self, agent_id: str, reports: Iterable[Report], now: float) -> list[Entry]:
        """What an agent says of tasks; of those that it does not have, nothing is taken."""
        agent = self._heard(agent_id, now)
        return [entry for report in reports for entry in self._report(agent, report, now)]

    def _heard(self, agent_id: str, now: float) -> Agent:
        agent = self.leases.agents.get(agent_id)
        if agent is None:
            raise _stranger(agent_id)
        agent.heard = now
        return agent

    def _report(self, agent: Agent, report: Report, now: float) -> Iterator[Entry]:
        batch = self.batches.get(report.batch)
        held = agent.held.get(batch) if batch is not None else None
        taken = held.intersection(report.indexes) if held is not None else set()
        if batch is not None and self._failures and report.status == Status.FAILED:
            taken -= self._told_before(agent, batch, report, taken)
        if len(taken) != len(report.indexes):
            self._not_taken(agent, report, taken)
        if batch is None or held is None:
            return
        status = Status(report.status)
        check_report(report)
        if len(taken) != len(report.indexes):
            report = only(report, taken)
        self._learn(batch, report)
        again = self._to_try_again(batch, report.indexes) if status == Status.FAILED else []
        if again:
            self._tell(batch, "retried", again, agent.id, report.reasons)
            yield self._rest(agent, batch, again, now, seconds_of(report, again))
            report = only(report, set(report.indexes).difference(again))
        if self.leases.end(agent, batch, report.indexes, status):
            if status != Status.COMPLETED:
                self._tell(batch, _kind_of_end(report), report.indexes, agent.id, report.reasons)
            yield self._ended(
                batch,
                report.indexes,
                status,
                seconds=report.seconds,
                results=report.results,
                reasons=report.reasons,
            )

    def _told_before(self, agent: Agent, batch: Batch, report: Report, taken: Collection[int]) -> set[int]:
        """Attempts that are on record as failed, by a broker that ended before it could say so.

        The agent has done with them, and they are given out anew.
        """
        known = {
            index for index in taken if report.attempts.get(index, 1) <= self._failed_attempts(batch, index)
        }
        for span in self.leases.again(agent, batch, known) if known else ():
            self._put_back(span, first=True)
        return known

    def _not_taken(self, agent: Agent, report: Report, taken: Collection[int]) -> None:
        """Somebody else has these meanwhile, or they have ended."""
        others = sorted(set(report.indexes).difference(taken))
        batch = self.batches.get(report.batch)
        self.diary.add(
            "late-report",
            tenant="" if batch is None else batch.tenant,
            image=agent.image,
            agent=agent.id,
            batch=report.batch,
            index=others[0] if others else None,
            count=len(report.indexes) - len(taken),
            words="what it says of them is not taken",
        )

    def _to_try_again(self, batch: Batch, indexes: Iterable[int]) -> list[int]:
        limit = self.heads[batch.id].retries.limit
        if not limit:
            return []
        return [index for index in indexes if self._failures.get((batch.id, index), 0) < limit]

    def _rest(self, agent: Agent, batch: Batch, indexes: Sequence[int], now: float, seconds: float) -> Entry:
        failures = {}
        for index in indexes:
            failures[index] = self._failures[batch.id, index] = self._failures.get((batch.id, index), 0) + 1
            pause = self.heads[batch.id].retries.pause(failures[index])
            heappush(self._resting, (now + pause, batch.id, index))
        for span in self.leases.again(agent, batch, indexes):
            batch.mark(span.low, span.high, Status.RESTING)
        return self._entry(batch, AGAIN, Again(failures=failures, seconds=seconds))

    def crashed(self, agent_id: str, executing: Tasks, now: float) -> list[Entry]:
        """A worker died over these tasks, by batch: each is tried alone, or given up."""
        agent = self._heard(agent_id, now)
        return [
            entry
            for id_, indexes in executing.items()
            if (batch := self.batches.get(id_)) is not None
            for entry in self._crashed(agent, batch, indexes)
        ]

    def _crashed(self, agent: Agent, batch: Batch, indexes: Sequence[int]) -> Iterator[Entry]:
        alone, given_up = self.leases.crash(agent, batch, indexes)
        # A worker was busy with them, though nobody knows for how long.
        self._charge(batch, batch.seconds_of(given_up) + sum(span.seconds for span in alone))
        for span in alone:
            self._set_apart(span)
        if alone:
            deaths = {span.low: self.leases.deaths(batch, span.low) for span in alone}
            self._tell(batch, "worker-died", list(deaths), agent.id, words="each is tried alone")
            yield self._entry(batch, AGAIN, Again(deaths=deaths))
        if given_up:
            words = f"{DEATHS} workers died over it"
            self._tell(batch, "dead-letter", given_up, agent.id, words=words)
            yield self._ended(batch, given_up, Status.FAILED, reason="worker-died", deaths=DEATHS)

    def returned(self, agent_id: str, tasks: Tasks, now: float) -> None:
        """An agent gives these back, by batch, and nothing is known against them."""
        agent = self._heard(agent_id, now)
        for id_, indexes in tasks.items():
            if (batch := self.batches.get(id_)) is not None:
                for span in self.leases.again(agent, batch, indexes):
                    self._put_back(span, first=True)

    def lost(self, agent_id: str, kind: str = "agent-lost", words: str = "") -> None:
        """An agent is gone; what it had waits once more, before all others."""
        agent = self.leases.agents.get(agent_id)
        if agent is None:
            return
        self.diary.add(kind, image=agent.image, agent=agent.id, count=agent.count, words=words)
        for span in self.leases.lose(agent):
            self._put_back(span, first=True)

    # -- learning -------------------------------------------------------------------------------------

    def _learn(self, batch: Batch, report: Report) -> None:
        if not report.indexes:
            return
        kind, took = kind_of(self.heads[batch.id]), sum(report.seconds)
        self._charge(batch, took)
        self._lean(batch, took, batch.seconds_of(report.indexes))
        self.tallies.of(batch.tenant, batch.image).took(report.seconds)
        self._learn_from(batch, report.indexes, report.seconds)
        if kind in self._unhinted:
            self._estimate_again(kind)

    def _lean(self, batch: Batch, took: float, thought: float) -> None:
        """Authors who always say too much, or too little, are understood after a while."""
        factor = max(took, _LEAST) / max(thought, _LEAST)
        key, before = (batch.tenant, kind_of(self.heads[batch.id])), self._lean_of(batch)
        self._leans[key] = min(_MOST_LEAN, max(1 / _MOST_LEAN, before * (factor / before) ** 0.2))

    def _estimate_again(self, kind: Kind) -> None:
        """Tasks of which nobody said how long they take follow what is known by now."""
        for batch in self._unhinted[kind]:
            assert isinstance(batch.estimates, float)
            seconds = self.estimator.estimate(kind, size=of_each(self.heads[batch.id].sizes, 0))
            if batch.left and abs(log(seconds / batch.estimates)) > _CHANGE:
                self._queue(batch.image).estimate(batch, seconds)
                self._leans.pop((batch.tenant, kind), None)

    # -- time and people ------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Entry]:
        """What is due: agents that are silent, attempts whose pause is over, deadlines."""
        for agent in self.leases.silent(now):
            self.lost(agent.id, words=f"nothing was heard of it for {self.leases.seconds:g} s")
        while self._resting and self._resting[0][0] <= now:
            _, id_, index = heappop(self._resting)
            batch = self.batches.get(id_)
            if (
                batch is not None
                and batch.states[index] == Status.RESTING
                and not self.leases.is_suspect(batch, index)
            ):
                batch.mark(index, index + 1, Status.QUEUED)
                self._queue(batch.image).put(Span(batch, index, index + 1), first=True)
        passed = 0.0 if self._ticked is None else now - self._ticked
        self._ticked = now
        for usage in self.usage.values():
            usage.pass_time(passed)
        self.tallies.pass_time(passed)
        return [entry for batch in self._late(now) for entry in self._expire(batch)]

    def _late(self, now: float) -> Iterator[Batch]:
        while self._deadlines and self._deadlines[0][0] <= now:
            batch = self.batches.get(heappop(self._deadlines)[1])
            if batch is not None:
                yield batch

    def _expire(self, batch: Batch) -> Iterator[Entry]:
        yield from self._stop(batch, range(len(batch)), Status.EXPIRED, DEADLINE)
        yield from self._end_running(batch, range(len(batch)), DEADLINE)

    def cancel(self, tenant: str, batch_id: int, indexes: Sequence[int] | None = None) -> list[Entry]:
        """End tasks that wait, and those that agents have, who hear of it."""
        batch = self.own(tenant, batch_id)
        which = range(len(batch)) if indexes is None else indexes
        for index in (min(which, default=0), max(which, default=0)):
            self.own(tenant, batch_id, index)
        return [
            *self._stop(batch, which, Status.KILLED, "cancelled"),
            *self._end_running(batch, which, "cancelled"),
        ]

    def give_up(self, image: str, reason: str) -> list[Entry]:
        """Nobody can execute tasks of an image: those that wait for it have failed."""
        waiting = [batch for batch in self.batches.values() if batch.image == image and batch.left]
        return [
            entry
            for batch in waiting
            for entry in self._stop(batch, range(len(batch)), Status.FAILED, reason)
        ]

    def _stop(self, batch: Batch, indexes: Iterable[int], status: Status, reason: str) -> Iterator[Entry]:
        """End those that wait."""
        waiting = sorted(set(batch.where(*_WAITING)).intersection(indexes))
        for span in spans_of(batch, waiting):
            for low, high in batch.queued(span.low, span.high):
                self._queue(batch.image).lines[batch.tenant].forget(Span(batch, low, high))
            batch.mark(span.low, span.high, status)
        for index in waiting if self.leases.has_suspects else ():
            self.leases.forgive(batch, index)
        suspects = self.suspects.get(batch.image)
        if suspects:
            kept = (span for span in suspects if span.batch.states[span.low] == Status.RESTING)
            self.suspects[batch.image] = deque(kept)
        if waiting:
            kind, _, words = reason.partition(": ")
            self._tell(batch, kind, waiting, words=words or "while they waited")
            yield self._ended(batch, waiting, status, reason=reason)

    def _end_running(self, batch: Batch, indexes: Sequence[int], reason: str) -> Iterator[Entry]:
        """End those that agents have: what they say of them later is not taken."""
        ended: list[int] = []
        for agent in self.leases.agents.values():
            found = self.leases.end(agent, batch, indexes, Status.KILLED)
            self._charge(batch, batch.seconds_of(found))
            agent.cancelled += [(batch.id, index) for index in found]
            ended += found
        if ended:
            self._tell(batch, reason, ended, words="while they were executed")
            yield self._ended(batch, sorted(ended), Status.KILLED, reason=reason)

    def drop(self, batch_id: int) -> None:
        """Forget a batch that could not be written, as if it had never come."""
        batch = self.batches[batch_id]
        list(self._end_running(batch, range(len(batch)), "not-written"))
        list(self._stop(batch, range(len(batch)), Status.KILLED, "not-written"))
        tally = self.tallies.of(batch.tenant, batch.image)
        tally.submitted -= len(batch)
        tally.count(Status.KILLED, -len(batch))
        self._forget(batch_id)


def _stranger(agent_id: str) -> Refusal:
    return Refusal("stranger", f"there is no agent {agent_id}", "pull, and say what you have")


def _kind_of_end(report: Report) -> str:
    """A deadline that an agent sees before its broker does is told as all others are."""
    is_late = report.status == Status.KILLED and set(report.reasons.values()) == {DEADLINE}
    return DEADLINE if is_late else Status(report.status).name.lower()


def _given(span: Span, now: float, lean: float) -> Given:
    batch, low, high = span
    left = None if batch.deadline is None else max(0.0, batch.deadline - now)
    each = span.seconds * lean / span.size
    return Given(batch.id, low, high, attempts_of(batch, range(low, high)), left, each)
