"""The variables of a copy: what its document gives it, and what jobman tells it of its place. Pure."""

from __future__ import annotations

from math import ceil

from jobman.engines.base import Order
from jobman.engines.local.nodes import LocalNode, visible_gpus
from jobman.engines.local.ports import PortsOfCopy
from jobman.engines.local.prepared import Prepared
from jobman.engines.peers import peer_variables, shouted
from jobman.sched.allocation import Slot


def variables(order: Order, prepared: Prepared, number: int, node: LocalNode | None) -> dict[str, str]:
    """All variables of one copy but those of the environment of submission; the later win."""
    slot = order.allocation.slots[number]
    return {
        **prepared.elsewhere,
        **order.unit.environment,
        **prepared.secrets,
        **_own_ports(prepared.ports[number] if prepared.ports else {}),
        **peer_variables(order.peers),
        **_place(order, prepared, number, slot),
        **_gpus(slot, node),
    }


def gpu_names(slot: Slot, node: LocalNode | None) -> tuple[str, ...]:
    """What programs call the GPUs of a slot."""
    return tuple(map(str, slot.gpus)) if node is None else visible_gpus(node, slot.gpus)


def _place(order: Order, prepared: Prepared, number: int, slot: Slot) -> dict[str, str]:
    nodes = order.nodes or (slot.node,)
    found = {
        "JOBMAN_JOB_ID": order.job,
        "JOBMAN_JOB_NAME": order.job_name,
        "JOBMAN_TASK": order.unit.name,
        "JOBMAN_REPLICA": order.index,
        "JOBMAN_REPLICAS": order.unit.replicas,
        "JOBMAN_ATTEMPT": order.attempt,
        "JOBMAN_NODE_RANK": nodes.index(slot.node) if slot.node in nodes else 0,
        "JOBMAN_NNODES": len(nodes),
        "JOBMAN_NODELIST": ",".join(nodes),
        "JOBMAN_RANK": number,
        "JOBMAN_SIZE": len(order.allocation.slots),
        "JOBMAN_CORES": _cores(slot),
        "JOBMAN_GPUS": len(slot.gpus),
        "JOBMAN_COORDINATOR": order.coordinator,
        "JOBMAN_SCRATCH": prepared.scratch.get(slot.node),
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def _cores(slot: Slot) -> int:
    """How many threads are worth having: parts of a core count as one, and so does nothing."""
    return len(slot.cores) or max(1, ceil(slot.amounts.get("core", 1)))


def _gpus(slot: Slot, node: LocalNode | None) -> dict[str, str]:
    """GPUs that were not given are hidden where there are any."""
    names = gpu_names(slot, node)
    has_some = node is not None and bool(node.gpus or node.node.amounts.get("gpu"))
    return {"CUDA_VISIBLE_DEVICES": ",".join(names)} if names or has_some else {}


def _own_ports(ports: PortsOfCopy) -> dict[str, str]:
    return {f"PORT_{shouted(name)}": str(port) for name, port in ports.items() if not name.isdigit()}
