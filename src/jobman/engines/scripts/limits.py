"""What scripts can do by themselves, whoever the manager is, and what they cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobman.engines.base import Refused
from jobman.engines.features import Support, emulated, native, refused
from jobman.plan.features import users
from jobman.plan.model import Plan, Unit
from jobman.spec.volumes import VOLUME_KINDS

SCRIPT = "by the script"
LOOP = "by a loop in the script, which keeps the nodes"
_CLUSTER = "only a cluster has it; mount it on the nodes and use the path"
_VOLUME = "nodes of a batch system have what is mounted on them; use the path"
FEATURES: dict[str, Support] = {
    "start.latest": emulated("the script does not begin after it"),
    **dict.fromkeys(("labels", "annotations", "managed_by", "owner"), native("kept with the job")),
    "command": native(),
    "steps-only": native(),
    "local": native("in the script of its group"),
    "service": emulated("stopped by the script of its group; at the top by a last small job"),
    "when.failure": emulated("after the end of the rest; the script looks whether it is to run"),
    "when.always": native("after the end of the rest"),
    "image": emulated("by the program that `container` of the settings names"),
    "group.nested": emulated("a script inside the script, in the nodes of the outer group"),
    "group.grow": refused("an allocation cannot grow; give the group what its largest task needs"),
    "shape.levels": refused("levels such as racks cannot be asked for; use `flags`"),
    "shape.both": refused("one job has nodes of one kind; make two tasks of it"),
    "environment": native(),
    "cwd": native(),
    "watch": emulated("what stands below waits for its end; `jobman run` streams the output"),
    "stdout": native(),
    "stderr": native(),
    **{
        f"flags.{name}": native("for another engine; not used here")
        for name in ("slurm", "flux", "kubernetes")
    },
    "step.write": emulated(SCRIPT),
    "retries": emulated(LOOP),
    "retries.delay": emulated(LOOP),
    "retries.on": emulated(SCRIPT),
    "completions": emulated(f"{SCRIPT}: who decides it stops the others"),
    "max_failed": emulated(f"{SCRIPT}: who decides it stops the others"),
    "success": emulated(f"{SCRIPT}: who decides it stops the others"),
    **{
        f"on_failure.{action}": emulated(SCRIPT)
        for action in ("retry", "ignore", "fail-task", "fail-job", "restart-group")
    },
    "restart.on-failure": emulated(LOOP),
    "restart.always": emulated(LOOP),
    "replace.failed": native(),
    "replace.terminating": refused("a copy is replaced when it has ended; leave `replace` out"),
    **{f"hooks.{name}": emulated(SCRIPT) for name in ("before", "after", "on_stop")},
    "grace": emulated(SCRIPT),
    "signal": emulated(SCRIPT),
    **{f"checks.{name}": emulated(SCRIPT) for name in ("ready", "alive", "started", "exec", "tcp")},
    "checks.http": emulated(f"{SCRIPT}; https needs curl on the nodes"),
    "placement.near": refused("the manager chooses the nodes; use `flags`"),
    "placement.apart": refused("the manager chooses the nodes; use `flags`"),
    "placement.spread": refused("the manager chooses the nodes; use `flags`"),
    "scheduler": refused("the manager is the scheduler; leave `scheduler` out"),
    "runtime.class": refused("there are no runtime classes; leave `runtime.class` out"),
    "runtime.os": native("linux only"),
    "identity": refused("jobs run as who submits them; leave `identity` out"),
    "secrets": emulated("kept in the job's folder, which only you can read; read there by the script"),
    "env_from": emulated("as they are when it is submitted; kept in the job's folder"),
    "profiles": native("expanded when it is submitted"),
    "security": refused("jobs run as who submits them; leave `security` out"),
    "security.privileged": refused("jobs run as who submits them; leave `security` out"),
    "devices": refused("there are no device claims; ask for `gpu` in the shape"),
    **{f"volumes.{kind}": refused(_VOLUME) for kind in VOLUME_KINDS},
    **{f"volumes.{kind}": refused(_CLUSTER) for kind in ("claim", "csi", "nfs", "image")},
    "ports": native("of the node, shared with everything on it"),
    "ports.free": emulated("the script looks for one that nobody answers at"),
    "ports.expose": native("every port of a node can be reached from outside the job"),
    "result_file": emulated(SCRIPT),
    "coordinator": refused("copies are not told where the coordinator is; use JOBMAN_NODELIST"),
    "network.connect": refused("jobs of a batch system do not know each other"),
    "network.isolated": refused("nodes share the network of their site"),
}


def asks_too_much(plan: Plan, *, container: bool, no_container: bool) -> list[Refused]:
    """Values of features that cannot be had."""
    found = list(_on_the_document(plan))
    units = _using(plan, "image", lambda unit: bool(unit.image) and not unit.local)
    if units and not container and not no_container:
        note = "no program runs containers here: `container` of the settings names one"
        found.append(Refused("image", units, f"{note}; --no-container leaves the image out"))
    if units := _using(plan, "secrets", _has_a_place):
        found.append(
            Refused("secrets", units, "nothing is put in the way of others on a node; use `variable`")
        )
    if units := _using(plan, "runtime.os", _is_for_windows):
        found.append(Refused("runtime.os", units, "nodes run linux"))
    return found


def _on_the_document(plan: Plan) -> Iterator[Refused]:
    """Policies of the whole job, of which nobody would keep count without a jobman that runs."""
    note = "on the document nobody would count it; write it on the tasks"
    for name in ("retries", "parallelism", "completions", "max_failed", "success"):
        if getattr(plan.policies, name) is not None:
            yield Refused(name, (), note)
    if plan.policies.hooks is not None:
        yield Refused("hooks.before", (), "on the document nobody would run it; write it on the tasks")


def _has_a_place(unit: Unit) -> bool:
    return any(secret.path is not None for secret in unit.policies.secrets)


def _is_for_windows(unit: Unit) -> bool:
    return unit.policies.runtime is not None and unit.policies.runtime.os == "windows"


def _using(plan: Plan, feature: str, also: Callable[[Unit], bool]) -> tuple[str, ...]:
    if feature not in plan.features:
        return ()
    return tuple(unit.id for unit in users(plan, feature) if unit.kind == "task" and also(unit))
