"""Two ways to know whether a connection is allowed: by the words of the policies, and by the rules."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from lab.network_policies import Address, Cluster, Pod, selects


@dataclass(frozen=True)
class Connection:
    """The first packet of one; a protocol without ports is asked for with any."""

    source: Address
    target: Address
    protocol: str
    port: int


def allowed(cluster: Cluster, connection: Connection) -> bool:
    """As the documentation of NetworkPolicy has it, one packet and one sentence at a time."""
    if connection.source == connection.target:
        return True
    leaving = _may(cluster, connection, "Egress", "to", connection.source, connection.target)
    return leaving and _may(cluster, connection, "Ingress", "from", connection.target, connection.source)


def _may(
    cluster: Cluster, connection: Connection, kind: str, peers: str, subject: Address, other: Address
) -> bool:
    pod = pod_at(cluster, subject)
    if pod is None or pod.stand_in:
        return True
    about_it = [
        policy
        for policy in cluster.policies
        if policy["metadata"]["namespace"] == pod.namespace
        and kind in types(policy["spec"])
        and selects(policy["spec"]["podSelector"], pod.labels)
    ]
    return not about_it or any(
        (not rule.get(peers) or any(_is_peer(cluster, policy, each, other) for each in rule[peers]))
        and (not rule.get("ports") or any(_is_port(cluster, each, connection) for each in rule["ports"]))
        for policy in about_it
        for rule in policy["spec"].get(kind.lower(), [])
    )


def types(spec: dict[str, Any]) -> list[str]:
    return spec.get("policyTypes") or (["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])


def _is_peer(cluster: Cluster, policy: Any, peer: dict[str, Any], address: Address) -> bool:
    if "ipBlock" in peer:
        outside = [ipaddress.ip_network(each) for each in peer["ipBlock"].get("except", [])]
        return address in ipaddress.ip_network(peer["ipBlock"]["cidr"]) and not any(
            address in each for each in outside
        )
    pod = pod_at(cluster, address)
    if pod is None:
        return False
    if "namespaceSelector" in peer:
        near = selects(peer["namespaceSelector"], cluster.namespaces[pod.namespace])
    else:
        near = pod.namespace == policy["metadata"]["namespace"]
    return near and selects(peer.get("podSelector", {}), pod.labels)


def _is_port(cluster: Cluster, written: dict[str, Any], connection: Connection) -> bool:
    if written.get("protocol", "TCP") != connection.protocol:
        return False
    port = written.get("port")
    if port is None:
        return True
    if isinstance(port, int):
        return connection.port in range(port, written.get("endPort", port) + 1)
    pod = pod_at(cluster, connection.target)
    return pod is not None and any(
        (each.name, each.protocol, each.number) == (port, connection.protocol, connection.port)
        for each in pod.ports
    )


def pod_at(cluster: Cluster, address: Address) -> Pod | None:
    return next((pod for pod in cluster.pods if address in pod.addresses), None)


class Firewall:
    """A ruleset, read as nft would; it knows no more of the language than is written here."""

    def __init__(self, text: str) -> None:
        self._chains = {
            name: body.splitlines()[1:-1]
            for name, body in re.findall(r"^chain (\S+) (\{\n.*?\n\})$", text, re.MULTILINE | re.DOTALL)
        }

    def lets(self, connection: Connection) -> bool:
        return self._verdict("forward", connection) != "drop"

    def _verdict(self, chain: str, connection: Connection) -> str:
        for rule in self._chains[chain]:
            outcome = self._outcome(rule, connection)
            if outcome and outcome.startswith("jump "):
                below = self._verdict(outcome.removeprefix("jump "), connection)
                outcome = None if below == "return" else below
            if outcome:
                return outcome
        return "return"

    def _outcome(self, rule: str, connection: Connection) -> str | None:
        """Nothing where the rule is not about this connection: a new one, of version 4."""
        if rule.split(" ", 1)[0] in ("comment", "type", "iifname", "ct"):
            return None
        if rule == "drop" or rule.startswith("jump "):
            return rule
        if found := re.fullmatch(r"ip ([sd]addr) vmap \{ (.*) \}", rule):
            table = dict(each.split(" : ") for each in found[2].split(", "))
            return table.get(str(connection.source if found[1] == "saddr" else connection.target))
        return "return" if self._matches(rule, connection) else None

    def _matches(self, rule: str, connection: Connection) -> bool:
        found = re.fullmatch(
            r"(?:ip ([sd]addr) (?:\{ ([^}]*) \}|(\S+)) )?(?:(\w+) dport \{ ([^}]*) \} )?return", rule
        )
        assert found, f"a rule that this reader does not know: {rule}"
        field, several, one, protocol, ports = found.groups()
        address = connection.source if field == "saddr" else connection.target
        return (
            field is None
            or any(address in ipaddress.ip_network(each) for each in (several or one).split(", "))
        ) and (
            protocol is None
            or (
                protocol == connection.protocol.lower()
                and any(_within(each, connection.port) for each in ports.split(", "))
            )
        )


def _within(ports: str, port: int) -> bool:
    first, _, last = ports.partition("-")
    return int(first) <= port <= int(last or first)
