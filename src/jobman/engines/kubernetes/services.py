"""How copies are reached: names inside the job, ports from outside, and walls around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.pods import port_name
from jobman.engines.kubernetes.target import Target
from jobman.plan.model import Unit
from jobman.spec.networks import Port

_FIRST_FREE = 8000
_DNS = 53


def port_numbers(ports: Iterable[Port]) -> dict[str, int]:
    """A number for each port: every pod has an address of its own, so any that is not given is free."""
    given = {port.port for port in ports if port.port is not None}
    found: dict[str, int] = {}
    number = _FIRST_FREE
    for port in ports:
        if port.port is not None:
            found[port.name or str(port.port)] = port.port
            continue
        while number in given:
            number += 1
        given.add(number)
        found[port.name or ""] = number
    return found


def headless(name: str, labels: Mapping[str, str], target: Target) -> Written:
    """Names for all pods of a job, from the moment they have an address."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.JOB: target.job_id},
    }
    return _object("v1", "Service", name, labels, target, spec)


def door(name: str, selector: Mapping[str, str], labels: Mapping[str, str], target: Target) -> Written:
    """A name that leads to one pod after the other, whichever is there now."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": dict(selector)}
    return _object("v1", "Service", name, labels, target, spec)


def exposed(
    name: str, unit: Unit, numbers: Mapping[str, int], labels: Mapping[str, str], target: Target
) -> Written | None:
    """A Service for the ports of a task that are to be reached from outside its job."""
    ports = [
        {
            "name": port_name(port.name) if port.name else f"port-{port.port}",
            "port": numbers[port.name or str(port.port)],
            "protocol": port.protocol.upper(),
        }
        for port in unit.policies.ports
        if port.expose
    ]
    if not ports:
        return None
    selector = {names.JOB: target.job_id, names.TASK: names.label_value(unit.id)}
    return _object("v1", "Service", name, labels, target, {"selector": selector, "ports": ports})


def isolation(name: str, open_ports: list[Port], labels: Mapping[str, str], target: Target) -> Written:
    """No traffic from or to anything but the job itself, names apart; exposed ports stay open."""
    own = {"podSelector": {"matchLabels": {names.JOB: target.job_id}}}
    ingress: list[dict[str, Any]] = [{"from": [own]}]
    if open_ports:
        ingress.append(
            {"ports": [{"port": port.port, "protocol": port.protocol.upper()} for port in open_ports]}
        )
    dns = [{"port": _DNS, "protocol": protocol} for protocol in ("UDP", "TCP")]
    spec = {
        **own,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": ingress,
        "egress": [{"to": [own]}, {"ports": dns}],
    }
    return _object("networking.k8s.io/v1", "NetworkPolicy", name, labels, target, spec)


def _object(api: str, kind: str, name: str, labels: Mapping[str, str], target: Target, spec: Any) -> Written:
    metadata = {"name": name, "namespace": target.namespace, "labels": dict(labels)}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
