"""How the local engine realises each feature of the language."""

from __future__ import annotations

import os
from collections.abc import Callable

from jobman.engines import features
from jobman.engines.base import Refused
from jobman.engines.features import Support, emulated, native, refused
from jobman.engines.local.accounts import account_of
from jobman.plan.features import users
from jobman.plan.model import Plan, Unit
from jobman.spec.failures import ACTIONS
from jobman.spec.volumes import VOLUME_KINDS

_NODES = "between virtual nodes; otherwise this machine is the only node"
_ELSEWHERE = "for that engine only; not looked at here"
_LINK = "mounted into a container; without one `to` becomes a link, and what is there already is not touched"
_CLUSTER = "needs a cluster that provides storage; use `host` or `scratch` here"

_DOCUMENT: dict[str, Support] = {
    "queue": native("all queues share this machine"),
    "account": native("charged in slices of time"),
    "start.earliest": native(),
    "start.latest": native(),
    "labels": native(),
    "annotations": native(),
    "managed_by": native(),
    "owner": native(),
}
_TASKS: dict[str, Support] = {
    "command": native(),
    "steps-only": native(),
    "replicas": native(),
    "matrix": native(),
    "depends_on.success": native(),
    "depends_on.failure": native(),
    "depends_on.any": native(),
    "depends_on.started": native(),
    "depends_on.ready": native(),
    "local": native(),
    "service": native(),
    "when.failure": native(),
    "when.always": native(),
    "image": native("with podman, docker or apptainer, whichever is installed"),
}
_GROUPS: dict[str, Support] = {
    "group": native(),
    "group.nested": native(),
    "group.replicas": native(),
    "group.grow": refused(
        "an allocation cannot grow here; give the group as much as its largest task asks for"
    ),
}
_SHAPES: dict[str, Support] = {
    "shape.node": native("this machine, or virtual nodes"),
    "shape.slot": native(),
    "shape.anywhere": native(),
    "shape.exclusive": native(),
    "shape.socket": emulated("counted; cores are not chosen by socket"),
    "shape.core": native("pinned to whole cores; parts of cores and virtual cores beyond real ones are not"),
    "shape.gpu": native("told to the copy by CUDA_VISIBLE_DEVICES"),
    "shape.memory": native("limited by a control group where one may be made, else by looking"),
    "shape.storage": emulated("counted; not limited"),
    "shape.site-type": refused("this machine has none of a site's own types; leave them out here"),
    "shape.levels": refused("this machine has no levels around nodes; ask for nodes alone"),
    "shape.either": native(),
    "shape.both": native(),
}
_ATTRIBUTES: dict[str, Support] = {
    "duration": native(),
    "environment": native(),
    "cwd": native(),
    "watch": native(),
    "stdout": native(),
    "stderr": native(),
    "flags.slurm": native(_ELSEWHERE),
    "flags.flux": native(_ELSEWHERE),
    "flags.kubernetes": native(_ELSEWHERE),
}
_REQUIRES: dict[str, Support] = {
    "requires": native("facts are found; the settings may add to them"),
    "step.stage": native("a copy, checked by its digest"),
    "step.write": native(),
}
_POLICIES: dict[str, Support] = {
    "retries": native(),
    "retries.delay": native(),
    "retries.on": native(),
    "parallelism": native(),
    "completions": native(),
    "max_failed": native(),
    **{f"on_failure.{action}": native() for action in ACTIONS},
    "success": native(),
    "restart.on-failure": native(),
    "restart.always": native(),
    "replace.failed": native(),
    "replace.terminating": refused("an attempt never starts before the one before it has ended"),
    "hold": native(),
    "suspend.requeue": native(),
    "suspend.freeze": native("by a control group where one may be made, else by SIGSTOP"),
    "hooks.before": native(),
    "hooks.after": native(),
    "hooks.on_stop": native(),
    "grace": native(),
    "signal": native(),
    "checks.ready": native(),
    "checks.alive": native(),
    "checks.started": native(),
    "checks.exec": native(),
    "checks.http": native(),
    "checks.tcp": native(),
    "gates": native(),
    "placement.labels": native("compared with the facts of this machine"),
    "placement.near": native(_NODES),
    "placement.apart": native(_NODES),
    "placement.spread": native(_NODES),
    "placement.exclusive": native(),
    "priority": native(),
    "scheduler": refused("jobman is the scheduler here; leave `scheduler` out"),
    "runtime.class": refused("there are no runtime classes on one machine; leave `runtime.class` out"),
    "runtime.os": native("linux only"),
    "identity": native("the account of this machine with that name; another than one's own needs root"),
    "secrets": native("from files that only you can read"),
    "env_from": native(),
    "profiles": native(),
    "security": native("another user needs root or a container"),
    "security.privileged": native("needs root or a container"),
    "devices": refused("there are no device claims on one machine; ask for `gpu` in the shape"),
}
_STORAGE: dict[str, Support] = {
    "volumes.host": emulated(_LINK),
    "volumes.scratch": emulated(_LINK),
    "volumes.ephemeral": emulated(f"as `scratch`, and without a `class`; {_LINK}"),
    "volumes.claim": refused(_CLUSTER),
    "volumes.csi": refused(_CLUSTER),
    "volumes.nfs": refused("jobman mounts no servers; mount it yourself and use `host`"),
    "volumes.git": emulated(f"a clone, where git is installed; {_LINK}"),
    "volumes.image": refused("the files of an image cannot be mounted alone; run the task in that `image`"),
    "volumes.secret": emulated(_LINK),
    "volumes.config": emulated(_LINK),
    "volumes.memory": emulated(f"in /dev/shm; {_LINK}"),
}
_NETWORK: dict[str, Support] = {
    "ports": native("of this machine, shared with everything on it"),
    "ports.free": native(),
    "ports.expose": native("every port of this machine can be reached from outside the job"),
    "result_file": native(),
    "coordinator": native(),
    "network.connect": native(),
    "network.isolated": refused("copies share the network of this machine; leave `network.isolated` out"),
}
FEATURES: dict[str, Support] = {
    **_DOCUMENT,
    **_TASKS,
    **_GROUPS,
    **_SHAPES,
    **_ATTRIBUTES,
    **_REQUIRES,
    **_POLICIES,
    **_STORAGE,
    **_NETWORK,
}


