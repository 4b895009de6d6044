"""What an allocation holds, as options of sbatch describe it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from jobman.convert.options import Given
from jobman.convert.remarks import Remarks
from jobman.convert.values import Gres, Wrong, count_of, gpus_of, gres_of, mebibytes_of, nodes_of


class Allocation(msgspec.Struct, kw_only=True):
    """Numbers as they were given; None where nothing was. Memory and storage are in MiB."""

    nodes: int | None = None
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    ntasks_per_socket: int | None = None
    cpus_per_task: int | None = None
    cpus_per_gpu: int | None = None
    mem: int | None = None
    mem_per_cpu: int | None = None
    mem_per_gpu: int | None = None
    gpus: int | None = None
    gpus_per_node: int | None = None
    gpus_per_task: int | None = None
    tmp: int | None = None
    exclusive: bool = False

    @property
    def tasks(self) -> int:
        """How many copies `srun` starts."""
        if self.ntasks is not None:
            return self.ntasks
        return (self.nodes or 1) * (self.ntasks_per_node or 1)

    @property
    def node_count(self) -> int | None:
        """How many nodes; None where that is left open."""
        if self.nodes is None and self.ntasks is not None and self.ntasks_per_node:
            return -(-self.ntasks // self.ntasks_per_node)
        if self.nodes is None:
            return 1 if self.tasks == 1 or self.ntasks_per_node else None
        return min(self.nodes, self.tasks)

    @property
    def is_by_node(self) -> bool:
        """Whether something is asked for by the node, so that their number has to be known."""
        by_node = (self.mem, self.gpus, self.gpus_per_node, self.tmp)
        return self.exclusive or any(number is not None for number in by_node)

    @property
    def gpu_total(self) -> int:
        """GPUs of all nodes together."""
        if self.gpus is not None:
            return self.gpus
        return (self.gpus_per_task or 0) * self.tasks or (self.gpus_per_node or 0) * (self.node_count or 1)

    @property
    def core_count(self) -> int:
        """Cores of all copies together."""
        if self.cpus_per_task is None and self.cpus_per_gpu:
            return max(self.tasks, self.cpus_per_gpu * self.gpu_total)
        return self.tasks * (self.cpus_per_task or 1)


def read_allocation(
    given: Mapping[str, Given], remarks: Remarks, keep: Callable[[Given], None]
) -> Allocation:
    """The allocation that options ask for; `keep` is told of those that are for Slurm as well."""
    allocation = Allocation()
    for name, read in _READERS.items():
        one = given.get(name)
        if one is None:
            continue
        try:
            read(allocation, one, remarks, keep)
        except Wrong as wrong:
            tell_wrong(one, wrong, remarks)
    return allocation


def tell_wrong(given: Given, wrong: Wrong, remarks: Remarks) -> None:
    """A value that the original command would refuse, too."""
    remarks.add(
        "JC105",
        given.place,
        given.line_text,
        text=given.value,
        option=f"--{given.option.name}",
        reason=wrong.reason,
        wanted=wrong.wanted,
    )


_Reader = Callable[[Allocation, Given, Remarks, Callable[[Given], None]], None]


def _field(read: Callable[[str], Any]) -> _Reader:
    def set_field(
        allocation: Allocation, one: Given, remarks: Remarks, keep: Callable[[Given], None]
    ) -> None:
        del remarks, keep
        setattr(allocation, one.option.name.replace("-", "_"), read(one.value or ""))

    return set_field


def _nodes(allocation: Allocation, one: Given, remarks: Remarks, keep: Callable[[Given], None]) -> None:
    del keep
    allocation.nodes, most = nodes_of(one.value or "")
    if most != allocation.nodes:
        _differs(one, remarks, f"{allocation.nodes} nodes are asked for", "write as many as it should have")


def _memory(allocation: Allocation, one: Given, remarks: Remarks, keep: Callable[[Given], None]) -> None:
    """Nothing is written as 0, which stands for all the memory of a node."""
    size = mebibytes_of(one.value or "")
    if size:
        setattr(allocation, one.option.name.replace("-", "_"), size)
        return
    _keep_alone(one, remarks, keep, "no memory is asked for")


def _exclusive(allocation: Allocation, one: Given, remarks: Remarks, keep: Callable[[Given], None]) -> None:
    if one.value in (None, "exclusive"):
        allocation.exclusive = True
        return
    _keep_alone(one, remarks, keep, "nodes may be shared with others")


def _gpus(allocation: Allocation, one: Given, remarks: Remarks, keep: Callable[[Given], None]) -> None:
    found = gpus_of(one.value or "")
    setattr(allocation, one.option.name.replace("-", "_"), found.number)
    _kind_of_gpu(found, one, remarks, keep)


def _gres(allocation: Allocation, one: Given, remarks: Remarks, keep: Callable[[Given], None]) -> None:
    found = gres_of(one.value or "")
    for each in found:
        if each.name == "gpu":
            allocation.gpus_per_node = (allocation.gpus_per_node or 0) + each.number
            _kind_of_gpu(each, one, remarks, keep)
    others = ", ".join(each.name for each in found if each.name != "gpu")
    if others:
        _keep_alone(one, remarks, keep, f"{others} is not counted")


def _kind_of_gpu(found: Gres, one: Given, remarks: Remarks, keep: Callable[[Given], None]) -> None:
    if found.kind:
        _keep_alone(one, remarks, keep, "any GPU will do")


def _keep_alone(one: Given, remarks: Remarks, keep: Callable[[Given], None], elsewhere: str) -> None:
    keep(one)
    remarks.add("JC202", one.place, one.line_text, option=one.written, engine="Slurm", elsewhere=elsewhere)


def _differs(one: Given, remarks: Remarks, difference: str, advice: str) -> None:
    remarks.add("JC203", one.place, one.line_text, option=one.written, difference=difference, advice=advice)


_READERS: dict[str, _Reader] = {
    "nodes": _nodes,
    "ntasks": _field(count_of),
    "ntasks-per-node": _field(count_of),
    "ntasks-per-socket": _field(count_of),
    "cpus-per-task": _field(count_of),
    "cpus-per-gpu": _field(count_of),
    "mem": _memory,
    "mem-per-cpu": _memory,
    "mem-per-gpu": _memory,
    "gpus": _gpus,
    "gpus-per-node": _gpus,
    "gpus-per-task": _gpus,
    "gres": _gres,
    "tmp": _memory,
    "exclusive": _exclusive,
}
ABOUT_SHAPES = tuple(_READERS)
"""The options that together make the shape."""
