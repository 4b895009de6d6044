"""Values that a cluster cannot take, though it knows the feature: who asked, why, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import prod

from jobman.engines.base import Refused
from jobman.engines.kubernetes import names, volumes
from jobman.engines.kubernetes.affinity import topology_key
from jobman.engines.kubernetes.environment import variables_in
from jobman.engines.kubernetes.failures import are_all, match_of, rules_of, waits_long_enough
from jobman.engines.kubernetes.kept_logs import LOGS
from jobman.engines.kubernetes.pods import port_name
from jobman.engines.kubernetes.resources import claim_name, is_offered, is_shareable, per_copy
from jobman.engines.kubernetes.security import POWERFUL, is_for_windows
from jobman.engines.kubernetes.slices import chosen, differ_in_requires_only
from jobman.engines.kubernetes.surroundings import groups_around
from jobman.engines.kubernetes.target import Target
from jobman.plan.model import Plan, Unit
from jobman.plan.replicas import for_replica
from jobman.spec.policies import Policies
from jobman.spec.shapes import Part, copies

_MOST_REPLICAS = 100_000
_MOST_JOBS = 10_000
_MOST_COPIES = 1_000
"""Every copy is told the names of all others, and a variable has room for so many."""
_MOST_RULES = 20
MOST_DRIVEN = 4_000
"""How far all replicas are must fit into one object of the cluster."""
_OF_A_TASK = ("retries", "parallelism", "completions", "max_failed", "success", "hooks")
_KEPT_BY_SHELLS = ("INT", "QUIT")
Found = Iterator[tuple[str, str]]
"""A feature, and why a value of it cannot be had."""
Look = Callable[[Unit, Plan, Target], Found]


def beyond(plan: Plan, target: Target) -> list[Refused]:
    """Everything that is too much, with the units that ask for it."""
    of_tasks = [look for look in _OF_TASKS if not (target.driven and look in _DECIDED_BY_DRIVER)]
    refused = [Refused(feature, (), note) for feature, note in _of_document(plan, target)]
    return refused + asked_by(plan, target, of_tasks, (_of_something_larger,))


def asked_by(
    plan: Plan, target: Target, of_tasks: Iterable[Look], of_groups: Iterable[Look]
) -> list[Refused]:
    """What is too much in the eyes of some, with the units that ask for it."""
    found: dict[tuple[str, str], list[str]] = {}
    for unit in plan.units:
        for look in of_tasks if unit.kind == "task" else of_groups:
            for refusal in dict.fromkeys(look(unit, plan, target)):
                found.setdefault(refusal, []).append(unit.id)
    return [Refused(feature, tuple(units), note) for (feature, note), units in found.items()]


def _of_document(plan: Plan, target: Target) -> Found:
    yield from _larger(plan.policies, "the document", target)
    if target.driven and sum(map(partial(_in_all, plan), plan.units)) > MOST_DRIVEN:
        yield "replicas", f"at most {MOST_DRIVEN:,} replicas can be driven from here; use a jobman service"
    yield from of_metadata(plan)


def of_metadata(plan: Plan) -> Found:
    """Labels and annotations that cannot stand on an object."""
    for key in plan.labels:
        if key.startswith(names.PREFIX):
            yield "labels", f"labels that begin with `{names.PREFIX}` are jobman's own; rename `{key}`"
    for key in plan.annotations:
        if not names.is_label_key(key) or key.startswith(names.PREFIX):
            yield (
                "annotations",
                f"a cluster does not take the key `{key}`: letters, digits, `-`, `_` and `.`, at most 63, "
                "with an optional `domain/` before it",
            )


def _in_all(plan: Plan, unit: Unit) -> int:
    """The replicas of a unit in all replicas of the groups around it."""
    return prod((unit.replicas, *(group.replicas for group in groups_around(plan, unit))))


def _of_something_larger(unit: Unit, _plan: Plan, target: Target) -> Found:
    yield from _larger(unit.policies, "a group", target)
    if unit.network is not None and (unit.network.isolated or unit.network.connect):
        yield "network.isolated", "walls stand around whole jobs here; write `network` on the document"


def _larger(policies: Policies, what: str, target: Target) -> Found:
    for key in ("hooks",) if target.driven else _OF_A_TASK:
        if getattr(policies, key) is not None:
            feature = "hooks.before" if key == "hooks" else key
            yield feature, f"`{key}` of {what} as a whole cannot be had here; write it on the task"


# -- shapes --------------------------------------------------------------------------------------------------


def _parts(unit: Unit, target: Target) -> tuple[Part, ...]:
    return chosen(unit, target.chosen.get(unit.id, 0))


def _shape(unit: Unit, _plan: Plan, target: Target) -> Found:
    is_open = len(unit.alternatives) > 1 and unit.id not in target.chosen and not unit.local
    if is_open and not differ_in_requires_only(unit.alternatives):
        yield "shape.either", "which alternative can be had shows only at a cluster; name one of them here"
    for part in _parts(unit, target):
        yield from amounts(part, target)
        for level, count in part.within:
            if count > 1:
                yield "shape.levels", f"several of a level cannot be counted here; ask for one {level}"
            elif topology_key(level, target) is None:
                yield "shape.levels", _unknown_level(level, target)
        for key, value in part.requires.items():
            if not names.is_label_key(key) or not names.is_label_value(value):
                yield "requires", f"`{key}: {value}` cannot be a label of a node; ask for one that nodes have"


def amounts(part: Part, target: Target) -> Found:
    """What of a shape is no resource of a cluster, or cannot be divided."""
    if part.flavor is not None and (part.flavor.requests or part.flavor.limits):
        return
    for kind, amount in per_copy(part).items():
        if kind != "socket" and not is_offered(kind):
            yield (
                "shape.site-type",
                f"a cluster has resources with full names; write the like of `example.org/{kind}`",
            )
        elif amount and not float(amount).is_integer() and not is_shareable(kind, target):
            feature = "shape.gpu" if kind == "gpu" else "shape.site-type"
            yield feature, f"a copy cannot have {amount:g} of `{kind}`; ask for whole ones in each slot"


def _size(unit: Unit, _plan: Plan, target: Target) -> Found:
    feature = "matrix" if unit.matrix else "replicas"
    is_split = bool(unit.matrix) or copies(_parts(unit, target)) > 1
    most = _MOST_JOBS if is_split else _MOST_REPLICAS
    if unit.replicas > most:
        what = "Jobs of their own" if is_split else "replicas in one Job"
        yield feature, f"a cluster takes at most {most:,} {what}; split the task"
    if copies(_parts(unit, target)) > _MOST_COPIES:
        what = "shape.node" if any(part.nodes for part in _parts(unit, target)) else "shape.slot"
        yield what, f"at most {_MOST_COPIES:,} copies of a replica can know each other here; ask for fewer"


# -- what it runs --------------------------------------------------------------------------------------------


def _image(unit: Unit, _plan: Plan, target: Target) -> Found:
    if unit.image is None and target.default_image is None:
        yield "image", "on a cluster everything runs in a container; give an `image`, or set a default one"


def _paths(unit: Unit, _plan: Plan, _target: Target) -> Found:
    if unit.cwd is not None and not unit.cwd.startswith("/"):
        yield "cwd", "there is no folder of submission on a cluster; write an absolute path"


def _files(unit: Unit, _plan: Plan, target: Target) -> Found:
    for path in volumes.staged_paths(unit):
        if path not in target.files:
            is_step = any(path == getattr(step, "path", None) for step in unit.steps)
            yield ("step.stage" if is_step else "env_from"), f"`{path}` is not at hand; submit where it is"
    for origin in unit.policies.env_from:
        if origin.file in target.files and _variables(target, origin.file or "") is None:
            yield "env_from", f"`{origin.file}` has lines that are not of the form NAME=value"
    filled = for_replica(unit, 0) if unit.matrix else unit
    if sum(len(file.content) for file in volumes.files_of(filled, target)) > volumes.MOST_BYTES:
        feature = "step.stage" if any(volumes.staged_paths(unit)) else "step.write"
        yield feature, "files of more than 900 kB do not travel to a cluster; put them on a volume"


def _variables(target: Target, path: str) -> dict[str, str] | None:
    files = target.files[path]
    try:
        return variables_in(files[0].content.decode()) if len(files) == 1 else None
    except UnicodeDecodeError:
        return None


def _secrets(unit: Unit, _plan: Plan, _target: Target) -> Found:
    for secret in unit.policies.secrets:
        if secret.key is None and (secret.variable is not None or secret.path is not None):
            yield "secrets", f"say with `key` which entry of the secret `{secret.name}` is meant"


def _flags(unit: Unit, _plan: Plan, _target: Target) -> Found:
    if "nodeName" in (unit.flags.kubernetes or {}):
        yield "flags.kubernetes", "`nodeName` goes past the scheduler; use `placement: {labels: …}`"


def _object_names(unit: Unit, _plan: Plan, _target: Target) -> Found:
    """Things of the cluster that a document names."""
    policies = unit.policies
    named: list[tuple[str, str | None]] = [
        ("priority", policies.priority),
        ("scheduler", policies.scheduler),
        ("runtime.class", policies.runtime.class_ if policies.runtime else None),
        ("identity", policies.identity),
        *(("secrets", secret.name) for secret in policies.secrets),
        *(("env_from", origin.secret or origin.config) for origin in policies.env_from),
        *(("devices", device.class_) for device in policies.devices),
    ]
    for volume in policies.volumes:
        kind = f"volumes.{volume.kind}"
        named += [(kind, name) for name in (volume.class_, volume.claim, volume.secret, volume.config)]
    for feature, name in named:
        if name is not None and not names.is_object_name(name):
            yield (
                feature,
                f"nothing on a cluster is called `{name}`: small letters, digits, `-` and `.` only",
            )


def _ports(unit: Unit, _plan: Plan, _target: Target) -> Found:
    called = [port_name(port.name) for port in unit.policies.ports if port.name is not None]
    if len(set(called)) < len(called):
        yield "ports", "two ports cannot be told apart by small letters and digits; give them other names"


def _mounts(unit: Unit, _plan: Plan, target: Target) -> Found:
    """Every place in a container has one thing at most, and a name that a cluster takes."""
    places: list[tuple[str, str]] = [(f"volumes.{each.kind}", each.to) for each in unit.policies.volumes]
    places += [("secrets", each.path) for each in unit.policies.secrets if each.path is not None]
    filled = for_replica(unit, 0) if unit.matrix else unit
    step = "step.stage" if any(volumes.staged_paths(unit)) else "step.write"
    places += [(step, file.to) for file in volumes.files_of(filled, target)]
    taken = {volumes.SCRATCH, volumes.WORK, LOGS}
    for feature, place in places:
        if place.rstrip("/") in taken:
            yield feature, f"`{place}` is taken by something else; choose another place"
        taken.add(place.rstrip("/"))
        if ":" in place:
            yield feature, f"a cluster does not take `{place}`: no `:` in paths"
    for volume in unit.policies.volumes:
        if volume.path is not None and ".." in volume.path.split("/"):
            yield f"volumes.{volume.kind}", f"a cluster does not take `{volume.path}`: no `..` in paths"


def _devices(unit: Unit, _plan: Plan, _target: Target) -> Found:
    called = [names.dns_label(claim_name(device)) for device in unit.policies.devices]
    if len(set(called)) < len(called):
        yield "devices", "two claims cannot be told apart by small letters and digits; give them other names"


# -- how it ends ---------------------------------------------------------------------------------------------


def _retries(unit: Unit, _plan: Plan, target: Target) -> Found:
    retries = unit.policies.retries
    is_gang = copies(_parts(unit, target)) > 1
    if is_gang and retries is not None and retries.limit:
        yield "retries", "a Job starts one copy again, not all of a replica; leave `retries` out"
    if retries is None:
        return
    if not waits_long_enough(retries):
        yield (
            "retries.delay",
            "a Job waits 10 seconds before the first retry, then twice as long, at most 6 minutes; "
            "ask for less",
        )
    if retries.on is not None:
        match = match_of(retries.on.exit_codes, retries.on.reasons, unit)
        if isinstance(match, str):
            yield "retries.on", match


def _rules(unit: Unit, plan: Plan, target: Target) -> Found:
    rules = rules_of(plan, unit)
    is_gang = copies(_parts(unit, target)) > 1
    for rule in rules:
        feature = f"on_failure.{rule.action}"
        match = match_of(rule.exit_codes, rule.reasons, unit)
        if rule.action == "ignore":
            if rule.reasons not in ((), ("exit",)) or not (rule.exit_codes or rule.reasons):
                yield feature, "a kill cannot be forgiven here; name `exit_codes`, or the reason `exit` alone"
        elif isinstance(match, str):
            yield feature, match
        elif not are_all(rule.replicas, unit):
            yield feature, "a Job has the same rules for all replicas; leave `replicas` out"
        if rule.action == "retry" and is_gang:
            yield feature, "a Job starts one copy again, not all of a replica; leave the rule out"
    if len(rules) * 2 > _MOST_RULES - 3:
        yield f"on_failure.{rules[0].action}", "a Job takes 20 rules; join those of the same action"


def _restart(unit: Unit, plan: Plan, _target: Target) -> Found:
    if unit.policies.restart != "on-failure":
        return
    policies = unit.policies
    vain = [key for key in ("retries", "max_failed") if getattr(policies, key) is not None]
    vain += ["on_failure"] if rules_of(plan, unit) else []
    for key in vain:
        yield "restart.on-failure", f"a copy that starts again in place never fails; leave `{key}` out"


def _checks(unit: Unit, _plan: Plan, _target: Target) -> Found:
    checks = unit.policies.checks
    for kind in ("alive", "started"):
        check = getattr(checks, kind, None)
        if check is not None and check.successes > 1:
            yield f"checks.{kind}", f"one success is enough for `{kind}` on a cluster; leave `successes` out"


def _signal(unit: Unit, _plan: Plan, _target: Target) -> Found:
    signal = unit.policies.signal
    if signal is not None and signal.name in _KEPT_BY_SHELLS:
        yield "signal", f"a shell keeps {signal.name} from what it starts; use USR1 or TERM"


# -- where it runs -------------------------------------------------------------------------------------------


def _levels(unit: Unit, _plan: Plan, target: Target) -> Found:
    placement = unit.policies.placement
    for key in ("near", "apart", "spread"):
        wanted = getattr(placement, key, None)
        if wanted is not None and topology_key(wanted.by, target) is None:
            yield f"placement.{key}", _unknown_level(wanted.by, target)


def _unknown_level(level: str, target: Target) -> str:
    known = ", ".join(f"`{name}`" for name in target.topology)
    return f"`{level}` is not a level of the cluster; known are {known}, or the full name of a node's label"


def _security(unit: Unit, _plan: Plan, _target: Target) -> Found:
    security = unit.policies.security
    if security is None:
        return
    if is_for_windows(unit):
        yield "security", "windows has none of these rights; leave `security` out"
    added = security.capabilities.add if security.capabilities is not None else ()
    if security.no_new_privileges and set(added) & set(POWERFUL):
        yield "security", "with SYS_ADMIN a container may gain rights; leave `no_new_privileges` out"
    if security.seccomp is not None and security.seccomp.startswith("/"):
        yield "security", "a seccomp profile is found below the kubelet's own folder; write a relative path"


OF_A_POD: tuple[Look, ...] = (
    _paths,
    _secrets,
    _flags,
    _object_names,
    _ports,
    _mounts,
    _devices,
    _checks,
    _signal,
    _levels,
    _security,
)
"""What holds for every pod, whoever makes it and finds a place for it."""
_OF_TASKS: tuple[Look, ...] = (_shape, _size, _image, _files, *OF_A_POD, _retries, _rules, _restart)
_DECIDED_BY_DRIVER = (_retries, _rules, _restart)
"""What a Job cannot do, and whoever drives the job does."""
