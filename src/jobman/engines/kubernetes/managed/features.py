"""How Kubernetes realises each feature of the language where the service plans and decides."""

from __future__ import annotations

from collections.abc import Mapping

from jobman.engines import features
from jobman.engines.base import Refused
from jobman.engines.features import Support, emulated, native, refused
from jobman.engines.kubernetes import bounds, volumes
from jobman.engines.kubernetes.features import FEATURES as DIRECT
from jobman.engines.kubernetes.managed import names
from jobman.engines.kubernetes.managed.target import ManagedTarget
from jobman.engines.kubernetes.target import Target
from jobman.plan.model import Plan, Unit
from jobman.plan.replicas import for_replica

_MOST_COPIES = 1_000
_FILES = "the service does not see your files; use a `write` step or a volume"
_PLANNED = "the service plans with it"
_POD_OF_ITS_OWN = "every copy is a pod of its own; all of them start, or none does"

_BY_THE_SERVICE = (
    "queue",
    "account",
    "start.earliest",
    "start.latest",
    "replicas",
    "matrix",
    "depends_on.success",
    "depends_on.failure",
    "depends_on.any",
    "depends_on.started",
    "depends_on.ready",
    "service",
    "when.failure",
    "when.always",
    "group",
    "group.nested",
    "group.replicas",
    "shape.either",
    "duration",
    "watch",
    "retries",
    "retries.delay",
    "retries.on",
    "parallelism",
    "completions",
    "max_failed",
    "on_failure.retry",
    "on_failure.ignore",
    "on_failure.fail-task",
    "on_failure.fail-job",
    "on_failure.restart-group",
    "success",
    "restart.on-failure",
    "restart.always",
    "replace.failed",
    "hold",
    "suspend.requeue",
    "gates",
)
"""What the service does alike on every engine it runs copies on."""
_OWN: dict[str, Support] = {
    **dict.fromkeys(_BY_THE_SERVICE, native()),
    "labels": native("on every object"),
    "annotations": native("on every Job and pod"),
    "local": emulated("a small pod on the first node of its group, in the site's default image"),
    "group.grow": refused(
        "an allocation cannot grow here; give the group as much as its largest task asks for"
    ),
    "shape.node": native(_POD_OF_ITS_OWN),
    "shape.slot": native(f"{_POD_OF_ITS_OWN}; what a node holds beside its slots is divided among them"),
    "shape.anywhere": native(_POD_OF_ITS_OWN),
    "shape.both": native(_POD_OF_ITS_OWN),
    "shape.levels": refused(
        "levels around nodes are not counted here; ask for nodes, with `placement: {near: {by: …}}`"
    ),
    "step.stage": refused(_FILES),
    "replace.terminating": refused("an attempt never starts before the one before it has ended"),
    "signal": emulated(
        "by a shell around the command, which the image must have; time that is added later moves no signal"
    ),
    "requires": native(f"labels of the nodes; {_PLANNED}"),
    "placement.labels": native(_PLANNED),
    "placement.near": native(_PLANNED),
    "placement.apart": native(_PLANNED),
    "placement.spread": native(_PLANNED),
    "priority": native("in the queue; to the cluster all copies are alike"),
    "scheduler": refused("jobman is the scheduler here; leave `scheduler` out"),
    "runtime.class": native("what it costs beside the copy is counted"),
    "runtime.os": native("linux only"),
    "env_from": native("Secrets and ConfigMaps of the namespace"),
    "devices": native("resource claims; say with `requires` which nodes have them"),
    "ports.expose": native("a Service, and a door in the walls around the job"),
    "network.connect": native("doors that open while both run, where the cluster's network has walls"),
}
FEATURES: dict[str, Support] = {name: _OWN.get(name, support) for name, support in DIRECT.items()}

_OF_THE_PROTOCOL = (
    "nodeSelector",
    "affinity",
    "topologySpreadConstraints",
    "schedulingGates",
    "schedulerName",
    "restartPolicy",
    "activeDeadlineSeconds",
    "hostname",
    "subdomain",
    "hostNetwork",
    "runtimeClassName",
    "overhead",
    "resources",
    "os",
)
"""Fields of a pod that the service plans with, and would be wrong about."""


def refusals(plan: Plan, target: ManagedTarget) -> list[Refused]:
    """What of a plan cannot be had: features, and values of features that ask for too much."""
    inner = target.for_job("")
    found = features.refusals(plan, FEATURES)
    found += [Refused(feature, (), note) for feature, note in _of_document(plan, target)]
    return found + bounds.asked_by(plan, inner, (*_OF_TASKS, *bounds.OF_A_POD), (_of_groups,))


def _of_document(plan: Plan, target: ManagedTarget) -> bounds.Found:
    yield from bounds.of_metadata(plan)
    if plan.policies.hooks is not None:
        yield "hooks.before", "`hooks` of the document as a whole cannot be had here; write them on the task"
    for key in plan.labels:
        if key.startswith(names.CONNECT) or key in target.proxies or key in (names.JOB_NAME, names.INDEX):
            yield "labels", f"`{key}` opens doors between jobs or tells them apart; rename it"


def _of_groups(unit: Unit, _plan: Plan, _target: Target) -> bounds.Found:
    if unit.policies.hooks is not None:
        yield "hooks.before", "`hooks` of a group as a whole cannot be had here; write them on the task"
    if unit.network is not None and unit.network.isolated:
        yield "network.isolated", "walls stand around whole jobs here; write `network` on the document"


# -- what a single task asks for -----------------------------------------------------------------------------


def _image(unit: Unit, _plan: Plan, target: Target) -> bounds.Found:
    if target.default_image is not None or unit.image is not None:
        return
    if unit.local:
        yield "local", "the service has no default image to run it in; leave `local` out and give an `image`"
    else:
        yield "image", "on a cluster everything runs in a container; give an `image`, or set a default one"


def _shape(unit: Unit, _plan: Plan, target: Target) -> bounds.Found:
    if unit.local:
        return
    parts = [part for alternative in unit.alternatives for part in alternative]
    for part in parts:
        yield from bounds.amounts(part, target)
    if max(unit.copies, default=1) > _MOST_COPIES:
        what = "shape.node" if any(part.nodes for part in parts) else "shape.slot"
        yield what, f"at most {_MOST_COPIES:,} copies of a replica can know each other here; ask for fewer"


def _files(unit: Unit, _plan: Plan, target: Target) -> bounds.Found:
    if any(origin.file is not None for origin in unit.policies.env_from):
        yield "env_from", _FILES
    filled = for_replica(unit, 0) if unit.matrix else unit
    if sum(len(file.content) for file in volumes.files_of(filled, target)) > volumes.MOST_BYTES:
        yield "step.write", "files of more than 900 kB do not travel to a cluster; put them on a volume"


def _fields(unit: Unit, _plan: Plan, _target: Target) -> bounds.Found:
    given = unit.flags.kubernetes or {}
    for field in _OF_THE_PROTOCOL:
        if field in given:
            yield "flags.kubernetes", f"`{field}` is for the service to say; use the keys of the language"
    for containers in ("containers", "initContainers"):
        for each in given.get(containers) or ():
            if isinstance(each, Mapping) and "resources" in each:
                yield "flags.kubernetes", "`resources` of a container are not planned with; write a shape"


def _runtime(unit: Unit, _plan: Plan, _target: Target) -> bounds.Found:
    if unit.policies.runtime is not None and unit.policies.runtime.os == "windows":
        yield "runtime.os", "the service plans with linux nodes only; leave `os` out"


_OF_TASKS: tuple[bounds.Look, ...] = (_image, _shape, _files, _fields, _runtime)
