"""From an order of the service to the objects of its attempt. Pure.

```
 order ──▶ a piece for each copy ──▶ its pod, pinned to its node; those of a gang behind a gate
       └─▶ the Job that owns them, and the files and claims they need
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, floor
from typing import Any

import msgspec

from jobman.engines.base import Order
from jobman.engines.kubernetes import names as direct_names
from jobman.engines.kubernetes import volumes
from jobman.engines.kubernetes.managed import names
from jobman.engines.kubernetes.managed.networks import is_alone, namespace_objects, shared_objects
from jobman.engines.kubernetes.managed.target import ManagedTarget
from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.piece import Piece
from jobman.engines.kubernetes.pods import contents, displaced
from jobman.engines.kubernetes.resources import claim_name, claim_spec
from jobman.engines.kubernetes.security import is_for_windows
from jobman.engines.kubernetes.services import port_numbers
from jobman.engines.kubernetes.slices import Slice
from jobman.engines.peers import peer_variables
from jobman.plan.model import Unit
from jobman.sched.allocation import Slot
from jobman.spec.devices import Device
from jobman.spec.shapes import SIZED_TYPES, Amount, Part
from jobman.version import __version__

__all__ = [
    "ManagedTarget",
    "Release",
    "compile_order",
    "namespace_objects",
    "ports_of",
    "shared_objects",
]

SHARED_MEMORY = "/dev/shm"
_PER_CORE = 1000
_CLOSED = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of an attempt. Whoever creates them makes the Job the owner of all others."""

    job: Written
    support: list[Written]
    """Files and claims, which must be there before the pods."""
    pods: list[Written]
    """One for each copy, in their order."""


def compile_order(order: Order, target: ManagedTarget) -> Release:
    """The objects of an attempt, the same each time they are asked for."""
    return _Compiler(order, target).release()


def ports_of(unit: Unit) -> dict[str, int]:
    """The numbers of a unit's ports, by name: each copy has an address of its own, and all the same."""
    return port_numbers(unit.policies.ports)


