"""Whether a run may start: gates, holds, dependencies, and the turn of cleanup tasks."""

from __future__ import annotations

from enum import Enum

from jobman.control.runs import Run
from jobman.control.states import State
from jobman.plan.model import EdgeCondition


class Answer(Enum):
    """May it start: now, later or never?"""

    NOW = 1
    LATER = 2
    NEVER = 3


Edges = dict[str, list[tuple[str, EdgeCondition]]]


def may_start(run: Run, edges: Edges, open_gates: set[str], *, released: bool) -> Answer:
    """Everything a run waits for, its place in the order apart."""
    policies = run.unit.policies
    if (policies.hold and not released) or not open_gates.issuperset(policies.gates):
        return Answer.LATER
    if run.unit.cleanup:
        return _turn_of_cleanup(run)
    waits = edges.get(run.unit.id, [])
    answers = [_answer(run.scope.find(after), when) for after, when in waits if when != "failure"]
    failures = [run.scope.find(after) for after, when in waits if when == "failure"]
    if failures:
        answers.append(_one_failed(failures))
    if Answer.NEVER in answers:
        return Answer.NEVER
    return Answer.LATER if Answer.LATER in answers else Answer.NOW


def _answer(other: Run | None, when: EdgeCondition) -> Answer:
    if other is None:
        return Answer.NOW
    outcome = other.outcome
    satisfied = {
        "success": outcome is State.SUCCEEDED,
        "any": outcome is not None,
        "started": other.has_begun,
        "ready": other.is_ready or outcome is State.SUCCEEDED,
        "failure": outcome is State.FAILED,
    }[when]
    if satisfied:
        return Answer.NOW
    return Answer.LATER if outcome is None else Answer.NEVER


def _one_failed(others: list[Run | None]) -> Answer:
    """The end of all of them, and the failure of at least one."""
    outcomes = [other.outcome for other in others if other is not None]
    if None in outcomes:
        return Answer.LATER
    return Answer.NOW if State.FAILED in outcomes else Answer.NEVER


def _turn_of_cleanup(run: Run) -> Answer:
    if run.scope.unsettled:
        return Answer.LATER
    if run.unit.when == "always":
        return Answer.NOW
    others = [other for other in run.scope.work if other.unit.when == "success"]
    has_failed = run.scope.failed or any(other.outcome is State.FAILED for other in others)
    return Answer.NOW if has_failed else Answer.NEVER
