"""The starts of every job as CSV, for other programs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO

from jobman.sim.outcome import Outcome

COLUMNS = (
    "policy",
    "job",
    "user",
    "processors",
    "submit",
    "start",
    "end",
    "wait",
    "guaranteed_by",
    "expected_p50",
    "expected_p90",
)


def starts_csv(outcomes: Sequence[Outcome]) -> str:
    """One line for each job under each policy; moments are seconds of the trace."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for outcome in outcomes:
        writer.writerows(_rows(outcome))
    return text.getvalue()


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for position, (job, start) in enumerate(zip(outcome.jobs, outcome.starts, strict=True)):
        guarantee = outcome.guarantees[position]
        expected = outcome.expectations[position] if outcome.expectations else None
        yield (
            outcome.policy,
            str(job.number),
            job.user,
            str(job.processors),
            *map(_plain, (job.submit, start, start + job.run, start - job.submit)),
            "" if guarantee is None else _plain(guarantee),
            *(("", "") if expected is None else (_plain(expected.p50), _plain(expected.p90))),
        )


def _plain(seconds: float) -> str:
    """A whole number where it is one."""
    return f"{seconds:.0f}" if seconds == int(seconds) else f"{seconds:.3f}"
