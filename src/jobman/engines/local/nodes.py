"""The nodes of this machine: one as it is, or emulated ones that share it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from jobman.engines.local.facts import find_facts, gpu_facts, host_name
from jobman.engines.local.gpus import Gpu, find_gpus
from jobman.engines.local.hardware import (
    MEBIBYTE,
    ROOT,
    find_cores,
    find_memory,
    find_sockets,
    find_storage,
)
from jobman.plan.nodes import ClusterNode
from jobman.spec.shapes import Amount

MAX_NODES = 10_000
MAX_CORES = 1024
MAX_GPUS = 64
_VIRTUAL = re.compile(r"(\d{1,9})x(\d{1,9})(?:x(\d{1,9}))?\Z", re.ASCII)


class VirtualNodesError(ValueError):
    """What was written does not describe virtual nodes."""


class LocalNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node and what its core and GPU numbers stand for on this machine.

    Without `cores` nothing is pinned. Without `gpus` the GPU numbers of a virtual node stand for none.
    """

    node: ClusterNode
    cores: tuple[int, ...] = ()
    gpus: tuple[Gpu, ...] = ()

    @property
    def name(self) -> str:
        return self.node.name


def this_machine(
    settings_facts: Mapping[str, str] | None = None,
    *,
    scratch: Path | None = None,
    root: Path = ROOT,
    allowed: Collection[int] | None = None,
) -> list[LocalNode]:
    """This machine as one node, with facts found and those of the settings, which win.

    `scratch` is the folder whose file system is the node's storage; `allowed` are the cores that may be used.
    """
    cores = find_cores(root, allowed)
    gpus = find_gpus(root)
    amounts = {
        "core": cores.amount,
        "socket": find_sockets(root, allowed),
        "memory": find_memory(root),
        "storage": find_storage(scratch) if scratch is not None else None,
        "gpu": len(gpus),
    }
    facts = {**find_facts(gpus, root), **(settings_facts or {})}
    return [LocalNode(_node(host_name(root), amounts, facts), cores.numbers, gpus)]


def virtual_nodes(text: str, machine: LocalNode | None = None) -> list[LocalNode]:
    """Emulated nodes, `4x4` or `4x4x2`: NODESxCORES[xGPUS], with equal shares of memory and storage.

    `machine` is this machine, where it is known already. Where it has enough cores, each virtual core is one
    of them; else nothing is pinned. Virtual GPUs are dealt round robin over those that there are.
    """
    count, cores, gpus = _parse(text)
    machine = machine or this_machine()[0]
    has = machine.node.amounts
    shares = {kind: int(has.get(kind, 0)) // count // MEBIBYTE * MEBIBYTE for kind in ("memory", "storage")}
    amounts = {"core": cores, **shares, "gpu": gpus}
    facts = {key: fact for key, fact in machine.node.facts.items() if not key.startswith("hardware.gpu.")}
    facts |= gpu_facts(machine.gpus if gpus else (), available=gpus > 0)
    pinned = machine.cores if count * cores <= len(machine.cores) else ()
    return [
        LocalNode(
            _node(f"node-{number}", amounts, facts),
            pinned[number * cores : (number + 1) * cores],
            _dealt(machine.gpus, number * gpus, gpus),
        )
        for number in range(count)
    ]


def physical_cores(node: LocalNode, ids: Iterable[int]) -> tuple[int, ...]:
    """The machine's cores that a node's core numbers stand for; none where nothing is to be pinned.

    What was given on a machine that had more is left out.
    """
    return tuple(node.cores[number] for number in ids if number < len(node.cores))


def visible_gpus(node: LocalNode, ids: Iterable[int]) -> tuple[str, ...]:
    """What a program is told to see: uuids, or bare numbers where the GPUs are make-believe."""
    if not node.gpus:
        return tuple(str(number) for number in ids)
    return tuple(node.gpus[number].uuid for number in ids if number < len(node.gpus))


def _node(name: str, amounts: Mapping[str, Amount | None], facts: dict[str, str]) -> ClusterNode:
    """On this engine facts are labels too, so that a placement can speak of them."""
    stated = {kind: amount for kind, amount in amounts.items() if amount}
    return ClusterNode(name=name, amounts=stated, facts=facts, labels=facts)


def _dealt(gpus: tuple[Gpu, ...], first: int, count: int) -> tuple[Gpu, ...]:
    return tuple(gpus[number % len(gpus)] for number in range(first, first + count)) if gpus else ()


def _parse(text: str) -> tuple[int, int, int]:
    match = _VIRTUAL.match(text.strip().lower())
    if match is None:
        raise VirtualNodesError(
            f"`{text}` does not describe virtual nodes: write NODESxCORES or NODESxCORESxGPUS, "
            "such as 4x4 or 4x4x2"
        )
    nodes, cores, gpus = int(match[1]), int(match[2]), int(match[3] or 0)
    for number, noun, least, most in (
        (nodes, "nodes", 1, MAX_NODES),
        (cores, "cores on a node", 1, MAX_CORES),
        (gpus, "GPUs on a node", 0, MAX_GPUS),
    ):
        if not least <= number <= most:
            raise VirtualNodesError(
                f"`{text}` asks for {number:,} {noun}: write a number from {least} to {most:,}, "
                "as in 4x4 (four nodes of four cores)"
            )
    return nodes, cores, gpus
