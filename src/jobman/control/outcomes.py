"""When a run is decided, and how: completions, limits and success policies."""

from __future__ import annotations

from collections.abc import Mapping

from jobman.control.conditions import Edges
from jobman.control.runs import Run, Scope
from jobman.control.states import State
from jobman.plan.model import Plan

_LOST = (State.FAILED, State.CANCELLED, State.SKIPPED)


def verdict_of_run(run: Run) -> State | None:
    """What a run comes to, as soon as it is certain; None while it is not."""
    policies = run.unit.policies
    failed = run.count(State.FAILED)
    if run.count(State.SKIPPED) == run.unit.replicas:
        return State.SKIPPED
    if policies.max_failed is not None and failed > policies.max_failed:
        return State.FAILED
    if run.goal is not None:
        if run.wanted.get(State.SUCCEEDED, 0) >= run.goal.needed:
            return State.SUCCEEDED
        lost = sum(run.wanted.get(state, 0) for state in _LOST)
        if run.goal.size - lost < run.goal.needed or run.is_over:
            return State.FAILED
        return None
    return _when_over(run, failed) if run.is_over else None


def _when_over(run: Run, failed: int) -> State:
    if failed and run.unit.policies.max_failed is None:
        return State.FAILED
    return State.CANCELLED if run.count(State.CANCELLED) else State.SUCCEEDED


def verdict_of_job(tasks: Mapping[State, int], plan: Plan) -> State | None:
    """What the document's own policies say of the job: its tasks' replicas are counted together."""
    policies = plan.policies
    needed = policies.completions
    if policies.success is not None and policies.success.count is not None:
        needed = policies.success.count
    if policies.max_failed is not None and tasks.get(State.FAILED, 0) > policies.max_failed:
        return State.FAILED
    if needed is not None and tasks.get(State.SUCCEEDED, 0) >= needed:
        return State.SUCCEEDED
    return None


def outcome_of_scope(scope: Scope, edges: Edges) -> State:
    """What a scope that is over came to. Services count only through those who needed them."""
    work = [run for run in scope.order if not run.unit.service]
    outcomes = {run.outcome for run in work}
    if scope.failed or State.FAILED in outcomes or any(_was_let_down(run, edges) for run in work):
        return State.FAILED
    if State.CANCELLED in outcomes:
        return State.CANCELLED
    due = [run for run in work if run.unit.when == "success"]
    return State.SKIPPED if due and all(run.outcome is State.SKIPPED for run in due) else State.SUCCEEDED


def _was_let_down(run: Run, edges: Edges) -> bool:
    """Whether a run never began because a service it needs had failed."""
    if run.outcome is not State.SKIPPED:
        return False
    needed = (run.scope.find(after) for after, when in edges.get(run.unit.id, ()) if when in _NEEDS)
    return any(other is not None and other.unit.service and other.count(State.FAILED) for other in needed)


_NEEDS = ("success", "started", "ready")
