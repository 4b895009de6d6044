"""How Slurm realises each feature of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.engines import features
from jobman.engines.base import Refused
from jobman.engines.features import Support, emulated, in_order, native
from jobman.engines.scripts.limits import FEATURES as OF_SCRIPTS
from jobman.engines.scripts.limits import asks_too_much
from jobman.engines.slurm.components import NO_ARRAYS, NO_STEPS, disputed, is_array_of_several, may_get_stuck
from jobman.engines.slurm.shape import known_types
from jobman.plan.features import users
from jobman.plan.model import Plan
from jobman.settings.slurm import SlurmSite

_OWN: dict[str, Support] = {
    "queue": native("a partition; the settings may say which"),
    "account": native("--account"),
    "start.earliest": native("--begin"),
    "replicas": native("an array; in a group a pool inside its allocation"),
    "matrix": native("an array whose script knows the values"),
    "depends_on.success": native("afterok; the script looks where policies decide the outcome"),
    "depends_on.failure": native("afternotok; the script looks whether it failed or never ran"),
    "depends_on.any": native("afterany"),
    "depends_on.started": native("after"),
    "depends_on.ready": emulated("held, and released by the script of the task that is ready"),
    "group": native("one allocation, driven by its script"),
    "group.replicas": native("an array of allocations"),
    "shape.node": native("--nodes"),
    "shape.slot": native("--ntasks-per-node"),
    "shape.anywhere": native("--ntasks"),
    "shape.exclusive": native("--exclusive"),
    "shape.socket": native("--sockets-per-node"),
    "shape.core": native("--cpus-per-task; parts of a core are rounded up"),
    "shape.gpu": native("--gres=gpu, --gpus-per-task"),
    "shape.memory": native("--mem; where slots go anywhere --mem-per-cpu"),
    "shape.storage": native("--tmp"),
    "shape.site-type": native("gres or licenses, as `slurm.resources` of the settings says"),
    "shape.both": native("a heterogeneous job; in a group steps side by side, on nodes of one kind"),
    "shape.either": emulated("sbatch --test-only picks the leftmost that is feasible, at submission"),
    "duration": native("--time for all attempts; the script ends each of them on the second"),
    "flags.slurm": native(),
    "requires": native("--constraint, with `slurm.facts` of the settings"),
    "parallelism": native("--array=…%N; in a group the script counts"),
    "hold": native("scontrol hold"),
    "suspend.requeue": native("the script stops what runs, and is requeued"),
    "suspend.freeze": emulated("the script stops all processes, and its clocks"),
    "gates": emulated("held until each is open"),
    "placement.labels": native("--constraint, as `requires`"),
    "placement.exclusive": native("--exclusive"),
    "step.stage": emulated("one archive for all nodes by sbcast, checked by its digest"),
    "priority": native("the QOS that `slurm.priorities` of the settings names"),
}
FEATURES: dict[str, Support] = in_order({**OF_SCRIPTS, **_OWN})


def refusals(plan: Plan, site: SlurmSite, *, no_container: bool = False) -> list[Refused]:
    """What of a plan cannot be had on Slurm."""
    found = features.refusals(plan, FEATURES)
    found += asks_too_much(plan, container=bool(site.container), no_container=no_container)
    return [*found, *_of_several_parts(plan), *_unnamed_types(plan, site)]


def _of_several_parts(plan: Plan) -> Iterator[Refused]:
    if "shape.both" not in plan.features:
        return
    units = users(plan, "shape.both")
    if arrays := tuple(unit.id for unit in units if is_array_of_several(unit, plan)):
        yield Refused("shape.both", arrays, NO_ARRAYS)
    if inside := tuple(unit.id for unit in units if may_get_stuck(unit)):
        yield Refused("shape.both", inside, NO_STEPS)
    for unit in units:
        if facts := disputed(unit, plan):
            note = f"the nodes of a group are of one kind, and its tasks differ in {', '.join(facts)}"
            yield Refused("requires", (unit.id,), f"{note}; put them into groups of their own")


def _unnamed_types(plan: Plan, site: SlurmSite) -> Iterator[Refused]:
    if "shape.site-type" not in plan.features:
        return
    for unit in users(plan, "shape.site-type"):
        kinds = {kind for parts in unit.alternatives for kind in known_types(parts, site.resources)}
        if kinds:
            note = f"`slurm.resources` of the settings does not say what {', '.join(sorted(kinds))} is called"
            yield Refused("shape.site-type", (unit.id,), note)
