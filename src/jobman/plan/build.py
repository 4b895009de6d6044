"""From the resolved tree to a plan."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from jobman.plan.features import features_used
from jobman.plan.model import NO_FLAGS, NO_POLICIES, VERSION, Coordinator, Edge, Plan, Unit, digest
from jobman.spec.contexts import Context
from jobman.spec.graph import blocks, is_cleanup, lookup, when_of
from jobman.spec.model import Task
from jobman.spec.placement import Placement
from jobman.spec.policies import OWN, Policies
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
        policies=builder.policies(job.root),
        coordinator=_coordinator(job.root),
        network=document.given.get("network"),
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
            policies=self.policies(resolved),
            coordinator=_coordinator(resolved),
            network=written.given.get("network"),
            blocks=blocks(resolved),
            cleanup=is_cleanup(resolved),
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

    def policies(self, resolved: Resolved) -> Policies:
        """What is written on the thing itself, over what it inherits."""
        inherited = resolved.context.inherited
        given = resolved.given
        own = {key: given[key] for key in _OWN.intersection(given)}
        if own:
            return self._make(resolved, own)
        if not inherited:
            return NO_POLICIES
        if id(inherited) not in self._inherited:
            self._inherited[id(inherited)] = (inherited, self._make(resolved, {}))
        return self._inherited[id(inherited)][1]

    def _make(self, resolved: Resolved, own: dict[str, Any]) -> Policies:
        values = {name: traced.value for name, traced in resolved.context.inherited.items()}
        if "placement" in values:
            values["placement"] = _placed(resolved)
        return Policies(**values, **own)

    def _environment(self, context: Context) -> dict[str, str]:
        environment = context.environment
        if id(environment) not in self._environments:
            values = {name: traced.value for name, traced in environment.items()}
            self._environments[id(environment)] = (environment, values)
        return self._environments[id(environment)][1]


def _coordinator(resolved: Resolved) -> Coordinator | None:
    written = resolved.given.get("coordinator")
    if written is None:
        return None
    name, _, replica = written.partition("/")
    return Coordinator(resolved.names[name].id, int(replica or 0))


def _placed(resolved: Resolved) -> Placement:
    """A placement with unit ids for names, which mean what they mean where they were written."""
    traced = resolved.context.inherited["placement"]
    writer: Resolved | None = resolved
    while writer is not None and writer.written.node is not traced.origin.node:
        writer = writer.parent
    relations = {}
    for key in ("near", "apart"):
        relation = getattr(traced.value, key)
        if relation is not None and relation.tasks:
            ids = tuple(_id_of(name, writer or resolved) for name in relation.tasks)
            relations[key] = msgspec.structs.replace(relation, tasks=ids)
    placed: Placement = msgspec.structs.replace(traced.value, **relations)
    return placed


def _id_of(name: str, writer: Resolved) -> str:
    found = lookup(writer, name) or writer.names.get(name)
    return found.id if found is not None else name
