"""What a copy asks for, in the cluster's words: requests, limits and claims on devices."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.target import Target
from jobman.spec.devices import Device
from jobman.spec.quantities import format_size
from jobman.spec.shapes import SIZED_TYPES, Amount, Part

_NATIVE = {"core": "cpu", "memory": "memory", "storage": "ephemeral-storage"}
_DIVISIBLE = ("cpu", "memory", "ephemeral-storage")


def requests(part: Part, target: Target) -> dict[str, Any]:
    """Requests and limits of one copy. A flavor's pass as the site wrote them."""
    if part.flavor is not None and (part.flavor.requests or part.flavor.limits):
        given = {"requests": dict(part.flavor.requests), "limits": dict(part.flavor.limits)}
        return {key: value for key, value in given.items() if value}
    amounts = {
        resource_name(kind, target): _quantity(kind, amount)
        for kind, amount in per_copy(part).items()
        if amount
    }
    # Equal requests and limits: what is promised is held, and whole cores can be pinned.
    return {"requests": amounts, "limits": dict(amounts)} if amounts else {}


def per_copy(part: Part) -> dict[str, Amount]:
    """What one copy holds; what a node holds beside its slots is divided among them."""
    held = dict(part.each)
    for kind, amount in part.beside.items():
        share = amount / (part.slots or 1)
        held[kind] = held.get(kind, 0) + (ceil(share) if kind in SIZED_TYPES else share)
    return held


def resource_name(kind: str, target: Target) -> str:
    """What a cluster calls a type of the language."""
    return target.gpu_resource if kind == "gpu" else _NATIVE.get(kind, kind)


def is_offered(kind: str) -> bool:
    """Whether a type can be asked of a cluster at all."""
    return kind == "gpu" or kind in _NATIVE or "/" in kind or kind.startswith("hugepages-")


def is_shareable(kind: str, target: Target) -> bool:
    """Whether parts of one can be had."""
    return resource_name(kind, target) in _DIVISIBLE


def cores(part: Part) -> int | None:
    """How many threads are worth having; None where it is the whole node that decides."""
    amount = per_copy(part).get("core")
    if amount is None and part.is_whole and not part.slots:
        return None
    return max(1, ceil(amount or 1))


def claim_name(device: Device) -> str:
    """How a pod calls a claim."""
    return device.name or device.class_


def claim_spec(device: Device) -> Written:
    """The claim on devices of a class."""
    exactly: dict[str, Any] = {"deviceClassName": device.class_, "count": device.count}
    if device.selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in device.selectors]
    return {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}


def _quantity(kind: str, amount: Amount) -> str:
    if kind in SIZED_TYPES:
        return format_size(amount)
    if float(amount).is_integer():
        return str(int(amount))
    return f"{ceil(amount * 1000)}m"


def merged(*given: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings one over the other, without what is empty."""
    return {key: value for each in given for key, value in each.items() if value}
