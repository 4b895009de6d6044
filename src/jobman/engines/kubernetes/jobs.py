"""The Job around the pods: how many, how often, and when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.failures import (
    limit_of,
    max_failed,
    pod_failure_policy,
    success_policy,
)
from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.piece import Piece
from jobman.engines.kubernetes.pods import pod_template
from jobman.engines.kubernetes.surroundings import groups_around
from jobman.plan.model import Plan, Unit
from jobman.spec.policies import Policies

_FOR_EVER = 2**31 - 1


def job(piece: Piece) -> Written:
    """An Indexed Job: its indexes are the replicas of a task, or the copies of one replica."""
    annotations = {names.UNIT: piece.unit.id, **piece.annotations}
    # Whoever drives a job makes no Job before its time.
    surrounding = list(_around(piece.plan, piece.unit)) if piece.attempt is None else []
    is_held = any(policies.hold for policies in surrounding)
    if is_held:
        annotations[names.HOLD] = "true"
    if _forgives(piece):
        annotations[names.MAX_FAILED] = str(piece.unit.policies.max_failed)
    if piece.unit.policies.suspend is not None:
        annotations[names.SUSPEND] = piece.unit.policies.suspend
    gates = list(dict.fromkeys(gate for policies in surrounding for gate in policies.gates))
    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": piece.completions,
        "parallelism": _parallelism(piece),
        **_limits(piece),
    }
    if is_held or gates:
        # A Job that has not begun can still lose its gates; one that is not held would make gated pods anew.
        spec["suspend"] = True
    template = pod_template(piece)
    if gates:
        template["spec"]["schedulingGates"] = [{"name": names.GATE + gate} for gate in gates]
    spec["template"] = template
    metadata = {
        "name": piece.name,
        "namespace": piece.target.namespace,
        "labels": piece.labels,
        "annotations": annotations,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _around(plan: Plan, unit: Unit) -> Iterator[Policies]:
    """The policies of a task and of all that surrounds it."""
    yield unit.policies
    yield from (group.policies for group in groups_around(plan, unit))
    yield plan.policies


def _forgives(piece: Piece) -> bool:
    """Whether failed replicas are forgiven, which only jobman knows how to do."""
    policies = piece.unit.policies
    has_goal = policies.success is not None or policies.completions is not None
    return piece.replica is None and policies.max_failed is not None and not has_goal


def _parallelism(piece: Piece) -> int:
    if piece.replica is not None:
        return piece.completions
    return min(piece.unit.policies.parallelism or piece.completions, piece.completions)


def _limits(piece: Piece) -> dict[str, Any]:
    """How much may go wrong."""
    plan, unit = piece.plan, piece.unit
    if piece.attempt is not None:
        return _nothing()
    if unit.policies.restart == "on-failure":
        # Started again in place, for ever: nothing ever counts as a failure of the Job.
        limits: dict[str, Any] = {"backoffLimit": _FOR_EVER, "podReplacementPolicy": "Failed"}
        if piece.replica is None and (policy := success_policy(unit)):
            limits["successPolicy"] = policy
        return limits
    limits = {"backoffLimitPerIndex": limit_of(plan, unit)}
    if piece.is_gang:
        # A replica of several copies has failed when one of them has.
        limits["maxFailedIndexes"] = 0
    elif piece.replica is None:
        if (most := max_failed(unit)) is not None:
            limits["maxFailedIndexes"] = most
        if policy := success_policy(unit):
            limits["successPolicy"] = policy
    limits["podFailurePolicy"] = pod_failure_policy(plan, unit)
    limits["podReplacementPolicy"] = "Failed"
    return limits


def _nothing() -> dict[str, Any]:
    """An attempt is over with the first pod that fails; the Job says how that was, also without its pod."""
    disruption = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    code = {"onExitCodes": {"operator": "NotIn", "values": [0]}}
    return {
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [{"action": "FailJob", **rule} for rule in (disruption, code)]},
        "podReplacementPolicy": "Failed",
    }
