"""Rules that need more than one value: a table from keys to checks, so that a unit pays for what it uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jobman.spec import graph
from jobman.spec.contexts import identity_of
from jobman.spec.model import Document, Task
from jobman.spec.quantities import format_duration
from jobman.spec.reading import Reading, child, key_node
from jobman.spec.records import has_key, keys_of
from jobman.spec.site import Site
from jobman.spec.suggest import closest, did_you_mean, listing

if TYPE_CHECKING:
    from jobman.spec.resolve import Unit

Check = Callable[["Unit", Reading], None]
_WORK = ("command", "group", "steps")
_NOT_LOCAL = (
    "requires",
    "devices",
    "ports",
    "volumes",
    "placement",
    "image",
    "replicas",
    "matrix",
    "service",
    "resources",
    "parallelism",
    "completions",
    "max_failed",
    "success",
)


def check_document(document: Document, root: Unit, site: Site, reading: Reading) -> None:
    """Rules of the document as a whole, after its tree is known."""
    _check_known(document.queue, site.queues, "JS806", "queues", child(document.node, "queue"), reading)
    _check_window(document, reading)
    for key in document.given:
        for check in _CHECKS.get(key, ()):
            check(root, reading)
    _check_environment(document, reading)
    if site.default_flavor and site.default_flavor not in site.flavors:
        meant = closest(site.default_flavor, site.flavors)
        hint = did_you_mean(meant, f"there are {listing(site.flavors) or 'no flavors'}")
        reading.report("JS810", None, name=site.default_flavor, hint=hint)
    _check_priority(document, site, reading)
    for unit in [root, *root.walk()]:
        if "coordinator" in unit.given:
            _check_coordinator(unit, reading)
        if "placement" in unit.given:
            _check_placement(unit, reading)
    _check_services(root, reading)


def check_unit(unit: Unit, site: Site, reading: Reading) -> None:
    """Rules of one task or group."""
    written = unit.written
    if isinstance(written, Task):
        _check_work(unit, written, reading)
        if written.local and unit.surrounding is not None:
            _check_local(unit, reading)
        if written.service and written.when not in (None, "success"):
            reading.report("JS324", key_node(written.node, "when"))
    if unit.parent is not None and unit.context.attributes is not unit.parent.context.attributes:
        _check_duration(unit, reading)
    if "attributes" in written.given:
        _check_environment(written, reading)
    for key in written.given:
        for check in _CHECKS.get(key, ()):
            check(unit, reading)
    if not unit.is_group and unit.context.inherited:
        for key, check in _IN_FORCE.items():
            if key in unit.context.inherited:
                check(unit, reading)
    _check_priority(written, site, reading)


def _check_known(
    name: str | None, known: tuple[str, ...], code: str, where: str, node: Any, reading: Reading
) -> None:
    if name is None or not known or name in known:
        return
    meant = closest(name, known)
    hint = did_you_mean(meant, f"they know {listing(known)}; add it under `{where}`")
    reading.report(code, node, name=name, hint=hint)


def _check_priority(written: Any, site: Site, reading: Reading) -> None:
    name = written.given.get("priority")
    _check_known(name, site.priorities, "JS807", "priorities", child(written.node, "priority"), reading)


def _check_window(document: Document, reading: Reading) -> None:
    start = document.start
    if start is None or start.earliest is None or start.latest is None:
        return
    early, late = start.earliest, start.latest
    closes_by_clock = early.at is not None and late.at is not None and late.at < early.at
    closes_by_waiting = early.after is not None and late.after is not None and late.after < early.after
    if closes_by_clock or closes_by_waiting:
        reading.report(
            "JS718",
            child(document.node, "start", "latest"),
            related=((child(document.node, "start", "earliest"), "it opens here"),),
        )


# -- tasks --------------------------------------------------------------------------------------------------


def _check_work(unit: Unit, task: Task, reading: Reading) -> None:
    keys = {key.value for key, _ in task.node.value}
    if not keys & set(_WORK) and not _meant_work(task, keys, reading):
        reading.report("JS311", task.node)
    if task.command is not None and task.group is not None:
        reading.report("JS312", key_node(task.node, "group"), first="command", second="group")
    if task.replicas is not None and task.matrix is not None:
        reading.report("JS314", key_node(task.node, "matrix"))
    for axis in task.matrix or ():
        matrix = child(task.node, "matrix") or task.node
        if axis.startswith("JOBMAN_"):
            reading.report("JS502", key_node(matrix, axis), name=axis)
        if axis in reading.values:
            reading.report("JS811", key_node(matrix, axis), name=axis)
    if "local" in task.given and task.local and unit.surrounding is None:
        reading.report("JS310", key_node(task.node, "local"))


def _meant_work(task: Task, keys: set[str], reading: Reading) -> bool:
    """Whether the work is there under a wrong name or in a wrong place, which has been said already."""
    misspelt = (reading.closest(key, keys_of(Task), Task.habits) for key in keys - keys_of(Task).keys())
    return has_key(child(task.node, "resources") or task.node, *_WORK) or any(
        key in _WORK for key in misspelt
    )


def _check_local(unit: Unit, reading: Reading) -> None:
    for key in _NOT_LOCAL:
        if key in unit.given and unit.given[key] is not False:
            reading.report("JS313", key_node(unit.written.node, key), key=key)


def _check_services(root: Unit, reading: Reading) -> None:
    """A scope of services alone never ends."""
    for scope in [root, *(unit for unit in root.walk() if unit.children)]:
        tasks = [unit.written for unit in scope.children]
        if tasks and all(isinstance(task, Task) and task.service for task in tasks):
            what = "job" if scope.parent is None else "group"
            reading.report("JS322", key_node(tasks[0].node, "service"), what=what)


# -- attributes ---------------------------------------------------------------------------------------------


def _check_duration(unit: Unit, reading: Reading) -> None:
    own = unit.context.attributes.get("duration")
    outer = unit.parent.context.attributes.get("duration") if unit.parent else None
    if own is None or outer is None or own.value <= outer.value:
        return
    related = child(outer.origin.node, "attributes", "duration")
    name = f"the group `{outer.origin.name}`" if outer.origin.level == "group" else "the document"
    reading.report(
        "JS501",
        child(unit.written.node, "attributes", "duration"),
        related=((related, "the limit"),),
        inner=f"the {unit.kind} `{unit.name}`",
        outer=name,
        duration=format_duration(own.value),
        limit=format_duration(outer.value),
    )


def _check_environment(written: Any, reading: Reading) -> None:
    attributes = written.given.get("attributes")
    for name in (attributes.environment if attributes is not None else None) or {}:
        if name.startswith("JOBMAN_"):
            environment = child(written.node, "attributes", "environment")
            reading.report("JS502", key_node(environment, name) if environment else None, name=name)


# -- replicas -----------------------------------------------------------------------------------------------


def _check_completions(unit: Unit, reading: Reading) -> None:
    completions = unit.given["completions"]
    if completions > unit.replicas:
        node = child(unit.written.node, "completions")
        reading.report("JS710", node, completions=completions, replicas=unit.replicas)


def _check_max_failed(unit: Unit, reading: Reading) -> None:
    limit = unit.given["max_failed"]
    if limit >= unit.replicas:
        reading.report(
            "JS711", child(unit.written.node, "max_failed"), max_failed=limit, replicas=unit.replicas
        )


def _check_success(unit: Unit, reading: Reading) -> None:
    success = unit.given["success"]
    if unit.parent is None and success.replicas:
        reading.report("JS723", child(unit.written.node, "success", "replicas"))
        return
    _check_indexes(success.replicas, unit, child(unit.written.node, "success", "replicas"), reading)
    among = sum(high - low + 1 for low, high in success.replicas) or unit.replicas
    if success.count is not None and success.count > among:
        node = child(unit.written.node, "success", "count")
        reading.report("JS713", node, count=success.count, replicas=among)


def _check_rules(unit: Unit, reading: Reading) -> None:
    for position, rule in enumerate(unit.given["on_failure"]):
        where = child(unit.written.node, "on_failure", position)
        if unit.parent is None and rule.replicas:
            reading.report("JS723", child(where, "replicas"))
        else:
            _check_indexes(rule.replicas, unit, child(where, "replicas"), reading)
        has_group = unit.is_group or unit.surrounding is not None or any(u.is_group for u in unit.children)
        if rule.action == "restart-group" and not has_group:
            reading.report("JS715", child(where, "action"))


def _check_indexes(spans: tuple[tuple[int, int], ...], unit: Unit, node: Any, reading: Reading) -> None:
    for _, high in spans:
        if high >= unit.replicas:
            last = unit.replicas - 1
            reading.report("JS712", node, culprit=str(high), index=high, replicas=unit.replicas, last=last)


# -- settings -----------------------------------------------------------------------------------------------


def _check_signal(unit: Unit, reading: Reading) -> None:
    """The signal in force against the limit in force, wherever either was written."""
    traced = unit.context.inherited["signal"]
    duration = unit.context.attributes.get("duration")
    if duration is None:
        reading.report("JS722", child(traced.origin.node, "signal"))
    elif traced.value.before >= duration.value:
        reading.report(
            "JS716",
            child(traced.origin.node, "signal"),
            related=((child(duration.origin.node, "attributes", "duration"), "the limit"),),
            before=format_duration(traced.value.before),
            duration=format_duration(duration.value),
        )


def _check_security(unit: Unit, reading: Reading) -> None:
    traced = unit.context.inherited["security"]
    if traced.value.privileged and traced.value.no_new_privileges:
        reading.report("JS708", child(traced.origin.node, "security"))


def _check_ports(unit: Unit, reading: Reading) -> None:
    traced = unit.context.inherited["checks"]
    ports = unit.context.inherited.get("ports")
    names = [port.name for port in ports.value if port.name] if ports else []
    for kind in ("ready", "alive", "started"):
        check = getattr(traced.value, kind)
        probe = check and (check.http or check.tcp)
        if not probe or probe.port.isdigit() or probe.port in names:
            continue
        meant = closest(probe.port, names)
        hint = did_you_mean(meant, f"the ports are {listing(names)}" if names else "add it to `ports`")
        node = child(traced.origin.node, "checks", kind, "http" if check.http else "tcp", "port")
        reading.report("JS717", node, name=probe.port, hint=hint)


def _check_restart(unit: Unit, reading: Reading) -> None:
    traced = unit.context.inherited["restart"]
    if isinstance(unit.written, Task) and traced.value == "always" and not unit.written.service:
        reading.report("JS719", child(traced.origin.node, "restart"))


def _repeated(key: str, what: str) -> Check:
    def check(unit: Unit, reading: Reading) -> None:
        seen: set[Any] = set()
        for position, item in enumerate(unit.given[key]):
            name = identity_of(item)
            if isinstance(name, str | int) and name in seen:
                reading.report("JS720", child(unit.written.node, key, position), what=what, name=name)
            if isinstance(name, str | int):
                seen.add(name)

    return check


def _check_port_numbers(unit: Unit, reading: Reading) -> None:
    seen: set[tuple[int, str]] = set()
    for position, port in enumerate(unit.given["ports"]):
        if port.port is not None and (port.port, port.protocol) in seen:
            reading.report("JS720", child(unit.written.node, "ports", position), what="port", name=port.port)
        seen.add((port.port or 0, port.protocol))


def _check_mounts(unit: Unit, reading: Reading) -> None:
    volumes = unit.context.inherited["volumes"].value
    paths: dict[str, str] = {}
    for volume in volumes:
        path = volume.to.rstrip("/") or "/"
        if path in paths and paths[path] != volume.name:
            own = unit.given["volumes"]
            position = own.index(volume) if volume in own else 0
            node = child(unit.written.node, "volumes", position)
            reading.report("JS721", node, path=volume.to, first=paths[path], second=volume.name)
        paths[path] = volume.name


def _check_coordinator(unit: Unit, reading: Reading) -> None:
    """`TASK` or `TASK/REPLICA`, a task of this scope."""
    written = str(unit.given["coordinator"])
    name, _, replica = written.partition("/")
    node = child(unit.written.node, "coordinator")
    scope = f"the group `{unit.name}`" if unit.is_group and unit.parent else "the document"
    target = unit.names.get(name)
    if target is None or target.is_group:
        known = [
            child_name
            for child_name, found in unit.names.items()
            if found.written.name and not found.is_group
        ]
        meant = reading.closest(name, known)
        hint = did_you_mean(meant, f"it has {listing(known) or 'no named tasks'}")
        reading.report("JS319", node, what="task", name=name, scope=scope, hint=hint)
    elif replica and not (re.fullmatch(r"[0-9]{1,9}", replica) and int(replica) < target.replicas):
        hint = f"`{name}` has {target.replicas}, counted from 0"
        reading.report("JS319", node, what="replica", name=written, scope=scope, hint=hint)


def _check_placement(unit: Unit, reading: Reading) -> None:
    placement = unit.given["placement"]
    for key in ("near", "apart"):
        relation = getattr(placement, key)
        for name in relation.tasks if relation else ():
            if graph.lookup(unit, name) is None and name not in unit.names:
                visible = [*unit.names, *(unit.parent.names if unit.parent else ())]
                meant = reading.closest(name, visible)
                hint = did_you_mean(meant, f"there are {listing(visible)}")
                reading.report("JS320", child(unit.written.node, "placement", key), name=name, hint=hint)


_SETTING_CHECKS: dict[str, tuple[Check, ...]] = {
    "volumes": (_repeated("volumes", "volume"), _check_mounts),
    "ports": (_repeated("ports", "port"), _check_port_numbers),
    "secrets": (_repeated("secrets", "secret"),),
    "devices": (_repeated("devices", "device"),),
}
_CHECKS: dict[str, tuple[Check, ...]] = {
    **_SETTING_CHECKS,
    "completions": (_check_completions,),
    "max_failed": (_check_max_failed,),
    "success": (_check_success,),
    "on_failure": (_check_rules,),
}
_IN_FORCE: dict[str, Check] = {
    "checks": _check_ports,
    "signal": _check_signal,
    "security": _check_security,
    "restart": _check_restart,
}
"""Checks of what a task runs with, whether it was written there or inherited."""
