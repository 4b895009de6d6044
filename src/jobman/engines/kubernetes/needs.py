"""What a pod asks for in all, as the scheduler counts it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from jobman.engines.kubernetes.objects import Container, Pod, PodSpec
from jobman.engines.kubernetes.quantities import Amounts, largest, parse_amounts, total


def needs_of(pod: Pod) -> Amounts:
    """What its containers ask for together, or its steps before them if that is more; and its overhead."""
    return spec_needs(pod.spec)


def spec_needs(spec: PodSpec) -> Amounts:
    """The same of a pod that is not there yet."""
    beside: list[Amounts] = []
    """Of the helpers that were started so far: a step runs beside those before it."""
    moments: list[Amounts] = []
    for container in spec.init_containers:
        needs = _needs(container)
        moments.append(total([*beside, needs]))
        if container.restart_policy == "Always":
            beside.append(needs)
    moments.append(total([*beside, *_all(spec.containers)]))
    needed = total([largest(moments), parse_amounts(spec.overhead)])
    return {name: amount for name, amount in needed.items() if amount}


def _all(containers: Iterable[Container]) -> list[Amounts]:
    return [_needs(container) for container in containers]


def _needs(container: Container) -> Amounts:
    """A limit without a request is a request."""
    return parse_amounts({**container.resources.limits, **container.resources.requests})
