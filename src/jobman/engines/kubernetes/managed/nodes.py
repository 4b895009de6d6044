"""The nodes of a cluster as the planner knows them: what they have, what they are, how they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor

import msgspec

from jobman.engines.base import NodeSeen, NodeState
from jobman.engines.kubernetes.objects import Condition, Node, Taint
from jobman.engines.kubernetes.quantities import parse_quantity
from jobman.plan.nodes import COPY, ClusterNode
from jobman.spec.shapes import Amount

PODS = "pods"
"""Of which a node takes only so many."""
KINDS = {"cpu": "core", "memory": "memory", "ephemeral-storage": "storage", PODS: COPY}
"""What the language calls the resources that every node has."""
DRAINED = "jobman.io/drained"
"""Says that a node was closed by us, so that we open no node that somebody else closed."""
_AWAY = 30.0
"""Seconds for which a node that does not answer is expected back."""
_CLOSING = ("NoSchedule", "NoExecute")
_OF_THE_STATE = tuple(f"node.kubernetes.io/{each}" for each in ("not-ready", "unreachable", "unschedulable"))
"""Taints that follow from the state of a node, which is looked at itself."""
_FAMILIES = {"amd64": "amd64", "x86_64": "amd64", "arm64": "arm64", "aarch64": "arm64"}
_WITHOUT_NODES = ("attachable-volumes-", "hugepages-")


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes are ours to plan with, and how they are read."""

    labels: Mapping[str, str] = {}
    """What a node must be labelled with."""
    gpu_resource: str = "nvidia.com/gpu"
    tolerations: tuple[Mapping[str, str], ...] = ()
    """Taints that our pods bear, as pods write it."""
    topology: Mapping[str, str] = {}
    """The labels that say where a node is, by the names of the levels."""

    def has(self, node: Node) -> bool:
        return all(node.metadata.labels.get(key) == value for key, value in self.labels.items())


def seen(node: Node, pool: Pool, now: float, foreign: Mapping[str, float] | None = None) -> NodeSeen:
    """A node as it is at a moment."""
    state, reason = state_of(node, pool, now)
    return NodeSeen(node=described(node, pool), state=state, reason=reason, foreign=dict(foreign or {}))


def described(node: Node, pool: Pool) -> ClusterNode:
    """What a node has for pods, and what is true of it: its labels, and what all machines are asked for."""
    labels = dict(node.metadata.labels)
    amounts = amounts_of(node.status.allocatable, pool)
    return ClusterNode(
        name=node.metadata.name,
        amounts=amounts,
        facts={**_facts(node, has_gpus=bool(amounts["gpu"])), **_levels(labels, pool), **labels},
        labels=labels,
    )


def _facts(node: Node, *, has_gpus: bool) -> dict[str, str]:
    """What is true of every machine, by the names it has wherever jobs run."""
    info, labels = node.status.node_info, node.metadata.labels
    facts = {
        "io.archspec.cpu.target": _FAMILIES.get(info.architecture, info.architecture),
        "os.name": info.operating_system,
        "os.kernel": info.kernel_version,
        "host.name": labels.get("kubernetes.io/hostname", node.metadata.name).partition(".")[0],
        "hardware.gpu.available": "yes" if has_gpus else "no",
        "hardware.gpu.model": labels.get("nvidia.com/gpu.product", ""),
    }
    return {key: value for key, value in facts.items() if value}


def _levels(labels: Mapping[str, str], pool: Pool) -> dict[str, str]:
    """Where a node is, by the names of the levels around it."""
    found = {level: labels.get(label, "") for level, label in pool.topology.items() if level != "node"}
    return {level: value for level, value in found.items() if value}


def grown(known: ClusterNode | None, now: ClusterNode) -> ClusterNode:
    """A node with the most it ever had of each kind: devices may be found long after it is there.

    What it has less of by now counts as taken.
    """
    if known is None:
        return now
    kinds = dict.fromkeys((*known.amounts, *now.amounts))
    most = {kind: max(known.amounts.get(kind, 0), now.amounts.get(kind, 0)) for kind in kinds}
    return msgspec.structs.replace(now, amounts=most)


