"""A trace: jobs with the times at which they were submitted and how long they ran. Plain values."""

from __future__ import annotations

import msgspec

from jobman.spec.shapes import Alternatives


class TraceError(ValueError):
    """A trace that cannot be used: what is wrong, and what helps."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class TraceJob(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One job; times are in seconds, and it never runs for longer than it asked for."""

    number: int
    """Unique in its trace; of jobs submitted in the same second the lower goes first."""
    submit: float
    run: float
    processors: int
    requested: float
    user: str = ""
    name: str = ""
    memory: int = 0
    """Bytes for each processor; 0 where nothing is known."""
    wait: float | None = None
    """How long it waited where the trace comes from; the replay does not look at it."""
    shape: Alternatives = ()
    """What it asks for where that is known; else processors are all there is."""
    account: str = ""
    flavor: str = ""

    @property
    def work(self) -> float:
        """Processor-seconds."""
        return self.run * self.processors


class LeftOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something in a trace that is not replayed, and why; `line` is 0 where there are no lines."""

    line: int
    words: str


class Trace(msgspec.Struct, kw_only=True):
    """Jobs in order of submission, and what the trace says of the machine they ran on."""

    name: str
    jobs: list[TraceJob]
    processors: int | None = None
    began: float | None = None
    """The moment that is second 0 of the trace, as seconds since 1970."""
    header: dict[str, str] = {}
    left_out: list[LeftOut] = []


def in_order(jobs: list[TraceJob]) -> list[TraceJob]:
    """By submission, then by number."""
    return sorted(jobs, key=lambda job: (job.submit, job.number))
