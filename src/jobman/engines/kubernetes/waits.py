"""What a driven job waits for, in the words every engine uses: first of all, for a driver. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from jobman.engines.kubernetes.blockers import Blocker
from jobman.engines.kubernetes.course import TaskAt
from jobman.engines.kubernetes.underway import DrivenJob, resuming
from jobman.plan.model import Unit

WAITS_FOR = {
    "success": "to succeed",
    "failure": "to fail",
    "any": "to end",
    "started": "to start",
    "ready": "to be ready",
}
_OVER = ("succeeded", "failed", "cancelled", "skipped")
Found = Iterator[tuple[str, Blocker]]
"""What stands in the way, with the unit it concerns."""


def acts_to_come(job: DrivenJob, now: float) -> Found:
    """What somebody has to do, or what only time brings."""
    if job.is_over:
        return
    if not job.is_driven(now):
        message = "nobody drives it now, so nothing new of it starts"
        yield "", Blocker(kind="start", message=message, advice=resuming(job.id))
    if job.is_held:
        yield "", Blocker(kind="hold", message="the job is held", advice=f"jobman release {job.id}")
    closed = job.gates
    for gate in job.plan.policies.gates:
        if gate in closed:
            yield "", _gate(job, gate, "")
    if (earliest := job.course.job.get("earliest")) is not None and not job.course.job.get("has_begun"):
        yield "", Blocker(kind="start", message=f"it may not start before {_clock(earliest)}")
    if (again := job.course.job.get("restart_at")) is not None:
        yield "", Blocker(kind="retry", message=f"the whole job starts over at {_clock(again)}")
    for each in job.course.replicas:
        if each.state == "resting" and (due := each.life.get("due")) is not None:
            message = f"{each.key} is tried again in {max(0.0, due - now):.0f} s"
            yield each.unit, Blocker(kind="retry", message=message)


def turns(job: DrivenJob) -> Found:
    """Which tasks wait for which."""
    if job.is_over or job.is_held:
        return
    for row in job.rows:
        if row.counts.get("waiting") and row.outcome is None:
            yield from _of_waiting(job, row)


def _of_waiting(job: DrivenJob, row: TaskAt) -> Found:
    unit = job.plan.unit(row.unit)
    name = f"{row.scope}/{unit.name}" if row.scope else unit.name
    if unit.policies.hold and not job.course.job.get("released"):
        yield unit.id, Blocker(kind="hold", message=f"{name} is held", advice=f"jobman release {job.id}")
    for gate in unit.policies.gates:
        if gate in job.gates:
            yield unit.id, _gate(job, gate, f"{name}: ")
    if (above := _barrier(job, row, unit)) is not None:
        yield unit.id, Blocker(kind="dependency", message=f"{name} waits for {above}, which stands above it")
    elif unit.cleanup:
        yield unit.id, Blocker(kind="dependency", message=f"{name} runs when everything else is over")
    else:
        outcomes = {other.unit: other.outcome for other in job.rows if row.scope.startswith(other.scope)}
        waits = [edge for edge in job.plan.edges if edge.unit == unit.id and outcomes.get(edge.after) is None]
        for edge in waits:
            message = f"{name} waits for {edge.after} {WAITS_FOR[edge.when]}"
            yield unit.id, Blocker(kind="dependency", message=message)
        most = unit.policies.parallelism or job.plan.policies.parallelism
        if not waits and most is not None:
            yield unit.id, Blocker(kind="parallelism", message=f"{name}: at most {most} run at once")


def _barrier(job: DrivenJob, row: TaskAt, unit: Unit) -> str | None:
    """The first task above that lets nobody pass before it has ended."""
    for other in (each for each in job.rows if each.scope == row.scope):
        if other.unit == unit.id:
            return None
        above = job.plan.unit(other.unit)
        if above.blocks and other.outcome not in _OVER:
            return above.name
    return None


def _gate(job: DrivenJob, gate: str, whose: str) -> Blocker:
    message, advice = f"{whose}the gate {gate} is closed", f"jobman gate open {job.id} {gate}"
    return Blocker(kind="gate", message=message, advice=advice)


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M:%S")
