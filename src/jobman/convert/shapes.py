"""Shapes of an allocation: as the place of one script, or as slots for copies."""

from __future__ import annotations

from typing import Any

from jobman.convert.allocation import Allocation
from jobman.convert.values import size_text

Shape = dict[str, Any]


def whole(allocation: Allocation) -> Shape:
    """Everything on one node, for one script that starts what it wants by itself."""
    gpus = allocation.gpu_total
    cores = allocation.core_count
    memory = allocation.mem or cores * (allocation.mem_per_cpu or 0) or gpus * (allocation.mem_per_gpu or 0)
    inside = _parts(core=cores, gpu=gpus, memory=memory, storage=allocation.tmp)
    if allocation.exclusive:
        return {"type": "node", "count": 1, "exclusive": True, "with": inside}
    return {"type": "slot", "count": 1, "with": inside}


def spread(allocation: Allocation) -> list[Shape]:
    """A slot for every copy; several shapes where nodes hold different numbers of them."""
    nodes = allocation.node_count
    if nodes is None and allocation.is_by_node:
        nodes = 1
    if nodes is None:
        return [_slots(allocation, allocation.tasks)]
    fewest, more = divmod(allocation.tasks, nodes)
    parts = [(more, fewest + 1), (nodes - more, fewest)]
    return [_nodes(allocation, count, tasks, nodes) for count, tasks in parts if count and tasks]


def _nodes(allocation: Allocation, count: int, tasks: int, nodes: int) -> Shape:
    gpus = _gpus_of_node(allocation, nodes)
    memory = allocation.mem or gpus * (allocation.mem_per_gpu or 0)
    inside = _sockets(allocation, tasks, -(-gpus * (allocation.cpus_per_gpu or 0) // tasks))
    inside += _parts(gpu=gpus, memory=memory, storage=allocation.tmp)
    shape: Shape = {"type": "node", "count": count}
    if allocation.exclusive:
        shape["exclusive"] = True
    return {**shape, "with": inside}


def _gpus_of_node(allocation: Allocation, nodes: int) -> int:
    if allocation.gpus_per_task:
        return 0
    return allocation.gpus_per_node or -(-(allocation.gpus or 0) // nodes)


def _sockets(allocation: Allocation, tasks: int, cores: int) -> list[Shape]:
    by_socket = allocation.ntasks_per_socket
    if not by_socket or tasks % by_socket:
        return [_slots(allocation, tasks, cores)]
    return [{"type": "socket", "count": tasks // by_socket, "with": [_slots(allocation, by_socket, cores)]}]


def _slots(allocation: Allocation, count: int, cores: int = 0) -> Shape:
    """`cores` is what the GPUs of the node bring for each copy."""
    gpus = allocation.gpus_per_task or 0
    cores = allocation.cpus_per_task or (allocation.cpus_per_gpu or 0) * gpus or cores or 1
    memory = cores * (allocation.mem_per_cpu or 0) or gpus * (allocation.mem_per_gpu or 0)
    return {"type": "slot", "count": count, "with": _parts(core=cores, gpu=gpus, memory=memory)}


def _parts(**counts: int | None) -> list[Shape]:
    """What is asked for of each kind; nothing where the number is none."""
    return [
        {"type": kind, "count": size_text(count) if kind in ("memory", "storage") else count}
        for kind, count in counts.items()
        if count
    ]


def copies_of(shape: Shape) -> int:
    """How many copies a shape has room for: one per slot, or per node where there are none."""
    inside = sum(copies_of(inner) for inner in shape.get("with", ()))
    count: int = shape["count"]
    return count * (inside or 1) if shape["type"] in ("node", "slot", "socket") else 0