class _Compiler:
    """The compilation of one order."""

    def __init__(self, order: Order, target: ManagedTarget) -> None:
        if order.plan is None:
            raise ValueError(f"the order for {order.key} of job {order.job} comes without its plan")
        self._order = order
        self._target = target
        self._plan = msgspec.structs.replace(order.plan, name=order.job_name)
        self._inner = target.for_job(order.job, order.owner)
        self._unit = _prolonged(order)
        self._name = names.attempt_name(order)
        self._slots = order.allocation.slots
        nodes = dict.fromkeys(slot.node for slot in self._slots)
        self._ranks = {node: rank for rank, node in enumerate(nodes)}
        self._hosts = self._hosts_of_nodes()
        self._peers = self._told_of_others()
        self._ports = ports_of(self._unit)
        self._files = volumes.files_of(self._unit, self._inner)
        self._labels = self._labels_of_all()

    def release(self) -> Release:
        pods = [
            self._pod(copy, slot, part)
            for copy, (slot, part) in enumerate(zip(self._slots, self._parts(), strict=True))
        ]
        return Release(job=self._job(pods), support=list(self._support()), pods=pods)

    # -- the Job and what it owns ----------------------------------------------------------------------------

    def _job(self, pods: list[Written]) -> Written:
        """An Indexed Job that the cluster's own controller leaves alone."""
        spec = {
            "managedBy": names.CONTROLLER,
            "completionMode": "Indexed",
            "completions": len(pods),
            "parallelism": len(pods),
            "backoffLimit": 0,
            # Known beforehand, unlike the one that the cluster would make.
            "manualSelector": True,
            "selector": {"matchLabels": {names.JOB_NAME: self._name}},
            "template": {"metadata": {"labels": self._labels}, "spec": _outline(pods[0]["spec"])},
        }
        metadata = self._metadata(self._name, finalizers=[names.FINALIZER])
        metadata["annotations"] |= {
            direct_names.DIGEST: self._plan.digest,
            direct_names.VERSION: __version__,
        }
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    def _support(self) -> Iterator[Written]:
        if self._files:
            metadata = self._metadata(self._files_name)
            content = volumes.files_data(self._files)
            yield {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata,
                "immutable": True,
                **content,
            }
        for device in self._unit.policies.devices:
            yield self._claim(device)

    def _claim(self, device: Device) -> Written:
        spec = claim_spec(device)
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim" if device.shared else "ResourceClaimTemplate",
            "metadata": self._metadata(self._claim_name(device)),
            "spec": spec if device.shared else {"spec": spec},
        }

    @property
    def _files_name(self) -> str:
        return f"{self._name}-files"

    def _claim_name(self, device: Device) -> str:
        return f"{self._name}-{direct_names.dns_label(claim_name(device))}"

    # -- pods ------------------------------------------------------------------------------------------------

    def _pod(self, copy: int, slot: Slot, part: Part) -> Written:
        piece = self._piece(copy, slot, part)
        found = volumes.storage(self._unit, piece.files, self._inner)
        if not is_for_windows(self._unit) and not _has_mount(found, SHARED_MEMORY):
            # What a runtime gives by itself is 64 MiB; so it is as large as the memory of the copy.
            found.add("jobman-shm", {"emptyDir": {"medium": "Memory"}}, SHARED_MEMORY)
        spec = contents(piece, found)
        if tolerations := self._tolerations:
            spec["tolerations"] = tolerations
        spec = {**self._place(copy, slot), **displaced(spec, self._unit.flags.kubernetes or {})}
        index = {names.COPY: str(copy), names.INDEX: str(copy)}
        metadata = self._metadata(names.pod_name(self._name, copy), index, [names.FINALIZER])
        metadata["annotations"][names.INDEX] = str(copy)
        if part.flavor is not None:
            metadata["labels"][names.FLAVOR] = direct_names.label_value(part.flavor.name)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    @property
    def _is_gang(self) -> bool:
        return len(self._slots) > 1

    @property
    def _tolerations(self) -> list[dict[str, Any]]:
        """A gang that was released has started, although a node of it is closed before all are there."""
        closed = [_CLOSED] if self._is_gang else []
        return [dict(each) for each in (*self._target.tolerations, *closed)]

    def _place(self, copy: int, slot: Slot) -> dict[str, Any]:
        """What belongs to this copy alone, and to nobody else to say."""
        node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [slot.node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [node]}}
        # One that is alone starts when it is there: nobody has to be waited for.
        gates = {"schedulingGates": [{"name": names.GATE}]} if self._is_gang else {}
        return {
            "restartPolicy": "Never",
            "hostname": names.host_label(self._order.key, copy),
            "subdomain": names.service_name(self._order.job),
            **gates,
            "affinity": {"nodeAffinity": required},
        }

    def _piece(self, copy: int, slot: Slot, part: Part) -> Piece:
        node = self._ranks[slot.node]
        return Piece(
            plan=self._plan,
            target=self._inner,
            unit=self._unit,
            name=self._name,
            slice=Slice(part=_share(part, slot), count=1, first_rank=copy, first_node=node),
            replica=self._order.index,
            size=len(self._slots),
            hosts=self._hosts,
            subdomain=names.service_name(self._order.job),
            alternatives=(),
            files=self._files_name if self._files else None,
            peers=self._peers,
            ports=self._ports,
            claims={claim_name(each): self._claim_name(each) for each in self._unit.policies.devices},
            attempt=self._order.attempt,
            cores=len(slot.cores) or max(1, ceil(slot.amounts.get("core", 1))),
        )

    def _hosts_of_nodes(self) -> tuple[str, ...]:
        """For each node the first of its copies, in the order of their numbers."""
        order = self._order
        if not order.connected and is_alone(self._plan, self._target):
            # Nobody else may have made names for it, and it knows itself by this one.
            return (names.host_label(order.key, 0),)
        found: dict[str, str] = {}
        for copy, slot in enumerate(self._slots):
            if slot.node not in found:
                found[slot.node] = names.host_name(order.job, order.key, copy)
        return tuple(found.values())

    def _told_of_others(self) -> dict[str, str]:
        found = peer_variables(self._order.peers)
        if self._order.coordinator is not None:
            found["JOBMAN_COORDINATOR"] = self._order.coordinator
        return found

    def _parts(self) -> Iterator[Part]:
        """The part of the shape that each copy belongs to; a local task asks for nothing."""
        alternatives = self._unit.alternatives
        if self._unit.local or not alternatives:
            yield from [Part()] * len(self._slots)
            return
        for part in alternatives[self._order.allocation.alternative]:
            yield from [part] * part.copies

    # -- labels ----------------------------------------------------------------------------------------------

    def _labels_of_all(self) -> dict[str, str]:
        order = self._order
        return {
            **direct_names.job_labels(self._plan, order.job, order.job_name, order.owner),
            names.SERVICE: self._target.service,
            names.TASK: direct_names.label_value(self._unit.id),
            names.REPLICA: str(order.index),
            names.ATTEMPT: str(order.attempt),
            names.JOB_NAME: self._name,
        }

    def _metadata(
        self, name: str, more: Mapping[str, str] | None = None, finalizers: list[str] | None = None
    ) -> dict[str, Any]:
        order = self._order
        labels = {**self._labels, **(more or {})}
        if more is not None:
            labels |= names.connections(order.connected)
        metadata: dict[str, Any] = {
            "name": name,
            "namespace": self._target.namespace,
            "labels": labels,
            "annotations": {
                **self._plan.annotations,
                names.KEY: order.key,
                names.UNIT: self._unit.id,
                direct_names.SUBMITTED_BY: order.owner,
            },
        }
        return {**metadata, "finalizers": finalizers} if finalizers else metadata


def _outline(spec: Written) -> Written:
    """What a Job shows of pods that it does not make itself: enough to know them by."""
    known = ("name", "image", "command", "args")
    amounts = ("requests", "limits")
    containers = [
        {
            **{key: each[key] for key in known if key in each},
            "resources": {key: found for key in amounts if (found := each.get("resources", {}).get(key))},
        }
        for each in spec["containers"]
    ]
    return {"restartPolicy": spec["restartPolicy"], "containers": containers}


def _prolonged(order: Order) -> Unit:
    """The unit with all the time it has, which a warning before its end is counted from."""
    if order.unit.duration is None or not order.extra:
        return order.unit
    return msgspec.structs.replace(order.unit, duration=order.unit.duration + order.extra)


def _share(part: Part, slot: Slot) -> Part:
    """What a copy asks for: its own, its share of what stands beside, and the GPUs of a node it has whole.

    The shares of all copies are never more than what is held for them.
    """
    held: dict[str, Amount] = dict(part.each)
    for kind, amount in part.beside.items():
        held[kind] = held.get(kind, 0) + _divided(kind, amount, part.slots or 1)
    if slot.gpus:
        held["gpu"] = max(held.get("gpu", 0), len(slot.gpus))
    return msgspec.structs.replace(part, each=held, beside={})


def _divided(kind: str, amount: Amount, among: int) -> Amount:
    if kind in SIZED_TYPES:
        return int(amount) // among
    if kind == "core":
        return floor(amount * _PER_CORE / among) / _PER_CORE
    return amount / among


def _has_mount(found: volumes.Storage, place: str) -> bool:
    return any(mount["mountPath"].rstrip("/") == place for mount in found.mounts)
