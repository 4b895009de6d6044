"""What came of a replay: when each job started, and what it had been told before. Plain values."""

from __future__ import annotations

import msgspec

from jobman.sched.forecast import Expectation
from jobman.sched.requests import Placed
from jobman.sim.trace import LeftOut, TraceJob


class Moved(msgspec.Struct, frozen=True):
    """A guarantee that was moved to later or taken back: of which job, when, and the cause that was given."""

    number: int
    at: float
    before: float
    after: float | None
    cause: str


class Outcome(msgspec.Struct, kw_only=True):
    """A replay. The lists go with `jobs`, which are in order of submission."""

    policy: str
    processors: int
    nodes: list[tuple[str, int]] = []
    """Their names and processors."""
    jobs: list[TraceJob]
    starts: list[float]
    guarantees: list[float | None]
    """The first that each job was given."""
    expectations: list[Expectation | None] = []
    """The first of each job; empty where nothing was forecast."""
    revisions: int = 0
    """How many guarantees were given or moved in all."""
    moved: list[Moved] = []
    left_out: list[LeftOut] = []
    places: list[Placed | None] = []
    """Where each job ran; empty unless it was asked for."""
    began: float | None = None

    @property
    def waits(self) -> list[float]:
        return [start - job.submit for job, start in zip(self.jobs, self.starts, strict=True)]

    @property
    def ends(self) -> list[float]:
        return [start + job.run for job, start in zip(self.jobs, self.starts, strict=True)]

    @property
    def span(self) -> tuple[float, float]:
        """From the first submission to the last end."""
        return self.jobs[0].submit, max(self.ends)


def recorded(replayed: Outcome, policy: str) -> Outcome | None:
    """What happened to the same jobs where the trace comes from; None where it does not say so for all."""
    starts = [job.submit + job.wait for job in replayed.jobs if job.wait is not None]
    if len(starts) < len(replayed.jobs):
        return None
    return Outcome(
        policy=policy,
        processors=replayed.processors,
        jobs=replayed.jobs,
        starts=starts,
        guarantees=[None] * len(starts),
        began=replayed.began,
    )
