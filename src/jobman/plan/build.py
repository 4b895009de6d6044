"""From the resolved tree to a plan."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from jobman.plan.features import features_used
from jobman.plan.model import NO_BONDS, NO_FLAGS, NO_POLICIES, VERSION, Edge, Plan, Unit, digest
from jobman.spec.contexts import Context
from jobman.spec.graph import when_of
from jobman.spec.model import Task
from jobman.spec.policies import OWN, Bonds, Policies
from jobman.spec.resolve import Job
from jobman.spec.resolve import Unit as Resolved

_OWN = frozenset(OWN)


def build(job: Job) -> Plan:
    """The plan of a resolved job without problems."""
    builder = _Builder()
    units = tuple(builder.unit(resolved) for resolved in job.root.walk())
    edges = tuple(
        Edge(resolved.id, link.unit.id, cast(Any, link.when))
        for resolved in job.root.walk()
        for link in resolved.dependencies
    )
    document = job.document
    duration = job.root.context.attributes.get("duration")
    plan = Plan(
        version=VERSION,
        name=document.name,
        labels=document.labels,
        annotations=document.annotations,
        managed_by=document.managed_by,
        owner=document.owner,
        queue=document.queue,
        account=document.account,
        start=document.start,
        policies=builder.policies(document.given, job.root.context),
        bonds=_bonds(document.given),
        duration=duration.value if duration else None,
        units=units,
        edges=edges,
    )
    plan = msgspec.structs.replace(plan, features=features_used(plan))
    return msgspec.structs.replace(plan, digest=digest(plan))


class _Builder:
    """Builds units; what many of them share is made once."""

    def __init__(self) -> None:
        self._inherited: dict[int, tuple[Any, Policies]] = {}
        self._environments: dict[int, tuple[Any, dict[str, str]]] = {}

    def unit(self, resolved: Resolved) -> Unit:
        written = resolved.written
        context = resolved.context
        surrounding = resolved.surrounding
        attributes = {name: traced.value for name, traced in context.attributes.items()}
        task: dict[str, Any] = (
            self._task(written, context) if isinstance(written, Task) else {"kind": "group"}
        )
        return Unit(
            id=resolved.id,
            name=resolved.name,
            parent=surrounding.id if surrounding else None,
            line=written.node.start_mark.line + 1,
            when=cast(Any, when_of(resolved)),
            replicas=resolved.replicas,
            alternatives=resolved.alternatives,
            duration=attributes.get("duration"),
            environment=self._environment(context),
            cwd=attributes.get("cwd"),
            watch=attributes.get("watch", False),
            stdout=attributes.get("stdout"),
            stderr=attributes.get("stderr"),
            flags=attributes.get("flags", NO_FLAGS),
            policies=self.policies(written.given, context),
            bonds=_bonds(written.given),
            **task,
        )

    def _task(self, task: Task, context: Context) -> dict[str, Any]:
        values: dict[str, Any] = {"command": task.command or (), "steps": task.steps}
        if context.image is not None and not task.local:
            values["image"] = context.image.value
        if task.local:
            values["local"] = True
        if task.service:
            values["service"] = True
        if task.matrix:
            values["matrix"] = dict(sorted(task.matrix.items()))
        return values

    def policies(self, given: dict[str, Any], context: Context) -> Policies:
        """What is written on the thing itself, over what it inherits."""
        settings = context.settings
        own = {key: given[key] for key in _OWN.intersection(given)}
        if own:
            return Policies(**{name: traced.value for name, traced in settings.items()}, **own)
        if not settings:
            return NO_POLICIES
        if id(settings) not in self._inherited:
            shared = Policies(**{name: traced.value for name, traced in settings.items()})
            self._inherited[id(settings)] = (settings, shared)
        return self._inherited[id(settings)][1]

    def _environment(self, context: Context) -> dict[str, str]:
        environment = context.environment
        if id(environment) not in self._environments:
            values = {name: traced.value for name, traced in environment.items()}
            self._environments[id(environment)] = (environment, values)
        return self._environments[id(environment)][1]


def _bonds(given: dict[str, Any]) -> Bonds:
    if "coordinator" not in given and "network" not in given:
        return NO_BONDS
    return Bonds(coordinator=given.get("coordinator"), network=given.get("network"))
