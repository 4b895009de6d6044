"""What jobs would have been told to expect when they came: a forecaster that watches a replay from behind.

It hears of everything in the order in which it happened and decides nothing, so a replay is made without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from jobman.plan.nodes import in_all
from jobman.sched.forecast import Expectation, Forecaster
from jobman.sched.queues import Queue
from jobman.sim.cluster import Machine, Shapes
from jobman.sim.outcome import Outcome
from jobman.sim.replay import STEP, requests

_ENDED, _STARTED, _CAME, _FLASH = range(4)
"""The order within one second; a flash is the end of what ran for no time at all."""


def foresee(
    outcome: Outcome, machine: Machine, queue: Queue, *, tell: Callable[[int], None] | None = None
) -> list[Expectation | None]:
    """The first expectation of each job that had to wait; None for those that started at once.

    `tell` hears now and then how far it is, in jobs.
    """
    shapes = Shapes(machine)
    asked = requests(outcome.jobs, [shapes.of(job) for job in outcome.jobs], queue)
    forecaster = Forecaster(in_all(machine.nodes), queue)
    found: list[Expectation | None] = [None] * len(asked)
    # A guarantee is known from the beginning only where everybody has one.
    guarantees = outcome.guarantees if queue.depth is None else [None] * len(asked)
    for heard, (now, what, position, is_at_once) in enumerate(_events(outcome)):
        request = asked[position]
        if what in (_ENDED, _FLASH):
            forecaster.ended(request.id, now)
        elif what == _STARTED or is_at_once:
            forecaster.started(request.id, now)
        else:
            forecaster.submitted(request, now)
            if outcome.starts[position] > now:
                first = forecaster.expect(request.id, now, guarantees[position])
                found[position] = first if first.p50 < inf else None
        if tell is not None and not heard % STEP:
            tell(heard // 3)
    return found


def _events(outcome: Outcome) -> Iterator[tuple[float, int, int, bool]]:
    """Everything that happened, in order: when, what, to whom, and whether it started as it came."""
    events = []
    for position, (job, start) in enumerate(zip(outcome.jobs, outcome.starts, strict=True)):
        waits = start > job.submit
        events.append((job.submit, _CAME, position, False))
        events.append((start, _STARTED if waits else _CAME, position, not waits))
        events.append((start + job.run, _ENDED if job.run else _FLASH, position, False))
    return iter(sorted(events))
