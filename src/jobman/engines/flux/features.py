"""How Flux realises each feature of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.engines import features
from jobman.engines.base import Refused
from jobman.engines.features import Support, emulated, in_order, native, refused
from jobman.engines.scripts.limits import FEATURES as OF_SCRIPTS
from jobman.engines.scripts.limits import asks_too_much
from jobman.plan.features import users
from jobman.plan.model import Plan, Unit
from jobman.settings.flux import FluxSite

_DEALT = "Flux deals out nodes, cores and GPUs; use `requires` for nodes that have it"
_OWN: dict[str, Support] = {
    "queue": native("a queue of Flux; the settings may say which"),
    "account": native("--bank"),
    "start.earliest": native("--begin-time"),
    "replicas": emulated("a job for each; in a group a pool inside its allocation"),
    "matrix": emulated("a job for each, whose script knows the values"),
    "depends_on.success": native("afterok; the script looks where policies decide the outcome"),
    "depends_on.failure": native("afternotok; the script looks whether it failed or never ran"),
    "depends_on.any": native("afterany"),
    "depends_on.started": native("afterstart"),
    "depends_on.ready": emulated("held, and released by the script of the task that is ready"),
    "group": native("an instance of its own (flux batch), driven by its script"),
    "group.replicas": emulated("an instance for each"),
    "shape.node": native("--nodes"),
    "shape.slot": native("slots: --ntasks, --nslots"),
    "shape.anywhere": native("slots without --nodes"),
    "shape.exclusive": native("--exclusive"),
    "shape.socket": refused(_DEALT),
    "shape.core": native("--cores-per-task; parts of a core are rounded up"),
    "shape.gpu": native("--gpus-per-task, one set for each copy"),
    "shape.memory": emulated("as many cores as come with it, by `flux.memory_per_core` of the settings"),
    "shape.storage": refused(_DEALT),
    "shape.site-type": refused(_DEALT),
    "shape.either": emulated("the leftmost that its scheduler calls feasible, at submission"),
    "duration": native("--time-limit for all attempts; the script ends each of them on the second"),
    "flags.flux": native(),
    "requires": native("--requires with properties, named by `flux.facts` of the settings"),
    "parallelism": emulated(
        "each waits for the end of the one so many before it; in a group the script counts"
    ),
    "hold": native("an urgency of 0"),
    "suspend.requeue": refused("Flux cannot put back into its queue what runs; use `suspend: freeze`"),
    "suspend.freeze": emulated("the script stops all that it has started"),
    "gates": emulated("held until each is open"),
    "placement.labels": native("--requires, as `requires`"),
    "placement.exclusive": native("--exclusive"),
    "step.stage": emulated("one archive for all nodes by `flux archive`, checked by its digest"),
    "priority": native("the urgency that `flux.priorities` of the settings names"),
}
FEATURES: dict[str, Support] = in_order({**OF_SCRIPTS, **_OWN})


def refusals(plan: Plan, site: FluxSite, *, no_container: bool = False) -> list[Refused]:
    """What of a plan cannot be had on Flux."""
    found = features.refusals(plan, FEATURES)
    found += asks_too_much(plan, container=bool(site.container), no_container=no_container)
    return [*found, *_unknown(plan, site)]


def _unknown(plan: Plan, site: FluxSite) -> Iterator[Refused]:
    """What the settings would have to say more of."""
    if "shape.memory" in plan.features and site.memory_per_core is None:
        units = tuple(unit.id for unit in users(plan, "shape.memory"))
        note = "Flux deals out no memory; `flux.memory_per_core` of the settings says how much a core has"
        yield Refused("shape.memory", units, note)
    if units := tuple(unit.id for unit in plan.units if _is_unnamed(unit, site)):
        note = "`flux.priorities` of the settings does not say which urgency it is"
        yield Refused("priority", units, note)
    if units := tuple(unit.id for unit in plan.children() if _is_spread(unit)):
        note = "nodes are given as a whole only to who says how many; ask for nodes"
        yield Refused("placement.exclusive", units, note)


def _is_unnamed(unit: Unit, site: FluxSite) -> bool:
    """Whether it has a class that is not the usual one, and nobody says what that is there."""
    priority = unit.policies.priority
    return unit.parent is None and priority not in (None, "normal", *site.priorities)


def _is_spread(unit: Unit) -> bool:
    placement = unit.policies.placement
    return (
        placement is not None
        and placement.exclusive
        and any(part.nodes is None and part.copies > 1 for parts in unit.alternatives for part in parts)
    )