def taken(known: ClusterNode, node: Node, used: Mapping[str, Fraction], pool: Pool) -> dict[str, float]:
    """What is not ours to give of a node: what others use of it, and what it has lost.

    Nobody plans with the part of a core that is left over, so others have that before anything else.
    """
    there: dict[str, Fraction] = {}
    for name, quantity in node.status.allocatable.items():
        kind = kind_of(name, pool)
        if kind is not None:
            there[kind] = there.get(kind, Fraction(0)) + parse_quantity(quantity)
    found = {}
    for kind, amount in known.amounts.items():
        left = there.get(kind, Fraction(0)) - used.get(kind, Fraction(0))
        if left < amount:
            found[kind] = float(amount - max(left, Fraction(0)))
    return found


def amounts_of(written: Mapping[str, str | int | float], pool: Pool) -> dict[str, Amount]:
    """Resources by the names of the language; only whole cores are planned with."""
    found: dict[str, Amount] = {}
    for name, quantity in written.items():
        kind = kind_of(name, pool)
        if kind is not None:
            found[kind] = found.get(kind, 0) + floor(parse_quantity(quantity))
    found.setdefault("gpu", 0)
    return found


def kind_of(resource: str, pool: Pool) -> str | None:
    """What the language calls a resource; None where it does not count it."""
    if resource == pool.gpu_resource:
        return "gpu"
    if resource in KINDS:
        return KINDS[resource]
    return None if resource.startswith(_WITHOUT_NODES) else resource


def state_of(node: Node, pool: Pool, now: float) -> tuple[NodeState, str]:
    """How a node is, and why it is not up."""
    name = node.metadata.name
    if node.metadata.deletion_timestamp is not None:
        return "down", f"node {name} is being deleted"
    ready = _condition(node, "Ready")
    if ready is None or ready.status != "True":
        words = (
            f"node {name} does not answer"
            if ready is None or ready.status == "Unknown"
            else _words(ready, name)
        )
        return ("suspect" if now - _since(ready, node) < _AWAY else "down"), words
    if node.spec.unschedulable:
        return "drained", f"node {name} is cordoned"
    for taint in node.spec.taints:
        if taint.effect in _CLOSING and taint.key not in _OF_THE_STATE and not _bears(pool, taint):
            return "drained", f"node {name} has the taint {taint.key}"
    for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"):
        if (found := _condition(node, kind)) is not None and found.status == "True":
            return "drained", f"node {name}: {found.message or kind}"
    return "up", ""


def due_of(node: Node, now: float) -> float | None:
    """When a node that does not answer is no longer expected back."""
    ready = _condition(node, "Ready")
    due = _since(ready, node) + _AWAY
    return due if (ready is None or ready.status != "True") and due > now else None


def away_since(node: Node) -> float | None:
    """Since when a node does not answer."""
    ready = _condition(node, "Ready")
    return None if ready is not None and ready.status == "True" else _since(ready, node)


def _condition(node: Node, kind: str) -> Condition | None:
    return next((each for each in node.status.conditions if each.type == kind), None)


def _since(ready: Condition | None, node: Node) -> float:
    moment = ready.last_transition_time if ready is not None else node.metadata.creation_timestamp
    return 0.0 if moment is None else moment.timestamp()


def _words(ready: Condition, name: str) -> str:
    return (
        f"node {name} is not ready: {ready.message.strip()}" if ready.message else f"node {name} is not ready"
    )


def _bears(pool: Pool, taint: Taint) -> bool:
    return any(
        (not each.get("effect") or each["effect"] == taint.effect)
        and (
            (each.get("operator") == "Exists" and each.get("key", "") in ("", taint.key))
            or (each.get("key") == taint.key and each.get("value", "") == taint.value)
        )
        for each in pool.tolerations
    )
