"""Nodes of a cluster in the terms of the planner."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobman.engines.kubernetes.managed.nodes import Pool, described, due_of, grown, seen, state_of, taken
from jobman.engines.kubernetes.objects import Condition, Meta, Node, NodeInfo, NodeSpec, NodeStatus, Taint
from jobman.plan.nodes import COPY

NOW = 1_800_000_000.0
POOL = Pool(topology={"node": "kubernetes.io/hostname", "rack": "site/rack"})
READY = Condition(type="Ready", status="True")


def node(allocatable=None, *conditions, name="n1", labels=None, taints=(), **spec):
    return Node(
        metadata=Meta(name=name, labels=labels or {}),
        spec=NodeSpec(taints=[Taint(**taint) for taint in taints], **spec),
        status=NodeStatus(
            allocatable={"cpu": "4", "memory": "8Gi"} if allocatable is None else allocatable,
            conditions=list(conditions) or [READY],
            node_info=NodeInfo(architecture="amd64", operating_system="linux", kernel_version="6.1"),
        ),
    )


def away(seconds, status="Unknown", message=""):
    since = datetime.fromtimestamp(NOW - seconds, UTC)
    return Condition(type="Ready", status=status, message=message, last_transition_time=since)


def test_amounts_have_the_names_of_the_language_and_cores_are_whole():
    found = described(
        node(
            {
                "cpu": "3920m",
                "memory": "7Gi",
                "ephemeral-storage": "10G",
                "nvidia.com/gpu": "2",
                "example.com/fpga": "1",
                "pods": "110",
                "hugepages-2Mi": "0",
            }
        ),
        POOL,
    )
    assert found.amounts == {
        "core": 3,
        "memory": 7 * 2**30,
        "storage": 10**10,
        "gpu": 2,
        "example.com/fpga": 1,
        COPY: 110,
    }


def test_another_resource_can_be_the_gpu():
    pool = Pool(gpu_resource="amd.com/gpu")
    assert described(node({"cpu": 1, "amd.com/gpu": 4}), pool).amounts["gpu"] == 4


def test_labels_are_facts_and_so_is_what_every_machine_is_asked_for():
    labels = {"site/rack": "r7", "disk": "fast", "kubernetes.io/hostname": "n1.example"}
    found = described(node(labels=labels), POOL)
    assert found.labels == labels
    assert found.facts == {
        **labels,
        "rack": "r7",
        "io.archspec.cpu.target": "amd64",
        "os.name": "linux",
        "os.kernel": "6.1",
        "host.name": "n1",
        "hardware.gpu.available": "no",
    }


def test_a_label_says_it_better_than_we():
    assert described(node(labels={"os.name": "talos"}), POOL).facts["os.name"] == "talos"


@pytest.mark.parametrize(
    ("found", "state", "words"),
    [
        (node(), "up", ""),
        (node(None, away(5)), "suspect", "node n1 does not answer"),
        (node(None, away(500)), "down", "node n1 does not answer"),
        (node(None, away(500, "False", "no network")), "down", "node n1 is not ready: no network"),
        (node(unschedulable=True), "drained", "node n1 is cordoned"),
        (node(taints=[{"key": "gpu", "effect": "NoSchedule"}]), "drained", "node n1 has the taint gpu"),
        (node(taints=[{"key": "soft", "effect": "PreferNoSchedule"}]), "up", ""),
        (node(taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]), "up", ""),
        (
            node(taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]),
            "drained",
            "node n1 has the taint node.kubernetes.io/out-of-service",
        ),
        (
            node(None, READY, Condition(type="DiskPressure", status="True", message="the disk is full")),
            "drained",
            "node n1: the disk is full",
        ),
        (
            node(None, READY, Condition(type="NetworkUnavailable", status="True")),
            "drained",
            "node n1: NetworkUnavailable",
        ),
        (node(None, READY, Condition(type="MemoryPressure", status="False")), "up", ""),
    ],
)
def test_the_state_of_a_node(found, state, words):
    assert state_of(found, POOL, NOW) == (state, words)


def test_a_node_that_was_never_heard_of_is_down():
    assert state_of(node(None, Condition(type="MemoryPressure", status="False")), POOL, NOW)[0] == "down"


def test_a_node_that_is_being_deleted_is_down():
    found = node()
    found.metadata.deletion_timestamp = datetime.fromtimestamp(NOW, UTC)
    assert state_of(found, POOL, NOW) == ("down", "node n1 is being deleted")


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "pool", "operator": "Exists"},
        {"operator": "Exists"},
        {"key": "pool", "value": "jobs", "effect": "NoSchedule"},
    ],
)
def test_taints_that_our_pods_bear_close_nothing(toleration):
    found = node(taints=[{"key": "pool", "value": "jobs", "effect": "NoSchedule"}])
    assert state_of(found, Pool(tolerations=(toleration,)), NOW) == ("up", "")


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "other", "operator": "Exists"},
        {"key": "pool", "value": "else"},
        {"key": "pool", "operator": "Exists", "effect": "NoExecute"},
    ],
)
def test_taints_that_our_pods_do_not_bear_do(toleration):
    found = node(taints=[{"key": "pool", "value": "jobs", "effect": "NoSchedule"}])
    assert state_of(found, Pool(tolerations=(toleration,)), NOW)[0] == "drained"


def test_a_suspect_node_is_looked_at_again_when_its_time_is_up():
    found = node(None, away(5))
    due = due_of(found, NOW)
    assert due is not None
    assert state_of(found, POOL, due - 0.001)[0] == "suspect"
    assert state_of(found, POOL, due)[0] == "down"
    assert due_of(found, due) is None
    assert due_of(node(), NOW) is None


def test_only_nodes_with_the_labels_of_the_pool_are_ours():
    pool = Pool(labels={"pool": "jobs"})
    assert pool.has(node(labels={"pool": "jobs", "disk": "fast"}))
    assert not pool.has(node(labels={"pool": "web"}))


# -- what is not ours ----------------------------------------------------------------------------------------


def test_others_have_first_what_is_left_over_of_a_core():
    found = node({"cpu": "3920m", "memory": "8Gi"})
    known = described(found, POOL)
    assert taken(known, found, {"core": Fraction(9, 10)}, POOL) == {}
    assert taken(known, found, {"core": Fraction(1)}, POOL) == {"core": 0.08}


def test_what_a_node_has_lost_is_taken_and_what_it_gains_is_there():
    before = described(node({"cpu": "4", "nvidia.com/gpu": "0"}), POOL)
    later = node({"cpu": "4", "nvidia.com/gpu": "8"})
    known = grown(before, described(later, POOL))
    assert known.amounts == {"core": 4, "gpu": 8}
    assert known.facts["hardware.gpu.available"] == "yes"
    broken = node({"cpu": "4", "nvidia.com/gpu": "7"})
    assert grown(known, described(broken, POOL)).amounts == {"core": 4, "gpu": 8}
    assert taken(known, broken, {}, POOL) == {"gpu": 1}
    assert taken(known, node({"cpu": "4"}), {"gpu": Fraction(3)}, POOL) == {"gpu": 8}


thousandths = some.integers(0, 64_000).map(lambda count: Fraction(count, 1000))


@given(first=thousandths, now=thousandths, used=thousandths)
def test_what_is_ours_is_never_more_than_there_is_and_as_much_as_can_be(first, now, used):
    def with_cores(amount):
        return node({"cpu": f"{int(amount * 1000)}m"})

    current = with_cores(now)
    known = grown(described(with_cores(first), POOL), described(current, POOL))
    foreign = taken(known, current, {"core": used}, POOL).get("core", 0.0)
    ours = known.amounts["core"] - foreign
    assert 0 <= foreign <= known.amounts["core"]
    assert ours == pytest.approx(float(min(max(now - used, 0), known.amounts["core"])))


def test_all_of_it_is_said_at_once():
    found = seen(node(unschedulable=True), POOL, NOW, {"core": 1.0})
    assert (found.node.name, found.state, found.foreign) == ("n1", "drained", {"core": 1.0})
