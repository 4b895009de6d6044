"""What NetworkPolicies say is what the rules let through."""

import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.network_policies import (
    Address,
    Cluster,
    NamedPort,
    Pod,
    isolations,
    read_pod,
    ruleset,
    selects,
    settled,
)
from tests.lab.policy_reference import Connection, Firewall, allowed

NAMESPACES = {"red": {"name": "red", "team": "a"}, "blue": {"name": "blue"}}
STRANGERS = [Address("192.0.2.7"), Address("10.0.0.100"), Address("10.0.0.200")]
DNS = Pod(
    "blue",
    "dns",
    "dns",
    {"app": "dns"},
    (Address("10.9.9.9"),),
    (NamedPort("dns", "UDP", 53),),
    stand_in=True,
)


def pod(name: str, namespace: str = "red", ports: tuple[NamedPort, ...] = (), **labels: str) -> Pod:
    number = sum(map(ord, name)) % 200
    return Pod(namespace, name, name, labels, (Address(f"10.0.0.{number}"),), ports)


def policy(
    selector: dict[str, Any] | None = None, *, namespace: str = "red", **spec: Any
) -> dict[str, dict[str, Any]]:
    return {"metadata": {"namespace": namespace}, "spec": {"podSelector": selector or {}, **spec}}


def cluster(*pods: Pod, policies: list[Any]) -> Cluster:
    return Cluster(pods, NAMESPACES, tuple(policies))


def rules(world: Cluster) -> str:
    return ruleset("test", "bridge-*", isolations(world))


def lets(world: Cluster, source: Pod | Address, target: Pod | Address, port: int = 80, protocol: str = "TCP"):
    start, end = (each.addresses[0] if isinstance(each, Pod) else each for each in (source, target))
    connection = Connection(start, end, protocol, port)
    through = Firewall(rules(world)).lets(connection)
    assert through == allowed(world, connection)
    return through


A, B, OTHER = pod("a", app="a"), pod("b", app="b"), pod("other", "blue", app="a")
ONLY_A = [{"podSelector": {"matchLabels": {"app": "a"}}}]


def test_without_policies_everybody_meets_everybody():
    world = cluster(A, B, policies=[])
    assert lets(world, A, B)
    assert "vmap" not in rules(world)


def test_a_policy_without_rules_lets_nobody_in_and_everybody_out():
    world = cluster(A, B, policies=[policy({"matchLabels": {"app": "b"}})])
    assert not lets(world, A, B)
    assert not lets(world, STRANGERS[0], B)
    assert lets(world, B, A)


def test_a_pod_meets_itself_whatever_policies_say():
    assert lets(cluster(A, policies=[policy(policyTypes=["Ingress", "Egress"])]), A, A)


def test_a_connection_needs_the_leave_of_both_ends():
    out = policy({"matchLabels": {"app": "a"}}, policyTypes=["Egress"], egress=[{"ports": [{"port": 80}]}])
    into = policy({"matchLabels": {"app": "b"}}, ingress=[{"ports": [{"port": 81}]}])
    world = cluster(A, B, policies=[out, into])
    assert not lets(world, A, B, 80)
    assert not lets(world, A, B, 81)


def test_policies_of_one_pod_add_up():
    deny, allow = policy(), policy(ingress=[{"from": ONLY_A}])
    assert lets(cluster(A, B, policies=[deny, allow]), A, B)


def test_pods_of_another_namespace_are_peers_only_by_a_selector_of_namespaces():
    near = cluster(A, B, OTHER, policies=[policy(ingress=[{"from": ONLY_A}])])
    assert lets(near, A, B)
    assert not lets(near, OTHER, B)
    peer = {"namespaceSelector": {"matchLabels": {"name": "blue"}}, **ONLY_A[0]}
    far = cluster(A, B, OTHER, policies=[policy(ingress=[{"from": [peer]}])])
    assert not lets(far, A, B)
    assert lets(far, OTHER, B)


def test_peers_of_whom_none_is_there_are_not_everybody():
    nobody = [{"podSelector": {"matchLabels": {"app": "nobody"}}}]
    assert not lets(cluster(A, B, policies=[policy(ingress=[{"from": nobody}])]), A, B)


def test_a_port_whose_name_nobody_gives_is_not_every_port():
    world = cluster(A, B, policies=[policy(ingress=[{"ports": [{"port": "web"}]}])])
    assert not lets(world, A, B)


