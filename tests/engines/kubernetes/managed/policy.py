"""NetworkPolicies read as a cluster reads them: what is selected by one is shut but for its rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_NAMESPACE = "kubernetes.io/metadata.name"
Policy = Mapping[str, Any]


class Visitor(NamedTuple):
    """A pod: its labels, and its namespace."""

    labels: Mapping[str, str]
    namespace: str


class Network:
    """A network that obeys policies."""

    def __init__(self, policies: Iterable[Policy]) -> None:
        self._policies = list(policies)

    def lets(self, one: Visitor, other: Visitor, port: int, protocol: str = "TCP") -> bool:
        """Whether one pod may connect to another's port."""
        out = self._allows("Egress", one, other, port, protocol)
        return out and self._allows("Ingress", other, one, port, protocol)

    def _allows(self, way: str, at: Visitor, peer: Visitor, port: int, protocol: str) -> bool:
        held = [
            each for each in self._policies if _holds_for(each, at) and way in each["spec"]["policyTypes"]
        ]
        return not held or any(_matches(each, way, peer, port, protocol) for each in held)


def _holds_for(policy: Policy, pod: Visitor) -> bool:
    return policy["metadata"]["namespace"] == pod.namespace and _selects(
        policy["spec"]["podSelector"], pod.labels
    )


def _matches(policy: Policy, way: str, peer: Visitor, port: int, protocol: str) -> bool:
    ends = "from" if way == "Ingress" else "to"
    own = policy["metadata"]["namespace"]
    return any(
        (ends not in rule or any(_is_meant(each, peer, own) for each in rule[ends]))
        and ("ports" not in rule or {"port": port, "protocol": protocol} in rule["ports"])
        for rule in policy["spec"].get(way.lower(), [])
    )


def _is_meant(selector: Mapping[str, Any], peer: Visitor, own: str) -> bool:
    namespaces = selector.get("namespaceSelector")
    is_there = (
        peer.namespace == own if namespaces is None else _selects(namespaces, {_NAMESPACE: peer.namespace})
    )
    return is_there and _selects(selector.get("podSelector", {}), peer.labels)


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted: Mapping[str, str] = selector.get("matchLabels", {})
    return wanted.items() <= labels.items()
