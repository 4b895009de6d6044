"""When a run is decided, and how: completions, limits and success policies."""

from __future__ import annotations

from jobman.control.runs import Run, Scope
from jobman.control.states import State
from jobman.plan.model import Plan


def verdict_of_run(run: Run) -> State | None:
    """What a run comes to, as soon as it is certain; None while it is not."""
    policies = run.unit.policies
    failed = run.count(State.FAILED)
    if policies.max_failed is not None and failed > policies.max_failed:
        return State.FAILED
    goal = _goal(run)
    if goal is not None:
        wanted, needed = goal
        states = [run.replicas[index].state for index in wanted]
        if states.count(State.SUCCEEDED) >= needed:
            return State.SUCCEEDED
        lost = sum(state in (State.FAILED, State.CANCELLED, State.SKIPPED) for state in states)
        return State.FAILED if len(states) - lost < needed else None
    return _when_over(run, failed) if run.is_over else None


def _goal(run: Run) -> tuple[list[int], int] | None:
    """Which replicas must succeed and how many of them, where a policy says so."""
    policies = run.unit.policies
    everybody = list(range(len(run.replicas)))
    if policies.success is not None:
        spans = policies.success.replicas
        wanted = (
            [i for i in everybody if any(low <= i <= high for low, high in spans)] if spans else everybody
        )
        return wanted, len(wanted) if policies.success.count is None else policies.success.count
    return None if policies.completions is None else (everybody, policies.completions)


def _when_over(run: Run, failed: int) -> State:
    if failed and run.unit.policies.max_failed is None:
        return State.FAILED
    if run.count(State.CANCELLED):
        return State.CANCELLED
    return State.SKIPPED if run.count(State.SKIPPED) == len(run.replicas) else State.SUCCEEDED


def verdict_of_job(root: Scope, plan: Plan) -> State | None:
    """What the document's own policies say of the job: its tasks' replicas are counted together."""
    policies = plan.policies
    needed = policies.completions
    if policies.success is not None and policies.success.count is not None:
        needed = policies.success.count
    if needed is None and policies.max_failed is None:
        return None
    tasks = [r for r in root.walk() if r.run.unit.kind == "task" and not r.run.unit.service]
    if policies.max_failed is not None and sum(r.state is State.FAILED for r in tasks) > policies.max_failed:
        return State.FAILED
    if needed is not None and sum(r.state is State.SUCCEEDED for r in tasks) >= needed:
        return State.SUCCEEDED
    return None


def outcome_of_scope(scope: Scope) -> State:
    """What a scope that is over came to; services do not count."""
    outcomes = [run.outcome for run in scope.work]
    if scope.failed or State.FAILED in outcomes:
        return State.FAILED
    return State.CANCELLED if State.CANCELLED in outcomes else State.SUCCEEDED