def test_a_named_port_is_what_the_called_pod_gives_the_name():
    one = pod("one", ports=(NamedPort("web", "TCP", 80),))
    two = pod("two", ports=(NamedPort("web", "TCP", 81), NamedPort("web", "UDP", 82)))
    into = cluster(one, two, policies=[policy(ingress=[{"ports": [{"port": "web"}]}])])
    out = cluster(one, two, policies=[policy(policyTypes=["Egress"], egress=[{"ports": [{"port": "web"}]}])])
    for world in (into, out):
        assert lets(world, two, one, 80)
        assert lets(world, one, two, 81)
        assert not lets(world, one, two, 80)
        assert not lets(world, one, two, 82, "UDP")


def test_a_block_of_addresses_has_holes():
    block = {"cidr": "192.0.2.0/24", "except": ["192.0.2.0/29"]}
    world = cluster(A, policies=[policy(ingress=[{"from": [{"ipBlock": block}]}])])
    assert lets(world, Address("192.0.2.8"), A)
    assert not lets(world, Address("192.0.2.7"), A)


def test_a_block_of_the_other_version_is_nobody_here():
    world = cluster(A, policies=[policy(ingress=[{"from": [{"ipBlock": {"cidr": "::/0"}}]}])])
    assert not lets(world, STRANGERS[0], A)


def test_ports_in_a_range_and_all_of_a_protocol():
    ports = [{"port": 80, "endPort": 82}, {"protocol": "UDP"}]
    world = cluster(A, B, policies=[policy(ingress=[{"ports": ports}])])
    assert [lets(world, A, B, port) for port in (79, 80, 82, 83)] == [False, True, True, False]
    assert lets(world, A, B, 9, "UDP")
    assert not lets(world, A, B, 80, "SCTP")


def test_a_port_between_two_open_ones_is_closed():
    world = cluster(A, B, policies=[policy(ingress=[{"ports": [{"port": 82}, {"port": 80}, {"port": 83}]}])])
    assert [lets(world, A, B, port) for port in (79, 80, 81, 82, 83, 84)] == [
        False,
        True,
        False,
        True,
        True,
        False,
    ]


def test_egress_is_meant_without_policy_types_where_there_are_rules_for_it():
    world = cluster(A, B, policies=[policy({"matchLabels": {"app": "a"}}, egress=[{"ports": [{"port": 1}]}])])
    assert not lets(world, A, B)
    assert not lets(world, B, A)
    assert lets(cluster(A, B, policies=[policy({"matchLabels": {"app": "a"}}, egress=[])]), A, B)


def test_names_are_asked_for_where_policies_say_so():
    to_dns = {"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "dns"}}}]}
    closed = cluster(A, DNS, policies=[policy(policyTypes=["Egress"])])
    opened = cluster(
        A, DNS, policies=[policy(egress=[to_dns | {"ports": [{"port": "dns", "protocol": "UDP"}]}])]
    )
    assert not lets(closed, A, DNS, 53, "UDP")
    assert lets(opened, A, DNS, 53, "UDP")
    assert not lets(opened, A, DNS, 53, "TCP")


def test_a_process_of_the_machine_is_held_to_no_policy():
    assert lets(cluster(A, DNS, policies=[policy(namespace="blue")]), A, DNS)


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ({}, "a b none"),
        ({"matchLabels": {"app": "a"}}, "a"),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "c"]}]}, "a"),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}, "b none"),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "a b"),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, "none"),
        ({"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, ""),
    ],
)
def test_a_selector_means_those_that_pass_all_of_it(selector: dict[str, Any], meant: str):
    known = {"a": {"app": "a"}, "b": {"app": "b"}, "none": {}}
    assert [name for name, marks in known.items() if selects(selector, marks)] == meant.split()


def test_of_pods_that_claim_an_address_the_last_one_has_it():
    old, new = pod("same", app="old"), Pod("red", "new", "new", {"app": "new"}, pod("same").addresses)
    assert [each.addresses for each in settled([old, new])] == [(), new.addresses]


@pytest.mark.parametrize(
    "change",
    [{"status": {"phase": "Succeeded"}}, {"status": {"phase": "Failed"}}, {"spec": {"hostNetwork": True}}],
)
def test_a_pod_that_ended_or_is_its_node_takes_part_in_nothing(change: dict[str, Any]):
    written: dict[str, Any] = {
        "metadata": {"namespace": "red", "name": "a", "uid": "1"},
        "spec": {"containers": [{"ports": [{"name": "web", "containerPort": 80}]}]},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
    }
    assert read_pod(written).addresses == (Address("10.0.0.1"),)
    assert read_pod(written).ports == (NamedPort("web", "TCP", 80),)
    assert read_pod({key: value | change.get(key, {}) for key, value in written.items()}).addresses == ()


