"""Orders of documents, as the service would give them on a cluster that is large enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobman.engines.base import Order
from jobman.engines.kubernetes.managed.compile import ManagedTarget, Release, compile_order
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.plan.replicas import for_replica
from jobman.sched.allocation import Allocation, Slot
from jobman.sched.placement import Pool
from jobman.spec.shapes import Amount
from tests.engines.kubernetes.objects_of import IMAGE, plan_of

ID = "0123456789ab"
_AMOUNTS = {"core": 64, "memory": 2**40, "storage": 2**44, "gpu": 8, "socket": 2}


def target(**more: Any) -> ManagedTarget:
    return ManagedTarget(**{"namespace": "lab", "service": "test", "default_image": IMAGE, **more})


def order(plan: Plan, unit: str | None = None, replica: int = 0, **more: Any) -> Order:
    """The order for a replica of a task; without a name, of the only one."""
    found = plan.unit(unit) if unit is not None else _only_task(plan)
    filled = for_replica(found, replica)
    allocation = placed(filled)
    given = {
        "job": ID,
        "job_name": plan.name or "job",
        "owner": "ada",
        "key": key_of(found, replica),
        "attempt": 1,
        "index": replica,
        "unit": filled,
        "allocation": allocation,
        "nodes": tuple(dict.fromkeys(slot.node for slot in allocation.slots)),
        "cwd": "/home/ada",
        "plan": plan,
    }
    return Order(**{**given, **more})


def orders(plan: Plan, **more: Any) -> Iterator[Order]:
    """The first orders of all tasks, two replicas of each at most."""
    for unit in plan.units:
        if unit.kind == "task":
            yield from (order(plan, unit.id, replica, **more) for replica in range(min(unit.replicas, 2)))


def release(text: str, settings: Any = None, **more: Any) -> Release:
    """What is made of a document's only task."""
    return compile_order(order(plan_of(text, settings), **more), target())


def pod(text: str, copy: int = 0, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = release(text, **more).pods[copy]["spec"]
    return found


def container(text: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod(text, **more)["containers"][0]
    return found


def variables(written: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value") for each in written["env"]}


def key_of(unit: Unit, replica: int) -> str:
    *groups, task = unit.id.split("/")
    return "/".join((*(f"{group}.0" for group in groups), f"{task}.{replica}"))


def placed(unit: Unit) -> Allocation:
    """Where the copies of a unit go on ten large nodes that have everything it asks for."""
    if unit.local or not unit.alternatives:
        return Allocation(0, (), (Slot("n0"),))
    parts = [part for parts in unit.alternatives for part in parts]
    amounts: dict[str, Amount] = {**{kind: 64 for part in parts for kind in part.per_node}, **_AMOUNTS}
    facts = {key: value for part in parts for key, value in part.requires.items()}
    nodes = [ClusterNode(name=f"n{number}", amounts=amounts, facts=facts) for number in range(10)]
    found = Pool(nodes).place(unit.alternatives)
    assert found is not None
    return found


def _only_task(plan: Plan) -> Unit:
    (task,) = [unit for unit in plan.units if unit.kind == "task"]
    return task
