"""What the NetworkPolicies of a cluster allow, as a ruleset for nftables: decided from plain objects."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

Address = ipaddress.IPv4Address
Network = ipaddress.IPv4Network
Labels = Mapping[str, str]
Written = Mapping[str, Any]

_ENDED = ("Succeeded", "Failed")
_ALL_PORTS = (0, 65535)
_COMMENT = 127  # nft takes no longer one


class Direction(Enum):
    """Of a connection, by the eyes of the pod that a policy selects; valued as in `policyTypes`."""

    ENTERING = "Ingress"
    LEAVING = "Egress"

    @property
    def rules(self) -> str:
        return self.value.lower()

    @property
    def peers(self) -> str:
        return {"Ingress": "from", "Egress": "to"}[self.value]


@dataclass(frozen=True, order=True)
class Ports:
    """A range of the ports of one protocol, both ends included."""

    protocol: str
    first: int
    last: int


@dataclass(frozen=True)
class NamedPort:
    """A port that a container of a pod gives a name."""

    name: str
    protocol: str
    number: int


@dataclass(frozen=True)
class Pod:
    """What a policy can know of a pod; without an address it takes part in nothing."""

    namespace: str
    name: str
    uid: str
    labels: Labels
    addresses: tuple[Address, ...] = ()
    ports: tuple[NamedPort, ...] = ()
    started: str = ""
    ended: bool = False
    # It is met as a peer, but is a process of the machine and no pod: nothing holds it to policies.
    stand_in: bool = False


@dataclass(frozen=True)
class Cluster:
    """Everything that decides."""

    pods: tuple[Pod, ...]
    namespaces: Mapping[str, Labels]
    policies: tuple[Written, ...]


@dataclass(frozen=True)
class Allowance:
    """Peers and ports that may be met in any combination; None is every one, an empty tuple would be none."""

    peers: tuple[Network, ...] | None
    ports: tuple[Ports, ...] | None


@dataclass(frozen=True)
class Isolation:
    """A pod that meets in one direction only whom one of the allowances names."""

    pod: Pod
    direction: Direction
    allowances: tuple[Allowance, ...]


# -- objects -------------------------------------------------------------------------------------------------


def read_pod(written: Written) -> Pod:
    """A pod as the cluster writes it.

    One that ended has given its address back, and others may have it by now; one in the network of its node
    is the node, which no policy is about.
    """
    about, spec, status = written["metadata"], written.get("spec", {}), written.get("status", {})
    ended = status.get("phase") in _ENDED
    apart = not ended and not spec.get("hostNetwork")
    known = [each["ip"] for each in status.get("podIPs") or () if "ip" in each]
    return Pod(
        namespace=about["namespace"],
        name=about["name"],
        uid=about.get("uid", ""),
        labels=about.get("labels") or {},
        addresses=tuple(Address(each) for each in known if ":" not in each) if apart else (),
        ports=tuple(_named_ports(spec)),
        started=status.get("startTime") or "",
        ended=ended,
    )


def _named_ports(spec: Written) -> Iterator[NamedPort]:
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for port in container.get("ports") or ():
            if port.get("name"):
                yield NamedPort(port["name"], port.get("protocol", "TCP"), port["containerPort"])


def settled(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Each address with one pod: where several claim it, the last of them has it."""
    pods = list(pods)
    owners = {address: number for number, pod in enumerate(pods) for address in pod.addresses}
    return tuple(
        replace(pod, addresses=tuple(each for each in pod.addresses if owners[each] == number))
        for number, pod in enumerate(pods)
    )