# -- any policies --------------------------------------------------------------------------------------------

keys, values = st.sampled_from(["app", "team", "name"]), st.sampled_from(["a", "b", "red"])
labels = st.dictionaries(keys, values, max_size=2)
expressions = st.one_of(
    st.builds(
        lambda key, operator, among: {"key": key, "operator": operator, "values": among},
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=2),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        keys,
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
selectors = st.fixed_dictionaries(
    {}, optional={"matchLabels": labels, "matchExpressions": st.lists(expressions, max_size=2)}
)
blocks = st.sampled_from(
    [
        {"cidr": "0.0.0.0/0"},
        {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/25"]},
        {"cidr": "10.0.0.0/24", "except": ["10.0.0.0/30", "10.0.0.128/25"]},
        {"cidr": "10.0.0.0/24", "except": ["10.0.0.0/26", "10.0.0.0/25"]},
        {"cidr": "192.0.2.7/32"},
        {"cidr": "10.0.0.2/31"},
        {"cidr": "10.9.0.0/16"},
    ]
)
peers = st.one_of(
    st.builds(lambda block: {"ipBlock": block}, blocks),
    st.builds(lambda pods: {"podSelector": pods}, selectors),
    st.builds(lambda names: {"namespaceSelector": names}, selectors),
    st.builds(lambda pods, names: {"podSelector": pods, "namespaceSelector": names}, selectors, selectors),
)
protocols = st.sampled_from(["TCP", "UDP", "SCTP"])
written_ports = st.one_of(
    st.fixed_dictionaries(
        {"port": st.sampled_from([53, 80, 82, "web", "dns"])}, optional={"protocol": protocols}
    ),
    st.fixed_dictionaries(
        {"port": st.sampled_from([53, 79]), "endPort": st.sampled_from([80, 90])},
        optional={"protocol": protocols},
    ),
    st.fixed_dictionaries({"protocol": protocols}),
)


def written_rules(peer_key: str) -> st.SearchStrategy[list[Any]]:
    rule = st.fixed_dictionaries(
        {}, optional={peer_key: st.lists(peers, max_size=2), "ports": st.lists(written_ports, max_size=3)}
    )
    return st.lists(rule, max_size=2)


policies = st.builds(
    lambda namespace, spec: {"metadata": {"namespace": namespace}, "spec": spec},
    st.sampled_from(list(NAMESPACES)),
    st.fixed_dictionaries(
        {"podSelector": selectors},
        optional={
            "policyTypes": st.sampled_from([["Ingress"], ["Egress"], ["Ingress", "Egress"]]),
            "ingress": written_rules("from"),
            "egress": written_rules("to"),
        },
    ),
)
ports_of_pods = st.lists(
    st.builds(NamedPort, st.sampled_from(["web", "dns"]), protocols, st.sampled_from([53, 80, 81])),
    max_size=2,
).map(tuple)
some_pods = st.lists(
    st.tuples(st.sampled_from(list(NAMESPACES)), labels, ports_of_pods), min_size=1, max_size=4
)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    pods = [
        Pod(namespace, f"pod-{number}", str(number), marks, (Address(f"10.0.0.{number}"),), ports)
        for number, (namespace, marks, ports) in enumerate(draw(some_pods), start=1)
    ]
    return Cluster((*pods, DNS), NAMESPACES, tuple(draw(st.lists(policies, min_size=1, max_size=3))))


@given(clusters())
def test_the_rules_let_through_what_the_policies_allow(world: Cluster):
    firewall = Firewall(rules(world))
    addresses = [*(address for pod in world.pods for address in pod.addresses), *STRANGERS]
    for source in addresses:
        for target in addresses:
            for protocol, port in (
                ("TCP", 80),
                ("TCP", 81),
                ("UDP", 53),
                ("UDP", 80),
                ("SCTP", 85),
                ("ICMP", 0),
            ):
                connection = Connection(source, target, protocol, port)
                assert firewall.lets(connection) == allowed(world, connection), connection


@pytest.mark.slow
@pytest.mark.component("kubernetes")
@pytest.mark.lab("it is about the lab itself")
@given(clusters())
def test_nft_takes_the_rules_of_any_policies(world: Cluster):
    nft = shutil.which("nft")
    assert nft
    subprocess.run([nft, "--check", "--file", "-"], input=rules(world), text=True, check=True)
