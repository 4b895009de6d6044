"""Why a job is where it is: what blocks each part of it, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobman.control.answers import Blocker, BlockerKind, Why
from jobman.control.conditions import Answer, may_start
from jobman.control.line import Line
from jobman.control.live import LiveJob
from jobman.control.runs import Run, Scope
from jobman.control.states import LIVE, State

MOST = 20
LineOf = Callable[[LiveJob, str], Line | None]
Planned = Callable[[str], tuple[BlockerKind, str]]
"""Of a replica that waits for nodes: what kind of thing blocks it, and that in words."""
_WAITS_FOR = {
    "success": "to succeed",
    "failure": "to fail",
    "any": "to end",
    "started": "to start",
    "ready": "to be ready",
}


def explain(job: LiveJob, line_of: LineOf, planned: Planned, now: float) -> Why:
    """What a job waits for, and what would help; `planned` says why a replica waits for nodes."""
    conductor = job.conductor
    blockers = [*_of_job(job, now), *_of_scope(job, conductor.root, line_of, planned, now)]
    running = sum(
        replica.state in LIVE and replica.run.unit.kind == "task" for replica in conductor.root.walk()
    )
    state = job.record.state
    if running:
        summary = f"{running} {'replica runs' if running == 1 else 'replicas run'}"
    elif blockers:
        summary = f"it waits: {blockers[0].message}"
    else:
        summary = "it is about to start"
    return Why(
        job=job.id,
        state=state,  # type: ignore[arg-type]
        summary=summary,
        blockers=blockers[:MOST],
        suggestion=_suggestion(job, blockers),
    )


def _of_job(job: LiveJob, now: float) -> Iterator[Blocker]:
    conductor = job.conductor
    if conductor.held:
        yield Blocker(kind="hold", message="the job is held")
    for gate in job.plan.policies.gates:
        if gate not in conductor.open_gates:
            yield Blocker(kind="gate", message=f"the gate {gate} is closed")
    if conductor.earliest is not None and _is_too_early(job, now):
        yield Blocker(kind="start", message=f"it may not start before {_clock(conductor.earliest)}")
    if conductor.restart_at is not None:
        yield Blocker(kind="retry", message=f"the whole job starts over at {_clock(conductor.restart_at)}")


def _is_too_early(job: LiveJob, now: float) -> bool:
    earliest = job.conductor.earliest
    return earliest is not None and earliest > now


def _of_scope(job: LiveJob, scope: Scope, line_of: LineOf, planned: Planned, now: float) -> Iterator[Blocker]:
    for run in scope.order:
        if run.outcome is None:
            yield from _of_run(job, run, line_of, planned, now)
        for replica in run.replicas.values():
            if replica.scope is not None and replica.state in LIVE:
                yield from _of_scope(job, replica.scope, line_of, planned, now)


def _of_run(job: LiveJob, run: Run, line_of: LineOf, planned: Planned, now: float) -> Iterator[Blocker]:
    name = f"{run.scope.prefix}{run.unit.name}"
    for replica in run.replicas.values():
        if replica.state is State.QUEUED:
            line = line_of(job, replica.key)
            kind, why = (
                planned(replica.key) if line is None else ("resources", _in_line(job, replica.key, line))
            )
            if kind != "start" or not _is_too_early(job, now):  # that is said of the job
                yield Blocker(kind=kind, replica=replica.key, message=f"{replica.key}: {why}")
        elif replica.state is State.RESTING and replica.due is not None:
            left = max(0.0, replica.due - now)
            yield Blocker(
                kind="retry", replica=replica.key, message=f"{replica.key} is tried again in {left:.0f} s"
            )
        elif replica.state is State.STARTING and (delay := job.delays.get(replica.key)):
            yield Blocker(kind="start", replica=replica.key, message=f"{replica.key}: {delay}")
        elif replica.frozen:
            yield Blocker(kind="hold", replica=replica.key, message=f"{replica.key} is frozen")
    if run.count(State.WAITING) and not job.conductor.held:
        yield from _of_waiting(job, run, name)


def _in_line(job: LiveJob, key: str, line: Line) -> str:
    ahead = (line.position(job.id, key) or 1) - 1
    if ahead and line.strict:
        return f"{ahead} before it in the line"
    why = line.pool.why_not(*job.wanted(key))
    return why + held_by_services(job)


def held_by_services(job: LiveJob) -> str:
    """That a job waits for what its own services hold, where it is so."""
    services = _holding_services(job)
    return f"; held by the service {services} of this very job until its work is over" if services else ""


def _holding_services(job: LiveJob) -> str:
    """The services of a job that hold resources while nothing else of it runs."""
    live = [replica for replica in job.conductor.live() if replica.run.unit.kind == "task"]
    if not live or not all(replica.run.unit.service for replica in live):
        return ""
    return ", ".join(replica.key for replica in live)


def _of_waiting(job: LiveJob, run: Run, name: str) -> Iterator[Blocker]:
    conductor = job.conductor
    if run.unit.policies.hold and not conductor.released:
        yield Blocker(kind="hold", message=f"{name} is held")
    for gate in run.unit.policies.gates:
        if gate not in conductor.open_gates:
            yield Blocker(kind="gate", message=f"{name}: the gate {gate} is closed")
    if run.place > run.scope.barrier:
        first = run.scope.order[run.scope.barrier].unit.name
        yield Blocker(kind="order", message=f"{name} waits for {first}, which stands above it")
    elif run.unit.cleanup and run.scope.unsettled:
        yield Blocker(kind="turn", message=f"{name} runs when everything else is over")
    elif may_start(run, conductor.edges, conductor.open_gates, released=True) is Answer.NOW:
        most = run.unit.policies.parallelism or job.plan.policies.parallelism
        if most is not None:
            yield Blocker(kind="parallelism", message=f"{name}: at most {most} run at once")
    else:
        for after, when in conductor.edges.get(run.unit.id, ()):
            other = run.scope.find(after)
            if other is not None and other.outcome is None:
                yield Blocker(kind="dependency", message=f"{name} waits for {after} {_WAITS_FOR[when]}")


def _suggestion(job: LiveJob, blockers: list[Blocker]) -> str:
    kinds = {blocker.kind for blocker in blockers}
    if "hold" in kinds:
        return f"jobman release {job.id}"
    for blocker in blockers:
        if blocker.kind == "gate":
            gate = blocker.message.split("the gate ")[1].split()[0]
            return f"jobman gate open {job.id} {gate}"
    return ""


def _clock(moment: float) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M:%S")
