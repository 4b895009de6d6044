"""The catalogue of features and which of them a plan uses; engines say how they realise each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from jobman.spec.failures import ACTIONS
from jobman.spec.policies import Policies
from jobman.spec.shapes import Alternative, Part, misfit
from jobman.spec.steps import Stage
from jobman.spec.volumes import VOLUME_KINDS

if TYPE_CHECKING:
    from jobman.plan.model import Plan, Unit


class Feature(msgspec.Struct, frozen=True):
    """One thing a document can ask for."""

    id: str
    title: str
    section: int


def _table(section: int, rows: dict[str, str]) -> Iterator[Feature]:
    return (Feature(name, title, section) for name, title in rows.items())


CATALOGUE: tuple[Feature, ...] = (
    *_table(
        1,
        {
            "queue": "a queue by name",
            "account": "an account that pays",
            "start.earliest": "not before a moment",
            "start.latest": "not after a moment",
            "labels": "labels",
            "annotations": "annotations",
            "managed_by": "the tool that made the job",
            "owner": "what the job belongs to",
        },
    ),
    *_table(
        2,
        {
            "command": "run a command",
            "steps-only": "a task of steps alone",
            "replicas": "run a task many times",
            "matrix": "one replica per combination of values",
            "depends_on.success": "start after the success of another",
            "depends_on.failure": "start after the failure of another",
            "depends_on.any": "start after the end of another",
            "depends_on.started": "start after the start of another",
            "depends_on.ready": "start after the readiness of another",
            "local": "run in the driver of the group",
            "service": "a service that ends with its scope",
            "when.failure": "a task for the case of failure",
            "when.always": "a cleanup task that always runs",
            "image": "a container image",
        },
    ),
    *_table(
        3,
        {
            "group": "tasks under one allocation",
            "group.nested": "groups inside groups",
            "group.replicas": "a whole group many times",
            "group.grow": "a task larger than the allocation of its group",
        },
    ),
    *_table(
        4,
        {
            "shape.node": "whole numbers of nodes",
            "shape.slot": "several copies on a node",
            "shape.anywhere": "slots wherever there is room",
            "shape.exclusive": "the whole node",
            "shape.socket": "sockets",
            "shape.core": "cores",
            "shape.gpu": "GPUs",
            "shape.memory": "memory",
            "shape.storage": "storage",
            "shape.site-type": "a resource type of the site's own",
            "shape.levels": "levels of the site's own around nodes, such as racks",
            "shape.either": "alternatives in order (`a|b`)",
            "shape.both": "a heterogeneous allocation (`a&b`)",
        },
    ),
    *_table(
        5,
        {
            "duration": "a time limit",
            "environment": "environment variables",
            "cwd": "a working directory",
            "watch": "stream the output and hold back what follows",
            "stdout": "output to a file",
            "stderr": "errors to a file",
            "flags.slurm": "options for Slurm",
            "flags.flux": "options for Flux",
            "flags.kubernetes": "fields for Kubernetes",
        },
    ),
    *_table(
        6,
        {
            "requires": "facts the nodes must have",
            "step.stage": "bring files to every node",
            "step.write": "write files without a shell",
        },
    ),
    *_table(
        7,
        {
            "retries": "try again after a failure",
            "retries.delay": "wait between retries",
            "retries.on": "retry only some failures",
            "parallelism": "at most so many replicas at once",
            "completions": "done when so many replicas succeeded",
            "max_failed": "give up when more replicas failed",
            **{f"on_failure.{action}": f"failure policy: {action}" for action in ACTIONS},
            "success": "success policy: done early",
            "restart.on-failure": "restart a copy in place after a failure",
            "restart.always": "restart a copy in place whenever it ends",
            "replace.failed": "replace a copy once it has failed",
            "replace.terminating": "replace a copy while it ends",
            "hold": "wait for a release",
            "suspend.requeue": "suspend by going back to the queue",
            "suspend.freeze": "suspend by freezing in place",
            "hooks.before": "a command before",
            "hooks.after": "a command after",
            "hooks.on_stop": "a command at a stop",
            "grace": "time to end in peace",
            "signal": "a signal before the time limit",
            "checks.ready": "a check for readiness",
            "checks.alive": "a check for life",
            "checks.started": "a check for the start",
            "checks.exec": "a check by a command",
            "checks.http": "a check by a request",
            "checks.tcp": "a check by a connection",
            "gates": "gates to be opened by somebody",
            "placement.labels": "nodes with labels",
            "placement.near": "close to other copies",
            "placement.apart": "away from other copies",
            "placement.spread": "evenly over a topology level",
            "placement.exclusive": "nodes that each replica has for itself",
            "priority": "a named priority class",
            "scheduler": "another scheduler",
            "runtime.class": "a runtime class",
            "runtime.os": "an operating system",
            "identity": "a service account",
            "secrets": "secrets and licence tokens",
            "env_from": "environment from elsewhere",
            "profiles": "named contexts of the settings",
            "security": "a security context",
            "security.privileged": "every right on the node",
            "devices": "device claims",
            **{f"volumes.{kind}": f"a volume of kind {kind}" for kind in VOLUME_KINDS},
            "ports": "ports by number",
            "ports.free": "a free port found for the copy",
            "ports.expose": "a port reachable from outside the job",
            "result_file": "a result kept with the job",
            "coordinator": "a coordinator the others report to",
            "network.connect": "jobs that overlap and reach each other",
            "network.isolated": "no traffic from or to other jobs",
        },
    ),
)
FEATURES: dict[str, Feature] = {feature.id: feature for feature in CATALOGUE}
_STANDARD_TYPES = ("socket", "core", "gpu", "memory", "storage")


def features_used(plan: Plan) -> tuple[str, ...]:
    """The features of a plan, in the order of the catalogue."""
    found = set(_of_document(plan))
    found.update(f"depends_on.{when}" for when in {edge.when for edge in plan.edges})
    seen: set[int] = set()
    groups = {unit.id: unit for unit in plan.units if unit.kind == "group"}
    for unit in plan.units:
        found.update(_of_unit(unit, groups))
        # Most units share what they inherit and the shapes they name.
        if id(unit.policies) not in seen:
            found.update(_of_policies(unit.policies))
        if id(unit.alternatives) not in seen:
            found.update(_of_shape(unit))
        seen.update((id(unit.policies), id(unit.alternatives)))
    return tuple(feature.id for feature in CATALOGUE if feature.id in found)


def users(plan: Plan, feature: str) -> list[Unit]:
    """The units of a plan that use a feature, for saying who asked for what cannot be had."""
    groups = {unit.id: unit for unit in plan.units if unit.kind == "group"}
    waiting = {edge.unit for edge in plan.edges if f"depends_on.{edge.when}" == feature}
    return [
        unit
        for unit in plan.units
        if unit.id in waiting
        or feature in _of_unit(unit, groups)
        or feature in _of_policies(unit.policies)
        or feature in _of_shape(unit)
    ]


def _of_document(plan: Plan) -> Iterator[str]:
    for name in ("queue", "account", "labels", "annotations", "managed_by", "owner"):
        if getattr(plan, name):
            yield name
    if plan.start is not None:
        yield from (f"start.{name}" for name in ("earliest", "latest") if getattr(plan.start, name))
    yield from _of_policies(plan.policies)
    yield from _of_bonds(plan)


def _of_bonds(thing: Plan | Unit) -> Iterator[str]:
    if thing.coordinator is not None:
        yield "coordinator"
    if thing.network is not None:
        yield from _given("network", "connect", "isolated")(thing.network)


def _of_unit(unit: Unit, groups: dict[str, Unit]) -> Iterator[str]:
    if unit.kind == "group":
        yield "group"
        if unit.parent is not None:
            yield "group.nested"
        if unit.replicas > 1:
            yield "group.replicas"
        yield from _of_bonds(unit)
    else:
        yield "command" if unit.command else "steps-only"
        if unit.matrix:
            yield "matrix"
        elif unit.replicas > 1:
            yield "replicas"
    if unit.when != "success":
        yield f"when.{unit.when}"
    if unit.parent is not None and _outgrows(unit, groups[unit.parent]):
        yield "group.grow"
    for name in ("local", "service", "image", "duration", "environment", "cwd", "watch", "stdout", "stderr"):
        if getattr(unit, name):
            yield name
    for engine in ("slurm", "flux", "kubernetes"):
        if getattr(unit.flags, engine) is not None:
            yield f"flags.{engine}"
    for step in unit.steps:
        yield "step.stage" if isinstance(step, Stage) else "step.write"


def _outgrows(unit: Unit, group: Unit) -> bool:
    if unit.alternatives is group.alternatives or not unit.alternatives:
        return False
    return any(all(misfit(parts, parent) for parts in unit.alternatives) for parent in group.alternatives)


def _of_shape(unit: Unit) -> Iterator[str]:
    if len(unit.alternatives) > 1:
        yield "shape.either"
    for parts in unit.alternatives:
        yield from _of_parts(parts)


def _of_parts(parts: Alternative) -> Iterator[str]:
    if len(parts) > 1:
        yield "shape.both"
    for part in parts:
        yield from _of_part(part)


def _of_part(part: Part) -> Iterator[str]:
    yield "shape.anywhere" if part.nodes is None else "shape.node"
    if part.slots:
        yield "shape.slot"
    if part.is_whole:
        yield "shape.exclusive"
    if part.within:
        yield "shape.levels"
    if part.requires:
        yield "requires"
    for name in part.per_node:
        yield f"shape.{name}" if name in _STANDARD_TYPES else "shape.site-type"


def _of_policies(policies: Policies) -> Iterator[str]:
    for name, detect in _POLICY_FEATURES.items():
        value = getattr(policies, name)
        if value is not None and value != () and value is not False:
            yield from detect(value)


def _always(name: str) -> Callable[[Any], Iterator[str]]:
    return lambda _value: iter((name,))


def _by_value(name: str, *silent: str) -> Callable[[Any], Iterator[str]]:
    return lambda value: iter(() if value in silent else (f"{name}.{value}",))


def _given(name: str, *fields: str) -> Callable[[Any], Iterator[str]]:
    return lambda value: (f"{name}.{field.rstrip('_')}" for field in fields if getattr(value, field))


def _retries(retries: Any) -> Iterator[str]:
    yield "retries"
    if retries.delay:
        yield "retries.delay"
    if retries.on is not None:
        yield "retries.on"


def _checks(checks: Any) -> Iterator[str]:
    for kind in ("ready", "alive", "started"):
        check = getattr(checks, kind)
        if check is not None:
            yield f"checks.{kind}"
            yield "checks.exec" if check.exec else "checks.http" if check.http else "checks.tcp"


def _security(security: Any) -> Iterator[str]:
    yield "security"
    if security.privileged:
        yield "security.privileged"


def _ports(ports: Any) -> Iterator[str]:
    for port in ports:
        yield "ports" if port.port else "ports.free"
        if port.expose:
            yield "ports.expose"


_POLICY_FEATURES: dict[str, Callable[[Any], Iterator[str]]] = {
    "retries": _retries,
    "parallelism": _always("parallelism"),
    "completions": _always("completions"),
    "max_failed": _always("max_failed"),
    "on_failure": lambda rules: (f"on_failure.{rule.action}" for rule in rules),
    "success": _always("success"),
    "restart": _by_value("restart", "never"),
    "replace": _by_value("replace"),
    "hold": _always("hold"),
    "suspend": _by_value("suspend"),
    "hooks": _given("hooks", "before", "after", "on_stop"),
    "grace": _always("grace"),
    "signal": _always("signal"),
    "checks": _checks,
    "gates": _always("gates"),
    "placement": _given("placement", "labels", "near", "apart", "spread", "exclusive"),
    "priority": _always("priority"),
    "scheduler": _always("scheduler"),
    "runtime": _given("runtime", "class_", "os"),
    "identity": _always("identity"),
    "secrets": _always("secrets"),
    "env_from": _always("env_from"),
    "profiles": _always("profiles"),
    "security": _security,
    "devices": _always("devices"),
    "volumes": lambda volumes: (f"volumes.{volume.kind}" for volume in volumes),
    "ports": _ports,
    "result_file": _always("result_file"),
}
