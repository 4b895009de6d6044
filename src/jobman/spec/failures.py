"""Failures: their reasons, what to do about each, and when the rest is success enough."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from yaml.nodes import Node

from jobman.spec.kinds import Choice, Duration, Forms, Items, Number, Whole
from jobman.spec.ranges import EXIT_CODES, MAX_REPLICAS, REPLICA_INDEXES, Span
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record, has_key

REASONS = (
    "exit",
    "signal",
    "timeout",
    "out-of-memory",
    "unhealthy",
    "launch-failed",
    "stage-failed",
    "node-lost",
    "preempted",
)
_REASON_HABITS = {
    "oom": "out-of-memory",
    "oomkilled": "out-of-memory",
    "time_limit": "timeout",
    "timelimit": "timeout",
    "deadline": "timeout",
    "deadlineexceeded": "timeout",
    "evicted": "preempted",
    "preemption": "preempted",
    "node_failure": "node-lost",
    "node_fail": "node-lost",
    "error": "exit",
    "nonzero": "exit",
    "killed": "signal",
}
_REASON = Choice(REASONS, "reason of failure", _REASON_HABITS)


class Condition(Record, frozen=True, kw_only=True):
    """Which failures a retry is for."""

    noun = "`on`"
    exit_codes: Annotated[tuple[Span, ...], Key(EXIT_CODES, "exit codes and ranges, 1 to 255")] = ()
    reasons: Annotated[tuple[str, ...], Key(Items(_REASON, single=True), "reasons of failure")] = ()


def _names_a_failure(condition: Condition, node: Node, reading: Reading) -> Any:
    if not has_key(node, "exit_codes", "reasons"):
        reading.report("JS701", node)
        return BAD
    return condition


class Retries(Record, frozen=True, kw_only=True):
    """How often and when to try again."""

    noun = "`retries`"
    habits = {"max": "limit", "count": "limit", "attempts": "limit", "backoff": "delay", "wait": "delay"}
    limit: Annotated[int, Key(Whole(0, 10_000), "how often to try again", required=True)]
    delay: Annotated[float, Key(Duration(zero=True), "wait before the first retry")] = 0.0
    factor: Annotated[float, Key(Number(1, 1000), "each wait is this many times the one before")] = 1.0
    on: Annotated[Condition | None, Key(Of(Condition, _names_a_failure), "retry only these failures")] = None


class _Limit(Whole):
    def read(self, node: Node, reading: Reading) -> Any:
        limit = super().read(node, reading)
        return BAD if limit is BAD else Retries(limit=limit)


RETRIES = Forms("a number of retries", scalar=_Limit(0, 10_000), mapping=Of(Retries))
Action = Literal["retry", "ignore", "fail-task", "fail-job", "restart-group"]
ACTIONS: tuple[Action, ...] = get_args(Action)


class FailureRule(Record, frozen=True, kw_only=True):
    """One line of a failure policy; all selectors given must match."""

    noun = "a failure rule"
    exit_codes: Annotated[tuple[Span, ...], Key(EXIT_CODES, "exit codes and ranges, 1 to 255")] = ()
    reasons: Annotated[tuple[str, ...], Key(Items(_REASON, single=True), "reasons of failure")] = ()
    replicas: Annotated[tuple[Span, ...], Key(REPLICA_INDEXES, "replica numbers and ranges")] = ()
    action: Annotated[
        Action,
        Key(
            Choice(
                ACTIONS,
                "action",
                {
                    "fail": "fail-task",
                    "failjob": "fail-job",
                    "fail_index": "fail-task",
                    "restart": "restart-group",
                },
            ),
            "what to do",
            required=True,
        ),
    ]


def _rule_selects(rule: FailureRule, node: Node, reading: Reading) -> Any:
    if not has_key(node, "exit_codes", "reasons", "replicas"):
        reading.report("JS701", node)
        return BAD
    return rule


FAILURE_RULES = Items(Of(FailureRule, _rule_selects), "a list of failure rules", least=1)


class Success(Record, frozen=True, kw_only=True):
    """When a set of replicas counts as done."""

    noun = "`success`"
    replicas: Annotated[tuple[Span, ...], Key(REPLICA_INDEXES, "replicas that must succeed")] = ()
    count: Annotated[int | None, Key(Whole(1, MAX_REPLICAS), "how many must succeed")] = None


def _success_says(success: Success, node: Node, reading: Reading) -> Any:
    if not has_key(node, "replicas", "count"):
        reading.report("JS702", node)
        return BAD
    return success


SUCCESS = Of(Success, _success_says)
