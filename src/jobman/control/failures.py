"""What to do about a failure: rules from the inside out, then retries."""

from __future__ import annotations

from typing import Literal

import msgspec

from jobman.control.causes import Failure
from jobman.control.runs import Replica
from jobman.plan.model import Plan
from jobman.spec.failures import FailureRule, Retries
from jobman.spec.policies import Policies
from jobman.spec.ranges import Span

Action = Literal["retry", "ignore", "fail", "fail-task", "fail-job", "restart-group"]
INFRASTRUCTURE = frozenset(("node-lost", "preempted"))
"""Reasons that are not the task's own fault: they are retried and never counted."""
DEFAULT_LIMIT = 3
"""How often a rule may retry a replica or restart a group where no `retries` say."""


class Decision(msgspec.Struct, frozen=True):
    """What follows a failure; `counts` says whether a retry is held against the limit."""

    action: Action
    delay: float = 0.0
    counts: bool = True


def decide(replica: Replica, failure: Failure, plan: Plan) -> Decision:
    """The first rule that matches, of the task, its groups and the document; then the task's own retries."""
    own = replica.run.unit.policies
    for policies in _outwards(replica, plan):
        for rule in policies.on_failure:
            if _matches(rule, replica, failure, is_own=policies is own):
                return _by_rule(rule, replica, own)
    if failure.reason in INFRASTRUCTURE:
        return Decision("retry", counts=False)
    if own.retries is not None and is_meant(own.retries, failure) and replica.retries < own.retries.limit:
        return Decision("retry", delay(own.retries, replica.retries))
    return Decision("fail")


def limit_of(policies: Policies) -> int:
    """How often a rule may start something over."""
    return DEFAULT_LIMIT if policies.retries is None else policies.retries.limit


def delay(retries: Retries, used: int) -> float:
    """The wait before the next try, after so many."""
    return retries.delay * retries.factor**used


def _outwards(replica: Replica, plan: Plan) -> list[Policies]:
    found = []
    inner: Replica | None = replica
    while inner is not None:
        found.append(inner.run.unit.policies)
        inner = inner.run.scope.owner
    return [*found, plan.policies]


def _matches(rule: FailureRule, replica: Replica, failure: Failure, *, is_own: bool) -> bool:
    """Every selector that is given must match; replica numbers are those of the rule's own unit."""
    if rule.exit_codes and not _has(rule.exit_codes, failure.exit_code):
        return False
    if rule.reasons and failure.reason not in rule.reasons:
        return False
    return not rule.replicas or (is_own and _has(rule.replicas, replica.index))


def _has(spans: tuple[Span, ...], number: int | None) -> bool:
    return number is not None and any(low <= number <= high for low, high in spans)


def _by_rule(rule: FailureRule, replica: Replica, own: Policies) -> Decision:
    if rule.action != "retry":
        return Decision(rule.action)
    if replica.retries >= limit_of(own):
        return Decision("fail")
    return Decision("retry", 0.0 if own.retries is None else delay(own.retries, replica.retries))


def is_meant(retries: Retries, failure: Failure) -> bool:
    """Whether a failure is one that is tried again."""
    condition = retries.on
    if condition is None:
        return True
    return _has(condition.exit_codes, failure.exit_code) or failure.reason in condition.reasons
