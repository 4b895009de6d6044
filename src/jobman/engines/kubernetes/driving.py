"""What of a job goes on only while somebody drives it: a cluster runs Jobs, not graphs of them.

`jobman run` drives a job from the foreground; a service does it anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobman.engines.base import Refused
from jobman.engines.kubernetes.slices import chosen, slices
from jobman.engines.kubernetes.target import Target
from jobman.plan.features import users
from jobman.plan.model import Plan, Unit
from jobman.spec.shapes import copies

DRIVEN = (
    "depends_on.success",
    "depends_on.failure",
    "depends_on.any",
    "depends_on.started",
    "depends_on.ready",
    "local",
    "service",
    "when.failure",
    "when.always",
    "watch",
)
ONLY_DRIVEN = {
    "start.earliest": "a plain cluster starts what it has room for, and something must wait",
    "start.latest": "a plain cluster does not give up waiting, and something must cancel it",
    "group.replicas": "something must repeat the group",
    "on_failure.restart-group": "something must start the group over",
    "restart.always": "a Job ends with its command, and something must start it again",
}
"""What no object of a cluster says at all; the others can at least be looked at."""
_ACROSS_JOBS = ("parallelism", "completions", "max_failed", "success")


def needs_driver(plan: Plan, target: Target) -> list[Refused]:
    """What would be lost if the objects were only created; most of it can be looked at all the same."""
    found = [
        Refused(feature, tuple(unit.id for unit in users(plan, feature)), "something must start each in turn")
        for feature in DRIVEN
        if feature in plan.features
    ]
    for unit in plan.units:
        for feature, note in _of(unit, plan, target):
            found.append(Refused(feature, (unit.id,), note))
    return found


def only_driven(plan: Plan) -> list[Refused]:
    """What a plan has that cannot even be written down as objects."""
    return [
        Refused(feature, tuple(unit.id for unit in users(plan, feature)), note)
        for feature, note in ONLY_DRIVEN.items()
        if feature in plan.features
    ]


def _of(unit: Unit, plan: Plan, target: Target) -> Iterator[tuple[str, str]]:
    if unit.kind == "group":
        if unit.duration is not None:
            yield "duration", "something must stop the group as a whole"
        return
    parts = chosen(unit, target.chosen.get(unit.id, 0))
    is_split = bool(unit.matrix) or copies(parts) > 1
    if len(slices(parts)) > 1:
        what = "shape.both" if len(parts) > 1 else "shape.slot"
        yield what, "a replica is several Jobs, and something must stop the others when one fails"
    if is_split and unit.replicas > 1:
        for key in _ACROSS_JOBS:
            if getattr(unit.policies, key) is not None:
                yield key, "its replicas are Jobs of their own, and something must count them"
    tasks = [each for each in plan.units if each.kind == "task"]
    if any(rule.action == "fail-job" for rule in unit.policies.on_failure) and len(tasks) > 1:
        yield "on_failure.fail-job", "something must stop the other tasks"
