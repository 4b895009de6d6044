"""What a replay comes to in numbers: waits, slowdowns, utilisation and the promises that were made."""

from __future__ import annotations

import msgspec

from jobman.sim.numbers import average, percentile, share
from jobman.sim.outcome import Outcome

THRESHOLD = 10.0
"""Seconds that a shorter job counts as, so that its slowdown does not stand above all others."""
NEAR = (60.0, 600.0)


class Promises(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs that had to wait were told when they came, and what came of it. Shares are of those jobs."""

    waiting: int
    """Jobs that did not start at once."""
    guaranteed: int
    broken: int
    """Guarantees that the job started after, or that were moved to later or taken back."""
    guaranteed_within_60: float | None
    guaranteed_within_600: float | None
    """Those that started so near to their first guarantee."""
    expected: int
    expected_within_60: float | None
    expected_within_600: float | None
    median_error: float | None
    """Seconds between the expectation and the start, in the middle of all."""
    p90_coverage: float | None
    """Of the jobs with an expectation, those that started by its p90."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One replay in numbers. Times are in seconds."""

    policy: str
    jobs: int
    processors: int
    average_wait: float
    median_wait: float
    p95_wait: float
    longest_wait: float
    bounded_slowdown: float
    utilisation: float
    makespan: float
    promises: Promises
    jobs_per_second: float | None = None
    """How fast the replay was."""


def summarise(outcome: Outcome, *, seconds: float | None = None) -> Summary:
    """The numbers of a replay that took so long."""
    waits = outcome.waits
    begin, end = outcome.span if outcome.jobs else (0.0, 0.0)
    work = sum(job.work for job in outcome.jobs)
    return Summary(
        policy=outcome.policy,
        jobs=len(outcome.jobs),
        processors=outcome.processors,
        average_wait=average(waits),
        median_wait=percentile(waits, 0.5),
        p95_wait=percentile(waits, 0.95),
        longest_wait=max(waits, default=0.0),
        bounded_slowdown=average(slowdowns(outcome)),
        utilisation=share(work, outcome.processors * (end - begin)) or 0.0,
        makespan=end - begin,
        promises=promises(outcome),
        jobs_per_second=len(outcome.jobs) / seconds if seconds else None,
    )


def slowdowns(outcome: Outcome) -> list[float]:
    """How many times longer each job took than it ran, bounded for short ones."""
    return [
        max(1.0, (wait + job.run) / max(job.run, THRESHOLD))
        for job, wait in zip(outcome.jobs, outcome.waits, strict=True)
    ]


def promises(outcome: Outcome) -> Promises:
    """How good the promises of a replay were."""
    waiting = [place for place, wait in enumerate(outcome.waits) if wait > 0]
    starts, guarantees = outcome.starts, outcome.guarantees
    expectations = outcome.expectations or [None] * len(starts)
    given = {place: moment for place in waiting if (moment := guarantees[place]) is not None}
    expected = {place: found for place in waiting if (found := expectations[place]) is not None}
    errors = [abs(starts[place] - found.p50) for place, found in expected.items()]
    late = [abs(starts[place] - moment) for place, moment in given.items()]
    covered = sum(starts[place] <= found.p90 for place, found in expected.items())
    return Promises(
        waiting=len(waiting),
        guaranteed=len(given),
        broken=_broken(outcome),
        guaranteed_within_60=_within(late, NEAR[0], len(waiting)),
        guaranteed_within_600=_within(late, NEAR[1], len(waiting)),
        expected=len(expected),
        expected_within_60=_within(errors, NEAR[0], len(waiting)),
        expected_within_600=_within(errors, NEAR[1], len(waiting)),
        median_error=percentile(errors, 0.5) if errors else None,
        p90_coverage=share(covered, len(expected)),
    )


def _within(errors: list[float], bound: float, waiting: int) -> float | None:
    """The part of all that wait; None where nobody was told anything."""
    return share(sum(error <= bound for error in errors), waiting) if errors else None


def _broken(outcome: Outcome) -> int:
    moved = {moved.number for moved in outcome.moved}
    for job, start, guarantee in zip(outcome.jobs, outcome.starts, outcome.guarantees, strict=True):
        if guarantee is not None and start > guarantee:
            moved.add(job.number)
    return len(moved)
