"""A task or group as answers tell of it, for clients that read jobs without a service."""

from __future__ import annotations

from typing import Any, cast

from jobman.control import answers
from jobman.plan.model import Plan, Unit


def task_row(unit: Unit, plan: Plan, scope: str, outcome: str | None, counts: dict[str, int]) -> answers.Task:
    """A unit in one of its scopes."""
    return answers.Task(
        unit=unit.id,
        scope=scope,
        name=unit.name,
        kind=unit.kind,
        service=unit.service,
        replicas=unit.replicas,
        copies=unit.copies[0] if unit.copies else 1,
        outcome=cast(Any, outcome),
        counts=counts,
        depends_on=[edge.after for edge in plan.edges if edge.unit == unit.id],
        line=unit.line,
    )
