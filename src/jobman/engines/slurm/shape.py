"""Shapes as options: nodes, tasks, cores, memory, GPUs and what a site has besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from jobman.engines.scripts.parts import merged
from jobman.spec.shapes import Alternative, Amount, Part

_MIB = 2**20


def allocation(parts: Alternative, names: Mapping[str, str]) -> list[str]:
    """Options of sbatch for an allocation. Several parts become one that holds them all."""
    return list(_of_part(merged(parts), names)) if parts else ["--ntasks=1"]


def step(parts: Alternative) -> list[str]:
    """Options of srun for the copies of a task inside an allocation."""
    part = merged(parts)
    found = [f"--ntasks={part.copies}"]
    if part.nodes is not None:
        found = [f"--nodes={part.nodes}", f"--ntasks={part.copies}", f"--ntasks-per-node={part.slots or 1}"]
    if not part.is_whole:
        found += ["--exact", f"--cpus-per-task={_cores(part.each)}"]
    if gpus := ceil(part.each.get("gpu", 0)):
        found.append(f"--gpus-per-task={gpus}")
    return found


def is_whole(parts: Alternative) -> bool:
    """Whether copies inside an allocation take all that it has of their nodes."""
    return merged(parts).is_whole


def _cores(each: Mapping[str, Amount]) -> int:
    return max(1, ceil(each.get("core", 1)))


def _of_part(part: Part, names: Mapping[str, str]) -> Iterator[str]:
    if part.nodes is not None:
        yield f"--nodes={part.nodes}"
        yield f"--ntasks-per-node={part.slots or 1}"
    else:
        yield f"--ntasks={part.slots or 1}"
    if not (part.is_whole and "core" not in part.each):
        yield f"--cpus-per-task={_cores(part.each)}"
    if part.is_whole:
        yield "--exclusive"
    yield from _amounts(part, names)


def _amounts(part: Part, names: Mapping[str, str]) -> Iterator[str]:
    per_node = part.per_node
    if memory := per_node.get("memory"):
        if part.nodes is not None:
            yield f"--mem={ceil(memory / _MIB)}M"
        else:
            yield f"--mem-per-cpu={ceil(part.each.get('memory', memory) / _MIB / _cores(part.each))}M"
    if part.nodes is not None and (sockets := per_node.get("socket")):
        yield f"--sockets-per-node={ceil(sockets)}"
    if storage := per_node.get("storage"):
        yield f"--tmp={ceil(storage / _MIB)}M"
    yield from _generic(part, names)


def _generic(part: Part, names: Mapping[str, str]) -> Iterator[str]:
    gres: list[str] = []
    licenses: list[str] = []
    gpus = ceil(part.per_node.get("gpu", 0))
    if gpus and part.nodes is not None:
        gres.append(f"gpu:{gpus}")
    elif gpus:
        yield f"--gpus-per-task={ceil(part.each.get('gpu', 0))}"
    for kind, amount in part.per_node.items():
        if kind in names:
            what, _, name = names[kind].rpartition("/")
            if what == "license":
                licenses.append(f"{name}:{ceil(amount * (part.nodes or 1))}")
            else:
                gres.append(f"{name}:{ceil(amount)}")
    if gres:
        yield f"--gres={','.join(gres)}"
    if licenses:
        yield f"--licenses={','.join(licenses)}"


def known_types(parts: Alternative, names: Mapping[str, str]) -> Sequence[str]:
    """Types of a site's own that nobody has said the name of."""
    standard = ("core", "memory", "storage", "socket", "gpu")
    return [kind for part in parts for kind in part.per_node if kind not in standard and kind not in names]
