"""What came of simulations, in tables and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jobman.cli.colours import paint, wanted
from jobman.cli.state import say
from jobman.cli.tables import Cell, Column, print_table
from jobman.cli.times import length
from jobman.sim.cluster import Machine
from jobman.sim.fairness import Fairness, Spread
from jobman.sim.fairness import fairness as fairness_of
from jobman.sim.metrics import Summary, summarise
from jobman.sim.outcome import Outcome
from jobman.sim.trace import LeftOut, Trace

_MOST_TOLD = 5
_MOST_USERS = 20


class Run(NamedTuple):
    """One replay with its numbers."""

    outcome: Outcome
    summary: Summary
    fairness: Fairness | None

    @classmethod
    def of(cls, outcome: Outcome, seconds: float | None, *, fairness: bool) -> Run:
        return cls(outcome, summarise(outcome, seconds=seconds), fairness_of(outcome) if fairness else None)


# -- as data -------------------------------------------------------------------------------------------------


def data_of(trace: Trace, machine: Machine, runs: Sequence[Run]) -> dict[str, Any]:
    """Everything, as it is documented."""
    return {
        "trace": trace.name,
        "jobs": len(trace.jobs),
        "processors": machine.processors,
        "nodes": len(machine.nodes),
        "left_out": _left_out(trace, runs),
        "policies": [_one(run) for run in runs],
    }


def _one(run: Run) -> dict[str, Any]:
    import msgspec

    answer: dict[str, Any] = msgspec.to_builtins(run.summary)
    if run.fairness is not None:
        answer["fairness"] = msgspec.to_builtins(run.fairness)
    return answer


def _left_out(trace: Trace, runs: Sequence[Run]) -> list[LeftOut]:
    """What was broken in the trace, and what the machine could never take."""
    return [*trace.left_out, *next((run.outcome.left_out for run in reversed(runs)), ())]


# -- in tables -----------------------------------------------------------------------------------------------


def print_runs(trace: Trace, machine: Machine, runs: Sequence[Run]) -> None:
    """The policies side by side, then what their promises were worth, then their users."""
    tell_left_out(trace, runs)
    nodes = f" on {len(machine.nodes):,} nodes" if len(machine.nodes) > 1 else ""
    jobs = len(runs[-1].outcome.jobs)
    _title(f"{trace.name}: {jobs:,} job{'s' * (jobs != 1)}, {machine.processors:,} processors{nodes}")
    _print_numbers(runs)
    promised = [run.summary for run in runs if run.summary.promises.guaranteed]
    if promised:
        _title("\nguarantees of jobs that had to wait")
        _print_guarantees(promised)
    expected = [run.summary for run in runs if run.summary.promises.expected]
    if expected:
        _title("\nexpectations of jobs that had to wait")
        _print_expectations(expected)
    for run in runs:
        if run.fairness is not None:
            _title(f"\nusers under {run.summary.policy}")
            _print_users(run.fairness)


def _title(words: str) -> None:
    import sys

    sys.stdout.write(paint(words, "bold", on=wanted(sys.stdout)) + "\n")


def tell_left_out(trace: Trace, runs: Sequence[Run]) -> None:
    """Say which jobs were not replayed, and why."""
    found = _left_out(trace, runs)
    for each in found[:_MOST_TOLD]:
        say(f"{trace.name}:{each.line}: {each.words}" if each.line else each.words)
    if len(found) > _MOST_TOLD:
        say(f"… and {len(found) - _MOST_TOLD:,} more; `-o json` lists all")
    if found:
        say(f"left out: {len(found):,}")


def _print_numbers(runs: Sequence[Run]) -> None:
    columns = (
        Column("policy"),
        Column("wait", right=True),
        Column("median", rank=5, right=True),
        Column("p95", rank=1, right=True),
        Column("longest", rank=6, right=True),
        Column("slowdown", right=True),
        Column("utilisation", rank=2, right=True),
        Column("makespan", rank=4, right=True),
        Column("jobs/s", rank=3, right=True),
    )
    print_table(columns, [_numbers(run.summary) for run in runs])


def _numbers(summary: Summary) -> tuple[str, ...]:
    speed = summary.jobs_per_second
    return (
        summary.policy,
        _words(summary.average_wait),
        _words(summary.median_wait),
        _words(summary.p95_wait),
        _words(summary.longest_wait),
        f"{summary.bounded_slowdown:,.2f}",
        f"{summary.utilisation:.2%}",
        _words(summary.makespan),
        f"{speed:,.0f}" if speed is not None else "",
    )


def _print_guarantees(summaries: Sequence[Summary]) -> None:
    columns = (
        Column("policy"),
        Column("waited", right=True),
        Column("guaranteed", right=True),
        Column("broken", right=True),
        Column("within 1 min", rank=1, right=True),
        Column("within 10 min", rank=1, right=True),
    )
    rows = [
        (
            summary.policy,
            f"{found.waiting:,}",
            f"{found.guaranteed:,}",
            Cell(f"{found.broken:,}", "bold red" if found.broken else "green"),
            _share(found.guaranteed_within_60),
            _share(found.guaranteed_within_600),
        )
        for summary in summaries
        for found in (summary.promises,)
    ]
    print_table(columns, rows)


def _print_expectations(summaries: Sequence[Summary]) -> None:
    columns = (
        Column("policy"),
        Column("waited", rank=2, right=True),
        Column("expected", right=True),
        Column("within 1 min", rank=1, right=True),
        Column("within 10 min", right=True),
        Column("by its p90", rank=1, right=True),
        Column("median error", rank=3, right=True),
    )
    rows = [
        (
            summary.policy,
            f"{found.waiting:,}",
            f"{found.expected:,}",
            _share(found.expected_within_60),
            _share(found.expected_within_600),
            _share(found.p90_coverage),
            "" if found.median_error is None else _words(found.median_error),
        )
        for summary in summaries
        for found in (summary.promises,)
    ]
    print_table(columns, rows)


def _words(seconds: float) -> str:
    return length(seconds) if seconds else "0 s"


def _share(part: float | None) -> str:
    return "" if part is None else f"{part:.1%}"


def _print_users(found: Fairness) -> None:
    columns = (
        Column("user"),
        Column("jobs", right=True),
        Column("wait", right=True),
        Column("slowdown", right=True),
        Column("work", rank=4, right=True),
        Column("demanded", rank=2, right=True),
        Column("received", rank=2, right=True),
    )
    rows = [
        (
            row.user or "?",
            f"{row.jobs:,}",
            _words(row.average_wait),
            f"{row.bounded_slowdown:,.2f}",
            f"{row.work:.1%}",
            f"{row.demanded:.1%}",
            f"{row.received:.1%}",
        )
        for row in found.users[:_MOST_USERS]
    ]
    print_table(columns, rows)
    if len(found.users) > _MOST_USERS:
        say(f"… and {len(found.users) - _MOST_USERS:,} users with less work; `-o json` lists all")
    _title("")
    spreads = (
        Column("of all users"),
        *(Column(name, right=True) for name in ("p10", "median", "p90", "most", "Jain's index")),
    )
    print_table(
        spreads,
        [
            ("wait", *map(_words, _four(found.wait)), f"{found.jain_wait:.3f}"),
            ("slowdown", *(f"{each:,.2f}" for each in _four(found.slowdown)), f"{found.jain_slowdown:.3f}"),
            ("received", "", "", "", "", f"{found.jain_received:.3f}"),
        ],
    )


def _four(spread: Spread) -> tuple[float, float, float, float]:
    return spread.p10, spread.median, spread.p90, spread.most
