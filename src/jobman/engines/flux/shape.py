"""Shapes as options of flux: nodes, slots, cores and GPUs, which are all that it deals out."""

from __future__ import annotations

from math import ceil

from jobman.engines.scripts.parts import merged
from jobman.spec.shapes import Alternative, Part


def request(parts: Alternative, memory_per_core: int | None = None) -> list[str]:
    """Options for an allocation, or for the copies of a task inside one: the same words mean both."""
    return _of_part(merged(parts), memory_per_core) if parts else ["-n1"]


def _of_part(part: Part, memory_per_core: int | None) -> list[str]:
    found = [f"-N{part.nodes}"] if part.nodes is not None else []
    found.append(f"-n{part.copies}")
    if not part.is_whole or "core" in part.per_node or part.per_node.get("memory"):
        found.append(f"-c{_cores(part, memory_per_core)}")
    if gpus := _share(part, "gpu"):
        found += [f"-g{gpus}", "-o", "gpu-affinity=per-task"]
    if part.is_whole:
        found.append("--exclusive")
    return found


def _cores(part: Part, memory_per_core: int | None) -> int:
    """At least one: a place to run is a core there. Memory comes with cores."""
    cores = max(1, _share(part, "core"))
    if memory_per_core:
        cores = max(cores, ceil(part.per_node.get("memory", 0) / (part.slots or 1) / memory_per_core))
    return cores


def _share(part: Part, kind: str) -> int:
    """What one slot gets of a node: Flux has nothing beside slots, so they divide that among them."""
    return ceil(part.per_node.get(kind, 0) / (part.slots or 1))