def refusals(plan: Plan, *, no_container: bool = False, root: bool | None = None) -> list[Refused]:
    """What of a plan cannot be had here: features, and values of features that ask for too much.

    `root` says whether copies may become other users; without it, whether this process may.
    """
    found = features.refusals(plan, FEATURES)
    for feature, asks_too_much, note in _TOO_MUCH:
        if units := _using(plan, feature, asks_too_much):
            found.append(Refused(feature, units, note))
    found += _unknown_identities(plan)
    found += _unenforceable(plan, no_container=no_container)
    if not (os.geteuid() == 0 if root is None else root):
        found += _forbidden(plan, no_container=no_container)
    return found


def _unknown_identities(plan: Plan) -> list[Refused]:
    """Units that are to act as somebody they cannot be here."""
    found: dict[str, list[str]] = {}
    for unit in plan.units:
        if unit.kind == "task" and unit.policies.identity is not None:
            try:
                account_of(unit.policies.identity)
            except PermissionError as error:
                found.setdefault(str(error), []).append(unit.id)
    return [Refused("identity", tuple(units), note) for note, units in found.items()]


def _unenforceable(plan: Plan, *, no_container: bool) -> list[Refused]:
    """What nobody can hold a bare process to, and what a container would give away."""
    bare = {unit.id for unit in plan.units if no_container or unit.local or not unit.image}
    found = []
    for kind in VOLUME_KINDS:
        units = _using(
            plan,
            f"volumes.{kind}",
            lambda unit, kind=kind: unit.id in bare and _has_read_only(unit, kind),  # type: ignore[misc]
        )
        if units:
            found.append(Refused(f"volumes.{kind}", units, "without an `image` nothing keeps it `read_only`"))
    for feature in ("secrets", "env_from"):
        if units := _using(plan, feature, lambda unit: unit.id not in bare and _has_secret_variables(unit)):
            note = "a container keeps its variables where others may find them; give the secret a `path`"
            found.append(Refused(feature, units, note))
    if units := _using(plan, "security", lambda unit: unit.id in bare and _is_filtered(unit)):
        found.append(Refused("security", units, "`seccomp` and `read_only_root` need an `image`"))
    return found


def _has_read_only(unit: Unit, kind: str) -> bool:
    return any(volume.kind == kind and volume.read_only for volume in unit.policies.volumes)


def _has_secret_variables(unit: Unit) -> bool:
    policies = unit.policies
    by_variable = any(secret.variable is not None for secret in policies.secrets)
    return by_variable or any(origin.secret is not None for origin in policies.env_from)


def _is_filtered(unit: Unit) -> bool:
    security = unit.policies.security
    if security is None:
        return False
    return security.seccomp not in (None, "unconfined") or bool(security.read_only_root)


def _forbidden(plan: Plan, *, no_container: bool) -> list[Refused]:
    """What only root may do, for units that have no container to do it in."""
    bare = {unit.id for unit in plan.units if no_container or unit.local or not unit.image}
    privileged = _using(plan, "security.privileged", lambda unit: unit.id in bare)
    others = _using(plan, "security", lambda unit: unit.id in bare and _is_somebody_else(unit))
    wanted = (
        (
            "security.privileged",
            privileged,
            "only root has every right; run jobman as root or give an `image`",
        ),
        (
            "security",
            others,
            "only root may run copies as another user; run jobman as root or give an `image`",
        ),
    )
    return [Refused(feature, units, note) for feature, units, note in wanted if units]


def _is_somebody_else(unit: Unit) -> bool:
    security = unit.policies.security
    if security is None:
        return False
    mine = {None, os.geteuid()}, {None, os.getegid()}
    return security.uid not in mine[0] or security.gid not in mine[1]


def _is_for_windows(unit: Unit) -> bool:
    return unit.policies.runtime is not None and unit.policies.runtime.os == "windows"


def _names_a_storage_class(unit: Unit) -> bool:
    return any(volume.class_ for volume in unit.policies.volumes if volume.kind == "ephemeral")


_TOO_MUCH: tuple[tuple[str, Callable[[Unit], bool], str], ...] = (
    ("runtime.os", _is_for_windows, "this machine runs linux"),
    ("volumes.ephemeral", _names_a_storage_class, "there are no storage classes here; leave `class` out"),
)


def _using(plan: Plan, feature: str, also: Callable[[Unit], bool]) -> tuple[str, ...]:
    if feature not in plan.features:
        return ()
    return tuple(unit.id for unit in users(plan, feature) if unit.kind == "task" and also(unit))
