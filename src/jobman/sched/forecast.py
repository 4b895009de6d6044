"""When a job will start: the queue played forward with run times from history, and a learned margin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from jobman.sched.forecast_amounts import Amounts
from jobman.sched.forecast_jobs import SHARES, Job, Pledge
from jobman.sched.forecast_margin import Margin, for_p50, for_p90
from jobman.sched.forecast_outlook import Outlook
from jobman.sched.forecast_play import Closure, Play, Rules, Scene
from jobman.sched.history import History
from jobman.sched.queues import EVERYTHING, Queue
from jobman.sched.requests import Request

PLAYED = 128
"""With more than so many that run and wait, one expectation is read off the last play of all."""
_STALE = 8
"""All is played again when one in so many has changed since."""


class Expectation(NamedTuple):
    """When a job is thought to start: as likely before as after p50, and with nine chances in ten by p90.

    Infinity for a job that there will never be room for.
    """

    p50: float
    p90: float


class Forecaster:
    """Expected starts of all that waits for the same resources, in one queue with one policy.

    Told of everything that happens, in order; time is an argument. It counts what there is in all, by kind,
    and knows nothing of nodes: what their borders cost, and who comes later and passes, is learned as a
    margin.
    """

    def __init__(
        self,
        capacity: Mapping[str, float],
        queue: Queue = EVERYTHING,
        *,
        history: History | None = None,
        margins: tuple[Margin, Margin] | None = None,
    ) -> None:
        self.history = History() if history is None else history
        self._rules = Rules.of(queue)
        self._counted = Amounts(capacity)
        self._free = self._counted.all
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, Job] = {}
        self._closures: dict[str, tuple[float, float, Mapping[str, float]]] = {}
        self.margins = margins or (for_p50(), for_p90())
        self._dues: list[tuple[float, str, int]] = []
        self._outlooks: tuple[Outlook, ...] = ()
        self._changes = 0

    def submitted(
        self,
        request: Request,
        now: float,
        amounts: Mapping[str, float] | None = None,
        also: Mapping[str, float] | None = None,
    ) -> None:
        """One more waits, behind all others; `amounts` is what it needs in all, by kind.

        `also` is what counts beside or instead of that, such as limits; it does not make runs alike.
        """
        self._settle(now)
        self._waiting[request.id] = Job(request, amounts, self._counted, also)
        self._changes += 1

    def counts(self, id: str, also: Mapping[str, float]) -> None:
        """What counts beside the amounts of one is another now."""
        job = self._running.get(id) or self._waiting[id]
        before, job.also = job.need, also
        job.recount(self._counted)
        if id in self._running:
            self._free += before - job.need

    def started(self, id: str, now: float) -> None:
        """One that waited runs now."""
        job = self._running[id] = self._waiting.pop(id)
        job.start(now)
        self._free -= job.need
        self._changes += 1
        for share, pledge in enumerate(job.pledges or ()):
            if pledge is not None:
                self.margins[share].learn(pledge.bucket, late=now > pledge.due)
        job.pledges = None

    def ended(self, id: str, now: float, *, learn: bool = True) -> None:
        """One that ran has ended; without `learn` its run time says nothing of others."""
        job = self._running.pop(id)
        self._free += job.need
        self._changes += 1
        if learn and job.since is not None:
            self.history.add(job.work, now - job.since)

    def left(self, id: str) -> None:
        """One that waited does not wait any more: cancelled, held, or moved to another queue."""
        del self._waiting[id]
        self._changes += 1

    def extended(self, id: str, limit: float) -> None:
        """One may run for so long in all, whatever it asked for."""
        (self._running.get(id) or self._waiting[id]).extend(limit)

    def ordered(self, ids: Iterable[str]) -> None:
        """Those who wait are served in this order; whoever is not named comes behind, as before."""
        named = {id: self._waiting[id] for id in ids if id in self._waiting}
        self._waiting = named | {id: job for id, job in self._waiting.items() if id not in named}

    def resized(self, capacity: Mapping[str, float]) -> None:
        """There is more or less in all than there was."""
        self._counted = Amounts(capacity)
        for job in (*self._waiting.values(), *self._running.values()):
            job.recount(self._counted)
        self._free = self._counted.all - sum(job.need for job in self._running.values())
        self._outlooks = ()

    def remember(self, history: History) -> None:
        """Other runs are known than before."""
        self.history = history
        for job in (*self._waiting.values(), *self._running.values()):
            job.forget()
        self._outlooks = ()

    def soonest(self, now: float) -> float:
        """When the first of what runs is thought to end; infinity where nothing runs."""
        for job in self._running.values():
            job.think(self.history, now)
        return max(now, min((job.runners[0].end for job in self._running.values()), default=inf))

    def closed(self, name: str, start: float, end: float, amounts: Mapping[str, float]) -> None:
        """So much cannot be used from one moment to another: maintenance, or a reservation of others."""
        self._closures[name] = (start, end, amounts)
        self._outlooks = ()

    def reopened(self, name: str) -> None:
        """What was closed under this name is not."""
        self._closures.pop(name, None)
        self._outlooks = ()

    def expect(self, id: str, now: float, guaranteed_by: float | None = None) -> Expectation:
        """When one that waits will start; its first answer is compared later with what came of it."""
        self._settle(now)
        job = self._waiting[id]
        starts = self._starts(id, job, now)
        found = self._expectation(starts, now, guaranteed_by)
        if job.pledges is None and max(starts) < inf:
            self._pledge(id, job, starts, now, found.p90)
        return found

    def try_out(
        self,
        request: Request,
        now: float,
        amounts: Mapping[str, float] | None = None,
        guaranteed_by: float | None = None,
        also: Mapping[str, float] | None = None,
    ) -> Expectation:
        """What one would be told if it were submitted now; nothing changes."""
        starts = self._starts(None, Job(request, amounts, self._counted, also), now)
        return self._expectation(starts, now, guaranteed_by)

    def expect_all(self, now: float, guarantees: Mapping[str, float] | None = None) -> dict[str, Expectation]:
        """The same for all that wait, in one go; nothing is learned from it."""
        self._settle(now)
        self._play_all(now)
        known = guarantees or {}
        return {
            id: self._expectation(
                [outlook.starts.get(id, inf) for outlook in self._outlooks], now, known.get(id)
            )
            for id in self._waiting
        }

    def _expectation(self, starts: Sequence[float], now: float, guaranteed_by: float | None) -> Expectation:
        """What was played, with its margin, never before now and never after the guarantee."""
        latest = inf if guaranteed_by is None else max(now, guaranteed_by)
        p50, p90 = (
            min(now + margin.applied(start - now), latest) if start < inf else latest
            for margin, start in zip(self.margins, starts, strict=True)
        )
        return Expectation(p50, max(p50, p90))

    def _pledge(self, id: str, job: Job, starts: Sequence[float], now: float, p90: float) -> None:
        """Keeps what one was told first, to learn from it."""
        dues = (now + self.margins[0].edge(starts[0] - now), p90)
        job.pledges = []
        for share, (due, start) in enumerate(zip(dues, starts, strict=True)):
            job.pledges.append(Pledge(due, self.margins[share].bucket(start - now)))
            heappush(self._dues, (due, id, share))

    def _starts(self, id: str | None, job: Job, now: float) -> list[float]:
        """When one starts in each play; one without id is not there yet."""
        if not job.fits(self._counted):
            return [inf for _ in SHARES]
        if len(self._waiting) + len(self._running) > PLAYED:
            return self._read_off(id, job, now)
        waiting = list(self._waiting.values())
        if id is None:
            waiting.append(job)
        waiting = [other for other in waiting if other.fits(self._counted)]
        target = waiting.index(job)
        return [Play(scene, self._rules).run(target)[target] for scene in self._scenes(waiting, now)]

    def _read_off(self, id: str | None, job: Job, now: float) -> list[float]:
        """When one starts, as the last play of all has it."""
        if not self._outlooks or self._changes * _STALE > len(self._waiting) + len(self._running):
            self._play_all(now)
        job.think(self.history, now)
        pairs = zip(self._outlooks, job.waiters, strict=True)
        return [outlook.start_of(id, waiter, now) for outlook, waiter in pairs]

    def _play_all(self, now: float) -> None:
        waiting = {id: job for id, job in self._waiting.items() if job.fits(self._counted)}
        rough = len(self._waiting) + len(self._running) > PLAYED
        scenes = self._scenes(list(waiting.values()), now)
        self._outlooks = tuple(Outlook(tuple(waiting), scene, self._rules, rough=rough) for scene in scenes)
        self._changes = 0

    def _scenes(self, waiting: Sequence[Job], now: float) -> list[Scene]:
        """What there is now, once for each share."""
        for job in waiting:
            job.think(self.history, now)
        running = self._running.values()
        for job in running:
            job.think(self.history, now)
        closures = [
            Closure(start, end, self._counted.packed(amounts))
            for start, end, amounts in self._closures.values()
            if end > now
        ]
        return [
            Scene(
                now,
                self._counted.marks,
                self._free,
                [job.runners[share] for job in running],
                [job.waiters[share] for job in waiting],
                closures,
            )
            for share in range(len(SHARES))
        ]

    def _settle(self, now: float) -> None:
        """Learns from those who should have started and have not."""
        while self._dues and self._dues[0][0] < now:
            due, id, share = heappop(self._dues)
            job = self._waiting.get(id)
            pledge = job.pledges[share] if job is not None and job.pledges else None
            if job is not None and job.pledges and pledge is not None and pledge.due == due:
                self.margins[share].learn(pledge.bucket, late=True)
                job.pledges[share] = None
