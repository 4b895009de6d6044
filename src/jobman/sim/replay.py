"""The replay of a trace: the planner driven by submissions and ends, one after the other.

Within one second submissions come before ends, and ends in the order of the starts; what has used all its
time is gone before either. Each is followed by a pass of the planner, as in a service that makes one at each
change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf

from jobman.sched.planner import Planner
from jobman.sched.queues import Queue
from jobman.sched.requests import Request, Revision, Start
from jobman.sim.cluster import Machine, fitting
from jobman.sim.outcome import Moved, Outcome
from jobman.sim.trace import Trace, TraceError, TraceJob
from jobman.spec.shapes import Alternatives

STEP = 256
"""Submissions between two words to whoever watches."""


def replay(
    trace: Trace,
    machine: Machine,
    queue: Queue,
    *,
    policy: str = "",
    tell: Callable[[int], None] | None = None,
    keep_places: bool = False,
) -> Outcome:
    """Replay a trace; `tell` hears now and then how many jobs were submitted. Raises TraceError."""
    jobs, shapes, left_out = fitting(trace, machine)
    outcome = Outcome(
        policy=policy or queue.name,
        processors=machine.processors,
        jobs=jobs,
        starts=[inf] * len(jobs),
        guarantees=[None] * len(jobs),
        nodes=[(node.name, int(node.amounts["core"])) for node in machine.nodes],
        left_out=left_out,
        began=trace.began,
    )
    if keep_places:
        outcome.places = [None] * len(jobs)
    run = _Replay(outcome, Planner(machine.nodes, (queue,)), queue, keep_places=keep_places)
    run.run(requests(jobs, shapes, queue), tell)
    _complain(outcome)
    return outcome


def requests(jobs: Sequence[TraceJob], shapes: Sequence[Alternatives], queue: Queue) -> list[Request]:
    """The jobs as the planner is asked for them."""
    ids = [str(job.number) for job in jobs]
    return [
        Request(
            id=ids[position],
            alternatives=shape,
            limit=job.requested,
            number=position,
            submitted=job.submit,
            job=ids[position],
            name=job.name,
            flavor=job.flavor,
            user=job.user,
            account=job.account,
            queue=queue.name,
        )
        for position, (job, shape) in enumerate(zip(jobs, shapes, strict=True))
    ]


class _Replay:
    """One replay under way."""

    def __init__(self, outcome: Outcome, planner: Planner, queue: Queue, *, keep_places: bool) -> None:
        self._outcome = outcome
        self._planner = planner
        self._plans_all = queue.depth is None
        self._keeps = keep_places
        self._dues: list[tuple[float, int]] = [(inf, 0)]
        """Moments that were guaranteed to somebody, the next one first; many are out of date."""
        self._latest: list[float | None] = [None] * len(outcome.jobs)
        """The guarantee that each job has now."""
        self._positions = {str(job.number): position for position, job in enumerate(outcome.jobs)}

    def run(self, asked: Sequence[Request], tell: Callable[[int], None] | None) -> None:
        # The one loop in which everything counts: it is run twice for each job of a trace.
        submit, ended, plan = self._planner.submit, self._planner.ended, self._planner.plan
        starts, positions, jobs = self._outcome.starts, self._positions, self._outcome.jobs
        runs, sizes = [job.run for job in jobs], [job.processors for job in jobs]
        coming = [*(job.submit for job in jobs), inf]
        ends: list[tuple[float, int, int]] = [(inf, 0, 0)]
        expiring: dict[float, list[int]] = {}  # who has used all its time, by that moment
        gone: set[int] = set()  # of those, who was ended before its turn
        ranks: dict[int, int] = {}  # whose place in the order of starts is older than its start
        dues, latest, plans_all, keeps = self._dues, self._latest, self._plans_all, self._keeps
        free, following, begun = self._outcome.processors, 0, 0
        while True:
            now, ending = coming[following], ends[0][0]
            is_submission = now <= ending
            if not is_submission:
                now = ending
            is_due = False
            while dues[0][0] < now:
                moment, position = heappop(dues)
                if latest[position] == moment and starts[position] == inf:
                    now, is_due, is_submission = moment, True, False
            if now == inf:
                return
            if now in expiring and not plans_all:
                # One who finds no room even so only joins the line, and nothing else happens.
                room = free + sum(sizes[each] for each in expiring[now])
                if not is_submission or sizes[following] <= room:
                    for position in expiring.pop(now):
                        gone.add(position)
                        free += sizes[position]
                        ended(asked[position].id, now)
            if is_submission:
                submit(asked[following], now)
                following += 1
                if tell is not None and not following % STEP:
                    tell(following)
            elif not is_due:
                position = heappop(ends)[2]
                if position in gone:
                    gone.remove(position)
                else:
                    free += sizes[position]
                    ended(asked[position].id, now)
            found = plan(now)
            if found.revisions:
                self._revise(found.revisions, now)
            if plans_all and now in expiring:
                for position in self._starting(found.starts, now):
                    begun += 1
                    ranks.setdefault(position, begun)
            for start in found.starts:
                position = positions[start.id]
                starts[position] = now
                free -= sizes[position]
                begun += 1
                end = now + runs[position]
                heappush(ends, (end, ranks.pop(position, begun) if ranks else begun, position))
                if end == start.until:
                    expiring.setdefault(end, []).append(position)
            if keeps:
                self._keep(found.starts)

    def _starting(self, begun: Sequence[Start], now: float) -> list[int]:
        """Who starts, in order of submission, as if those whose time is over were gone already.

        Where everybody has a place, those who are due begin with those who can, though the planner is told
        only later in this second that what they need is free.
        """
        found = [self._positions[start.id] for start in begun]
        while self._dues[0][0] <= now:
            moment, position = heappop(self._dues)
            if self._latest[position] == moment and self._outcome.starts[position] == inf:
                found.append(position)
        return sorted(set(found))

    def _keep(self, starts: Sequence[Start]) -> None:
        for start in starts:
            self._outcome.places[self._positions[start.id]] = start.placed

    def _revise(self, revisions: Sequence[Revision], now: float) -> None:
        outcome = self._outcome
        outcome.revisions += len(revisions)
        for revision in revisions:
            position, before, after = self._positions[revision.id], revision.before, revision.after
            self._latest[position] = after
            if after is not None:
                heappush(self._dues, (after, position))
            if before is None:
                if outcome.guarantees[position] is None:
                    outcome.guarantees[position] = after
            elif after is None or after > before:
                outcome.moved.append(Moved(int(revision.id), now, before, after, revision.cause))


def _complain(outcome: Outcome) -> None:
    """Raise where the planner left somebody behind."""
    for job, start in zip(outcome.jobs, outcome.starts, strict=True):
        if start == inf:
            raise TraceError(f"job {job.number} never started", "a node that it needs is closed to it")