def selects(selector: Written, labels: Labels) -> bool:
    """Whether a label selector, of which an empty one means everything, means these labels."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _OPERATORS[each["operator"]](labels.get(each["key"]), each.get("values") or ())
        for each in selector.get("matchExpressions") or ()
    )


_OPERATORS: dict[str, Callable[[str | None, Sequence[str]], bool]] = {
    "In": lambda label, values: label is not None and label in values,
    "NotIn": lambda label, values: label is None or label not in values,
    "Exists": lambda label, _: label is not None,
    "DoesNotExist": lambda label, _: label is None,
}


# -- decisions -----------------------------------------------------------------------------------------------


def isolations(cluster: Cluster) -> list[Isolation]:
    """Every pod that at least one policy selects, once per direction that such a policy is about."""
    return [
        Isolation(pod, direction, tuple(_allowances(cluster, pod, direction, about_it)))
        for pod in cluster.pods
        if pod.addresses and not pod.stand_in
        for direction in Direction
        if (about_it := [each for each in cluster.policies if _is_about(each, pod, direction)])
    ]


def _is_about(policy: Written, pod: Pod, direction: Direction) -> bool:
    return (
        policy["metadata"]["namespace"] == pod.namespace
        and direction.value in _types(policy["spec"])
        and selects(policy["spec"].get("podSelector") or {}, pod.labels)
    )


def _types(spec: Written) -> tuple[str, ...]:
    default = ("Ingress", "Egress") if spec.get("egress") else ("Ingress",)
    return tuple(spec.get("policyTypes") or default)


def _allowances(
    cluster: Cluster, pod: Pod, direction: Direction, policies: Iterable[Written]
) -> Iterator[Allowance]:
    for policy in policies:
        for rule in policy["spec"].get(direction.rules) or ():
            peers = _peers(cluster, policy["metadata"]["namespace"], rule.get(direction.peers) or ())
            if peers != ():
                yield from _with_ports(cluster, pod, direction, peers, rule.get("ports") or ())


def _peers(cluster: Cluster, namespace: str, peers: Iterable[Written]) -> tuple[Network, ...] | None:
    """No peers written is every peer; peers of whom none is there now are none."""
    peers = list(peers)
    if not peers:
        return None
    found = [network for peer in peers for network in _networks(cluster, namespace, peer)]
    merged = tuple(ipaddress.collapse_addresses(found))
    return None if merged == (Network("0.0.0.0/0"),) else merged


def _networks(cluster: Cluster, namespace: str, peer: Written) -> Iterator[Network]:
    if block := peer.get("ipBlock"):
        yield from _block(block)
        return
    of_pods, of_namespaces = peer.get("podSelector"), peer.get("namespaceSelector")
    for pod in cluster.pods:
        near = (
            pod.namespace == namespace
            if of_namespaces is None
            else pod.namespace in cluster.namespaces
            and selects(of_namespaces, cluster.namespaces[pod.namespace])
        )
        if near and selects(of_pods or {}, pod.labels):
            yield from map(Network, pod.addresses)


def _block(block: Written) -> list[Network]:
    """Pods have addresses of version 4 alone here: a block of the other version means none of them."""
    if ":" in block["cidr"]:
        return []
    left = [Network(block["cidr"], strict=False)]
    for hole in block.get("except") or ():
        left = [part for each in left for part in _without(each, Network(hole, strict=False))]
    return left


def _without(network: Network, hole: Network) -> list[Network]:
    if network.subnet_of(hole):
        return []
    return list(network.address_exclude(hole)) if hole.subnet_of(network) else [network]


def _with_ports(
    cluster: Cluster,
    pod: Pod,
    direction: Direction,
    peers: tuple[Network, ...] | None,
    written: Iterable[Written],
) -> Iterator[Allowance]:
    """The name of a port means what the pod that is called gives it: on the way out, each peer its own."""
    written = list(written)
    if not written:
        yield Allowance(peers, None)
        return
    known = [_ports(each) for each in written if not isinstance(each.get("port"), str)]
    names = [
        (each["port"], each.get("protocol", "TCP")) for each in written if isinstance(each.get("port"), str)
    ]
    if direction is Direction.ENTERING:
        known += [ports for _, ports in _called(names, [pod])]
    elif names:
        for callee, ports in _called(names, cluster.pods):
            yield from _to_pod(callee, ports, peers)
    if known:
        yield Allowance(peers, tuple(_merged(known)))


def _ports(written: Written) -> Ports:
    first, last = _ALL_PORTS
    if "port" in written:
        first = int(written["port"])
        last = int(written.get("endPort", first))
    return Ports(written.get("protocol", "TCP"), first, last)


def _called(names: Iterable[tuple[str, str]], pods: Iterable[Pod]) -> Iterator[tuple[Pod, Ports]]:
    wanted = set(names)
    for pod in pods:
        for port in pod.ports:
            if (port.name, port.protocol) in wanted:
                yield pod, Ports(port.protocol, port.number, port.number)


def _to_pod(pod: Pod, ports: Ports, peers: tuple[Network, ...] | None) -> Iterator[Allowance]:
    meant = tuple(
        Network(address)
        for address in pod.addresses
        if peers is None or any(address in network for network in peers)
    )
    if meant:
        yield Allowance(meant, (ports,))


def _merged(ports: Iterable[Ports]) -> list[Ports]:
    """The same ports in ranges that do not touch."""
    merged: list[Ports] = []
    for each in sorted(ports):
        before = merged[-1] if merged else None
        if before and before.protocol == each.protocol and each.first <= before.last + 1:
            merged[-1] = replace(before, last=max(before.last, each.last))
        else:
            merged.append(each)
    return merged


# -- rules ---------------------------------------------------------------------------------------------------


def ruleset(table: str, bridges: str, found: Iterable[Isolation]) -> str:
    """One transaction of nft that puts the table in the place of the one there was.

    Packets between pods of one node reach these hooks from the bridge (bridge-nf-call-iptables); those to the
    machine itself come in by `input`. Who was let in is answered, whatever the policies say by then.
    """
    chains: list[str] = []
    jumps: dict[Direction, list[str]] = {direction: [] for direction in Direction}
    for isolation in found:
        for address in isolation.pod.addresses:
            name = f"{isolation.direction.name.lower()}-{address}".replace(".", "-")
            chains += _chain(name, address, isolation)
            jumps[isolation.direction].append(f"{address} : jump {name}")
    decide = [
        # Nobody gives pods such an address, but each has one by its link, of which policies know nothing.
        f'iifname "{bridges}" meta nfproto ipv6 drop',
        "ct state established,related accept",
    ]
    for direction, field in ((Direction.LEAVING, "saddr"), (Direction.ENTERING, "daddr")):
        if jumps[direction]:
            decide.append(f"ip {field} vmap {{ {', '.join(jumps[direction])} }}")
    lines = [f"table inet {table}", f"delete table inet {table}", f"table inet {table} {{", *chains]
    lines += ["chain policies {", *decide, "}"]
    for hook in ("forward", "input"):
        lines += [f"chain {hook} {{", f"type filter hook {hook} priority filter; policy accept;"]
        lines += ["jump policies", "}"]
    return "\n".join([*lines, "}", ""])


def _chain(name: str, address: Address, isolation: Isolation) -> list[str]:
    """Back to where it came from with what is allowed: the other end may have policies of its own."""
    field = "saddr" if isolation.direction is Direction.ENTERING else "daddr"
    itself = f"ip {field} {address} return"
    allowed = [rule for each in isolation.allowances for rule in _rules(field, each)]
    return [
        f"chain {name} {{",
        f'comment "{f"{isolation.pod.namespace}/{isolation.pod.name}"[:_COMMENT]}"',
        *dict.fromkeys([itself, *allowed]),
        "drop",
        "}",
    ]


def _rules(field: str, allowance: Allowance) -> Iterator[str]:
    peers = "" if allowance.peers is None else f"ip {field} {{ {', '.join(map(str, allowance.peers))} }} "
    if allowance.ports is None:
        yield f"{peers}return"
        return
    for protocol in dict.fromkeys(each.protocol for each in allowance.ports):
        ranges = [_range(each) for each in allowance.ports if each.protocol == protocol]
        yield f"{peers}{protocol.lower()} dport {{ {', '.join(ranges)} }} return"


def _range(ports: Ports) -> str:
    return str(ports.first) if ports.first == ports.last else f"{ports.first}-{ports.last}"
