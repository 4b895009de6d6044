"""Walls around jobs and doors in them, and the names by which copies are reached. Pure.

Everything of a service is shut from the moment it is there. A job lets in itself, the jobs it is connected
with, whose pods carry a label that says so, and the proxies; a port that is exposed lets everybody in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobman.engines.kubernetes import names as direct_names
from jobman.engines.kubernetes import services
from jobman.engines.kubernetes.managed import names
from jobman.engines.kubernetes.managed.target import ManagedTarget
from jobman.engines.kubernetes.objects import Written
from jobman.plan.model import Plan, Unit

_DNS = 53
_NAMESPACE = "kubernetes.io/metadata.name"
Peer = dict[str, Any]


def shared_objects(
    plan: Plan, job: str, target: ManagedTarget, *, owner: str = "", connected: bool = True
) -> list[Written]:
    """What all attempts of a job have in common.

    One that is alone and not `connected` needs nothing of its own: the walls of the whole service suffice.
    """
    if not connected and is_alone(plan, target):
        return []
    labels = _labels(plan, job, target, owner)
    inner = target.for_job(job)
    tasks = [unit for unit in plan.units if unit.kind == "task"]
    exposing = [unit for unit in tasks if any(port.expose for port in unit.policies.ports)]
    found = [services.headless(names.service_name(job), labels, inner), _walls(plan, job, labels, target)]
    for unit in exposing:
        own = {**labels, names.TASK: direct_names.label_value(unit.id)}
        name = names.exposed_name(job, unit.id)
        service = services.exposed(name, unit, services.port_numbers(unit.policies.ports), own, inner)
        assert service is not None
        found += [service, _door(name, unit, job, own, target)]
    return found


def namespace_objects(target: ManagedTarget) -> list[Written]:
    """What has to be there before anything is started: nobody gets in where nothing else is said."""
    ours = {"podSelector": {"matchLabels": {names.SERVICE: target.service}}}
    spec: dict[str, Any] = {
        **ours,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [_proxies(target)]}],
    }
    if target.egress == "jobs":
        spec |= {"policyTypes": ["Ingress", "Egress"], "egress": [_names_only()]}
    name = f"jobman-walls-{direct_names.dns_label(target.service, 40)}"
    return [_policy(name, {names.SERVICE: target.service}, target, spec)]


def is_alone(plan: Plan, target: ManagedTarget) -> bool:
    """Whether a job is a single pod that listens to nobody."""
    network = plan.network
    return (
        target.egress == "all"
        and plan.coordinator is None
        and (network is None or not (network.isolated or network.connect))
        and sum(unit.kind == "task" for unit in plan.units) == 1
        and all(_is_silent(unit) for unit in plan.units)
    )


def _is_silent(unit: Unit) -> bool:
    return (
        unit.kind == "task"
        and unit.replicas == 1
        and not unit.policies.ports
        and not unit.service
        and max(unit.copies) == 1
    )


def _walls(plan: Plan, job: str, labels: Mapping[str, str], target: ManagedTarget) -> Written:
    """Who may talk with the pods of a job, and with whom they may."""
    friends = [_pods(names.JOB, job), _pods(names.CONNECT + job, "yes")]
    is_isolated = plan.network is not None and plan.network.isolated
    spec: dict[str, Any] = {
        "podSelector": {"matchLabels": {names.JOB: job}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [*friends, _proxies(target)]}],
    }
    if is_isolated or target.egress == "jobs":
        spec |= {"policyTypes": ["Ingress", "Egress"], "egress": [{"to": friends}, _names_only()]}
    return _policy(names.service_name(job), labels, target, spec)


def _door(name: str, unit: Unit, job: str, labels: Mapping[str, str], target: ManagedTarget) -> Written:
    """The ports of a task that everybody in the cluster may use."""
    numbers = services.port_numbers(unit.policies.ports)
    ports = [
        {"port": numbers[port.name or str(port.port)], "protocol": port.protocol.upper()}
        for port in unit.policies.ports
        if port.expose
    ]
    selector = {names.JOB: job, names.TASK: direct_names.label_value(unit.id)}
    spec = {
        "podSelector": {"matchLabels": selector},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": ports}],
    }
    return _policy(name, labels, target, spec)


def _proxies(target: ManagedTarget) -> Peer:
    namespace = target.proxy_namespace or target.namespace
    return {
        "namespaceSelector": {"matchLabels": {_NAMESPACE: namespace}},
        "podSelector": {"matchLabels": dict(target.proxies)},
    }


def _pods(key: str, value: str) -> Peer:
    return {"podSelector": {"matchLabels": {key: value}}}


def _names_only() -> dict[str, Any]:
    return {"ports": [{"port": _DNS, "protocol": protocol} for protocol in ("UDP", "TCP")]}


def _labels(plan: Plan, job: str, target: ManagedTarget, owner: str) -> dict[str, str]:
    labels = direct_names.job_labels(plan, job, plan.name or job, owner)
    if not owner:
        del labels[names.OWNER]
    return {**labels, names.SERVICE: target.service}


def _policy(name: str, labels: Mapping[str, str], target: ManagedTarget, spec: dict[str, Any]) -> Written:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": target.namespace, "labels": dict(labels)},
        "spec": spec,
    }
